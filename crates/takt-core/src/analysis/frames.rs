//! What can be promised before anything runs: the schedulability test of `frame-deadline`.
//!
//! * **Question.** If the frames of these apps stay within their `etpf`, does every one of them
//!   meet every deadline, for ever, whatever less important apps do?
//! * **Assumptions.** Groups run no longer than predicted conservatively and arrive at incipient
//!   arrival; `etpf` includes [`crate::Margins::per_group`] for each group and
//!   [`crate::Margins::per_frame`] once.
//! * **Source.** Schnitzer, dissertation 2019, listing 4.4, with its two slips mended: the clamp
//!   acts on the running sum, and frames of stride `s` are due in every `s`-th period.
//! * **Cost.** One pass over the apps; with phases `2 · lcm(strides)` steps, at most
//!   [`LOOKAHEAD_MAX`] of a cycle.

use alloc::vec;
use alloc::vec::Vec;

use crate::app::Stride;
use crate::limits::LOOKAHEAD_MAX;
use crate::refresh::lcm;
use crate::time::Span;

/// What one app demands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Demand {
    /// Periods between two frames.
    pub stride: Stride,
    /// GPU time per frame.
    pub etpf: Span,
    /// Periods by which its deadlines are shifted against the others'.
    pub phase: u32,
}

/// Most combinations of phases that [`best_stagger`] tries before it settles for a greedy choice.
const STAGGER_TRIES_MAX: u64 = 50_000;

/// The periods after which the pattern of deadlines repeats.
pub fn cycle(set: &[Demand]) -> u64 {
    set.iter().fold(1, |acc, demand| lcm(acc, demand.stride.periods()))
}

/// Whether the set is schedulable if all first deadlines fall into the same period, which is the
/// worst case. Phases are ignored.
///
/// The walk of the listing comes down to two sums: in every period the work of stride 1 must fit,
/// and in the two periods before the common deadline that work twice and all other work once. The
/// tests compare this with the walk itself.
#[must_use]
pub fn is_schedulable(period: Span, set: &[Demand]) -> bool {
    let length = period.as_signed_ns();
    let own = sum(set.iter().filter(|demand| demand.stride == Stride::ONE));
    let early = sum(set.iter().filter(|demand| demand.stride != Stride::ONE));
    own < length && 2 * own + early < 2 * length
}

/// Whether the set is schedulable with the given phases.
///
/// The same walk around the cycle of deadlines, but the debt is carried twice around: if the
/// second lap neither overflows nor ends with more than the first, it repeats for ever.
#[must_use]
pub fn is_schedulable_staggered(period: Span, set: &[Demand]) -> bool {
    if cycle(set) > LOOKAHEAD_MAX {
        // Too long a pattern to look at; whatever is schedulable without phases is with any.
        return is_schedulable(period, set);
    }
    let length = period.as_signed_ns();
    let own: i64 = sum(set.iter().filter(|demand| demand.stride == Stride::ONE));
    let early = early_profile(set);
    let mut debt: i64 = 0;
    let mut lap_end = None;
    for _ in 0..2 {
        for work in early.iter().rev() {
            let incoming = debt.max(0);
            debt = incoming - length + own;
            if debt > 0 || (incoming > 0 && debt == 0) {
                return false;
            }
            debt += work;
        }
        if lap_end.is_some_and(|before| debt > before) {
            return false;
        }
        lap_end = Some(debt);
    }
    debt.max(0) + own < length
}

/// Work of strides above 1 that is due in each period of the cycle.
fn early_profile(set: &[Demand]) -> Vec<i64> {
    let cycle = usize::try_from(cycle(set).min(LOOKAHEAD_MAX)).unwrap_or(1);
    let mut early = vec![0i64; cycle];
    for demand in set.iter().filter(|demand| demand.stride != Stride::ONE) {
        let stride = demand.stride.get() as usize;
        for work in early[demand.phase as usize % stride..].iter_mut().step_by(stride) {
            *work = work.saturating_add(demand.etpf.as_signed_ns());
        }
    }
    early
}

fn sum<'a>(demands: impl Iterator<Item = &'a Demand>) -> i64 {
    demands.map(|demand| demand.etpf).sum::<Span>().as_signed_ns()
}

