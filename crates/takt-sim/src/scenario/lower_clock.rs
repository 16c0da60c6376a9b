//! From what a file says to what the simulator plays: when an app begins its frames, and what the
//! scheduler knows of that.

use takt_core::{Clock, Span, Stride};

use super::decimal::{self, fixed_point};
use super::lower::Lower;
use super::lower_display::{Displays, Grid};
use super::raw::{RawApp, RawChange, RawPromise};
use super::reader::{Number, Text, Whole, WordOr};
use crate::model::{Jobs, Pace};

/// Allowed frame rates that a remedy lists before it says "…".
const RATES_SHOWN: usize = 12;

/// Whose clock the scheduler goes by, as files say it.
const CLOCKS: &[(&str, Whose)] = &[("display", Whose::Display), ("own", Whose::Own)];

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Whose {
    #[default]
    Display,
    Own,
}

/// The keys of an app or a change that say how often frames come.
#[derive(Clone, Copy)]
pub(super) struct RateKeys<'r> {
    pub(super) fps: Option<&'r Number>,
    pub(super) stride: Option<&'r Whole>,
}

impl<'r> RateKeys<'r> {
    pub(super) fn of_app(raw: &'r RawApp) -> Self {
        Self { fps: raw.fps.as_ref(), stride: raw.stride.as_ref() }
    }

    pub(super) fn of_change(raw: &'r RawChange) -> Self {
        Self { fps: raw.fps.as_ref(), stride: raw.stride.as_ref() }
    }

    pub(super) fn are_given(self) -> bool {
        self.fps.is_some() || self.stride.is_some()
    }
}

impl Lower<'_, '_> {
    /// When the app starts its next frame.
    pub(super) fn pace(&mut self, raw: &RawApp) -> Option<Pace> {
        let unpaced = raw.unpaced.as_ref().filter(|flag| flag.value);
        let period = raw.period_us.as_ref();
        let starts_with = raw.starts_with.as_ref().map(|name| &name.at);
        let spots = [unpaced.map(|flag| &flag.at), period.map(|number| &number.at), starts_with];
        if !self.at_most_one(&spots, "unpaced, period_us and starts_with") {
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

    /// What the scheduler takes to release the frames of an app, if the keys say so.
    pub(super) fn app_clock(
        &mut self,
        app: &RawApp,
        (display, clock): (Option<&Text>, Option<&WordOr<RawPromise>>),
        displays: &Displays,
    ) -> Option<Option<Clock>> {
        let whose = match clock {
            Some(WordOr::Word(word)) => self.choice(Some(word), CLOCKS)?,
            Some(WordOr::Table(_)) => Whose::Own,
            None => Whose::Display,
        };
        let shown = match display {
            Some(name) => Some(self.display_called(name, displays)?),
            None => None,
        };
        if let (Whose::Own, Some(name)) = (whose, display) {
            let problem = "an app with a clock of its own has no display";
            self.report.value(&name.at, problem, "leave out one of clock and display");
            return None;
        }
        match (clock, whose) {
            (None, _) => Some(shown.map(Clock::Display)),
            (Some(_), Whose::Display) => Some(Some(Clock::Display(shown.unwrap_or_default()))),
            (Some(WordOr::Table(promise)), Whose::Own) => {
                self.own_clock(&promise.period_us, promise.deadline_us.as_ref()).map(Some)
            }
            (Some(WordOr::Word(word)), Whose::Own) => {
                let Some(period) = &app.period_us else {
                    let remedy = "add period_us = …, or write clock = { period_us = … }";
                    self.report.value(&word.at, "the app has no clock of its own", remedy);
                    return None;
                };
                self.own_clock(period, app.deadline_us.as_ref()).map(Some)
            }
        }
    }

    fn own_clock(&mut self, period: &Number, deadline: Option<&Number>) -> Option<Clock> {
        let length = self.span(period, &decimal::OWN_PERIOD_US);
        let due = self.span_or(deadline, &decimal::INTERVAL_US, length);
        let (length, due) = (length?, due?);
        if let Some(number) = deadline.filter(|_| due > length) {
            let remedy = format!("use at most {} us", fixed_point(length.as_ns().into(), 3));
            self.report.value(&number.at, "the deadline is after the period", remedy);
            return None;
        }
        Some(Clock::Own { period: length, deadline: due })
    }

    /// The stride that `fps` or `stride` asks for; `None` without complaint if neither is given.
    pub(super) fn stride(&mut self, keys: RateKeys<'_>, clock: Clock, displays: &Displays) -> Option<Stride> {
        let RateKeys { fps, stride } = keys;
        let spots = [fps.map(|n| &n.at), stride.map(|n| &n.0.at)];
        if !self.at_most_one(&spots, "fps and stride") {
            return None;
        }
        let Some(display) = clock.display() else {
            let spot = spots.into_iter().flatten().next()?;
            let problem = "the app's own clock says how often its frames come";
            self.report.value(spot, problem, "leave it out, or have a display instead of the clock");
            return None;
        };
        match (fps, stride) {
            (_, Some(stride)) => Stride::new(self.number(&stride.0, &decimal::STRIDE)?),
            (Some(fps), None) => self.stride_of_rate(fps, displays.grid(display)),
            (None, None) => None,
        }
    }

    fn stride_of_rate(&mut self, fps: &Number, grid: Grid) -> Option<Stride> {
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

    /// The stride of an app at its start.
    pub(super) fn first_stride(
        &mut self,
        raw: &RawApp,
        (clock, pace): (Clock, Pace),
        displays: &Displays,
    ) -> Option<Stride> {
        let keys = RateKeys::of_app(raw);
        match (clock, pace) {
            _ if keys.are_given() => self.stride(keys, clock, displays),
            (Clock::Own { .. }, _) => Some(Stride::ONE),
            (Clock::Display(display), Pace::Periodic(jobs)) => {
                stride_of_period(jobs.period, displays.grid(display))
            }
            (Clock::Display(_), _) => {
                self.report.table(
                    &raw.at,
                    "neither fps nor stride is given",
                    "add fps = … (frames per second), stride = … (periods per frame) or period_us = …",
                );
                None
            }
        }
    }

    /// Periods by which to delay the first deadline.
    pub(super) fn first_phase(&mut self, raw: &RawApp, clock: Option<Clock>) -> Option<u32> {
        let phase = self.whole_or(raw.phase_periods.as_ref(), &decimal::PHASE_PERIODS, 0)?;
        if let Some(number) = raw.phase_periods.as_ref().filter(|_| phase > 0)
            && clock.is_some_and(Clock::is_own)
        {
            let problem = "an app with a clock of its own has no periods of a display";
            self.report.value(&number.0.at, problem, "use offset_us = … instead");
            return None;
        }
        Some(phase)
    }
}

/// The stride of an app that has a clock of its own, of which the scheduler does not know, and names none:
/// not above its period, and one that agrees with others.
fn stride_of_period(period: Span, grid: Grid) -> Option<Stride> {
    let periods = period.as_ns() / grid.refresh.period_span().as_ns().max(1);
    let divisors_of_60 = [60, 30, 20, 15, 12, 10, 6, 5, 4, 3, 2, 1];
    let fitting = divisors_of_60.into_iter().find(|stride| u64::from(*stride) <= periods);
    Stride::new(fitting.unwrap_or(1))
}

/// Millihertz as hertz.
fn millihertz(mhz: u32) -> String {
    fixed_point(mhz.into(), 3)
}
