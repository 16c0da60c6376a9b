//! From what a file says to what the simulator plays: what apps are promised, and by whom.

use takt_core::service::{Enforcement, Gaps, Level, Reservation, Reserve, Turns};
use takt_core::{Service, Span, Tuning};

use super::decimal;
use super::diagnostic::Spot;
use super::lower::Lower;
use super::raw::{RawBackground, RawScheduler, RawService};
use super::reader::{Flag, Number, Text};

/// The service of an app, as far as it does not depend on others.
pub(super) struct LoweredService {
    pub(super) service: Service,
    /// The apps it names, to be looked up when all are known.
    pub(super) shared_with: Option<(String, Spot)>,
    pub(super) feeds: Option<(String, Spot)>,
}

const ENFORCEMENTS: &[(&str, Enforcement)] =
    &[("posterior", Enforcement::Posterior), ("apriori", Enforcement::Apriori)];
const TURNS: &[(&str, Turns)] = &[("single", Turns::Single), ("following", Turns::Following)];
const LEVELS: &[(&str, Level)] = &[("low", Level::Low), ("medium", Level::Medium), ("high", Level::High)];

impl Lower<'_, '_> {
    pub(super) fn service(&mut self, raw: Option<&RawService>) -> Option<LoweredService> {
        let Some(raw) = raw else {
            let service = Service::default();
            return Some(LoweredService { service, shared_with: None, feeds: None });
        };
        let turns = self.choice(raw.turns.as_ref(), TURNS);
        let level = self.choice(raw.level.as_ref(), LEVELS);
        let timeslice = self.span_or(raw.timeslice_us.as_ref(), &decimal::INTERVAL_US, Some(Span::ZERO));
        let reservation = self.reservation(raw);
        let service = Service {
            follows_focus: is_set(raw.follows_focus.as_ref()),
            turns: turns?,
            reservation: reservation?,
            feeds: None,
            level: level?,
            timeslice: timeslice?,
            uninterruptible: is_set(raw.uninterruptible.as_ref()),
            divisible: is_set(raw.divisible.as_ref()),
            gaps: Gaps::default(),
        };
        let (shared_with, feeds) = (named(raw.shared_with.as_ref()), named(raw.feeds.as_ref()));
        Some(LoweredService { service, shared_with, feeds })
    }

    /// What is set aside for the app; whose reserve it shares is found out later.
    fn reservation(&mut self, raw: &RawService) -> Option<Reservation> {
        let background = raw.background.as_ref().filter(|flag| flag.value);
        let spots = [
            raw.reserve_us.as_ref().map(|number| &number.at),
            raw.shared_with.as_ref().map(|name| &name.at),
            background.map(|flag| &flag.at),
        ];
        if !self.at_most_one(&spots, "reserve_us, shared_with and background") {
            return None;
        }
        let Some(budget) = &raw.reserve_us else {
            let of_reserves = [
                (raw.period_us.as_ref().map(|number| &number.at), "period_us"),
                (raw.deadline_us.as_ref().map(|number| &number.at), "deadline_us"),
                (raw.enforcement.as_ref().map(|text| &text.at), "enforcement"),
            ];
            for (spot, key) in of_reserves.iter().filter_map(|(spot, key)| Some((*spot.as_ref()?, key))) {
                let remedy = format!("add reserve_us = …, or drop {key}");
                self.report.value(spot, "there is no reserve that this could belong to", remedy);
            }
            let none_misplaced = of_reserves.iter().all(|(spot, _)| spot.is_none());
            let reservation = if background.is_some() { Reservation::Background } else { Reservation::None };
            return none_misplaced.then_some(reservation);
        };
        if raw.period_us.is_none() {
            self.report.value(&budget.at, "the reserve has no period", "add period_us = …");
        }
        let period = self.span(raw.period_us.as_ref()?, &decimal::INTERVAL_US);
        let deadline = self.span_or(raw.deadline_us.as_ref(), &decimal::INTERVAL_US, period);
        let enforcement = self.choice(raw.enforcement.as_ref(), ENFORCEMENTS);
        let reserve = self.reserve(budget, (period?, deadline?), enforcement.unwrap_or_default());
        enforcement.and(reserve).map(Reservation::Own)
    }

