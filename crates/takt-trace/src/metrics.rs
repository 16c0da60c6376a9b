//! The figures of a run, collected while it passes. Definitions: `docs/metrics.md`.

use hdrhistogram::Histogram;
use takt_core::limits::FRAMES_PER_GROUP_MAX;
use takt_core::{Action, AppId, Estimate, Event, FrameDone, Span, Stats, Time};

use crate::app_figures::AppFigures;
use crate::blame::Blame;
use crate::blocking::Blocking;
use crate::jobs::{Jobs, bin};
use crate::lives::{Life, Lives};
use crate::record::{GpuRecord, Meta, Observer, Record};
use crate::roster::Roster;
use crate::summary::{AppSummary, GpuSummary, Quantiles, SchedulerSummary, Summary};

/// Length of a window of GPU utilisation, as in the thesis's figure 4.16.
const WINDOW: Span = Span::from_ms(2_000);

/// Collects the figures of a run.
#[derive(Debug)]
pub struct Metrics {
    meta: Meta,
    from: Time,
    lives: Lives,
    roster: Roster,
    apps: Vec<AppFigures>,
    blame: Blame,
    blocking: Blocking,
    busy: Span,
    windows: Vec<Span>,
    /// When the GPU stands still until, and since when.
    stall: (Time, Time),
}

/// What only the driver of a run knows.
#[derive(Clone, Copy, Debug)]
pub struct RunFacts {
    /// Seed of every random choice.
    pub seed: u64,
    /// Hash over all events.
    pub event_hash: u64,
    /// The scheduler's counters.
    pub stats: Stats,
    /// When the run ended.
    pub end: Time,
}

impl Metrics {
    /// Judges what happens from `warm_up` on.
    pub fn new(meta: Meta, warm_up: Span) -> Self {
        let from = Time::ZERO + warm_up;
        let jobs = meta.apps.iter().map(|app| app.jobs.map(|jobs| Jobs::new(jobs, from)));
        let apps = jobs.map(AppFigures::new).collect();
        Self {
            blame: Blame::new(meta.refresh, from),
            blocking: Blocking::new(from),
            meta,
            from,
            lives: Lives::new(),
            roster: Roster::default(),
            apps,
            busy: Span::ZERO,
            windows: Vec::new(),
            stall: (Time::ZERO, Time::ZERO),
        }
    }

    /// Lists every deadline that this app missed, and none of others, instead of the first ones of
    /// all apps.
    #[must_use]
    pub fn listing_all_of(mut self, app: AppId) -> Self {
        self.blame.list_all_of(app);
        self
    }

    fn app(&mut self, app: AppId) -> Option<&mut AppFigures> {
        self.apps.get_mut(app.index())
    }

    /// What ran until it was preempted, if that is what the record says.
    fn preempted(&self, at: Time, record: &Record) -> Option<Run> {
        let Record::Gpu(GpuRecord::Preempted { app, group, started: Some(started), .. }) = *record else {
            return None;
        };
        let predicted = self.lives.get(group).map_or(Estimate::UNBOUNDED, |life| life.predicted);
        Some(Run { app, started, ended: at, ran: Span::ZERO, predicted, reserved: Span::FOREVER })
    }

    /// A group is done, and with it that many frames of its app.
    fn ended(&mut self, life: &Life, frames: u32) {
        let from = self.from;
        let Some(app) = self.app(life.app) else {
            return;
        };
        if let Some(jobs) = &mut app.jobs {
            jobs.ended(life);
        }
        let run = Run::of(life).filter(|run| run.ended > from);
        let counts = run.is_some();
        if let Some(run) = run {
            app.groups += 1;
            app.spend(life.frame, run.cost());
            app.under_predicted += u64::from(run.cost() > run.predicted.span());
            if run.predicted.span() < Span::FOREVER {
                app.predicted += run.predicted.span();
                app.measured += run.cost();
            }
        }
        if frames > 0 {
            app.end_frames(life.frame, frames, counts);
        }
    }

    /// A frame is done that ended without a group.
    fn bare_frame_done(&mut self, done: &FrameDone, counts: bool) {
        if let Some(app) = self.app(done.app) {
            app.jobs.iter_mut().for_each(|jobs| jobs.done(done.frame, done.finished));
            app.end_frames(done.frame, 1, counts);
        }
    }

