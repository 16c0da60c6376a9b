//! Apps that wait for their own groups within a frame.

use takt_core::service::Gaps;
use takt_core::{AppParams, Charge, Config, Estimate, GroupKind, Service, Span};

use super::draw::{grain, rounded};
use crate::model::RecordedGroup;
use crate::rng::Rng;

/// How many apps of a set have gaps, in millionths.
const SHARE: u32 = 400_000;

/// Declares gaps for some apps, as a part of what each was promised.
pub(super) fn declare(params: AppParams, config: &Config, rng: &mut Rng) -> AppParams {
    let count = rng.pick(&[1, 1, 2, 3, 6]).copied().unwrap_or(1);
    let wanted = rng.chance(SHARE);
    let probe = Gaps { count, length: Span::ZERO };
    let gapped = |gaps| AppParams { service: Service { gaps, ..params.service }, ..params };
    let least =
        config.conservative(Estimate::default(), Charge::Stays) + config.per_group() + Span::from_ns(2);
    let parts = u64::from(count) + 1;
    let needed = config.per_gap(probe).times(parts) + least.max(grain(config)).times(parts);
    let left = gapped(probe).framed().etpf.saturating_sub(needed);
    let longest = left.as_ns() / u64::from(count);
    let length = match rng.between(0, 3) {
        0 => longest,
        1 => rng.between(0, longest),
        _ => rng.between(0, longest / 4),
    };
    let gaps = Gaps { count, length: rounded(Span::from_ns(length), config) };
    if wanted && left > Span::ZERO { gapped(gaps) } else { params }
}

/// Leaves gaps between the groups of a frame, mostly as many and as long as were declared.
pub(super) fn leave(frame: &mut [RecordedGroup], gaps: Gaps, config: &Config, rng: &mut Rng) {
    let mut left = u64::from(gaps.count);
    for next in 1..frame.len() {
        let places = (frame.len() - next) as u64;
        if rng.between(1, places) > left {
            continue;
        }
        left -= 1;
        let length = match rng.between(0, 3) {
            0 => Span::ZERO,
            1 => rounded(Span::from_ns(rng.between(0, gaps.length.as_ns())), config),
            _ => gaps.length,
        };
        frame[next - 1].kind = GroupKind::Sync;
        frame[next].delay = length;
    }
}
