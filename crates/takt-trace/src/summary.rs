//! The figures of a run: the stable, machine-readable contract of `takt sim --json`.
//!
//! Definitions are in `docs/metrics.md`; the JSON schema of these types is committed under
//! `docs/schema/` and checked for freshness.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use takt_core::Hold;

/// Everything measured in one run.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Summary {
    /// Name of the scenario.
    pub scenario: String,
    /// Policy that decided.
    pub policy: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// Simulated seconds.
    pub duration_s: f64,
    /// Seconds that were judged: without the warm-up.
    pub judged_s: f64,
    /// Hash over all events of the run: same seed, same hash, on any machine.
    pub event_hash: String,
    /// What the GPU did.
    pub gpu: GpuSummary,
    /// What the scheduler did.
    pub scheduler: SchedulerSummary,
    /// Every app, most important first.
    pub apps: Vec<AppSummary>,
    /// Missed deadlines with their causes, oldest first; bounded, see `misses_omitted`.
    pub misses: Vec<Miss>,
    /// Missed deadlines beyond those listed.
    pub misses_omitted: u64,
}

/// What the GPU did.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct GpuSummary {
    /// Share of the time spent executing (0..1).
    pub utilisation: f64,
    /// Length of one window of `utilisation_windows` in seconds.
    pub window_s: f64,
    /// When the first window begins, in seconds.
    pub windows_from_s: f64,
    /// Utilisation of each window in turn (0..1).
    pub utilisation_windows: Vec<f64>,
}

/// What the scheduler did.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SchedulerSummary {
    /// Decisions taken, warm-up included.
    pub runs: u64,
    /// Groups dispatched, warm-up included.
    pub dispatched: u64,
    /// Decisions per dispatched group.
    pub runs_per_dispatched: f64,
    /// Completions that did not come in time.
    pub lost: u64,
    /// Events refused.
    pub refused: u64,
}

/// What became of one app.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct AppSummary {
    /// Unique name.
    pub name: String,
    /// Importance, higher wins.
    pub priority: u32,
    /// Frames per second wanted (at the start).
    pub fps_target: f64,
    /// Frames per second finished while attached.
    pub fps: f64,
    /// Frames finished.
    pub frames: u64,
    /// Deadlines that came due while the app was attached and wanted to render.
    pub deadlines: u64,
    /// Deadlines missed.
    pub missed: u64,
    /// Share of deadlines met (0..1); 1 if none came due.
    pub met: f64,
    /// Longest time a ready group waited for work of less important apps.
    pub blocking_us_max: f64,
    /// The same for each group: how long it was ready and waited for work of less important apps.
    pub blocking_us: Quantiles,
    /// Time from incipient arrival to the end of the frame.
    pub response_us: Quantiles,
    /// GPU time of a frame: of all groups since the frame before.
    pub frame_gpu_us: Quantiles,
    /// Share of the GPU's time.
    pub gpu_share: f64,
    /// Predicted over measured time of all groups that were predicted with a bound; 0 if there are
    /// none.
    pub predicted_over_measured: f64,
    /// Share of groups that ran longer than predicted.
    pub under_predicted: f64,
    /// Histogram of (finish − release) / (deadline − release), bins of 5 %; the last bin holds
    /// everything from 200 %.
    pub pd_fft: Vec<u64>,
    /// Missed deadlines by class of cause.
    pub causes: BTreeMap<CauseKind, u64>,
    /// Its jobs, if its own clock releases them; null if its frames follow the display.
    pub jobs: Option<JobsSummary>,
}

impl AppSummary {
    /// Deadlines that came due, and how many of them were missed: those of its jobs if its own clock releases
    /// them, else those that the scheduler judged.
    pub fn judged(&self) -> (u64, u64) {
        self.jobs.as_ref().map_or((self.deadlines, self.missed), |jobs| (jobs.count, jobs.late))
    }

    /// Response times of its jobs if its own clock releases them, else of its frames.
    pub fn judged_response_us(&self) -> Quantiles {
        self.jobs.as_ref().map_or(self.response_us, |jobs| jobs.response_us)
    }
}

/// Jobs that an app's own clock releases, judged by their own deadlines.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct JobsSummary {
    /// Time between two releases.
    pub period_us: f64,
    /// From the release of a job to when it should be done.
    pub deadline_us: f64,
    /// Jobs that are done, or should be.
    pub count: u64,
    /// Jobs that took longer than their deadline.
    pub late: u64,
    /// Time from the release of a job to the end of its last group.
    pub response_us: Quantiles,
    /// Histogram of response over deadline, in bins of 5 %; the last bin holds everything from
    /// 200 %.
    pub histogram: Vec<u64>,
}

