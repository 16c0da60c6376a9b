//! Sets of apps with several displays, clocks of their own, and servers.

use takt_core::clock::DisplayId;
use takt_core::contract::{claim, is_covered};
use takt_core::limits::DISPLAYS_MAX;
use takt_core::service::{Enforcement, Reservation, Reserve};
use takt_core::{AppParams, Clock, Config, Refresh, Service, Span, Stride, Time};

use super::Options;
use super::draw::{Wanted, etpf_min, grain, is_round, rounded, unimportant};
use crate::model::{Jobs, Pace};
use crate::rng::Rng;

/// Frames of the slowest app in a case.
const FRAMES: u64 = 24;

/// Draws the other displays, and how long groups of protected apps may be.
pub(super) fn draw_clocks(config: &mut Config, rng: &mut Rng) {
    let rates: &[u32] = if is_round(config) {
        &[40_000, 50_000, 62_500, 100_000, 125_000]
    } else {
        &[24_000, 30_000, 48_000, 50_000, 59_940, 60_000, 75_000, 90_000, 120_000]
    };
    let config_before = *config;
    for display in &mut config.more_displays {
        let refresh = rng.pick(rates).and_then(|mhz| Refresh::from_mhz(*mhz)).unwrap_or(Refresh::HZ_60);
        let phase = Span::from_ns(rng.between(0, refresh.period_span().as_ns() - 1));
        *display = refresh.with_origin(Time::ZERO + rounded(phase, &config_before));
    }
    let longest = rng.pick(&[500, 1_000, 2_000, 4_000, 8_000]).copied().unwrap_or(2_000);
    config.tuning.group_max = if rng.chance(200_000) { Span::FOREVER } else { Span::from_us(longest) };
}

/// A display or a clock of its own.
pub(super) fn draw_clock(config: &Config, rng: &mut Rng) -> Clock {
    let displays = u32::try_from(DISPLAYS_MAX - 1).unwrap_or(1);
    if rng.chance(600_000) {
        return Clock::Display(DisplayId(u8::try_from(rng.below(displays)).unwrap_or(0)));
    }
    let period = rounded(Span::from_us(rng.between(4_000, 60_000)), config);
    let third = period.as_ns() / 3;
    let deadline = match rng.between(0, 2) {
        0 => period,
        _ => rounded(Span::from_ns(rng.between(third, period.as_ns())), config),
    };
    Clock::Own { period, deadline: deadline.max(Span::from_us(500)) }
}

/// When an app with that clock begins its frames.
pub(super) fn pace(clock: Clock) -> Pace {
    match clock {
        Clock::Display(_) => Pace::Released,
        Clock::Own { period, deadline } => Pace::Periodic(Jobs { offset: Span::ZERO, period, deadline }),
    }
}

/// The server of an app that has no frames.
pub(super) fn server(params: &AppParams) -> Option<Reserve> {
    match params.service.reservation {
        Reservation::Own(reserve) if params.etpf == Span::ZERO => Some(reserve),
        _ => None,
    }
}

/// Time between two frames, or two budgets of a server.
pub(super) fn period(params: &AppParams, config: &Config) -> Span {
    if let Some(reserve) = server(params) {
        return reserve.period;
    }
    params.clock.grid(config).period_span().times(params.stride.periods())
}

