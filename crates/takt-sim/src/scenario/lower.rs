//! From what a file says to what the simulator plays: the world around the apps.
//!
//! Lowering judges values one by one and reports every bad one; a `None` means "already
//! reported". Displays are lowered in `lower_display`, apps in `lower_app`; checks between apps are in
//! `checks`.

use std::ops::Range;

use takt_core::{Config, Margins, Span, Time};

use super::checks::{self, Expanded};
use super::decimal::{self, Decimal, NAME_CHARS_MAX, Quantity};
use super::diagnostic::{Report, Spot, nearest};
use super::lower_app::LoweredApp;
use super::lower_display::Displays;
use super::raw::{RawDivisible, RawGpu, RawMargins, RawScenario, RawScheduler};
use super::reader::{Number, OneOrRange, Text, Whole};
use super::recording::Recordings;
use super::references;
use crate::model::{ClockChange, GpuModel, GpuSpec, Interrupts, Scenario, SpanRange, Stall};

/// What a GPU does with several groups, as files say it.
pub(super) const MODELS: &[(&str, GpuModel)] = &[
    ("in-order", GpuModel::InOrder),
    ("preemptive", GpuModel::Preemptive),
    ("runlist", GpuModel::Runlist),
    ("any-order", GpuModel::AnyOrder),
];

/// Judges raw values.
pub(super) struct Lower<'r, 'a> {
    pub(super) report: &'r mut Report<'a>,
    pub(super) recordings: Recordings<'r>,
}

impl Lower<'_, '_> {
    /// The scenario that `raw` describes, if it makes sense.
    pub(super) fn scenario(&mut self, raw: &RawScenario) -> Option<Scenario> {
        let name = self.name(&raw.name);
        let description = self.description(raw.description.as_ref());
        let duration = self.span(&raw.duration_s, &decimal::DURATION_S);
        let warm_up = self.span_or(raw.warm_up_s.as_ref(), &decimal::INSTANT_S, Some(Span::ZERO));
        self.check_warm_up(raw, duration, warm_up);
        let seed = self.whole_or(raw.seed.as_ref(), &decimal::SEED, 1);
        let displays = self.displays(raw.display.as_ref());
        let policy = self.policy(raw.scheduler.as_ref());
        let config = self.config(raw.scheduler.as_ref());
        let belief = raw.scheduler.as_ref().and_then(|raw| raw.belief.as_ref());
        let gpu = self.gpu(raw.gpu.as_ref());
        let apps = displays.as_ref().and_then(|displays| self.apps(raw, displays));
        let focus = apps.as_ref().and_then(|apps| self.focus(raw, apps));
        let (config, apps) = (displays?.shown(config?), apps?);
        let apps_max = self.apps_max(raw.scheduler.as_ref(), apps.len())?;
        Some(Scenario {
            name: name?,
            description: description?,
            duration: duration?,
            warm_up: warm_up?,
            seed: seed?,
            policy: policy?,
            config: Config { apps_max, ..config },
            belief: belief.is_some_and(|flag| flag.value),
            gpu: gpu?,
            apps: apps.into_iter().map(|app| app.spec).collect(),
            focus: focus?,
        })
    }

    fn apps(&mut self, raw: &RawScenario, displays: &Displays) -> Option<Vec<Expanded>> {
        if raw.app.is_empty() {
            self.report.table(&raw.at, "there are no apps", "add at least one [[app]] table");
            return None;
        }
        let lowered: Vec<Option<LoweredApp>> = raw.app.iter().map(|app| self.app(app, displays)).collect();
        let whole = lowered.iter().all(Option::is_some);
        let lowered: Vec<LoweredApp> = lowered.into_iter().flatten().collect();
        let mut apps = checks::expand(self.report, &lowered)?;
        checks::between_apps(self.report, &lowered, &apps);
        // Of apps that could not be read, not even the names are known.
        (whole && references::resolve(self.report, &lowered, &mut apps)).then_some(apps)
    }

    fn check_warm_up(&mut self, raw: &RawScenario, duration: Option<Span>, warm_up: Option<Span>) {
        if let (Some(at), Some(duration), Some(warm_up)) = (&raw.warm_up_s, duration, warm_up)
            && warm_up >= duration
        {
            self.report.value(
                &at.at,
                "nothing is left to judge of the duration",
                "make warm_up_s less than duration_s",
            );
        }
    }