    fn ran(&mut self, run: Run) {
        if run.ended <= self.from {
            return;
        }
        let began = run.started.max(self.from);
        // A group that was caught by a stall does not execute meanwhile.
        let (stall_began, stall_ended) = self.stall;
        let before = (began, run.ended.min(stall_began.max(began)));
        let after = (began.max(stall_ended).min(run.ended).max(before.1), run.ended);
        let mut spent = Span::ZERO;
        for (from, until) in [before, after] {
            spent += until.since(from);
            self.add_to_windows(from, until);
        }
        self.busy += spent;
        if let Some(app) = self.app(run.app) {
            app.gpu_time += spent;
        }
    }

    fn add_to_windows(&mut self, mut began: Time, ended: Time) {
        while began < ended {
            let index = began.since(self.from).as_ns() / WINDOW.as_ns();
            let window_end = self.from + WINDOW.times(index + 1);
            let until = ended.min(window_end);
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            if self.windows.len() <= index {
                self.windows.resize(index + 1, Span::ZERO);
            }
            self.windows[index] += until.since(began);
            began = until;
        }
    }

    fn frame_done(&mut self, done: &FrameDone) {
        let Some(app) = self.apps.get_mut(done.app.index()) else {
            return;
        };
        app.frames += 1;
        app.met += u64::from(done.met);
        let response = done.finished.since(done.release);
        // The histogram grows as needed; only a value beyond u64 could fail.
        app.response.record(response.as_ns()).unwrap_or_default();
        app.pd_fft[bin(response, done.deadline.since(done.release))] += 1;
    }

    /// The figures, at the end of the run.
    pub fn finish(mut self, facts: RunFacts) -> Summary {
        let judged = facts.end.since(self.from);
        for app in &mut self.apps {
            if let Some(joined) = app.joined.take() {
                app.attached += facts.end.since(joined);
            }
        }
        let mut order: Vec<usize> = (0..self.apps.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(self.meta.apps[*index].priority));
        let apps = order.into_iter().map(|index| self.app_summary(index, judged, facts.end)).collect();
        let (misses, misses_omitted) = self.blame.finish(&self.meta);
        Summary {
            scenario: self.meta.scenario,
            policy: self.meta.policy,
            seed: facts.seed,
            duration_s: seconds(facts.end.since(Time::ZERO)),
            judged_s: seconds(judged),
            event_hash: format!("{:016x}", facts.event_hash),
            gpu: GpuSummary {
                utilisation: share(self.busy, judged),
                window_s: seconds(WINDOW),
                windows_from_s: seconds(self.from.since(Time::ZERO)),
                utilisation_windows: self
                    .windows
                    .iter()
                    .take(usize::try_from(judged.as_ns() / WINDOW.as_ns()).unwrap_or(usize::MAX))
                    .map(|busy| share(*busy, WINDOW))
                    .collect(),
            },
            scheduler: SchedulerSummary {
                runs: facts.stats.runs,
                dispatched: facts.stats.dispatched,
                runs_per_dispatched: facts.stats.runs as f64 / facts.stats.dispatched.max(1) as f64,
                lost: facts.stats.lost,
                refused: facts.stats.refused,
            },
            apps,
            misses,
            misses_omitted,
        }
    }

    fn app_summary(&mut self, index: usize, judged: Span, end: Time) -> AppSummary {
        let jobs = self.apps[index].jobs.take().map(|jobs| jobs.finish(end));
        let (meta, app) = (&self.meta.apps[index], &self.apps[index]);
        let deadlines = app.met + app.missed;
        let blocking = self.blocking.of(AppId(u32::try_from(index).unwrap_or(u32::MAX)));
        AppSummary {
            name: meta.name.clone(),
            priority: meta.priority.0,
            fps_target: f64::from(meta.fps_mhz) / 1000.0,
            fps: if app.attached == Span::ZERO { 0.0 } else { app.frames as f64 / seconds(app.attached) },
            frames: app.frames,
            deadlines,
            missed: app.missed,
            met: if deadlines == 0 { 1.0 } else { app.met as f64 / deadlines as f64 },
            blocking_us_max: blocking.max,
            blocking_us: blocking,
            response_us: quantiles(&app.response),
            frame_gpu_us: quantiles(&app.frames_gpu),
            gpu_share: share(app.gpu_time, judged),
            predicted_over_measured: share(app.predicted, app.measured),
            under_predicted: if app.groups == 0 {
                0.0
            } else {
                app.under_predicted as f64 / app.groups as f64
            },
            pd_fft: app.pd_fft.clone(),
            jobs,
            causes: self.blame.causes(AppId(u32::try_from(index).unwrap_or(u32::MAX))),
        }
    }
}

