//! From what a file says to what the simulator plays: one app.

use takt_core::{AppParams, Clock, Config, Priority, Service, Span, Stride, Time};

use super::decimal::{self, fixed_point};
use super::diagnostic::Spot;
use super::lower::Lower;
use super::lower_clock::RateKeys;
use super::lower_display::Displays;
use super::lower_service::{LoweredService, named};
use super::raw::{RawApp, RawChange};
use super::reader::Whole;
use crate::model::{AppSpec, End, Pace, ParamChange, rate_mhz};

/// An `[[app]]` table: the first of `count` equal apps, and where its values are written.
pub(super) struct LoweredApp {
    pub(super) spec: AppSpec,
    pub(super) count: u32,
    pub(super) service: LoweredService,
    /// The app that it begins frames with, to be looked up when all are known.
    pub(super) starts_with: Option<(String, Spot)>,
    pub(super) spots: AppSpots,
}

/// Where the values of an app are written, for checks between apps.
pub(super) struct AppSpots {
    pub(super) name: Spot,
    pub(super) count: Spot,
    pub(super) priority: Spot,
    pub(super) rate: Spot,
    /// By time, as in the model.
    pub(super) changes: Vec<ChangeSpots>,
}

#[derive(Clone, Default)]
pub(super) struct ChangeSpots {
    pub(super) priority: Spot,
    pub(super) rate: Spot,
}

impl Lower<'_, '_> {
    pub(super) fn app(&mut self, raw: &RawApp, displays: &Displays) -> Option<LoweredApp> {
        let name = self.name(&raw.name);
        let count = self.whole_or(raw.count.as_ref(), &decimal::APPS, 1);
        let service = self.service(raw.service.as_ref());
        let pace = self.pace(raw);
        let promised = service.as_ref().map(|lowered| lowered.service);
        let params =
            promised.zip(pace).and_then(|(service, pace)| self.params(raw, displays, count, (service, pace)));
        let phase = self.first_phase(raw, params.map(|params| params.clock));
        let lifetime = self.lifetime(raw);
        let changes = params
            .zip(lifetime)
            .and_then(|(params, life)| self.changes(raw, displays, (params, count.unwrap_or(1)), life));
        let submit_delay = self.range_or_zero(raw.submit_delay_us.as_ref());
        let cpu = self.range_or_zero(raw.cpu_us.as_ref());
        let work = self.work(raw);
        let prediction = self.prediction(raw.prediction.as_ref());
        let phases = self.phases(raw);
        let (params, pace) = (params?, pace?);
        let ((changes, change_spots), (join, end)) = (changes?, lifetime?);
        let spec = AppSpec {
            name: name?,
            params,
            fps_mhz: rate_mhz(&params, pace, &displays.shown(Config::default())),
            phase: phase?,
            join,
            end,
            changes,
            submit_delay: submit_delay?,
            cpu: cpu?,
            work: work?,
            prediction: prediction?,
            phases: phases?,
            pace,
            synchronous: raw.synchronous.as_ref().is_some_and(|flag| flag.value),
        };
        Some(LoweredApp {
            spec,
            count: count?,
            service: service?,
            starts_with: named(raw.starts_with.as_ref()),
            spots: AppSpots {
                name: raw.name.at.clone(),
                count: spot_of(raw.count.as_ref(), &raw.name.at),
                priority: raw.priority.0.at.clone(),
                rate: rate_spot(RateKeys::of_app(raw), &raw.name.at),
                changes: change_spots,
            },
        })
    }

    fn params(
        &mut self,
        raw: &RawApp,
        displays: &Displays,
        count: Option<u32>,
        (service, pace): (Service, Pace),
    ) -> Option<AppParams> {
        let priority = self.priority(&raw.priority, count.unwrap_or(1));
        let clock = self.app_clock(raw, (raw.display.as_ref(), raw.clock.as_ref()), displays);
        let clock = clock.map(Option::unwrap_or_default);
        let stride = clock.and_then(|clock| self.first_stride(raw, (clock, pace), displays));
        let etpf = self.span_or(raw.etpf_us.as_ref(), &decimal::SPAN_US, Some(Span::ZERO));
        let gaps = self.gaps(raw);
        let service = Service { gaps: gaps?, ..service };
        let params = AppParams { priority: priority?, stride: stride?, etpf: etpf?, clock: clock?, service };
        self.fits_gaps(raw, &params).then_some(params)
    }

    /// The priority of the first of `count` apps; the last one must not fall below zero.
    fn priority(&mut self, raw: &Whole, count: u32) -> Option<Priority> {
        let priority: u32 = self.number(&raw.0, &decimal::PRIORITY)?;
        if priority < count.saturating_sub(1) {
            self.report.value(
                &raw.0.at,
                format_args!("the priorities of {count} apps fall below zero"),
                format!("use at least {}", count.saturating_sub(1)),
            );
            return None;
        }
        Some(Priority(priority))
    }