    fn policy(&mut self, raw: Option<&RawScheduler>) -> Option<String> {
        let Some(policy) = raw.and_then(|raw| raw.policy.as_ref()) else {
            return Some("timeline".to_owned());
        };
        let index = self.one_of(policy, takt_policies::NAMES, "policy")?;
        takt_policies::NAMES.get(index).map(|name| (*name).to_owned())
    }

    /// Everything but the refresh grids and the number of slots.
    fn config(&mut self, raw: Option<&RawScheduler>) -> Option<Config> {
        let default = Config::default();
        let Some(raw) = raw else {
            return Some(default);
        };
        let mpcg = self.whole_or(raw.mpcg.as_ref(), &decimal::MPCG, default.mpcg);
        let completion_timeout = match &raw.completion_timeout_ms {
            Some(number) if number.value == Decimal::PlusInfinity => Some(Span::FOREVER),
            number => self.span_or(number.as_ref(), &decimal::TIMEOUT_MS, Some(default.completion_timeout)),
        };
        let margins = match &raw.margins {
            Some(margins) => self.margins(margins),
            None => Some(default.margins),
        };
        let tuning = self.tuning(raw);
        Some(Config {
            mpcg: mpcg?,
            completion_timeout: completion_timeout?,
            margins: margins?,
            tuning: tuning?,
            ..default
        })
    }

    fn apps_max(&mut self, raw: Option<&RawScheduler>, apps: usize) -> Option<u32> {
        let apps = u32::try_from(apps).ok()?;
        let Some(number) = raw.and_then(|raw| raw.apps_max.as_ref()) else {
            return Some(apps.max(Config::default().apps_max));
        };
        let slots: u32 = self.number(&number.0, &decimal::APPS)?;
        if slots < apps {
            self.report.value(
                &number.0.at,
                format_args!("the scenario has {apps} apps"),
                format!("use at least {apps}, or leave apps_max out"),
            );
            return None;
        }
        Some(slots)
    }

    fn margins(&mut self, raw: &RawMargins) -> Option<Margins> {
        let default = Margins::default();
        let us = &decimal::SPAN_US;
        let fixed = self.span_or(raw.fixed_us.as_ref(), us, Some(default.fixed));
        let upper = self.number_or(raw.upper.as_ref(), &decimal::FACTOR, Some(default.upper_permille));
        let lower = self.number_or(raw.lower.as_ref(), &decimal::FACTOR, Some(default.lower_permille));
        let dispatch_upper = self.span_or(raw.dispatch_upper_us.as_ref(), us, Some(default.dispatch_upper));
        let dispatch_lower = self.span_or(raw.dispatch_lower_us.as_ref(), us, Some(default.dispatch_lower));
        let completion_upper =
            self.span_or(raw.completion_upper_us.as_ref(), us, Some(default.completion_upper));
        let group_min = self.span_or(raw.group_min_us.as_ref(), us, Some(default.group_min));
        let margins = Margins {
            fixed: fixed?,
            upper_permille: upper?,
            lower_permille: lower?,
            dispatch_upper: dispatch_upper?,
            dispatch_lower: dispatch_lower?,
            completion_upper: completion_upper?,
            group_min: group_min?,
        };
        if margins.lower_permille > margins.upper_permille {
            self.crossed(&raw.at, "lower", "upper");
        }
        if margins.dispatch_lower > margins.dispatch_upper {
            self.crossed(&raw.at, "dispatch_lower_us", "dispatch_upper_us");
        }
        Some(margins)
    }

    fn crossed(&mut self, table: &Spot, lower: &str, upper: &str) {
        self.report.table(
            table,
            format_args!("{lower} is above {upper}"),
            format!("set both, {lower} not above {upper}"),
        );
    }