    fn reserve(
        &mut self,
        budget: &Number,
        (period, deadline): (Span, Span),
        enforcement: Enforcement,
    ) -> Option<Reserve> {
        let at = &budget.at;
        let budget = self.span(budget, &decimal::SPAN_US)?;
        let (bound, what) = if deadline < period { (deadline, "deadline") } else { (period, "period") };
        if budget > bound {
            self.report.value(
                at,
                format_args!("the reserve is longer than its {what}"),
                format!("use at most {} us", decimal::fixed_point(bound.as_ns().into(), 3)),
            );
            return None;
        }
        Some(Reserve { budget, period, deadline, enforcement })
    }

    pub(super) fn tuning(&mut self, raw: &RawScheduler) -> Option<Tuning> {
        let default = Tuning::default();
        let interval = &decimal::INTERVAL_US;
        let tick = self.span_or(raw.tick_us.as_ref(), interval, Some(default.tick));
        let admission =
            self.number_or(raw.admission.as_ref(), &decimal::NOISE, Some(default.admission_permille));
        let background = match &raw.background {
            Some(background) => self.background(background, default.background),
            None => Some(default.background),
        };
        let timeslice = self.span_or(raw.timeslice_us.as_ref(), interval, Some(default.timeslice));
        let blocking = self.span_or(raw.max_blocking_us.as_ref(), interval, Some(default.blocking));
        let group_max = self.span_or(raw.group_max_us.as_ref(), interval, Some(default.group_max));
        Some(Tuning {
            tick: tick?,
            admission_permille: admission?,
            background: background?,
            timeslice: timeslice?,
            blocking: blocking?,
            group_max: group_max?,
            ..default
        })
    }

    fn background(&mut self, raw: &RawBackground, default: Reserve) -> Option<Reserve> {
        let period = self.span_or(raw.period_us.as_ref(), &decimal::INTERVAL_US, Some(default.period));
        let enforcement = self.choice(raw.enforcement.as_ref(), ENFORCEMENTS);
        let (period, enforcement) = (period?, enforcement?);
        match &raw.reserve_us {
            Some(budget) => self.reserve(budget, (period, period), enforcement),
            None if default.budget > period => {
                self.report.table(
                    &raw.at,
                    "the default reserve is longer than the period",
                    "add reserve_us = …, not above period_us",
                );
                None
            }
            None => Some(Reserve { period, deadline: period, enforcement, ..default }),
        }
    }

    /// One of a few words, or the default if none is given.
    pub(super) fn choice<T: Copy + Default>(
        &mut self,
        text: Option<&Text>,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let Some(text) = text else {
            return Some(T::default());
        };
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let index = self.one_of(text, &names, "choice")?;
        choices.get(index).map(|(_, value)| *value)
    }
}

/// The name of another app, and where it is written.
pub(super) fn named(text: Option<&Text>) -> Option<(String, Spot)> {
    text.and_then(|text| Some((text.value.clone()?, text.at.clone())))
}

fn is_set(flag: Option<&Flag>) -> bool {
    flag.is_some_and(|flag| flag.value)
}

/// The words of a file for values of the model.
pub(super) fn enforcement_name(enforcement: Enforcement) -> &'static str {
    name_of(ENFORCEMENTS, &enforcement)
}

pub(super) fn turns_name(turns: Turns) -> &'static str {
    name_of(TURNS, &turns)
}

pub(super) fn level_name(level: Level) -> &'static str {
    name_of(LEVELS, &level)
}

pub(super) fn name_of<T: PartialEq>(choices: &[(&'static str, T)], value: &T) -> &'static str {
    choices.iter().find(|(_, other)| other == value).map_or("", |(name, _)| name)
}
