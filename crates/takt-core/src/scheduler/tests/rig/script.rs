//! Reads the words of a script.

use core::num::NonZeroU32;
use std::vec::Vec;

use super::gpu::{InOrder, RigGpu, TimeShared};
use crate::app::{AppId, AppParams, Priority, Stride};
use crate::clock::Clock;
use crate::config::{Adjustable, Config, Margins};
use crate::refresh::Refresh;
use crate::service::{Enforcement, Gaps, Level, Reservation, Reserve, Turns};
use crate::time::{Span, Time};

/// What a script says before anything happens, apart from its apps.
pub(super) struct Setup {
    pub(super) config: Config,
    pub(super) gpu: RigGpu,
    pub(super) until: Time,
    pub(super) tells_releases: bool,
    pub(super) tells_predictions: bool,
}

impl Default for Setup {
    fn default() -> Self {
        let config = Config {
            refresh: refresh(1000),
            mpcg: 1,
            margins: Margins::NONE,
            completion_timeout: Span::from_ns(5000),
            ..Config::default()
        };
        Self {
            config,
            gpu: RigGpu::InOrder(InOrder::default()),
            until: Time::from_ns(4000),
            tells_releases: false,
            tells_predictions: false,
        }
    }
}

impl Setup {
    /// Takes the settings out of a script; the other lines are left, word by word.
    pub(super) fn read(script: &str) -> (Self, Vec<Vec<&str>>) {
        let mut setup = Self::default();
        let mut lines = Vec::new();
        for line in script.lines().map(|line| line.split('#').next().unwrap_or("")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if !words.is_empty() && !setup.set(&words) {
                lines.push(words);
            }
        }
        (setup, lines)
    }

    /// Says whether this was a setting.
    fn set(&mut self, words: &[&str]) -> bool {
        let Self { config, .. } = self;
        match words {
            ["mpcg", n] => config.mpcg = n.parse().unwrap(),
            ["delay", n] => config.margins.dispatch_upper = span(n),
            ["lower", n] => config.margins.dispatch_lower = span(n),
            ["fixed", n] => config.margins.fixed = span(n),
            ["min", n] => config.margins.group_min = span(n),
            ["tick", n] => config.tuning.tick = span(n),
            ["blocking", n] => config.tuning.blocking = span(n),
            ["stretch", n] => config.tuning.stretch = span(n),
            ["clear-parts", n] => config.tuning.clear_parts = n.parse().unwrap(),
            ["unstretched-parts", n] => config.tuning.unstretched_parts = n.parse().unwrap(),
            ["rest-turn", n] => config.tuning.rest_turn = span(n),
            ["group-max", n] => config.tuning.group_max = span(n),
            ["limit", n] => config.tuning.admission_permille = n.parse().unwrap(),
            ["background", terms] => config.tuning.background = reserve(terms, Enforcement::Posterior),
            ["period", n] => config.refresh = refresh(u32::try_from(number(n)).unwrap()),
            ["late-after", n] => config.tuning.late_after = span(n),
            ["late-permille", n] => config.tuning.late_permille = n.parse().unwrap(),
            ["given-up-max", n] => config.tuning.given_up_max = n.parse().unwrap(),
            ["timeout", n] => config.completion_timeout = span(n),
            ["until", n] => self.until = Time::from_ns(number(n)),
            ["releases"] => self.tells_releases = true,
            ["predictions"] => self.tells_predictions = true,
            ["preemptive"] => config.gpu = crate::gpu::Gpu::Preemptive,
            ["gpu", "in-order"] => {}
            ["gpu", "time-shared", options @ ..] => {
                let gpu = time_shared(options);
                config.gpu = gpu.model();
                self.gpu = RigGpu::TimeShared(gpu);
            }
            _ => return false,
        }
        true
    }
}

fn refresh(period: u32) -> Refresh {
    Refresh::from_period_ns(NonZeroU32::new(period).unwrap())
}

/// `slice=SPAN` and `switch=SPAN`, both optional.
fn time_shared(options: &[&str]) -> TimeShared {
    let (mut slice, mut switch) = (Span::from_ns(10), Span::ZERO);
    for option in options {
        match option.split_once('=') {
            Some(("slice", n)) => slice = span(n),
            Some(("switch", n)) => switch = span(n),
            _ => panic!("what is {option:?}?"),
        }
    }
    TimeShared::new(slice, switch)
}

/// A number, possibly with underscores, or `∞`.
pub(super) fn number(text: &str) -> u64 {
    if text == "∞" { u64::MAX } else { text.replace('_', "").parse().unwrap() }
}

pub(super) fn span(text: &str) -> Span {
    Span::from_ns(number(text))
}

pub(super) fn adjusted(mut adjustable: Adjustable, settings: &[&str]) -> Adjustable {
    for pair in settings.chunks(2) {
        let span = span(pair[1]);
        let margins = &mut adjustable.margins;
        match pair[0] {
            "mpcg" => adjustable.mpcg = pair[1].parse().unwrap(),
            "delay" => margins.dispatch_upper = span,
            "lower" => margins.dispatch_lower = span,
            "fixed" => margins.fixed = span,
            "min" => margins.group_min = span,
            "heard" => margins.completion_upper = span,
            "blocking" => adjustable.blocking = span,
            "stretch" => adjustable.stretch = span,
            other => panic!("what is {other:?}?"),
        }
    }
    adjustable
}

pub(super) fn changed(mut params: AppParams, settings: &[&str]) -> AppParams {
    for pair in settings.chunks(2) {
        match pair {
            ["stride", n] => params.stride = Stride::new(n.parse().unwrap()).unwrap(),
            ["etpf", n] => params.etpf = span(n),
            ["priority", n] => params.priority = Priority(n.parse().unwrap()),
            ["clock", terms] => {
                let (period, deadline) = terms.split_once('/').unwrap_or((terms, terms));
                params.clock = Clock::Own { period: span(period), deadline: span(deadline) };
            }
            ["gaps", terms] => {
                let (count, length) = terms.split_once('/').unwrap();
                params.service.gaps = Gaps { count: count.parse().unwrap(), length: span(length) };
            }
            ["feeds", n] => params.service.feeds = Some(AppId(n.parse().unwrap())),
            ["level", "high"] => params.service.level = Level::High,
            ["level", "low"] => params.service.level = Level::Low,
            ["slice", n] => params.service.timeslice = span(n),
            ["focus", "automatic"] => params.service.follows_focus = true,
            ["turns", "following"] => params.service.turns = Turns::Following,
            ["turns", "single"] => params.service.turns = Turns::Single,
            ["posterior", terms] => {
                params.service.reservation = Reservation::Own(reserve(terms, Enforcement::Posterior));
            }
            ["apriori", terms] => {
                params.service.reservation = Reservation::Own(reserve(terms, Enforcement::Apriori));
            }
            ["shares", n] => params.service.reservation = Reservation::Shared(AppId(n.parse().unwrap())),
            ["reserve", "background"] => params.service.reservation = Reservation::Background,
            ["reserve", "none"] => params.service.reservation = Reservation::None,
            ["interruptible", "never"] => params.service.uninterruptible = true,
            ["phase", _] => {}
            other => panic!("what is {other:?}?"),
        }
    }
    params
}

/// `Q/P` or `Q/P/D`: budget, period and deadline.
fn reserve(text: &str, enforcement: Enforcement) -> Reserve {
    let mut numbers = text.split('/').map(span);
    let (budget, period) = (numbers.next().unwrap(), numbers.next().unwrap());
    let deadline = numbers.next().unwrap_or(period);
    Reserve { budget, period, deadline, enforcement }
}