    fn gpu(&mut self, raw: Option<&RawGpu>) -> Option<GpuSpec> {
        let default = GpuSpec::default();
        let Some(raw) = raw else {
            return Some(default);
        };
        let model = self.choice(raw.model.as_ref(), MODELS);
        let switch = self.span_or(raw.switch_us.as_ref(), &decimal::SPAN_US, Some(default.switch));
        let poll = match &raw.completion_poll_us {
            Some(poll) if poll.value == Decimal::ZERO => Some(Span::ZERO),
            poll => self.span_or(poll.as_ref(), &decimal::INTERVAL_US, Some(default.completion_poll)),
        };
        let queue = self.whole_or(raw.queue.as_ref(), &decimal::GPU_QUEUE, default.queue);
        let dispatch = self.range_or_zero(raw.dispatch_delay_us.as_ref());
        let completion = self.range_or_zero(raw.completion_delay_us.as_ref());
        let lost = self.number_or(raw.lost_completion.as_ref(), &decimal::SHARE, Some(0));
        let clock = self.clock(raw);
        let stalls = self.stalls(raw);
        let divisible = match &raw.divisible {
            Some(divisible) => Some(self.divisible(divisible, model)?),
            None => None,
        };
        Some(GpuSpec {
            model: model?,
            queue: queue?,
            switch: switch?,
            late_ends: raw.late_ends.as_ref().is_some_and(|flag| flag.value),
            divisible,
            dispatch_delay: dispatch?,
            completion_delay: completion?,
            completion_poll: poll?,
            clock: clock?,
            stalls: stalls?,
            lost_completion_ppm: lost?,
        })
    }

    fn divisible(&mut self, raw: &RawDivisible, model: Option<GpuModel>) -> Option<Interrupts> {
        if let Some(GpuModel::Preemptive | GpuModel::AnyOrder) = model {
            self.report.table(
                &raw.at,
                "this model of a GPU interrupts no work by itself",
                "use model = \"in-order\" or \"runlist\"",
            );
        }
        let slice = self.span(&raw.slice_us, &decimal::INTERVAL_US);
        let quantum = self.span_or(raw.quantum_us.as_ref(), &decimal::SPAN_US, Some(Span::ZERO));
        Some(Interrupts { slice: slice?, quantum: quantum? })
    }

    fn clock(&mut self, raw: &RawGpu) -> Option<Vec<ClockChange>> {
        let lowered = raw.clock.iter().flatten().map(|raw| {
            let at = self.time(&raw.at_s);
            let permille = self.number(&raw.speed, &decimal::SPEED);
            let change = ClockChange { at: at?, permille: permille? };
            Some((change.at, &raw.at_s.at, change))
        });
        let lowered = all(lowered)?;
        self.by_time(lowered)
    }

    fn stalls(&mut self, raw: &RawGpu) -> Option<Vec<Stall>> {
        let lowered = raw.stall.iter().flatten().map(|raw| {
            let at = self.time(&raw.at_s);
            let length = self.span(&raw.length_ms, &decimal::TIMEOUT_MS);
            let stall = Stall { at: at?, length: length? };
            Some((stall.at, &raw.at_s.at, stall))
        });
        let lowered = all(lowered)?;
        self.by_time(lowered)
    }
}

/// All of them, or `None` if one failed; consumes the iterator to the end, so that each element
/// gets its chance to complain.
pub(super) fn all<T>(lowered: impl Iterator<Item = Option<T>>) -> Option<Vec<T>> {
    let lowered: Vec<Option<T>> = lowered.collect();
    lowered.into_iter().collect()
}

/// Judging single values.
impl Lower<'_, '_> {
    /// In order of time; two at the same time are an error.
    pub(super) fn by_time<T>(&mut self, mut timed: Vec<(Time, &Spot, T)>) -> Option<Vec<T>> {
        timed.sort_by_key(|(at, ..)| *at);
        let mut distinct = true;
        for pair in timed.windows(2) {
            if let [(first, first_spot, _), (second, second_spot, _)] = pair
                && first == second
            {
                distinct = false;
                let line = self.report.sources.line(first_spot.span.start);
                self.report.value(
                    second_spot,
                    format_args!("same time as {} ({line})", first_spot.path),
                    "give each its own time",
                );
            }
        }
        distinct.then(|| timed.into_iter().map(|(.., item)| item).collect())
    }

    /// A number as an integer of the model.
    pub(super) fn number<T: TryFrom<i128>>(&mut self, number: &Number, quantity: &Quantity) -> Option<T> {
        match number.value.count(quantity) {
            Ok(count) => T::try_from(count).ok(),
            Err(misfit) => {
                if let Some((problem, remedy)) = misfit {
                    self.report.value(&number.at, problem, remedy);
                }
                None
            }
        }
    }

    pub(super) fn number_or<T: TryFrom<i128>>(
        &mut self,
        number: Option<&Number>,
        quantity: &Quantity,
        default: Option<T>,
    ) -> Option<T> {
        match number {
            Some(number) => self.number(number, quantity),
            None => default,
        }
    }

