//! From the model back to text, for scenarios that a program made.

use std::fmt::Write as _;

use takt_core::service::{Gaps, Reservation, Reserve};
use takt_core::{
    AppId, AppParams, Clock, Config, DisplayId, GroupKind, Period, Refresh, Service, Span, Time, Tuning,
};

use super::decimal::fixed_point;
use super::lower::MODELS;
use super::lower_service::{enforcement_name, level_name, name_of, turns_name};
use super::recording::{HEADER, HEADER_MADE};
use crate::model::{
    AppSpec, Bucket, CostDist, End, GpuSpec, Interrupts, Outliers, Pace, Part, Phase, Prediction,
    RecordedGroup, SHARE_ONE, Scenario, SpanRange, Work,
};

/// Writes a scenario as a file that [`parse`](super::parse) reads back as the same scenario.
///
/// All values are written, defaults too, and recordings become part of the file. The scenario must
/// be one that a file could describe: within the bounds, and with a first display whose refresh grid
/// starts at the clock's origin.
pub fn to_toml(scenario: &Scenario) -> String {
    let mut out = Writer::default();
    let Scenario { config, gpu, .. } = scenario;
    out.key("name", quoted(&scenario.name));
    out.key("description", quoted(&scenario.description));
    out.key("duration_s", seconds(scenario.duration.as_ns()));
    out.key("warm_up_s", seconds(scenario.warm_up.as_ns()));
    out.key("seed", scenario.seed);
    out.displays(scenario);
    out.header("[scheduler]");
    out.key("policy", quoted(&scenario.policy));
    out.key("mpcg", config.mpcg);
    let timeout = match config.completion_timeout {
        Span::FOREVER => "inf".to_owned(),
        timeout => ms(timeout),
    };
    out.key("completion_timeout_ms", timeout);
    out.key("apps_max", config.apps_max);
    out.key("belief", scenario.belief);
    out.tuning(&config.tuning);
    out.header("[scheduler.margins]");
    let margins = &config.margins;
    out.key("fixed_us", us(margins.fixed));
    out.key("upper", permille(margins.upper_permille));
    out.key("lower", permille(margins.lower_permille));
    out.key("dispatch_upper_us", us(margins.dispatch_upper));
    out.key("dispatch_lower_us", us(margins.dispatch_lower));
    out.key("completion_upper_us", us(margins.completion_upper));
    out.key("group_min_us", us(margins.group_min));
    out.gpu(gpu);
    let names: Vec<&str> = scenario.apps.iter().map(|app| app.name.as_str()).collect();
    for app in &scenario.apps {
        out.app(app, config, &names);
    }
    for change in &scenario.focus {
        out.header("[[focus]]");
        out.key("at_s", instant(change.at));
        if let Some(name) = change.app.and_then(|app| names.get(app.index())) {
            out.key("app", quoted(name));
        }
    }
    out.text
}

#[derive(Default)]
struct Writer {
    text: String,
}

impl Writer {
    fn key(&mut self, key: &str, value: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        let _infallible = writeln!(self.text, "{key} = {value}");
    }

    fn header(&mut self, header: &str) {
        let _infallible = writeln!(self.text, "\n{header}");
    }