impl Observer for Metrics {
    fn record(&mut self, at: Time, record: &Record) {
        let ended = self.lives.see(at, record);
        self.roster.see(at, record);
        self.blocking.see(at, record, &self.roster);
        let run = ended.as_ref().and_then(Run::of);
        let run = run.or_else(|| self.preempted(at, record));
        if let Some(run) = run {
            self.ran(run);
        }
        if let Some(life) = &ended {
            self.ended(life, frames_within(record) + u32::from(life.kind.ends_frame()));
        }
        self.blame.see(at, record, run, &self.lives, &self.roster);
        let from = self.from;
        match record {
            Record::Gpu(GpuRecord::Stalled { until }) => {
                let since = if self.stall.1 >= at { self.stall.0 } else { at };
                self.stall = (since, *until);
            }
            Record::Out(Action::FrameDone(done)) => {
                if self.lives.is_bare(done) {
                    self.bare_frame_done(done, at >= from);
                }
                if at >= from {
                    self.frame_done(done);
                }
            }
            Record::Out(Action::Missed { app, count, .. }) if at >= from => {
                if let Some(app) = self.app(*app) {
                    app.missed += count;
                }
            }
            Record::In(Event::Join { app, .. }) => {
                if let Some(app) = self.app(*app) {
                    app.joined = Some(at.max(from));
                    app.frame_gpu.clear();
                    app.whole_frames = at >= from;
                }
            }
            Record::Out(Action::Left { app, .. }) => {
                if let Some(app) = self.app(*app)
                    && let Some(joined) = app.joined.take()
                {
                    app.attached += at.since(joined);
                    app.jobs.iter_mut().for_each(|jobs| jobs.left(at));
                }
            }
            _ => {}
        }
    }
}

/// Frames that ended inside of the group whose end a record tells.
fn frames_within(record: &Record) -> u32 {
    match record {
        Record::In(Event::Complete { frames, .. }) => (*frames).min(FRAMES_PER_GROUP_MAX),
        _ => 0,
    }
}

fn quantiles(histogram: &Histogram<u64>) -> Quantiles {
    let us = |ns: u64| ns as f64 / 1000.0;
    Quantiles {
        p50: us(histogram.value_at_quantile(0.5)),
        p99: us(histogram.value_at_quantile(0.99)),
        max: us(histogram.max()),
    }
}

/// An executed group: all that figures need of its life.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Run {
    pub(crate) app: AppId,
    pub(crate) started: Time,
    pub(crate) ended: Time,
    /// How long it had run before `started`, until it was preempted.
    pub(crate) ran: Span,
    pub(crate) predicted: Estimate,
    /// Gpu time that was set aside for it.
    pub(crate) reserved: Span,
}

impl Run {
    fn of(life: &Life) -> Option<Self> {
        Some(Self {
            app: life.app,
            started: life.last_begun()?,
            ended: life.finished?,
            ran: life.ran,
            predicted: life.predicted,
            reserved: life.reserved?,
        })
    }

    /// Measured length.
    pub(crate) fn cost(&self) -> Span {
        self.ran + self.ended.since(self.started)
    }

    /// By how much it ran longer than was set aside for it.
    pub(crate) fn overrun(&self) -> Span {
        self.cost().saturating_sub(self.reserved)
    }
}

pub(crate) fn seconds(span: Span) -> f64 {
    span.as_ns() as f64 / 1e9
}

pub(crate) fn micros(span: Span) -> f64 {
    span.as_ns() as f64 / 1e3
}

