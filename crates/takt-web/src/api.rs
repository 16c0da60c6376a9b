//! The types of answers: what the page reads, and what other programs may rely on.
//!
//! Members are added and never renamed within version [`VERSION`]. `docs/schema/web.schema.json` is their schema.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the API, which is a part of its paths.
pub const VERSION: u32 = 1;

/// All answers, for the schema.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub struct Api {
    /// `GET /api/v1/me`
    me: Me,
    /// `GET /api/v1/now`, and the event `now` of `GET /api/v1/events`
    now: Now,
    /// `GET /api/v1/history`
    history: HistoryAnswer,
    /// `GET /api/v1/why?app=APP`
    why: Why,
    /// `GET /api/v1/changes`
    changes: Vec<ChangeAnswer>,
    /// `POST /api/v1/order`
    order: OrderRequest,
    /// Its answer, and that of `POST /api/v1/undo`
    ordered: Ordered,
    /// `POST /api/v1/undo`
    undo: UndoRequest,
    /// `POST /api/v1/simulate`
    simulate: SimulateRequest,
    /// The event `timeline` of `GET /api/v1/events?timeline=1`
    timeline: TimelineEvent,
    /// Every answer with a status of 400 or more
    problem: Problem,
}

/// Why a request was not served.
#[derive(Serialize, Deserialize, JsonSchema, Debug)]
pub struct Problem {
    /// In a sentence.
    pub error: String,
}

/// What the asker may do.
#[derive(Serialize, Deserialize, JsonSchema, Debug)]
pub struct Me {
    /// Version of the API.
    pub version: u32,
    /// Build of the console.
    pub build: String,
    /// Whether the token allows steering; the daemon decides about each order.
    pub may_steer: bool,
    /// Whether the daemon lets the console's user change apps of others and the daemon itself; null if no daemon
    /// answers.
    pub may_change_others: Option<bool>,
    /// The domain of the console's user; null if no daemon answers.
    pub domain: Option<String>,
    /// The console's user, as the daemon sees it; null if no daemon answers.
    pub uid: Option<u64>,
    /// Names of policies.
    pub policies: Vec<String>,
    /// Scenarios to begin with: name and text.
    pub scenarios: Vec<(String, String)>,
}

/// What is so now; figures are of the last two seconds.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug, Default)]
pub struct Now {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Why there is no daemon, if so; then the rest is empty.
    pub error: Option<String>,
    /// The daemon itself.
    pub daemon: Option<DaemonNow>,
    /// What is guaranteed.
    pub guarantee: Guarantee,
    /// Share of the time in which the GPU worked (0..1).
    pub gpu: f64,
    /// The scheduled apps, most important first.
    pub apps: Vec<AppNow>,
    /// Processes that use the GPU without being scheduled.
    pub outsiders: Vec<OutsiderNow>,
    /// Why there may be others that the daemon cannot see.
    pub unseen: Option<String>,
    /// What is wrong with the daemon or with supervised apps, one sentence each.
    pub alarms: Vec<String>,
    /// Apps that a tool evicted and that may not come back yet.
    pub evicted: Vec<EvictedNow>,
}

/// The daemon itself.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug, Default)]
pub struct DaemonNow {
    /// Name of the policy.
    pub policy: String,
    /// Refresh rate of the display.
    pub refresh_hz: f64,
    /// Decisions since its start.
    pub decisions: u64,
    /// Turns of its loop since its start.
    pub turns: u64,
    /// Mean time of a turn, in microseconds.
    pub turn_us_mean: f64,
    /// The longest one.
    pub turn_us_max: f64,
    /// Limits of all apps, as an order `adjust` has them.
    pub limits: Value,
}

/// What is guaranteed.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug, Default)]
pub struct Guarantee {
    /// Apps with a contract.
    pub contracts: u32,
    /// Those whose deadlines are guaranteed.
    pub guaranteed: u32,
    /// Why the others are not: app and reason.
    pub reasons: Vec<(String, String)>,
}

/// An app that is scheduled.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug, Default)]
pub struct AppNow {
    /// Slot.
    pub app: u32,
    /// Name, as its client says.
    pub name: String,
    /// Process.
    pub pid: u32,
    /// User.
    pub uid: u32,
    /// The name of its domain.
    pub domain: String,
    /// Importance within the level of its domain.
    pub priority: u32,
    /// What it was promised, in a few words.
    pub contract: String,
    /// Whether its deadlines are guaranteed.
    pub guaranteed: bool,
    /// Whether it has a contract.
    pub promised: bool,
    /// The same in words, with the reason if they are not.
    pub admission: String,
    /// `running`, `held`, `paused`, `set aside` or `idle`.
    pub state: String,
    /// Why it waits, if it does.
    pub held: Option<HeldNow>,
    /// Frames per second that it is to have; null if it has no target.
    pub fps_target: Option<f64>,
    /// Frames per second that it has.
    pub fps: f64,
    /// Share of deadlines met (0..1); null if it has none.
    pub met: Option<f64>,
    /// Deadlines missed.
    pub missed: u64,
    /// Response times of its frames or jobs, in microseconds.
    pub response_us: QuantilesNow,
    /// GPU time of its frames, in microseconds.
    pub frame_gpu_us: QuantilesNow,
    /// Share of the GPU's time (0..1).
    pub gpu: f64,
    /// GPU time reserved per frame, in milliseconds.
    pub etpf_ms: f64,
    /// Longest group it may form, in milliseconds; null if it is never cut.
    pub max_slice_ms: Option<f64>,
    /// All its terms, as an order `set` has them.
    pub terms: Value,
    /// Why its last late frame was late, if one was since the console started.
    pub late: Option<LateNow>,
}