    /// The displays that apps have or that are not as they are without being named.
    fn displays<'s>(&mut self, scenario: &'s Scenario) {
        let config = &scenario.config;
        let clocks = |app: &'s AppSpec| {
            let later = app.changes.iter().map(|change| change.params.clock);
            std::iter::once(app.params.clock).chain(later)
        };
        let shown = scenario.apps.iter().flat_map(clocks).filter_map(Clock::display);
        let shown = shown.map(|display| usize::from(display.0)).max().unwrap_or(0);
        let default = Config::default().more_displays;
        let named = config.more_displays.iter().zip(&default).rposition(|(given, default)| given != default);
        let last = shown.max(named.map_or(0, |index| index + 1));
        if last == 0 {
            self.header("[display]");
            return self.rate(&config.refresh);
        }
        let all = std::iter::once(&config.refresh).chain(&config.more_displays);
        for (index, refresh) in all.enumerate().take(last + 1) {
            self.header("[[display]]");
            self.key("name", display_name(index));
            self.rate(refresh);
            self.key("phase_us", us(origin(refresh).since(Time::ZERO)));
        }
    }

    fn rate(&mut self, refresh: &Refresh) {
        if by_rate(refresh) {
            self.key("refresh_hz", fixed_point(refresh.mhz().into(), 3));
        } else {
            self.key("period_us", us(refresh.period_span()));
        }
    }

    fn tuning(&mut self, tuning: &Tuning) {
        self.key("tick_us", us(tuning.tick));
        self.key("admission", permille(tuning.admission_permille));
        self.key("timeslice_us", us(tuning.timeslice));
        if tuning.blocking < Span::FOREVER {
            self.key("max_blocking_us", us(tuning.blocking));
        }
        if tuning.group_max < Span::FOREVER {
            self.key("group_max_us", us(tuning.group_max));
        }
        let Reserve { budget, period, enforcement, .. } = tuning.background;
        self.header("[scheduler.background]");
        self.key("reserve_us", us(budget));
        self.key("period_us", us(period));
        self.key("enforcement", quoted(enforcement_name(enforcement)));
    }

    fn gpu(&mut self, gpu: &GpuSpec) {
        self.header("[gpu]");
        self.key("model", quoted(name_of(MODELS, &gpu.model)));
        self.key("queue", gpu.queue);
        self.key("switch_us", us(gpu.switch));
        self.key("late_ends", gpu.late_ends);
        self.key("dispatch_delay_us", range(gpu.dispatch_delay));
        self.key("completion_delay_us", range(gpu.completion_delay));
        self.key("completion_poll_us", us(gpu.completion_poll));
        self.key("lost_completion", ppm(gpu.lost_completion_ppm));
        if let Some(Interrupts { slice, quantum }) = gpu.divisible {
            self.header("[gpu.divisible]");
            self.key("slice_us", us(slice));
            self.key("quantum_us", us(quantum));
        }
        for change in &gpu.clock {
            self.header("[[gpu.clock]]");
            self.key("at_s", instant(change.at));
            self.key("speed", permille(change.permille));
        }
        for stall in &gpu.stalls {
            self.header("[[gpu.stall]]");
            self.key("at_s", instant(stall.at));
            self.key("length_ms", ms(stall.length));
        }
    }

    fn app(&mut self, app: &AppSpec, config: &Config, names: &[&str]) {
        self.header("[[app]]");
        self.key("name", quoted(&app.name));
        self.params(&app.params, config);
        let Gaps { count, length } = app.params.service.gaps;
        if count > 0 {
            self.key("gaps", count);
            self.key("gap_us", us(length));
        }
        self.clock(app.params.clock, app.pace);
        self.key("phase_periods", app.phase);
        self.key("join_s", instant(app.join));
        match app.end {
            Some(End::Leave(at)) => self.key("leave_s", instant(at)),
            Some(End::Hang(at)) => self.key("hang_s", instant(at)),
            Some(End::Crash { at, notice }) => {
                self.key("crash_s", instant(at));
                self.key("crash_notice_ms", ms(notice));
            }
            None => {}
        }
        self.key("submit_delay_us", range(app.submit_delay));
        self.key("cpu_us", range(app.cpu));
        self.key("synchronous", app.synchronous);
        match app.pace {
            Pace::Released => {}
            Pace::Unpaced => self.key("unpaced", true),
            Pace::With(leader) => {
                self.key("starts_with", quoted(names.get(leader.index()).copied().unwrap_or_default()))
            }
            Pace::Periodic(jobs) => {
                self.key("period_us", us(jobs.period));
                self.key("deadline_us", us(jobs.deadline));
                self.key("offset_us", us(jobs.offset));
            }
        }
        match &app.work {
            Work::Drawn { parts, swap } => {
                let parts: Vec<String> = parts.iter().map(part).collect();
                self.key("draws", format_args!("[{}]", parts.join(", ")));
                self.cost(swap);
            }
            Work::Recorded(groups) => self.recording(groups),
        }
        self.key("prediction", prediction(&app.prediction));
        self.service(&app.params.service, names);
        for change in &app.changes {
            self.header("[[app.change]]");
            self.key("at_s", instant(change.at));
            self.params(&change.params, config);
            match change.params.clock {
                Clock::Display(DisplayId(0)) => self.key("clock", quoted("display")),
                clock => self.clock(clock, Pace::Released),
            }
        }
        for phase in &app.phases {
            self.phase(phase);
        }
    }

    fn service(&mut self, service: &Service, names: &[&str]) {
        let name = |app: AppId| quoted(names.get(app.index()).copied().unwrap_or_default());
        self.header("[app.service]");
        self.key("follows_focus", service.follows_focus);
        self.key("turns", quoted(turns_name(service.turns)));
        match service.reservation {
            Reservation::None => {}
            Reservation::Own(reserve) => {
                self.key("reserve_us", us(reserve.budget));
                self.key("period_us", us(reserve.period));
                self.key("deadline_us", us(reserve.deadline));
                self.key("enforcement", quoted(enforcement_name(reserve.enforcement)));
            }
            Reservation::Shared(owner) => self.key("shared_with", name(owner)),
            Reservation::Background => self.key("background", true),
        }
        if let Some(consumer) = service.feeds {
            self.key("feeds", name(consumer));
        }
        self.key("level", quoted(level_name(service.level)));
        if service.timeslice > Span::ZERO {
            self.key("timeslice_us", us(service.timeslice));
        }
        self.key("uninterruptible", service.uninterruptible);
        if service.divisible {
            self.key("divisible", true);
        }
    }

    fn params(&mut self, params: &AppParams, config: &Config) {
        self.key("priority", params.priority.0);
        if let Clock::Display(display) = params.clock {
            let (refresh, stride) = (config.display(display), params.stride.get());
            if by_rate(refresh) && refresh.mhz().is_multiple_of(stride) {
                self.key("fps", fixed_point((refresh.mhz() / stride).into(), 3));
            } else {
                self.key("stride", stride);
            }
        }
        self.key("etpf_us", us(params.etpf));
    }

    /// What the scheduler knows of the clock by which an app of that pace goes; nothing for the first display.
    fn clock(&mut self, clock: Clock, pace: Pace) {
        match (clock, pace) {
            (Clock::Display(DisplayId(0)), _) => {}
            (Clock::Display(display), _) => self.key("display", display_name(display.0.into())),
            (Clock::Own { period, deadline }, Pace::Periodic(jobs))
                if (jobs.period, jobs.deadline) == (period, deadline) =>
            {
                self.key("clock", quoted("own"));
            }
            (Clock::Own { period, deadline }, _) => {
                let (period, deadline) = (us(period), us(deadline));
                self.key("clock", format_args!("{{ period_us = {period}, deadline_us = {deadline} }}"));
            }
        }
    }

    fn cost(&mut self, swap: &CostDist) {
        match single(swap) {
            Some(bounds) => self.key("swap_us", range(bounds)),
            None => self.key("swap_mix", mix(swap)),
        }
    }

    fn recording(&mut self, groups: &[RecordedGroup]) {
        let made = groups.iter().any(|group| group.make != Span::ZERO);
        let header = if made { HEADER_MADE } else { HEADER };
        let _infallible = writeln!(self.text, "recording_csv = \"\"\"\n{header}");
        for group in groups {
            let kind = match group.kind {
                GroupKind::Draw => "draw",
                GroupKind::Sync => "sync",
                // An exit cannot be recorded; it ends its frame as a swap does.
                GroupKind::Swap | GroupKind::Exit => "swap",
            };
            let (delay, cost) = (us(group.delay), us(group.cost));
            let predicted = match group.predicted {
                Some(predicted) if predicted >= Span::FOREVER => "inf".to_owned(),
                predicted => predicted.map(us).unwrap_or_default(),
            };
            let make = if made { format!(",{}", us(group.make)) } else { String::new() };
            let _infallible = writeln!(self.text, "{delay},{kind},{cost},{predicted}{make}");
        }
        self.text.push_str("\"\"\"\n");
    }

    fn phase(&mut self, phase: &Phase) {
        self.header("[[app.phase]]");
        self.key("from_s", instant(phase.from));
        self.key("until_s", instant(phase.until));
        if let Some(cpu) = phase.cpu {
            self.key("cpu_us", range(cpu));
        }
        self.key("gpu_scale", permille(phase.gpu_permille));
        self.key("groups_scale", permille(phase.groups_permille));
        if let Some(given) = &phase.prediction {
            self.key("prediction", prediction(given));
        }
    }
}

