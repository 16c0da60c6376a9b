//! Contracts: what an app was promised, as the offline test sees it.
//!
//! The scheduler, the simulator and `takt check` all ask here which apps are protected, so there is one
//! answer.

use alloc::vec::Vec;

use crate::analysis::contracts::{self, Claim, Coverage, Kind, Workspace};
use crate::app::AppParams;
use crate::clock::{Clock, DisplayId};
use crate::config::Config;
use crate::service::{Reservation, Service};
use crate::time::Span;

/// What an app with these parameters claims. Its `etpf` includes what the GPU adds to each group and frame, and its
/// gaps: an app that waits counts as if it used the GPU ([`Config::per_gap`]).
pub fn claim(params: &AppParams, config: &Config) -> Claim {
    let params = params.framed();
    let (kind, span) = match (params.service.reservation, params.clock) {
        (Reservation::Own(reserve), _) if params.etpf == Span::ZERO => {
            (Kind::Server { period: reserve.period }, reserve.budget)
        }
        _ if params.etpf == Span::ZERO => (Kind::None, Span::ZERO),
        (_, Clock::Own { period, deadline }) => {
            (Kind::Frames { period, deadline: deadline.min(period), display: None }, params.etpf)
        }
        (_, Clock::Display(display)) => {
            let period = config.display(display).period_span();
            (Kind::of_display(display.0.into(), period, params.stride), params.etpf)
        }
    };
    sized(kind, span, config)
}

/// A claim of that kind and span, in groups that are as long as the configuration lets them be.
fn sized(kind: Kind, span: Span, config: &Config) -> Claim {
    Claim { kind, span, group_max: span.min(config.longest_group()) }
}

/// Whether an app has a contract: frames, or a server.
pub fn has_contract(params: &AppParams) -> bool {
    params.etpf > Span::ZERO || params.server().is_some()
}

/// Whether frames of an app with these parameters have gaps and are `shared` with other apps: for those nothing is
/// promised, even where the contract fits.
pub fn has_shared_gaps(params: &AppParams, shared: bool) -> bool {
    shared && params.framed().etpf > Span::ZERO && params.service.gaps.count > 0
}

/// Whether groups of an app with these parameters are divisible work: the app says that the GPU interrupts
/// them, the configuration has such work, and no contract pays for them, its own or that of another app.
pub fn is_divisible(params: &AppParams, config: &Config) -> bool {
    let Service { divisible, reservation, feeds, .. } = params.service;
    let pays_alone = matches!(reservation, Reservation::None | Reservation::Background) && feeds.is_none();
    divisible && config.divisible.is_some() && pays_alone && !has_contract(params)
}

/// Whether all of these claims are covered together.
pub fn is_covered(claims: &[Claim], config: &Config) -> bool {
    is_covered_in(claims, config, &mut Workspace::for_claims(claims.len()))
}

/// The same, without taking memory from the allocator.
fn is_covered_in(claims: &[Claim], config: &Config, memory: &mut Workspace) -> bool {
    frames_fit(claims, config).unwrap_or_else(|| contracts::test_in(memory, claims, lead(config)).is_ok())
}

/// What holds for each of these claims, most important first, and why not; as [`covered`] counts them.
pub fn coverage(claims: &[Claim], config: &Config) -> Coverage {
    contracts::coverage(claims, lead(config))
}

/// The largest span of one of these claims with which all of them are covered, its groups as long as the
/// configuration lets them be; `None` if they are not with any, or if it claims nothing.
pub fn largest_span(claims: &[Claim], index: usize, config: &Config) -> Option<Span> {
    let kind = claims.get(index)?.kind;
    let (Kind::Frames { period, .. } | Kind::Server { period }) = kind else { return None };
    let mut probe = claims.to_vec();
    largest(period, |span| {
        probe[index] = sized(kind, span, config);
        is_covered(&probe, config)
    })
}

/// The longest [`crate::config::Tuning::group_max`] with which all of these claims are covered; `None` if they
/// are not with any.
pub fn longest_group_max(claims: &[Claim], config: &Config) -> Option<Span> {
    let most = claims.iter().map(|claim| claim.span).max()?;
    largest(most + Span::from_ns(1), |group_max| {
        let mut config = *config;
        config.tuning.group_max = group_max;
        let claims: Vec<Claim> = claims.iter().map(|claim| sized(claim.kind, claim.span, &config)).collect();
        is_covered(&claims, &config)
    })
}

