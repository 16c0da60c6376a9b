//! The figures that `takt top` shows, from the answers of the daemon.

use anyhow::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::timeline::Timeline;
use crate::live::{self, OTHER_BUILD};

/// Everything that is shown at once, and what `--json` prints.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Picture {
    /// What the daemon itself does.
    pub(crate) daemon: Daemon,
    /// Share of the last two seconds in which the GPU worked (0..1).
    pub(crate) gpu: f64,
    /// The scheduled apps, most important first.
    pub(crate) apps: Vec<Row>,
    /// What the GPU did a moment ago.
    pub(crate) timeline: Timeline,
}

/// What the daemon itself does.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Daemon {
    /// Name of the policy.
    pub(crate) policy: String,
    /// Refresh rate of the display.
    pub(crate) refresh_hz: f64,
    /// Decisions since its start.
    pub(crate) decisions: u64,
    /// Turns of its loop since its start.
    pub(crate) turns: u64,
    /// Mean time of a turn, in microseconds.
    pub(crate) turn_us_mean: f64,
    /// The longest one.
    pub(crate) turn_us_max: f64,
    /// What it contradicted itself in, if it did: then nothing is scheduled any more.
    pub(crate) broken: Option<String>,
    /// Processes that have the GPU open and are not scheduled.
    pub(crate) outsiders: Vec<Outsider>,
}

/// A process that has the GPU open and is not scheduled.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Outsider {
    /// Process.
    pub(crate) pid: u32,
    /// Name.
    pub(crate) name: String,
    /// The device file that it has open.
    pub(crate) device: String,
}

/// One app; figures are of the last two seconds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Row {
    /// Slot.
    pub(crate) app: u32,
    /// Name.
    pub(crate) name: String,
    /// Process.
    pub(crate) pid: u32,
    /// The name of its domain.
    pub(crate) domain: String,
    /// Importance within the level of its domain.
    pub(crate) priority: u32,
    /// Importance among all apps.
    pub(crate) core_priority: u32,
    /// What it was promised, in a few words.
    pub(crate) contract: String,
    /// Whether its contract is covered beside those of more important apps.
    pub(crate) protected: bool,
    /// Whether its deadlines are guaranteed.
    pub(crate) guaranteed: bool,
    /// The same in words, with the reason if they are not.
    pub(crate) admission: String,
    /// Frames per second it is to have; none if it has no target.
    pub(crate) fps_target: Option<f64>,
    /// Frames per second it has.
    pub(crate) fps: f64,
    /// Whether it has deadlines: those of the rate that it is to have, or of its server's jobs.
    pub(crate) judged: bool,
    /// Share of deadlines met (0..1).
    pub(crate) met: f64,
    /// Share of the GPU's time (0..1).
    pub(crate) gpu: f64,
    /// GPU time reserved per frame, in milliseconds.
    pub(crate) etpf_ms: f64,
    /// GPU time of its frames in the median, in milliseconds, if that is more than it reserved.
    pub(crate) over_reserved_ms: Option<f64>,
    /// Longest group it may form, in milliseconds; none if it is never cut.
    pub(crate) max_slice_ms: Option<f64>,
    /// Predicted over measured time of its groups.
    pub(crate) predicted_over_measured: f64,
    /// How long its groups waited for less important work: median, in microseconds.
    pub(crate) blocked_us_p50: f64,
    /// 99th percentile.
    pub(crate) blocked_us_p99: f64,
    /// Maximum.
    pub(crate) blocked_us_max: f64,
    /// For how many seconds nothing of it was granted, if something waits.
    pub(crate) held_s: Option<f64>,
}

impl Picture {
    /// From the daemon's answers about itself, its apps and their figures.
    pub(crate) fn of(
        daemon: &Value,
        apps: &Value,
        summary: &Value,
        timeline: Timeline,
    ) -> anyhow::Result<Self> {
        let rows = apps.as_array().into_iter().flatten();
        Ok(Self {
            daemon: Daemon::deserialize(daemon).context(OTHER_BUILD)?,
            gpu: number(&summary["gpu"], "utilisation"),
            apps: rows.map(|app| Row::of(app, live::figures(summary, app))).collect(),
            timeline,
        })
    }
}

impl Row {
    fn of(app: &Value, figures: &Value) -> Self {
        let small = |key: &str| u32::try_from(count(app, key)).unwrap_or(u32::MAX);
        let blocked = &figures["blocking_us"];
        Self {
            app: small("app"),
            name: text(app, "name"),
            pid: small("pid"),
            domain: text(app, "domain"),
            priority: small("priority"),
            core_priority: small("core_priority"),
            contract: text(app, "contract"),
            protected: app["protected"] == true,
            guaranteed: app["guaranteed"] == true,
            admission: text(app, "admission"),
            fps_target: (app["paced"] == true).then(|| number(app, "fps")),
            fps: number(figures, "fps"),
            judged: app["judged"] == true,
            met: figures["met"].as_f64().unwrap_or(1.0),
            gpu: number(figures, "gpu_share"),
            etpf_ms: number(app, "etpf_ms"),
            over_reserved_ms: live::over_reserved_ms(app, figures),
            max_slice_ms: app["max_slice_ms"].as_f64(),
            predicted_over_measured: number(figures, "predicted_over_measured"),
            blocked_us_p50: number(blocked, "p50"),
            blocked_us_p99: number(blocked, "p99"),
            blocked_us_max: number(blocked, "max"),
            held_s: app["held"]["for_s"].as_f64(),
        }
    }
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_default()
}

fn count(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_default()
}