    fn lifetime(&mut self, raw: &RawApp) -> Option<(Time, Option<End>)> {
        let join = match &raw.join_s {
            Some(join) => self.time(join),
            None => Some(Time::ZERO),
        };
        let ends = [&raw.leave_s, &raw.crash_s, &raw.hang_s];
        let one =
            self.at_most_one(&ends.map(|end| end.as_ref().map(|n| &n.at)), "leave_s, crash_s and hang_s");
        let notice = self.notice(raw);
        let at = match ends.into_iter().flatten().next() {
            Some(number) => Some((number, self.time(number)?)),
            None => None,
        };
        let (join, notice) = (join?, notice?);
        let Some((number, at)) = at.filter(|_| one) else {
            return one.then_some((join, None));
        };
        if at <= join {
            self.report.value(
                &number.at,
                "the app ends before it joins",
                format!("use a time after join_s = {}", seconds(join)),
            );
            return None;
        }
        let end = if raw.leave_s.is_some() {
            End::Leave(at)
        } else if raw.crash_s.is_some() {
            End::Crash { at, notice }
        } else {
            End::Hang(at)
        };
        Some((join, Some(end)))
    }

    fn notice(&mut self, raw: &RawApp) -> Option<Span> {
        if let (Some(notice), None) = (&raw.crash_notice_ms, &raw.crash_s) {
            self.report.value(
                &notice.at,
                "the app does not crash",
                "add crash_s = …, or drop crash_notice_ms",
            );
            return None;
        }
        self.span_or(raw.crash_notice_ms.as_ref(), &decimal::SPAN_MS, Some(Span::ZERO))
    }

    /// The changes by time, each with all parameters.
    fn changes(
        &mut self,
        raw: &RawApp,
        displays: &Displays,
        (mut params, count): (AppParams, u32),
        (join, end): (Time, Option<End>),
    ) -> Option<(Vec<ParamChange>, Vec<ChangeSpots>)> {
        let timed = raw.change.iter().flatten().map(|change| (self.change_time(change, join, end), change));
        let mut timed: Vec<(Option<Time>, &RawChange)> = timed.collect();
        // What a rate means depends on the display that the app has by then.
        timed.sort_by_key(|(at, _)| *at);
        let mut changes = Vec::with_capacity(timed.len());
        let mut whole = true;
        for (at, change) in timed {
            let changed = self.change((raw, change), displays, (params, count));
            params = changed.unwrap_or(params);
            match (at, changed) {
                (Some(at), Some(params)) => changes.push((at, &change.at_s.at, (at, params, change))),
                _ => whole = false,
            }
        }
        let changes = self.by_time(changes)?;
        let lowered = changes.into_iter().map(|(at, params, raw)| (ParamChange { at, params }, spots(raw)));
        whole.then(|| lowered.unzip())
    }

    /// The parameters after a change.
    fn change(
        &mut self,
        (app, raw): (&RawApp, &RawChange),
        displays: &Displays,
        (before, count): (AppParams, u32),
    ) -> Option<AppParams> {
        let rate = RateKeys::of_change(raw);
        let clocks = (raw.display.as_ref(), raw.clock.as_ref());
        let clock = self.app_clock(app, clocks, displays).map(|clock| clock.unwrap_or(before.clock));
        let stride = match clock {
            Some(clock) if rate.are_given() => self.stride(rate, clock, displays),
            Some(Clock::Own { .. }) => Some(Stride::ONE),
            _ => Some(before.stride),
        };
        let etpf = self.span_or(raw.etpf_us.as_ref(), &decimal::SPAN_US, Some(before.etpf));
        let priority = match &raw.priority {
            Some(priority) => self.priority(priority, count),
            None => Some(before.priority),
        };
        let keys = [rate.are_given(), clocks.0.is_some(), clocks.1.is_some(), raw.etpf_us.is_some()];
        if !keys.contains(&true) && raw.priority.is_none() {
            let remedy = "add fps, stride, display, clock, etpf_us or priority";
            self.report.table(&raw.at, "the change changes nothing", remedy);
            return None;
        }
        Some(AppParams { priority: priority?, stride: stride?, etpf: etpf?, clock: clock?, ..before })
    }

    fn change_time(&mut self, raw: &RawChange, join: Time, end: Option<End>) -> Option<Time> {
        let at = self.time(&raw.at_s)?;
        let end = end.map(|end| match end {
            End::Leave(at) | End::Crash { at, .. } | End::Hang(at) => at,
        });
        let problem = if at <= join {
            "the app has not joined by then"
        } else if end.is_some_and(|end| at >= end) {
            "the app has ended by then"
        } else {
            return Some(at);
        };
        self.report.value(&raw.at_s.at, problem, "use a time between the app's join and end");
        None
    }
}

fn spots(raw: &RawChange) -> ChangeSpots {
    ChangeSpots {
        priority: spot_of(raw.priority.as_ref(), &raw.at_s.at),
        rate: rate_spot(RateKeys::of_change(raw), &raw.at_s.at),
    }
}

fn spot_of(number: Option<&Whole>, otherwise: &Spot) -> Spot {
    number.map_or(otherwise, |number| &number.0.at).clone()
}

fn rate_spot(RateKeys { fps, stride }: RateKeys<'_>, otherwise: &Spot) -> Spot {
    fps.map(|number| &number.at).or_else(|| stride.map(|number| &number.0.at)).unwrap_or(otherwise).clone()
}

/// An instant in seconds.
pub(super) fn seconds(time: Time) -> String {
    fixed_point(time.as_ns().into(), 9)
}
