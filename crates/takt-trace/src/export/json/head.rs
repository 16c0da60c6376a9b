//! The first line: what the run is, and with which parameters the core runs.

use serde::{Deserialize, Serialize};
use takt_core::config::{Adjustable, Margins, Tuning};
use takt_core::gpu::{Divisible, Gpu};
use takt_core::{Config, Period, Priority, Refresh, Span, Time};

use super::Start;
use super::params::{ReserveLine, finite, forever};
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
    completion_timeout_ns: u64,
    execution: ExecutionLine,
    /// Of a time-shared GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slice_ns: Option<u64>,
    /// Of a time-shared GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    switch_ns: Option<u64>,
    /// Left out if no work is divisible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    divisible: Option<DivisibleLine>,
    /// The displays after the first one; left out if all of them are like it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    more_displays: Vec<DisplayLine>,
    #[serde(default)]
    singly: bool,
    margins: MarginsLine,
    tuning: TuningLine,
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
#[derive(Serialize, Deserialize, Clone, Copy)]
struct DivisibleLine {
    slice_ns: u64,
    quantum_ns: u64,
    own_slice_ns: u64,
    switch_ns: u64,
}

impl DivisibleLine {
    fn of(divisible: Divisible) -> Self {
        let Divisible { slice, quantum, own_slice, switch } = divisible;
        let [slice_ns, quantum_ns, own_slice_ns, switch_ns] =
            [slice, quantum, own_slice, switch].map(Span::as_ns);
        Self { slice_ns, quantum_ns, own_slice_ns, switch_ns }
    }

    fn divisible(self) -> Divisible {
        let Self { slice_ns, quantum_ns, own_slice_ns, switch_ns } = self;
        let [slice, quantum, own_slice, switch] =
            [slice_ns, quantum_ns, own_slice_ns, switch_ns].map(Span::from_ns);
        Divisible { slice, quantum, own_slice, switch }
    }
}

#[derive(Serialize, Deserialize)]
struct DisplayLine {
    refresh_mhz: u32,
    origin_ns: u64,
}

#[derive(Serialize, Deserialize)]
struct MarginsLine {
    fixed_ns: u64,
    upper_permille: u32,
    lower_permille: u32,
    dispatch_upper_ns: u64,
    dispatch_lower_ns: u64,
    completion_upper_ns: u64,
    group_min_ns: u64,
}

#[derive(Serialize, Deserialize)]
struct TuningLine {
    tick_ns: u64,
    admission_permille: u32,
    background: ReserveLine,
    timeslice_ns: u64,
    /// Without a bound if `null`.
    blocking_ns: Option<u64>,
    #[serde(default)]
    stretch_ns: u64,
    /// Without a bound if `null`, as in logs of older builds.
    #[serde(default)]
    group_max_ns: Option<u64>,
    #[serde(default = "relief_every")]
    relief_every: u32,
    #[serde(default = "relief_periods")]
    relief_periods: u32,
    #[serde(default = "suspend_after")]
    suspend_after: u32,
    // What follows had no name in older builds, and these values.
    #[serde(default = "late_after_ns")]
    late_after_ns: u64,
    #[serde(default = "unknown_runs_max_ns")]
    unknown_runs_max_ns: u64,
    #[serde(default = "join_delay_max_ns")]
    join_delay_max_ns: u64,
    #[serde(default = "late_permille")]
    late_permille: u32,
    #[serde(default = "given_up_max")]
    given_up_max: u32,
    #[serde(default = "clear_parts")]
    clear_parts: u32,
    #[serde(default = "unstretched_parts")]
    unstretched_parts: u32,
    /// Older builds knew no such turns.
    #[serde(default)]
    rest_turn_ns: u64,
}

fn relief_every() -> u32 {
    Tuning::default().relief_every
}

fn relief_periods() -> u32 {
    Tuning::default().relief_periods
}

fn suspend_after() -> u32 {
    Tuning::default().suspend_after
}

fn late_after_ns() -> u64 {
    2_000_000
}

fn unknown_runs_max_ns() -> u64 {
    10_000_000_000
}

fn join_delay_max_ns() -> u64 {
    1_000_000_000
}

fn late_permille() -> u32 {
    1000
}

fn given_up_max() -> u32 {
    16
}

fn clear_parts() -> u32 {
    32
}

fn unstretched_parts() -> u32 {
    4
}

/// What may change on the way.
#[derive(Serialize, Deserialize)]
pub(super) struct AdjustableLine {
    mpcg: u32,
    margins: MarginsLine,
    /// Without a bound if `null`.
    blocking_ns: Option<u64>,
    stretch_ns: u64,
    /// Left out if no work is divisible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    divisible: Option<DivisibleLine>,
}

