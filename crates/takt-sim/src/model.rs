//! What can be simulated: the validated form of a scenario.
//!
//! Values of these types are always sensible; text files become such values in `scenario`.

use std::sync::Arc;

use takt_core::service::{Reservation, Reserve};
use takt_core::{AppId, AppParams, Config, Divisible, Gpu, GroupKind, Span, Time};

/// A world to simulate.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Short name.
    pub name: String,
    /// What it shows, for people.
    pub description: String,
    /// How long to simulate.
    pub duration: Span,
    /// How much of the beginning not to judge.
    pub warm_up: Span,
    /// Seed of every random choice.
    pub seed: u64,
    /// Name of the scheduling policy.
    pub policy: String,
    /// Parameters of the scheduler; how the GPU executes follows from its model.
    pub config: Config,
    /// Estimates are believed as the daemon believes them ([`takt_core::belief`]), not as they are.
    pub belief: bool,
    /// The GPU.
    pub gpu: GpuSpec,
    /// The apps; the index is the slot number.
    pub apps: Vec<AppSpec>,
    /// The app with the input focus, by time.
    pub focus: Vec<FocusChange>,
}

impl Scenario {
    /// The server that an app with these parameters has or shares, or that the first of its consumers has or shares
    /// which is served by one.
    pub fn server_of(&self, params: &AppParams) -> Option<Reserve> {
        let params_of = |app: AppId| self.apps.get(app.index()).map(|app| &app.params);
        let server = |params: &AppParams| match params.service.reservation {
            Reservation::Shared(owner) => params_of(owner)?.server(),
            _ => params.server(),
        };
        let consumer = |params: &&AppParams| params.service.feeds.and_then(params_of);
        std::iter::successors(Some(params), consumer).take(self.apps.len()).find_map(server)
    }
}

/// The focus moves at `at`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FocusChange {
    /// When.
    pub at: Time,
    /// The app that has it from then on, if any.
    pub app: Option<AppId>,
}

/// The modelled GPU: executes one group at a time.
#[derive(Clone, PartialEq, Debug)]
pub struct GpuSpec {
    /// What it does with several.
    pub model: GpuModel,
    /// Groups its queue holds; a dispatch beyond that waits outside.
    pub queue: u32,
    /// Cost of loading another app's context.
    pub switch: Span,
    /// On a runlist: an uninterruptible group that outlasts its timeslice while others wait is seen to
    /// end in its channel's next turn, as where the fence behind a draw is work of its own.
    pub late_ends: bool,
    /// How it interrupts divisible work, if it does; in order and on a runlist only.
    pub divisible: Option<Interrupts>,
    /// Delay from a decision to the group being in the queue.
    pub dispatch_delay: SpanRange,
    /// Delay from the end of a group to the scheduler hearing of it.
    pub completion_delay: SpanRange,
    /// Completions are looked for only at multiples of this time; zero tells of each at once.
    pub completion_poll: Span,
    /// Changes of the clock, by time.
    pub clock: Vec<ClockChange>,
    /// Stalls, by time.
    pub stalls: Vec<Stall>,
    /// Completions lost per million groups.
    pub lost_completion_ppm: u32,
}

impl Default for GpuSpec {
    fn default() -> Self {
        Self {
            model: GpuModel::default(),
            queue: 64,
            switch: Span::ZERO,
            late_ends: false,
            divisible: None,
            dispatch_delay: SpanRange::fixed(Span::ZERO),
            completion_delay: SpanRange::fixed(Span::ZERO),
            completion_poll: Span::ZERO,
            clock: Vec::new(),
            stalls: Vec::new(),
            lost_completion_ppm: 0,
        }
    }
}

/// What a GPU does with dispatched groups.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum GpuModel {
    /// Executes them in order, each to its end.
    #[default]
    InOrder,
    /// The same, but gives a group back if the scheduler asks for it.
    Preemptive,
    /// Has a channel for each app and serves the entries of a runlist in turn.
    Runlist,
    /// Executes them to their ends in the order in which they arrive, which need not be that of
    /// their dispatch: processes hand their groups over themselves, when they have made them.
    AnyOrder,
}