/// How many of the first apps of the set, most important first, are schedulable together: the
/// protected set.
pub fn protected(period: Span, set: &[Demand]) -> usize {
    (1..=set.len()).take_while(|count| is_schedulable(period, &set[..*count])).count()
}

/// How much GPU time per period one more app could reserve; `None` if the set is not schedulable.
pub fn slack(period: Span, set: &[Demand], test: fn(Span, &[Demand]) -> bool) -> Option<Span> {
    let mut probe = set.to_vec();
    probe.push(Demand { stride: Stride::ONE, etpf: Span::ZERO, phase: 0 });
    headroom(period, &probe, set.len(), test)
}

/// How much `set[index].etpf` could grow; `None` if the set is not schedulable as it is.
pub fn headroom(
    period: Span,
    set: &[Demand],
    index: usize,
    test: fn(Span, &[Demand]) -> bool,
) -> Option<Span> {
    let mut probe = set.to_vec();
    let mut fits = |extra: u64| {
        probe[index].etpf = set[index].etpf + Span::from_ns(extra);
        test(period, &probe)
    };
    if !fits(0) {
        return None;
    }
    let (mut lo, mut hi) = (0, period.times(set[index].stride.periods()).as_ns() + 1);
    while hi - lo > 1 {
        let mid = lo + (hi - lo) / 2;
        if fits(mid) { lo = mid } else { hi = mid }
    }
    Some(Span::from_ns(lo))
}

/// Phases that leave the most slack. Exhaustive for small sets, else the largest demands are
/// placed one by one where they leave the most.
pub fn best_stagger(period: Span, set: &[Demand]) -> Vec<u32> {
    let combinations = set.iter().skip(1).fold(1u64, |acc, d| acc.saturating_mul(d.stride.periods()));
    let mut best = set.to_vec();
    for demand in &mut best {
        demand.phase = 0;
    }
    if combinations <= STAGGER_TRIES_MAX / cycle(set).max(1) {
        try_all(period, &mut best);
    } else {
        let plain = best.clone();
        place_greedily(&mut best);
        if score(period, &best) < score(period, &plain) {
            best = plain;
        }
    }
    best.iter().map(|demand| demand.phase).collect()
}

/// How good a stagger is: the load of the busiest pair of neighbouring periods counts, since work
/// of strides above 1 can spread over two. Less is better.
fn crowding(set: &[Demand]) -> i64 {
    let early = early_profile(set);
    let pairs = early.iter().zip(early.iter().cycle().skip(1));
    pairs.map(|(a, b)| a.saturating_add(*b)).max().unwrap_or(0)
}

/// Schedulable before not, then by slack, then by how little periods are crowded.
fn score(period: Span, set: &[Demand]) -> (i64, i64) {
    let slack = slack(period, set, is_schedulable_staggered).map_or(-1, Span::as_signed_ns);
    (slack, -crowding(set))
}

fn try_all(period: Span, set: &mut [Demand]) {
    let mut best = set.to_vec();
    let mut best_score = score(period, &best);
    loop {
        // Counts through the phases like an odometer; the first app stays where it is.
        let mut wheel = 1;
        while wheel < set.len() && set[wheel].phase + 1 == set[wheel].stride.get() {
            set[wheel].phase = 0;
            wheel += 1;
        }
        if wheel >= set.len() {
            break;
        }
        set[wheel].phase += 1;
        let this = score(period, set);
        if this > best_score {
            best_score = this;
            best.copy_from_slice(set);
        }
    }
    set.copy_from_slice(&best);
}