/// Why an app waits.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug, Default)]
pub struct HeldNow {
    /// In a few words.
    pub why: String,
    /// For how many seconds.
    pub for_s: f64,
    /// The contract for which it waits, if it does.
    pub promise: Option<String>,
}

/// The last late frame of an app.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug, Default)]
pub struct LateNow {
    /// Why it was late.
    pub sentence: String,
    /// How many seconds ago it was due.
    pub ago_s: f64,
}

/// Quantiles.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema, Debug, Default)]
pub struct QuantilesNow {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}

/// A process that uses the GPU without being scheduled.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug, Default)]
pub struct OutsiderNow {
    /// Process.
    pub pid: u32,
    /// Name, as the system has it.
    pub name: String,
    /// The device file that it has open.
    pub device: String,
}

/// An app that a tool evicted.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug, Default)]
pub struct EvictedNow {
    /// Name.
    pub name: String,
    /// For how many seconds it may not come back.
    pub for_s: f64,
}

/// Percentiles over time, by columns: all lists of an app are as long as `at_ms`.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug, Default)]
pub struct HistoryAnswer {
    /// Length of each sample, in seconds.
    pub sample_s: u32,
    /// When each sample was taken, in milliseconds since 1970.
    pub at_ms: Vec<u64>,
    /// Share of the time in which the GPU worked (0..1).
    pub gpu: Vec<f64>,
    /// The apps by name; null where one was not there.
    pub apps: Vec<AppHistory>,
    /// What changed, and when.
    pub marks: Vec<Mark>,
}

/// Percentiles of an app over time.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug, Default)]
pub struct AppHistory {
    /// Its name.
    pub name: String,
    /// Frames per second.
    pub fps: Vec<Option<f64>>,
    /// Share of deadlines met.
    pub met: Vec<Option<f64>>,
    /// Median of response times, in microseconds.
    pub p50_us: Vec<Option<f64>>,
    /// 99th percentile.
    pub p99_us: Vec<Option<f64>>,
    /// Share of the GPU's time.
    pub gpu: Vec<Option<f64>>,
}

/// Something that changed.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What, in a few words.
    pub text: String,
}

/// Why frames of an app were late.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug, Default)]
pub struct Why {
    /// One sentence for each missed deadline that the daemon remembers, newest first, 100 at most.
    pub sentences: Vec<String>,
    /// Missed deadlines that the daemon remembers.
    pub count: usize,
}

/// An order, as the daemon has them: `set`, `pause`, `resume`, `evict`, `readmit`, `policy` or `adjust`.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct OrderRequest {
    /// The order, as docs/ipc.md has it.
    pub order: Value,
    /// Who is meant; if an app in that slot is another one by now, nothing is done.
    #[serde(default)]
    pub of: Option<Meant>,
}

/// An app that an order means.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Meant {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: u32,
}

/// What was done.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Ordered {
    /// The number of the change, for `POST /api/v1/undo`.
    pub change: u64,
    /// How long the daemon took, in milliseconds.
    pub took_ms: f64,
}

/// Which change to undo.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct UndoRequest {
    /// Its number.
    pub change: u64,
}

/// A change that was made from here.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug)]
pub struct ChangeAnswer {
    /// Its number.
    pub change: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What, in a few words.
    pub text: String,
    /// Whether it can be undone, and was not yet.
    pub undoable: bool,
}

/// What to simulate.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct SimulateRequest {
    /// A scenario (docs/scenarios.md), without recordings.
    pub scenario: String,
    /// Changes to it: `key=value`, as `takt sim --set` has them.
    #[serde(default)]
    pub set: Vec<String>,
    /// Another policy.
    #[serde(default)]
    pub policy: Option<String>,
}

/// What happened since the event before.
#[derive(Clone, Serialize, Deserialize, JsonSchema, Debug, Default)]
pub struct TimelineEvent {
    /// Forget everything before: a stream begins, or another daemon answers.
    pub reset: bool,
    /// When `t = 0` was, in milliseconds since 1970.
    pub base_ms: u64,
    /// The time of the event, in microseconds since then.
    pub now_us: u64,
    /// Why there is nothing to show, if so.
    pub error: Option<String>,
    /// What happened. Times are in microseconds since the base. The first member says what it is:
    /// `["app", slot, name]` the slot has that app from now on;
    /// `["run", slot, group, began, ended]` the GPU ran a group;
    /// `["grant", slot, group, at, reserved]` a group was granted;
    /// `["frame", slot, frame, released, due, ended, met]` a frame ended;
    /// `["miss", slot, frame, due]` a deadline passed and the frame was not finished;
    /// `["hold", slot, at, why, by]` its next group was held back, for a promise of the app in slot `by`, or null;
    /// `["vsync", at]` a display refreshed; `["left", slot, at]` the app left;
    /// `["gap", at, records]` so many records are missing, because this machine was too busy.
    pub items: Vec<Value>,
}

/// The schema of all answers.
pub fn schema() -> String {
    serde_json::to_string_pretty(&schemars::schema_for!(Api)).unwrap_or_default() + "\n"
}
