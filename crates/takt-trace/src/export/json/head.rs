//! The first line: what the run is, and with which parameters the core runs.

use serde::{Deserialize, Serialize};
use takt_core::config::{Adjustable, Margins, Tuning};
use takt_core::gpu::{Divisible, Gpu};
use takt_core::service::Reserve;
use takt_core::{Config, Period, Priority, Refresh, Span, Time};

use super::Start;
use super::params::{ReserveLine, bounded_ns, ns, written_as};
use crate::record::{AppMeta, Meta};

#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) record: String,
    pub(super) version: u32,
    scenario: String,
    policy: String,
    refresh_mhz: u32,
    origin_ns: u64,
    apps: Vec<HeadApp>,
    /// Only if the records are there from the very start of the scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    config: Option<ConfigLine>,
    /// The build of Takt whose core it is; logs of old ones do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) build: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct HeadApp {
    app: usize,
    name: String,
    priority: u32,
    fps_mhz: u32,
}

#[derive(Serialize, Deserialize)]
struct ConfigLine {
    mpcg: u32,
    apps_max: u32,
    #[serde(rename = "completion_timeout_ns", with = "ns")]
    completion_timeout: Span,
    execution: ExecutionLine,
    /// Of a time-shared GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slice_ns: Option<u64>,
    /// Of a time-shared GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    switch_ns: Option<u64>,
    /// Left out if no work is divisible.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "divisible")]
    divisible: Option<Divisible>,
    /// The displays after the first one; left out if all of them are like it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    more_displays: Vec<DisplayLine>,
    #[serde(default)]
    singly: bool,
    #[serde(with = "MarginsLine")]
    margins: Margins,
    #[serde(with = "TuningLine")]
    tuning: Tuning,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum ExecutionLine {
    InOrder,
    Preemptive,
    #[serde(alias = "any-order")]
    TimeShared,
}

/// Divisible work as a line says it.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Divisible")]
struct DivisibleFields {
    #[serde(rename = "slice_ns", with = "ns")]
    slice: Span,
    #[serde(rename = "quantum_ns", with = "ns")]
    quantum: Span,
    #[serde(rename = "own_slice_ns", with = "ns")]
    own_slice: Span,
    #[serde(rename = "switch_ns", with = "ns")]
    switch: Span,
}

#[derive(Serialize, Deserialize)]
struct DivisibleLine(#[serde(with = "DivisibleFields")] Divisible);

written_as! {
    divisible: Option<Divisible> as Option<DivisibleLine>,
        |divisible| divisible.map(DivisibleLine),
        |line: Option<DivisibleLine>| line.map(|line| line.0);
}

#[derive(Serialize, Deserialize)]
struct DisplayLine {
    refresh_mhz: u32,
    origin_ns: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Margins")]
struct MarginsLine {
    #[serde(rename = "fixed_ns", with = "ns")]
    fixed: Span,
    upper_permille: u32,
    lower_permille: u32,
    #[serde(rename = "dispatch_upper_ns", with = "ns")]
    dispatch_upper: Span,
    #[serde(rename = "dispatch_lower_ns", with = "ns")]
    dispatch_lower: Span,
    #[serde(rename = "completion_upper_ns", with = "ns")]
    completion_upper: Span,
    #[serde(rename = "group_min_ns", with = "ns")]
    group_min: Span,
}

/// Values that have a default had no name in older builds, and that value.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Tuning")]
struct TuningLine {
    #[serde(rename = "tick_ns", with = "ns")]
    tick: Span,
    admission_permille: u32,
    #[serde(with = "ReserveLine")]
    background: Reserve,
    #[serde(rename = "timeslice_ns", with = "ns")]
    timeslice: Span,
    #[serde(rename = "blocking_ns", with = "bounded_ns", default = "no_bound")]
    blocking: Span,
    #[serde(rename = "stretch_ns", with = "ns", default)]
    stretch: Span,
    #[serde(rename = "group_max_ns", with = "bounded_ns", default = "no_bound")]
    group_max: Span,
    #[serde(default = "number::<16>")]
    relief_every: u32,
    #[serde(default = "number::<2>")]
    relief_periods: u32,
    #[serde(default = "number::<4>")]
    suspend_after: u32,
    #[serde(rename = "late_after_ns", with = "ns", default = "ms::<2>")]
    late_after: Span,
    #[serde(rename = "unknown_runs_max_ns", with = "ns", default = "ms::<10_000>")]
    unknown_runs_max: Span,
    #[serde(rename = "join_delay_max_ns", with = "ns", default = "ms::<1000>")]
    join_delay_max: Span,
    #[serde(default = "number::<1000>")]
    late_permille: u32,
    #[serde(default = "number::<16>")]
    given_up_max: u32,
    #[serde(default = "number::<32>")]
    clear_parts: u32,
    #[serde(default = "number::<4>")]
    unstretched_parts: u32,
    /// Older builds knew no such turns.
    #[serde(rename = "rest_turn_ns", with = "ns", default)]
    rest_turn: Span,
}

fn number<const N: u32>() -> u32 {
    N
}

fn ms<const N: u64>() -> Span {
    Span::from_ms(N)
}

fn no_bound() -> Span {
    Span::FOREVER
}

/// What may change on the way.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Adjustable")]
pub(super) struct AdjustableLine {
    mpcg: u32,
    #[serde(with = "MarginsLine")]
    margins: Margins,
    #[serde(rename = "blocking_ns", with = "bounded_ns", default = "no_bound")]
    blocking: Span,
    #[serde(rename = "stretch_ns", with = "ns")]
    stretch: Span,
    /// Left out if no work is divisible.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "divisible")]
    divisible: Option<Divisible>,
}

impl Head {
    pub(super) fn new(version: u32, meta: &Meta, start: Option<Start<'_>>) -> Self {
        let apps = meta.apps.iter().enumerate();
        Self {
            record: "run".to_owned(),
            version,
            scenario: meta.scenario.clone(),
            policy: meta.policy.clone(),
            refresh_mhz: meta.refresh.mhz(),
            origin_ns: origin_ns(&meta.refresh),
            apps: apps
                .map(|(slot, app)| HeadApp {
                    app: slot,
                    name: app.name.clone(),
                    priority: app.priority.0,
                    fps_mhz: app.fps_mhz,
                })
                .collect(),
            config: start.map(|start| ConfigLine::of(start.config)),
            build: start.map(|start| start.build.to_owned()),
        }
    }

    /// What it says, or what is wrong with it.
    pub(super) fn say(self) -> Result<(Meta, Option<Config>), String> {
        let refresh = grid(self.refresh_mhz, self.origin_ns)?;
        let app = |app: HeadApp| AppMeta {
            name: app.name,
            priority: Priority(app.priority),
            fps_mhz: app.fps_mhz,
            jobs: None,
        };
        let config = self.config.map(|config| config.config(refresh)).transpose()?;
        let apps = self.apps.into_iter().map(app).collect();
        Ok((Meta { scenario: self.scenario, policy: self.policy, refresh, apps }, config))
    }
}

impl ConfigLine {
    fn of(config: &Config) -> Self {
        let Config {
            refresh: _,
            more_displays,
            mpcg,
            margins,
            apps_max,
            completion_timeout,
            gpu,
            divisible,
            singly,
            tuning,
        } = config;
        let (slice_ns, switch_ns) = match gpu {
            Gpu::TimeShared { slice, switch } => (Some(slice.as_ns()), Some(switch.as_ns())),
            _ => (None, None),
        };
        Self {
            mpcg: *mpcg,
            apps_max: *apps_max,
            completion_timeout: *completion_timeout,
            execution: match gpu {
                Gpu::InOrder => ExecutionLine::InOrder,
                Gpu::Preemptive => ExecutionLine::Preemptive,
                Gpu::TimeShared { .. } => ExecutionLine::TimeShared,
            },
            slice_ns,
            switch_ns,
            divisible: *divisible,
            more_displays: if *more_displays == Config::default().more_displays {
                Vec::new()
            } else {
                let line = |refresh: &Refresh| DisplayLine {
                    refresh_mhz: refresh.mhz(),
                    origin_ns: origin_ns(refresh),
                };
                more_displays.iter().map(line).collect()
            },
            singly: *singly,
            margins: *margins,
            tuning: *tuning,
        }
    }

    /// Logs of older builds know no slices and no switches.
    fn gpu(&self) -> Gpu {
        match (self.execution, self.slice_ns, self.switch_ns) {
            (ExecutionLine::InOrder, ..) => Gpu::InOrder,
            (ExecutionLine::Preemptive, ..) => Gpu::Preemptive,
            (ExecutionLine::TimeShared, Some(slice), Some(switch)) => {
                Gpu::TimeShared { slice: Span::from_ns(slice), switch: Span::from_ns(switch) }
            }
            (ExecutionLine::TimeShared, ..) => Gpu::TURNS,
        }
    }

    fn config(&self, refresh: Refresh) -> Result<Config, String> {
        let mut more_displays = Config::default().more_displays;
        for (display, line) in more_displays.iter_mut().zip(&self.more_displays) {
            *display = grid(line.refresh_mhz, line.origin_ns)?;
        }
        Ok(Config {
            refresh,
            more_displays,
            mpcg: self.mpcg,
            margins: self.margins,
            apps_max: self.apps_max,
            completion_timeout: self.completion_timeout,
            gpu: self.gpu(),
            divisible: self.divisible,
            singly: self.singly,
            tuning: self.tuning,
        })
    }
}

/// When period 0 of the grid begins.
pub(super) fn origin_ns(refresh: &Refresh) -> u64 {
    refresh.start(Period(0)).as_ns()
}

/// The grid of that rate and origin.
pub(super) fn grid(refresh_mhz: u32, origin_ns: u64) -> Result<Refresh, String> {
    let grid = Refresh::from_mhz(refresh_mhz);
    let grid = grid.ok_or_else(|| format!("refresh_mhz = {refresh_mhz}: use 1000 to 1000000"))?;
    Ok(grid.with_origin(Time::from_ns(origin_ns)))
}