/// How a GPU interrupts divisible work ([`takt_core::Service::divisible`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupts {
    /// Longest turn of such work while other work waits; at least a nanosecond.
    pub slice: Span,
    /// Length of its pieces, each of which is executed to its end; zero if it is interrupted anywhere.
    pub quantum: Span,
}

impl GpuSpec {
    /// What the scheduler must know of divisible work; all other work has turns of `timeslice` or more.
    pub fn divisible(&self, timeslice: Span) -> Option<Divisible> {
        let Interrupts { slice, quantum } = self.divisible?;
        Some(Divisible { slice, quantum, own_slice: timeslice, switch: self.switch })
    }

    /// What the scheduler must know of it; channels keep the GPU for `timeslice`.
    pub const fn gpu(&self, timeslice: Span) -> Gpu {
        match self.model {
            GpuModel::InOrder => Gpu::InOrder,
            GpuModel::Preemptive => Gpu::Preemptive,
            GpuModel::Runlist | GpuModel::AnyOrder => {
                Gpu::TimeShared { slice: timeslice, switch: self.switch }
            }
        }
    }

    /// Whether groups end in another order than that of their dispatch.
    pub const fn is_time_shared(&self) -> bool {
        matches!(self.model, GpuModel::Runlist | GpuModel::AnyOrder)
    }
}

/// The GPU runs at another speed from `at` on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClockChange {
    /// From when.
    pub at: Time,
    /// 1000 is nominal speed; never 0.
    pub permille: u32,
}

/// The GPU does nothing for a while.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stall {
    /// From when.
    pub at: Time,
    /// How long.
    pub length: Span,
}

/// A simulated app.
#[derive(Clone, PartialEq, Debug)]
pub struct AppSpec {
    /// Unique name.
    pub name: String,
    /// Scheduling parameters at the start.
    pub params: AppParams,
    /// Frame rate at the start, in millihertz ([`rate_mhz`]).
    pub fps_mhz: u32,
    /// Periods to delay the first deadline.
    pub phase: u32,
    /// When it attaches.
    pub join: Time,
    /// How it ends, if it does.
    pub end: Option<End>,
    /// Changes of its parameters, by time.
    pub changes: Vec<ParamChange>,
    /// Delay from its release to its first group.
    pub submit_delay: SpanRange,
    /// CPU time per frame, spent evenly before its groups.
    pub cpu: SpanRange,
    /// What its frames consist of.
    pub work: Work,
    /// How well its groups are predicted.
    pub prediction: Prediction,
    /// Times at which it behaves differently.
    pub phases: Vec<Phase>,
    /// When it starts its next frame.
    pub pace: Pace,
    /// Sleeps after each group until it was dispatched, as in a driver without a queue.
    pub synchronous: bool,
}

/// The frame rate of an app, in millihertz: that at which it begins frames by itself, or that of its
/// `params`.
pub fn rate_mhz(params: &AppParams, pace: Pace, config: &Config) -> u32 {
    let Pace::Periodic(jobs) = pace else {
        return params.clock.grid(config).mhz() / params.stride.get();
    };
    let mhz = 1_000_000_000_000 / jobs.period.as_ns().max(1);
    u32::try_from(mhz).unwrap_or(u32::MAX)
}

/// When an app starts its next frame, or job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// When the scheduler releases it.
    Released,
    /// As soon as the one before is submitted: a client that ignores pacing.
    Unpaced,
    /// By its own clock, independently of the display and of what the scheduler knows
    /// ([`takt_core::Clock`]); groups that it could not submit in time follow as soon as it can.
    Periodic(Jobs),
    /// Whenever that app submits the first group of one. Ends of that app's frames come behind the groups that this
    /// one submits at the same instant.
    With(AppId),
}

/// Jobs released by an app's own clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Jobs {
    /// From the app's joining to its first job.
    pub offset: Span,
    /// Time between two jobs.
    pub period: Span,
    /// From the release of a job to when it should be done.
    pub deadline: Span,
}