/// A covered set, often just below the limit, and how long to play it.
pub(super) fn draw_set(options: &Options, config: &Config, rng: &mut Rng) -> (Vec<Wanted>, Span) {
    let count = rng.between(options.apps.0.into(), options.apps.1.into());
    let wanted: Vec<(Wanted, u64)> =
        (0..count).map(|_| (draw_app(options, config, rng), 1 + rng.between(0, 1000))).collect();
    let total: u64 = wanted.iter().map(|(_, share)| share).sum();
    let scaled = |permyriad: u64| -> Vec<Wanted> {
        let scale = |(app, share): &(Wanted, u64)| {
            let all = period(&app.params, config).as_ns() / total / 10_000;
            let etpf = rounded(Span::from_ns(all * share * permyriad), config)
                .max(etpf_min(config))
                .max(grain(config));
            Wanted { params: with_span(app.params, etpf), ..*app }
        };
        wanted.iter().map(scale).collect()
    };
    let mut limit = 0;
    for step in (0..13).rev().map(|bit| 1 << bit) {
        limit += if covered(&scaled(limit + step), config) { step } else { 0 };
    }
    let mut set = match rng.between(0, 2) {
        0 => scaled(rng.between(limit / 2, limit)),
        _ => scaled(limit),
    };
    while !covered(&set, config) {
        set.pop();
    }
    let longest = set.iter().map(|app| period(&app.params, config)).max().unwrap_or_default();
    (set, longest.max(config.refresh.period_span()).times(FRAMES))
}

/// The same with so much time per frame, or budget.
fn with_span(params: AppParams, span: Span) -> AppParams {
    match server(&params) {
        Some(reserve) => {
            let reservation = Reservation::Own(Reserve { budget: span, ..reserve });
            AppParams { service: Service { reservation, ..params.service }, ..params }
        }
        None => AppParams { etpf: span, ..params },
    }
}

fn covered(set: &[Wanted], config: &Config) -> bool {
    let claims: Vec<_> = set.iter().map(|app| claim(&app.params, config)).collect();
    is_covered(&claims, config)
}

/// An app that does what its contract says. With a clock of its own it begins frames late and, for that,
/// the next ones early.
fn draw_app(options: &Options, config: &Config, rng: &mut Rng) -> Wanted {
    if rng.chance(250_000) {
        return draw_server(config, rng);
    }
    let clock = draw_clock(config, rng);
    let Clock::Own { period, deadline } = clock else {
        let stride = rng.pick(&options.strides).copied().unwrap_or(Stride::ONE);
        let params = AppParams { stride, clock, ..unimportant() };
        return Wanted { params, phase: rng.below(stride.get()), pace: Pace::Released, late: Span::ZERO };
    };
    let offset = rounded(Span::from_ns(rng.between(0, period.as_ns())), config);
    let slower = if rng.chance(300_000) { rounded(period.scaled(1, 8), config) } else { Span::ZERO };
    let pace = Pace::Periodic(Jobs { offset, period: period + slower, deadline });
    let late = match rng.between(0, 2) {
        0 => Span::ZERO,
        1 => period.scaled(1, 4),
        _ => period.times(2),
    };
    let params = AppParams { clock, ..unimportant() };
    Wanted { params, phase: 0, pace, late }
}

/// An app with a server, and a job of its budget in each period; some come late, and the next ones early.
fn draw_server(config: &Config, rng: &mut Rng) -> Wanted {
    let params = draw_reserve(config, rng);
    let period = period(&params, config);
    let offset = rounded(Span::from_ns(rng.between(0, period.as_ns())), config);
    let pace = Pace::Periodic(Jobs { offset, period, deadline: period });
    let late = match rng.between(0, 2) {
        0 => Span::ZERO,
        1 => period.scaled(1, 4),
        _ => period.times(2),
    };
    Wanted { params, phase: 0, pace, late }
}

/// Parameters of an app with a server, soft or hard.
pub(super) fn draw_reserve(config: &Config, rng: &mut Rng) -> AppParams {
    let period = rounded(Span::from_us(rng.between(4_000, 100_000)), config);
    let budget = Span::from_ns(rng.between(1, period.as_ns() / 2));
    let enforcement = if rng.chance(500_000) { Enforcement::Apriori } else { Enforcement::Posterior };
    let reservation = Reservation::Own(Reserve { budget, period, deadline: period, enforcement });
    AppParams { service: Service { reservation, ..Service::default() }, ..unimportant() }
}