/// Width of a bin of [`AppSummary::pd_fft`].
pub const PD_FFT_BIN: f64 = 0.05;
/// Number of bins of [`AppSummary::pd_fft`], the overflow bin included.
pub const PD_FFT_BINS: usize = 41;

/// Selected quantiles, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct Quantiles {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}

/// A missed deadline.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Miss {
    /// Who missed it.
    pub app: String,
    /// Frame number since joining.
    pub frame: u64,
    /// When the deadline was, in seconds.
    pub deadline_s: f64,
    /// How late the frame was; null while it is not finished.
    pub late_us: Option<f64>,
    /// Why.
    pub cause: Cause,
    /// The same in one sentence.
    pub sentence: String,
}

/// Why a deadline was missed.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Cause {
    /// The class of reason that took the largest avoidable share of the frame's time.
    pub kind: CauseKind,
    /// The app to blame, if another one.
    pub culprit: Option<String>,
    /// How much of the frame's time it took.
    pub took_us: f64,
    /// How much of that was the culprit's.
    pub culprit_us: Option<f64>,
    /// The rule that held the app's next group back when the deadline passed, if one did.
    pub held: Option<HeldBy>,
    /// Predicted time of the group that matters: the culprit's longest in the way, or the app's
    /// own that was held back.
    pub predicted_us: Option<f64>,
    /// Measured time of the same group, if it ran.
    pub measured_us: Option<f64>,
    /// The promise for which the app's next group was held back when the deadline passed, if it was.
    pub promise: Option<Promise>,
}

/// What another app was promised, so that others wait.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Promise {
    /// To whom.
    pub app: String,
    /// GPU time in each of its frames.
    pub per_frame_us: f64,
    /// When the next of these frames is due, in seconds; null where the records do not tell.
    pub due_s: Option<f64>,
}

/// Rules that hold groups back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeldBy {
    /// Rule A: it could break a promise of another app, mostly of a more important one.
    Protects,
    /// It could delay a more important app with a reservation for longer than allowed.
    Clears,
    /// Rule B, or submission order: another app went first.
    Behind,
    /// Reservations of more important apps leave no time at all.
    Exhausted,
    /// As many groups as allowed are in flight.
    NoSlot,
    /// Nothing finite is known about its length.
    Unbounded,
    /// Its reserve is used up.
    NoBudget,
    /// Another app is on the GPU, and no app may follow it yet.
    Turn,
    /// The policy decides only at its ticks.
    Tick,
    /// The rest of its batch has not come yet.
    Batch,
    /// Promises reach further than the policy looks ahead.
    LookAhead,
}

impl From<Hold> for HeldBy {
    fn from(hold: Hold) -> Self {
        match hold {
            Hold::Protects { .. } => Self::Protects,
            Hold::Clears { .. } => Self::Clears,
            Hold::Behind { .. } => Self::Behind,
            Hold::Exhausted { .. } => Self::Exhausted,
            Hold::LookAhead => Self::LookAhead,
            Hold::NoSlot => Self::NoSlot,
            Hold::Unbounded => Self::Unbounded,
            Hold::NoBudget { .. } => Self::NoBudget,
            Hold::Turn { .. } => Self::Turn,
            Hold::Tick { .. } => Self::Tick,
            Hold::Batch => Self::Batch,
        }
    }
}

/// Classes of reasons.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CauseKind {
    /// The app submitted its groups too late (CPU-bound or asleep).
    SubmittedLate,
    /// Its own groups needed more GPU time than the period has or than was reserved.
    OwnCost,
    /// A less important group ran longer than predicted.
    UnderPrediction,
    /// A less important group was in the way although its prediction held.
    Blocking,
    /// More important apps used the time.
    HigherPriority,
    /// Held back for a promise of another app, mostly a more important one (rule A).
    HeldForHigherPriority,
    /// Its next group was predicted without a bound, so it fits nowhere.
    Unbounded,
    /// Others with earlier targets went first (rule B), or plain submission order.
    HeldBehindOthers,
    /// The budget of its reserve was used up.
    NoBudget,
    /// The policy decides only at its ticks, and none came.
    WaitedForTick,
    /// The GPU stalled, slowed down or idled.
    GpuStall,
    /// A completion was lost.
    LostCompletion,
    /// Promises reached further than the policy looks ahead, so its next group waited.
    BeyondLookAhead,
}
