//! From what a file says to what the simulator plays: one app.

use takt_core::{AppParams, Priority, Service, Span, Stride, Time};

use super::decimal::{self, fixed_point};
use super::diagnostic::Spot;
use super::lower::{Grid, Lower, all};
use super::lower_service::LoweredService;
use super::raw::{RawApp, RawChange};
use super::reader::{Number, Whole};
use crate::model::{AppSpec, End, Jobs, Pace, ParamChange};

/// An `[[app]]` table: the first of `count` equal apps, and where its values are written.
pub(super) struct LoweredApp {
    pub(super) spec: AppSpec,
    pub(super) count: u32,
    pub(super) service: LoweredService,
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

/// Allowed frame rates that a remedy lists before it says "…".
const RATES_SHOWN: usize = 12;

impl Lower<'_, '_> {
    pub(super) fn app(&mut self, raw: &RawApp, grid: Grid) -> Option<LoweredApp> {
        let name = self.name(&raw.name);
        let count = self.whole_or(raw.count.as_ref(), &decimal::APPS, 1);
        let service = self.service(raw.service.as_ref());
        let pace = self.pace(raw);
        let promised = service.as_ref().map(|lowered| lowered.service);
        let params =
            promised.zip(pace).and_then(|(service, pace)| self.params(raw, grid, count, service, pace));
        let phase = self.whole_or(raw.phase_periods.as_ref(), &decimal::PHASE_PERIODS, 0);
        let lifetime = self.lifetime(raw);
        let changes = params
            .zip(lifetime)
            .and_then(|(params, lifetime)| self.changes(raw, grid, (params, count.unwrap_or(1)), lifetime));
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
            fps_mhz: rate_mhz(pace).unwrap_or_else(|| grid.refresh.mhz() / params.stride.get()),
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
            spots: AppSpots {
                name: raw.name.at.clone(),
                count: spot_of(raw.count.as_ref(), &raw.name.at),
                priority: raw.priority.0.at.clone(),
                rate: rate_spot(raw.fps.as_ref(), raw.stride.as_ref(), &raw.name.at),
                changes: change_spots,
            },
        })
    }

    /// When the app starts its next frame.
    fn pace(&mut self, raw: &RawApp) -> Option<Pace> {
        let unpaced = raw.unpaced.as_ref().filter(|flag| flag.value);
        let period = raw.period_us.as_ref();
        let spots = [unpaced.map(|flag| &flag.at), period.map(|number| &number.at)];
        if !self.at_most_one(&spots, "unpaced and period_us") {
            return None;
        }
        let Some(period) = period else {
            let misplaced = [(&raw.deadline_us, "deadline_us"), (&raw.offset_us, "offset_us")];
            let misplaced = misplaced.map(|(number, key)| number.as_ref().map(|number| (&number.at, key)));
            for (spot, key) in misplaced.into_iter().flatten() {
                let problem = "the app has no clock of its own that this could belong to";
                self.report.value(spot, problem, format!("add period_us = …, or drop {key}"));
            }
            let pace = if unpaced.is_some() { Pace::Unpaced } else { Pace::Released };
            return misplaced.iter().all(Option::is_none).then_some(pace);
        };
        let period = self.span(period, &decimal::INTERVAL_US);
        let deadline = self.span_or(raw.deadline_us.as_ref(), &decimal::INTERVAL_US, period);
        let offset = self.span_or(raw.offset_us.as_ref(), &decimal::SPAN_US, Some(Span::ZERO));
        Some(Pace::Periodic(Jobs { offset: offset?, period: period?, deadline: deadline? }))
    }

    fn params(
        &mut self,
        raw: &RawApp,
        grid: Grid,
        count: Option<u32>,
        service: Service,
        pace: Pace,
    ) -> Option<AppParams> {
        let priority = self.priority(&raw.priority, count.unwrap_or(1));
        let rate_given = raw.fps.is_some() || raw.stride.is_some();
        let stride = match pace {
            Pace::Periodic(jobs) if !rate_given => stride_of_period(jobs.period, grid),
            _ => self.stride(raw.fps.as_ref(), raw.stride.as_ref(), grid),
        };
        if !rate_given && !matches!(pace, Pace::Periodic(_)) {
            self.report.table(
                &raw.at,
                "neither fps nor stride is given",
                "add fps = … (frames per second), stride = … (periods per frame) or period_us = …",
            );
        }
        let etpf = self.span_or(raw.etpf_us.as_ref(), &decimal::SPAN_US, Some(Span::ZERO));
        Some(AppParams {
            priority: priority?,
            stride: stride?,
            etpf: etpf?,
            clock: takt_core::Clock::default(),
            service,
        })
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

    /// The stride that `fps` or `stride` asks for; `None` without complaint if neither is given.
    fn stride(&mut self, fps: Option<&Number>, stride: Option<&Whole>, grid: Grid) -> Option<Stride> {
        let spots = [fps.map(|n| &n.at), stride.map(|n| &n.0.at)];
        if !self.at_most_one(&spots, "fps and stride") {
            return None;
        }
        if let Some(stride) = stride {
            return Stride::new(self.number(&stride.0, &decimal::STRIDE)?);
        }
        let fps = fps?;
        if grid.by_period {
            self.report.value(
                &fps.at,
                "the display is given by its period, not by its rate",
                "use stride = … (periods per frame), or display.refresh_hz",
            );
            return None;
        }
        let fps_mhz = self.number(fps, &decimal::FPS)?;
        match grid.refresh.stride_for(fps_mhz) {
            Ok(stride) => Some(stride),
            Err(error) => {
                let rates: Vec<String> = error.allowed().map(millihertz).collect();
                let more = if rates.len() > RATES_SHOWN { ", …" } else { "" };
                let shown = rates.get(..RATES_SHOWN).unwrap_or(&rates).join(", ");
                let (rate, refresh) = (millihertz(fps_mhz), millihertz(error.refresh_mhz));
                self.report.value(
                    &fps.at,
                    format_args!("{rate} FPS does not divide the refresh rate of {refresh} Hz"),
                    format!("use one of {shown}{more}"),
                );
                None
            }
        }
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
        grid: Grid,
        (mut params, count): (AppParams, u32),
        (join, end): (Time, Option<End>),
    ) -> Option<(Vec<ParamChange>, Vec<ChangeSpots>)> {
        let lowered = raw.change.iter().flatten().map(|raw| {
            let change = self.change(raw, grid, count);
            let at = self.change_time(raw, join, end);
            Some((at?, &raw.at_s.at, change?))
        });
        let lowered = all(lowered)?;
        let times: Vec<Time> = sorted(lowered.iter().map(|(at, ..)| *at));
        let deltas = self.by_time(lowered)?;
        let mut changes = Vec::with_capacity(deltas.len());
        let mut spots = Vec::with_capacity(deltas.len());
        for (at, delta) in times.into_iter().zip(deltas) {
            params = AppParams {
                priority: delta.priority.unwrap_or(params.priority),
                stride: delta.stride.unwrap_or(params.stride),
                etpf: delta.etpf.unwrap_or(params.etpf),
                clock: takt_core::Clock::default(),
                service: params.service,
            };
            changes.push(ParamChange { at, params });
            spots.push(delta.spots);
        }
        Some((changes, spots))
    }

    fn change(&mut self, raw: &RawChange, grid: Grid, count: u32) -> Option<Delta> {
        let rate_given = raw.fps.is_some() || raw.stride.is_some();
        let stride = self.stride(raw.fps.as_ref(), raw.stride.as_ref(), grid);
        let etpf = match &raw.etpf_us {
            Some(etpf) => self.span(etpf, &decimal::SPAN_US).map(Some),
            None => Some(None),
        };
        let priority = match &raw.priority {
            Some(priority) => self.priority(priority, count).map(Some),
            None => Some(None),
        };
        if !rate_given && raw.etpf_us.is_none() && raw.priority.is_none() {
            self.report.table(&raw.at, "the change changes nothing", "add fps, stride, etpf_us or priority");
            return None;
        }
        Some(Delta {
            priority: priority?,
            stride: if rate_given { Some(stride?) } else { None },
            etpf: etpf?,
            spots: ChangeSpots {
                priority: spot_of(raw.priority.as_ref(), &raw.at_s.at),
                rate: rate_spot(raw.fps.as_ref(), raw.stride.as_ref(), &raw.at_s.at),
            },
        })
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

/// The stride of an app that has a clock of its own and names none: not above its period, and one
/// that agrees with others.
fn stride_of_period(period: Span, grid: Grid) -> Option<Stride> {
    let periods = period.as_ns() / grid.refresh.period_span().as_ns().max(1);
    let divisors_of_60 = [60, 30, 20, 15, 12, 10, 6, 5, 4, 3, 2, 1];
    let fitting = divisors_of_60.into_iter().find(|stride| u64::from(*stride) <= periods);
    Stride::new(fitting.unwrap_or(1))
}

/// The rate of an app's own clock, if it has one.
pub(super) fn rate_mhz(pace: Pace) -> Option<u32> {
    let Pace::Periodic(jobs) = pace else {
        return None;
    };
    let mhz = 1_000_000_000_000 / jobs.period.as_ns().max(1);
    Some(u32::try_from(mhz).unwrap_or(u32::MAX))
}

/// What a change sets.
struct Delta {
    priority: Option<Priority>,
    stride: Option<Stride>,
    etpf: Option<Span>,
    spots: ChangeSpots,
}

fn sorted(times: impl Iterator<Item = Time>) -> Vec<Time> {
    let mut times: Vec<Time> = times.collect();
    times.sort();
    times
}

fn spot_of(number: Option<&Whole>, otherwise: &Spot) -> Spot {
    number.map_or(otherwise, |number| &number.0.at).clone()
}

fn rate_spot(fps: Option<&Number>, stride: Option<&Whole>, otherwise: &Spot) -> Spot {
    fps.map(|number| &number.at).or_else(|| stride.map(|number| &number.0.at)).unwrap_or(otherwise).clone()
}

/// Millihertz as hertz.
fn millihertz(mhz: u32) -> String {
    fixed_point(mhz.into(), 3)
}

/// An instant in seconds.
pub(super) fn seconds(time: Time) -> String {
    fixed_point(time.as_ns().into(), 9)
}