fn share(part: Span, whole: Span) -> f64 {
    if whole == Span::ZERO { 0.0 } else { part.as_ns() as f64 / whole.as_ns() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::meta;
    use takt_core::{AppParams, Cost, GroupId, GroupKind, Period, Priority, Service, Stride};

    /// Figures of a run in which one app has joined.
    fn joined(app: AppId, warm_up: Span) -> Metrics {
        let mut metrics = Metrics::new(meta("test"), warm_up);
        let params = AppParams {
            priority: Priority(1),
            stride: Stride::ONE,
            etpf: Span::from_us(300),
            clock: takt_core::Clock::default(),
            service: Service::default(),
        };
        metrics.record(Time::ZERO, &Record::In(Event::Join { app, params, phase: 0 }));
        metrics
    }

    /// Median and maximum of what frames used, at the end of the run.
    fn frame_gpu(metrics: Metrics, end: Time) -> (f64, f64) {
        let summary = metrics.finish(RunFacts { seed: 0, event_hash: 0, stats: Stats::default(), end });
        let frames = &summary.apps.iter().find(|app| app.gpu_share > 0.0).expect("it ran").frame_gpu_us;
        (frames.p50.round(), frames.max.round())
    }

    /// Median and maximum, after `warm_up`, of four frames of 800 µs together and two of 100.
    fn frames_of(warm_up: Span) -> (f64, f64) {
        let (app, us) = (AppId(0), Time::from_us);
        let mut metrics = joined(app, warm_up);
        let mut execute = |number: u64, kind, cost_us: u64, frames| {
            let (group, began) = (GroupId(number), us(1_000 * number));
            let (finished, cost) = (began + Span::from_us(cost_us), Cost::new(Span::from_us(cost_us)));
            let (target, start, reserved) = (Period(0), began, Span::FOREVER);
            let estimate = Estimate::default();
            metrics.record(began, &Record::In(Event::Submit { app, group, kind, estimate }));
            metrics.record(began, &Record::Out(Action::Dispatch { app, group, target, start, reserved }));
            metrics.record(finished, &Record::In(Event::Complete { group, finished, cost, frames }));
        };
        execute(0, GroupKind::Draw, 300, 0);
        execute(1, GroupKind::Swap, 500, 3);
        execute(2, GroupKind::Swap, 100, 0);
        execute(3, GroupKind::Swap, 100, 0);
        frame_gpu(metrics, us(4_000))
    }

    #[test]
    fn frames_that_end_without_a_group_use_what_their_groups_use() {
        let (app, us, at) = (AppId(0), Time::from_us, Time::from_us(10));
        let mut metrics = joined(app, Span::ZERO);
        let ends = [us(310), us(410)];
        for group in [0, 1].map(GroupId) {
            let (kind, estimate) = (GroupKind::Draw, Estimate::default());
            let (target, start, reserved) = (Period(0), at, Span::FOREVER);
            metrics.record(at, &Record::In(Event::Submit { app, group, kind, estimate }));
            metrics.record(at, &Record::In(Event::EndFrame { app }));
            metrics.record(at, &Record::Out(Action::Dispatch { app, group, target, start, reserved }));
        }
        // Both ends are heard of at once, and both frames are done after that.
        for (group, finished) in (0..).map(GroupId).zip(ends) {
            let cost = Cost::new(Span::from_us(if group.0 == 0 { 300 } else { 100 }));
            metrics.record(ends[1], &Record::In(Event::Complete { group, finished, cost, frames: 0 }));
        }
        for (frame, finished) in (0..).zip(ends) {
            let (desired, release, deadline, met) = (Period(frame), at, us(16_000), true);
            let done = FrameDone { app, frame, desired, release, deadline, finished, met };
            metrics.record(ends[1], &Record::Out(Action::FrameDone(done)));
        }
        assert_eq!(frame_gpu(metrics, us(4_000)), (100.0, 300.0));
    }

    #[test]
    fn frames_use_what_their_groups_use_and_share_what_they_share() {
        assert_eq!(frames_of(Span::ZERO), (200.0, 200.0), "800 µs for four, 100 for each of two");
    }

    #[test]
    fn frames_that_began_before_do_not_count() {
        assert_eq!(frames_of(Span::from_us(1_200)), (100.0, 100.0));
        assert_eq!(frames_of(Span::from_us(2_050)), (100.0, 100.0), "nor as none");
    }
}