/// Whether the grid is that of a rate in whole millihertz.
fn by_rate(refresh: &Refresh) -> bool {
    Refresh::from_mhz(refresh.mhz()).map(|rate| rate.with_origin(origin(refresh))) == Some(*refresh)
}

fn origin(refresh: &Refresh) -> Time {
    refresh.start(Period(0))
}

/// The model knows displays by number.
fn display_name(index: usize) -> String {
    quoted(&format!("display-{}", index + 1))
}

fn part(part: &Part) -> String {
    let cost = match single(&part.cost) {
        Some(bounds) => format!("us = {}", range(bounds)),
        None => format!("mix = {}", mix(&part.cost)),
    };
    let (lo, hi) = part.count;
    let sync = part.kind == GroupKind::Sync;
    format!("{{ {cost}, count = [{lo}, {hi}], sync = {sync} }}")
}

/// The range of a distribution that is a single one.
fn single(cost: &CostDist) -> Option<SpanRange> {
    match cost.buckets[..] {
        [Bucket { share_ppm, range }] if share_ppm == SHARE_ONE => Some(range),
        _ => None,
    }
}

fn mix(cost: &CostDist) -> String {
    let bucket = |b: &Bucket| {
        let (share, us) = (ppm(b.share_ppm), range(b.range));
        format!("{{ share = {share}, us = {us} }}")
    };
    let buckets: Vec<String> = cost.buckets.iter().map(bucket).collect();
    format!("[{}]", buckets.join(", "))
}

