//! Contracts: what an app was promised, as the offline test sees it.
//!
//! The scheduler, the simulator and `takt check` all ask here which apps are protected, so there is one
//! answer.

use crate::analysis::contracts::{self, Claim, Gpu, Kind, Order, Workspace};
use crate::app::AppParams;
use crate::clock::{Clock, DisplayId};
use crate::config::Config;
use crate::service::Reservation;
use crate::time::Span;

/// What an app with these parameters claims. Its `etpf` includes what the GPU adds to each group and frame.
pub fn claim(params: &AppParams, config: &Config) -> Claim {
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
    Claim { kind, span, group_max: span.min(config.tuning.group_max), groups: 1, gaps: 0, jitter: Span::ZERO }
}

/// Whether an app was promised frames. A server is a claim as well, but `timeline` does not protect servers: an
/// app that has nothing else is best effort there.
pub fn has_frames(params: &AppParams) -> bool {
    params.etpf > Span::ZERO
}

/// Whether all of these claims are covered together. Takes no memory from the allocator.
pub fn is_covered(claims: &[Claim], config: &Config, memory: &mut Workspace) -> bool {
    frames_fit(claims, config).unwrap_or_else(|| contracts::test_in(memory, claims, &gpu(config)).is_ok())
}

/// The GPU for claims that include what it adds.
pub fn gpu(config: &Config) -> Gpu {
    let lead = config.per_group() + config.per_frame();
    Gpu { order: Order::InOrder { per_group: Span::ZERO, per_frame: Span::ZERO }, lead, foreign: None }
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
pub fn covered(claims: &[Claim], config: &Config, memory: &mut Workspace) -> usize {
    let (mut lo, mut hi) = (0, claims.len());
    while lo < hi {
        let mid = hi - (hi - lo) / 2;
        if is_covered(&claims[..mid], config, memory) { lo = mid } else { hi = mid - 1 }
    }
    lo
}