fn place_greedily(set: &mut [Demand]) {
    let mut order: Vec<usize> = (0..set.len()).collect();
    order.sort_by_key(|index| core::cmp::Reverse(set[*index].etpf));
    let mut placed: Vec<Demand> = Vec::new();
    for index in order {
        let demand = set[index];
        let candidates = (0..demand.stride.get()).map(|phase| Demand { phase, ..demand });
        let best = candidates.min_by_key(|candidate| {
            placed.push(*candidate);
            let crowding = crowding(&placed);
            placed.pop();
            (crowding, candidate.phase)
        });
        if let Some(best) = best {
            set[index] = best;
            placed.push(best);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const T: Span = Span::from_ns(1000);

    fn demand(stride: u32, etpf: u64) -> Demand {
        Demand { stride: Stride::new(stride).unwrap(), etpf: Span::from_ns(etpf), phase: 0 }
    }

    #[test]
    fn stride_one_fills_the_period() {
        assert!(is_schedulable(T, &[]));
        assert!(is_schedulable(T, &[demand(1, 500), demand(1, 499)]));
        assert!(!is_schedulable(T, &[demand(1, 500), demand(1, 500)]));
    }

    #[test]
    fn strides_one_and_two_fill_two_periods() {
        // 2·Σ₁ + Σ₂ < 2T
        assert!(is_schedulable(T, &[demand(1, 600), demand(2, 799)]));
        assert!(!is_schedulable(T, &[demand(1, 600), demand(2, 800)]));
        assert!(is_schedulable(T, &[demand(2, 588), demand(1, 269), demand(2, 191), demand(1, 330)]));
    }

    #[test]
    fn stride_three_needs_a_stagger_beyond_two_thirds() {
        let set = [demand(3, 1000), demand(3, 999), demand(3, 1000)];
        assert!(is_schedulable(T, &set[..2]));
        assert!(!is_schedulable(T, &set));
        let phases = best_stagger(T, &set);
        let staggered: Vec<Demand> =
            set.iter().zip(&phases).map(|(d, &phase)| Demand { phase, ..*d }).collect();
        assert!(is_schedulable_staggered(T, &staggered), "{phases:?}");
    }

    #[test]
    fn slack_and_headroom_reach_the_limit_exactly() {
        let set = [demand(1, 300), demand(2, 400)];
        assert_eq!(slack(T, &set, is_schedulable), Some(Span::from_ns(499)));
        assert_eq!(headroom(T, &set, 1, is_schedulable), Some(Span::from_ns(999)));
        assert_eq!(slack(T, &[demand(1, 1000)], is_schedulable), None);
        assert_eq!(slack(T, &[], is_schedulable), Some(Span::from_ns(999)));
    }

    #[test]
    fn the_protected_set_is_the_longest_schedulable_prefix() {
        let set = [demand(1, 500), demand(1, 400), demand(1, 300), demand(1, 0)];
        assert_eq!(protected(T, &set), 2);
    }

    fn sets() -> impl Strategy<Value = Vec<Demand>> {
        let one = (1u32..=6, 0u64..900, 0u32..6);
        proptest::collection::vec(one.prop_map(|(s, etpf, phase)| Demand { phase, ..demand(s, etpf) }), 1..7)
    }

    /// The test as the listing has it: a walk back from the last period before all deadlines
    /// coincide again.
    fn walk(period: Span, set: &[Demand]) -> bool {
        let length = period.as_signed_ns();
        let cycle = cycle(set);
        let own: i64 = sum(set.iter().filter(|demand| demand.stride == Stride::ONE));
        let mut debt: i64 = 0;
        for i in (1..=cycle).rev() {
            debt = debt.max(0) - length + own;
            if debt > 0 {
                return false;
            }
            debt += sum(set
                .iter()
                .filter(|d| d.stride != Stride::ONE && (i - 1).is_multiple_of(d.stride.periods())));
        }
        debt + own < length
    }

    proptest! {
        #[test]
        fn two_sums_are_the_walk_of_the_listing(set in sets()) {
            prop_assert_eq!(is_schedulable(T, &set), walk(T, &set));
        }

        /// Without phases both tests say the same.
        #[test]
        fn staggered_without_phases_is_the_plain_test(mut set in sets()) {
            for demand in &mut set {
                demand.phase = 0;
            }
            prop_assert_eq!(is_schedulable_staggered(T, &set), is_schedulable(T, &set));
        }

        /// Starting together is the worst case.
        #[test]
        fn any_stagger_of_a_schedulable_set_is_schedulable(set in sets()) {
            prop_assume!(is_schedulable(T, &set));
            prop_assert!(is_schedulable_staggered(T, &set));
        }

        #[test]
        fn the_best_stagger_is_not_worse_than_none(set in sets()) {
            let phases = best_stagger(T, &set);
            let staggered: Vec<Demand> = set.iter().zip(&phases).map(|(d, &phase)| Demand { phase, ..*d }).collect();
            let plain: Vec<Demand> = set.iter().map(|d| Demand { phase: 0, ..*d }).collect();
            prop_assert!(score(T, &staggered) >= score(T, &plain));
        }
    }
}