/// How an app ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum End {
    /// Submits its last group at that time and detaches when it is done.
    Leave(Time),
    /// Dies at that time; the scheduler hears of it after the delay.
    Crash {
        /// When it dies.
        at: Time,
        /// From then until the scheduler hears of it.
        notice: Span,
    },
    /// Stops submitting at that time and never leaves.
    Hang(Time),
}

/// New parameters from `at` on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ParamChange {
    /// From when.
    pub at: Time,
    /// All parameters.
    pub params: AppParams,
}

/// What frames consist of.
#[derive(Clone, PartialEq, Debug)]
pub enum Work {
    /// Drawn at random.
    Drawn {
        /// Groups before the swap, in order.
        parts: Vec<Part>,
        /// The swap group.
        swap: CostDist,
    },
    /// Replayed from a recording, over and over.
    Recorded(Arc<[RecordedGroup]>),
}

/// A run of similar groups within a frame.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// Number of groups, inclusive bounds.
    pub count: (u32, u32),
    /// What each costs.
    pub cost: CostDist,
    /// [`GroupKind::Draw`] or [`GroupKind::Sync`].
    pub kind: GroupKind,
}

/// A mixture of uniform distributions of GPU time at nominal clock.
#[derive(Clone, PartialEq, Debug)]
pub struct CostDist {
    /// The mixture; weights sum to [`SHARE_ONE`].
    pub buckets: Vec<Bucket>,
}

/// One part of a mixture.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bucket {
    /// Share in millionths.
    pub share_ppm: u32,
    /// Bounds, inclusive.
    pub range: SpanRange,
}

/// All of something, in millionths.
pub const SHARE_ONE: u32 = 1_000_000;

/// A recorded group.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RecordedGroup {
    /// CPU time before it is submitted, after the one before it (or the release).
    pub delay: Span,
    /// What it is to its frame; the last one of a recording ends a frame.
    pub kind: GroupKind,
    /// GPU time at nominal clock.
    pub cost: Span,
    /// Predicted time, if recorded; else the app's prediction model applies.
    pub predicted: Option<Span>,
    /// CPU time after its dispatch, until its commands are made and on their way to the GPU.
    pub make: Span,
}

/// How a group's estimate comes about: `scale · (cost · (1 ± noise) + bias)`, never below
/// `floor`; one in so many is an outlier, `scale · (cost + U[lo, hi])`. With a history, the cost is
/// not known, and `scale ·` the mean of what such groups cost before takes its place.
#[derive(Clone, PartialEq, Debug)]
pub struct Prediction {
    /// Factor in permille; `None` predicts ∞ for everything.
    pub scale_permille: Option<u32>,
    /// Uniform relative error in permille.
    pub noise_permille: u32,
    /// Constant error in nanoseconds.
    pub bias_ns: i64,
    /// Rare large errors.
    pub outliers: Option<Outliers>,
    /// Smallest estimate.
    pub floor: Span,
    /// Estimates come from a table of that many records.
    pub history: Option<u32>,
}

impl Default for Prediction {
    fn default() -> Self {
        Self {
            scale_permille: Some(1000),
            noise_permille: 0,
            bias_ns: 0,
            outliers: None,
            floor: Span::ZERO,
            history: None,
        }
    }
}

/// Rare large prediction errors.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outliers {
    /// How many, in millionths.
    pub share_ppm: u32,
    /// Error range in nanoseconds, inclusive.
    pub error_ns: (i64, i64),
}

/// A time in which an app behaves differently.
#[derive(Clone, PartialEq, Debug)]
pub struct Phase {
    /// From when.
    pub from: Time,
    /// Until when.
    pub until: Time,
    /// CPU time per frame in that time, if different.
    pub cpu: Option<SpanRange>,
    /// GPU cost factor in permille (1000 = unchanged).
    pub gpu_permille: u32,
    /// Factor on the number of groups in permille: bursts.
    pub groups_permille: u32,
    /// Prediction in that time, if different.
    pub prediction: Option<Prediction>,
}

/// An inclusive range of spans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpanRange {
    /// Shortest.
    pub lo: Span,
    /// Longest; not below `lo`.
    pub hi: Span,
}

impl SpanRange {
    /// Exactly `span`.
    pub const fn fixed(span: Span) -> Self {
        Self { lo: span, hi: span }
    }
}