impl AdjustableLine {
    pub(super) fn of(adjustable: &Adjustable) -> Self {
        Self {
            mpcg: adjustable.mpcg,
            margins: MarginsLine::of(&adjustable.margins),
            blocking_ns: finite(adjustable.blocking),
            stretch_ns: adjustable.stretch.as_ns(),
            divisible: adjustable.divisible.map(DivisibleLine::of),
        }
    }

    pub(super) fn adjustable(&self) -> Adjustable {
        Adjustable {
            mpcg: self.mpcg,
            margins: self.margins.margins(),
            blocking: forever(self.blocking_ns),
            stretch: Span::from_ns(self.stretch_ns),
            divisible: self.divisible.map(DivisibleLine::divisible),
        }
    }
}

impl MarginsLine {
    fn of(margins: &Margins) -> Self {
        Self {
            fixed_ns: margins.fixed.as_ns(),
            upper_permille: margins.upper_permille,
            lower_permille: margins.lower_permille,
            dispatch_upper_ns: margins.dispatch_upper.as_ns(),
            dispatch_lower_ns: margins.dispatch_lower.as_ns(),
            completion_upper_ns: margins.completion_upper.as_ns(),
            group_min_ns: margins.group_min.as_ns(),
        }
    }

    fn margins(&self) -> Margins {
        Margins {
            fixed: Span::from_ns(self.fixed_ns),
            upper_permille: self.upper_permille,
            lower_permille: self.lower_permille,
            dispatch_upper: Span::from_ns(self.dispatch_upper_ns),
            dispatch_lower: Span::from_ns(self.dispatch_lower_ns),
            completion_upper: Span::from_ns(self.completion_upper_ns),
            group_min: Span::from_ns(self.group_min_ns),
        }
    }
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

impl TuningLine {
    fn of(tuning: &Tuning) -> Self {
        Self {
            tick_ns: tuning.tick.as_ns(),
            admission_permille: tuning.admission_permille,
            background: ReserveLine::of(&tuning.background),
            timeslice_ns: tuning.timeslice.as_ns(),
            blocking_ns: finite(tuning.blocking),
            stretch_ns: tuning.stretch.as_ns(),
            group_max_ns: finite(tuning.group_max),
            relief_every: tuning.relief_every,
            relief_periods: tuning.relief_periods,
            suspend_after: tuning.suspend_after,
            late_after_ns: tuning.late_after.as_ns(),
            unknown_runs_max_ns: tuning.unknown_runs_max.as_ns(),
            join_delay_max_ns: tuning.join_delay_max.as_ns(),
            late_permille: tuning.late_permille,
            given_up_max: tuning.given_up_max,
            clear_parts: tuning.clear_parts,
            unstretched_parts: tuning.unstretched_parts,
            rest_turn_ns: tuning.rest_turn.as_ns(),
        }
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
            completion_timeout_ns: completion_timeout.as_ns(),
            execution: match gpu {
                Gpu::InOrder => ExecutionLine::InOrder,
                Gpu::Preemptive => ExecutionLine::Preemptive,
                Gpu::TimeShared { .. } => ExecutionLine::TimeShared,
            },
            slice_ns,
            switch_ns,
            divisible: divisible.map(DivisibleLine::of),
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
            margins: MarginsLine::of(margins),
            tuning: TuningLine::of(tuning),
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
        let tuning = &self.tuning;
        let mut more_displays = Config::default().more_displays;
        for (display, line) in more_displays.iter_mut().zip(&self.more_displays) {
            *display = grid(line.refresh_mhz, line.origin_ns)?;
        }
        Ok(Config {
            refresh,
            more_displays,
            mpcg: self.mpcg,
            margins: self.margins.margins(),
            apps_max: self.apps_max,
            completion_timeout: Span::from_ns(self.completion_timeout_ns),
            gpu: self.gpu(),
            divisible: self.divisible.map(DivisibleLine::divisible),
            singly: self.singly,
            tuning: Tuning {
                tick: Span::from_ns(tuning.tick_ns),
                admission_permille: tuning.admission_permille,
                background: tuning.background.reserve(),
                timeslice: Span::from_ns(tuning.timeslice_ns),
                blocking: forever(tuning.blocking_ns),
                stretch: Span::from_ns(tuning.stretch_ns),
                group_max: forever(tuning.group_max_ns),
                relief_every: tuning.relief_every,
                relief_periods: tuning.relief_periods,
                suspend_after: tuning.suspend_after,
                late_after: Span::from_ns(tuning.late_after_ns),
                unknown_runs_max: Span::from_ns(tuning.unknown_runs_max_ns),
                join_delay_max: Span::from_ns(tuning.join_delay_max_ns),
                late_permille: tuning.late_permille,
                given_up_max: tuning.given_up_max,
                clear_parts: tuning.clear_parts,
                unstretched_parts: tuning.unstretched_parts,
                rest_turn: Span::from_ns(tuning.rest_turn_ns),
            },
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