/// The largest span below `most` that fits; `None` if none above zero does. What fits, fits with less.
fn largest(most: Span, mut fits: impl FnMut(Span) -> bool) -> Option<Span> {
    let (mut lo, mut hi) = (0, most.as_ns());
    while hi - lo > 1 {
        let mid = lo + (hi - lo) / 2;
        if fits(Span::from_ns(mid)) { lo = mid } else { hi = mid }
    }
    (lo > 0).then(|| Span::from_ns(lo))
}

/// How long before the GPU runs empty a group must be let in for the GPU not to stand still. A group that goes on
/// after its app was displaced has one switch on top; claims include all else that the GPU adds ([`crate::Charge`]).
fn lead(config: &Config) -> Span {
    config.margins.turnaround() + config.gpu.switch()
}

/// The answer for frames of one display, which takes two sums ([`crate::analysis::frames`]); `None` if there is
/// anything else.
fn frames_fit(claims: &[Claim], config: &Config) -> Option<bool> {
    let (mut own, mut early, mut shown) = (Span::ZERO, Span::ZERO, None);
    for claim in claims {
        let Kind::Frames { period, display: Some(display), .. } = claim.kind else {
            return None;
        };
        if *shown.get_or_insert(display) != display {
            return None;
        }
        let display = DisplayId(u8::try_from(display).unwrap_or(u8::MAX));
        let each_period = period == config.display(display).period_span();
        *if each_period { &mut own } else { &mut early } += claim.span;
    }
    let display = DisplayId(u8::try_from(shown.unwrap_or(0)).unwrap_or(u8::MAX));
    let period = config.display(display).period_span();
    Some(own < period && own.times(2) + early < period.times(2))
}

/// How many of the first claims are covered together. Fewer claims are covered wherever more are, so halving
/// finds it.
pub fn covered(claims: &[Claim], config: &Config) -> usize {
    covered_in(claims, config, &mut Workspace::for_claims(claims.len()))
}

/// The same, without taking memory from the allocator.
pub(crate) fn covered_in(claims: &[Claim], config: &Config, memory: &mut Workspace) -> usize {
    let (mut lo, mut hi) = (0, claims.len());
    while lo < hi {
        let mid = hi - (hi - lo) / 2;
        if is_covered_in(&claims[..mid], config, memory) { lo = mid } else { hi = mid - 1 }
    }
    lo
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Priority, Stride};

    fn own(period: u64, span: u64, config: &Config) -> Claim {
        let (period, etpf) = (Span::from_us(period), Span::from_us(span));
        let clock = Clock::Own { period, deadline: period };
        let (priority, stride, service) = (Priority(1), Stride::ONE, Service::default());
        claim(&AppParams { priority, stride, etpf, clock, service }, config)
    }

    fn config(group_max: Span) -> Config {
        let mut config = Config { margins: crate::Margins::NONE, ..Config::default() };
        config.tuning.group_max = group_max;
        config
    }

    #[test]
    fn short_groups_block_for_less() {
        let long = config(Span::FOREVER);
        // A group of 6 ms may have begun when a frame of 5 ms is released that is due after 10 ms.
        let claims = [own(10_000, 5000, &long), own(20_000, 6000, &long)];
        assert_eq!(covered(&claims, &long), 1);
        let limit = longest_group_max(&claims, &long).unwrap();
        assert_eq!(limit, Span::from_ns(4_999_999));
        let sets = |group_max| {
            let config = config(group_max);
            covered(&[own(10_000, 5000, &config), own(20_000, 6000, &config)], &config)
        };
        assert_eq!(sets(limit), 2);
        assert_eq!(sets(limit + Span::from_ns(1)), 1);
    }

    #[test]
    fn the_largest_span_is_the_limit() {
        for group_max in [Span::FOREVER, Span::from_us(700)] {
            let config = config(group_max);
            let mut claims = [own(10_000, 5000, &config), own(20_000, 6000, &config)];
            let largest = largest_span(&claims, 1, &config).unwrap();
            claims[1] = sized(claims[1].kind, largest, &config);
            assert!(is_covered(&claims, &config), "{largest:?}");
            claims[1] = sized(claims[1].kind, largest + Span::from_ns(1), &config);
            assert!(!is_covered(&claims, &config), "{largest:?}");
        }
        let config = config(Span::FOREVER);
        let full = [own(10_000, 10_000, &config), own(10_000, 1, &config)];
        assert_eq!(largest_span(&full, 1, &config), None);
        assert_eq!(longest_group_max(&full, &config), None);
    }

    #[test]
    fn coverage_and_the_count_of_covered_claims_agree() {
        let config = config(Span::FOREVER);
        let claims = [own(10_000, 4000, &config), own(20_000, 8000, &config), own(30_000, 1000, &config)];
        assert_eq!(coverage(&claims, &config).covered, covered(&claims, &config));
    }
}