fn prediction(prediction: &Prediction) -> String {
    let scale = prediction.scale_permille.map_or_else(|| "inf".to_owned(), permille);
    let noise = permille(prediction.noise_permille);
    let (bias, floor) = (error(prediction.bias_ns), us(prediction.floor));
    let outliers = prediction.outliers.map(|outliers| {
        let Outliers { share_ppm, error_ns: (lo, hi) } = outliers;
        let (share, lo, hi) = (ppm(share_ppm), error(lo), error(hi));
        format!(", outliers = {{ share = {share}, error_us = [{lo}, {hi}] }}")
    });
    let outliers = outliers.unwrap_or_default();
    if let Some(records) = prediction.history {
        return format!("{{ scale = {scale}, floor_us = {floor}, history = {records} }}");
    }
    format!("{{ scale = {scale}, noise = {noise}, bias_us = {bias}, floor_us = {floor}{outliers} }}")
}

fn range(range: SpanRange) -> String {
    match (us(range.lo), us(range.hi)) {
        (lo, hi) if lo == hi => lo,
        (lo, hi) => format!("[{lo}, {hi}]"),
    }
}

fn us(span: Span) -> String {
    fixed_point(span.as_ns().into(), 3)
}

fn ms(span: Span) -> String {
    fixed_point(span.as_ns().into(), 6)
}

fn seconds(ns: u64) -> String {
    fixed_point(ns.into(), 9)
}

fn instant(time: Time) -> String {
    seconds(time.as_ns())
}

fn error(ns: i64) -> String {
    fixed_point(ns.into(), 3)
}

fn permille(permille: u32) -> String {
    fixed_point(permille.into(), 3)
}

fn ppm(ppm: u32) -> String {
    fixed_point(ppm.into(), 6)
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _infallible = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