    pub(super) fn whole_or<T: TryFrom<i128>>(
        &mut self,
        number: Option<&Whole>,
        quantity: &Quantity,
        default: T,
    ) -> Option<T> {
        self.number_or(number.map(|whole| &whole.0), quantity, Some(default))
    }

    pub(super) fn span(&mut self, number: &Number, quantity: &Quantity) -> Option<Span> {
        self.number(number, quantity).map(Span::from_ns)
    }

    pub(super) fn span_or(
        &mut self,
        number: Option<&Number>,
        quantity: &Quantity,
        default: Option<Span>,
    ) -> Option<Span> {
        match number {
            Some(number) => self.span(number, quantity),
            None => default,
        }
    }

    pub(super) fn time(&mut self, number: &Number) -> Option<Time> {
        self.number(number, &decimal::INSTANT_S).map(Time::from_ns)
    }

    /// The bounds of a range, in order.
    pub(super) fn bounds<T: TryFrom<i128> + PartialOrd>(
        &mut self,
        at: &Spot,
        (lo, hi): (&Number, &Number),
        quantity: &Quantity,
    ) -> Option<(T, T)> {
        let low: T = self.number(lo, quantity)?;
        if lo.at.span == hi.at.span {
            return Some((low, self.number(hi, quantity)?));
        }
        let high = self.number(hi, quantity)?;
        if low > high {
            self.report.value(
                at,
                "the lower bound is above the upper one",
                "write [lo, hi] with lo not above hi",
            );
            return None;
        }
        Some((low, high))
    }

    pub(super) fn range_us(&mut self, raw: &OneOrRange) -> Option<SpanRange> {
        let (lo, hi) = self.bounds(&raw.at, (&raw.lo, &raw.hi), &decimal::SPAN_US)?;
        Some(SpanRange { lo: Span::from_ns(lo), hi: Span::from_ns(hi) })
    }

    pub(super) fn range_or_zero(&mut self, raw: Option<&OneOrRange>) -> Option<SpanRange> {
        match raw {
            Some(raw) => self.range_us(raw),
            None => Some(SpanRange::fixed(Span::ZERO)),
        }
    }

    /// A name that can be part of a file name or an override.
    pub(super) fn name(&mut self, raw: &Text) -> Option<String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let name = raw.value.as_deref()?;
        let problem = if name.is_empty() {
            "the name is empty"
        } else if !name.chars().all(plain) {
            "the name has other characters than letters, digits, - and _"
        } else if name.len() > NAME_CHARS_MAX {
            "the name is longer than 64 characters (NAME_CHARS_MAX)"
        } else {
            return Some(name.to_owned());
        };
        self.report.value(&raw.at, problem, "use a short name such as \"tachometer-2\"");
        None
    }

    pub(super) fn description(&mut self, raw: Option<&Text>) -> Option<String> {
        let Some(raw) = raw else {
            return Some(String::new());
        };
        let text = raw.value.as_deref()?;
        if text.chars().count() > decimal::DESCRIPTION_CHARS_MAX {
            self.report.value(
                &raw.at,
                "the description is longer than 4096 characters (DESCRIPTION_CHARS_MAX)",
                "move some of it into comments",
            );
            return None;
        }
        Some(text.to_owned())
    }

    /// Which of the `known` words a text is; it complains that there is no such thing if it is none.
    pub(super) fn one_of(&mut self, text: &Text, known: &[&str], what: &str) -> Option<usize> {
        let word = text.value.as_deref()?;
        let found = known.iter().position(|name| *name == word);
        if found.is_none() {
            let remedy = match nearest(word, known.iter().copied()) {
                Some(like) => format!("did you mean \"{like}\"?"),
                None => format!("use one of \"{}\"", known.join("\", \"")),
            };
            self.report.value(&text.at, format_args!("there is no such {what}"), remedy);
        }
        found
    }

    /// At most one of several keys may be given: reports the second one.
    pub(super) fn at_most_one(&mut self, given: &[Option<&Spot>], which: &str) -> bool {
        let mut spots: Vec<&Spot> = given.iter().copied().flatten().collect();
        spots.sort_by_key(|spot| span_key(&spot.span));
        if let [first, second, ..] = spots[..] {
            let line = self.report.sources.line(first.span.start);
            self.report.value(
                second,
                format_args!("{} is given already ({line})", first.path),
                format!("give only one of {which}"),
            );
            return false;
        }
        true
    }
}

fn span_key(span: &Range<usize>) -> (usize, usize) {
    (span.start, span.end)
}
