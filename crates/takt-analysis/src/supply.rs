//! Reservations: how much GPU time do they supply at least, and take at most?
//!
//! * **Questions.** What is left for work inside a reservation in any window of a given length, and
//!   how much can a reservation take from all others?
//! * **Supply** ([`supply`], [`time_to_supply`]). A reservation that gives its capacity C at some
//!   time in each period T. Worst case: C at the very begin of one period and at the very end of
//!   those that follow. Source: Shin, Lee 2003 (periodic resource model).
//! * **Usage** ([`usage`]). TimeGraph's reserves decide at the boundaries of command groups, which
//!   run to their end once begun. Posterior enforcement (PE) lets a group start while any budget is
//!   left and so overdraws by one group less a tick; apriori enforcement (AE) waits until the
//!   predicted cost is there, and is exact as long as no group costs more than predicted. In each
//!   period C is added at most; savings from before the window are C, or one group if AE
//!   saves for a group longer than C. Source: Kato et al. 2011, section 5; the bounds are derived
//!   here.
//! * **Cost.** A few operations each.

use crate::cbs::Server;
use crate::task::Ticks;

/// How a reserve is enforced.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Enforcement {
    /// After the fact: a group may start while any budget is left.
    Posterior,
    /// In advance: a group may start if its predicted cost is left.
    Apriori,
}

/// The least GPU time in any window of that length.
pub fn supply(reserve: &Server, window: Ticks) -> Ticks {
    let (capacity, period) = (reserve.budget(), reserve.period());
    let gap = period - capacity;
    let Some(rest) = window.checked_sub(gap) else {
        return 0;
    };
    let periods = rest / period;
    periods * capacity + (rest - periods * period).saturating_sub(gap)
}

/// The shortest window that supplies that much for certain: the inverse of [`supply`].
pub fn time_to_supply(reserve: &Server, work: Ticks) -> Ticks {
    let (capacity, period) = (reserve.budget(), reserve.period());
    let Some(before) = work.checked_sub(1) else {
        return 0;
    };
    let periods = before / capacity;
    let rest = work - periods * capacity;
    periods.saturating_mul(period).saturating_add(2 * (period - capacity)).saturating_add(rest)
}

/// The most GPU time that a reserve takes in any window of that length, if no command group costs
/// more than `group`.
pub fn usage(reserve: &Server, enforcement: Enforcement, group: Ticks, window: Ticks) -> Ticks {
    let added = window.div_ceil(reserve.period()).saturating_mul(reserve.budget());
    let more = match enforcement {
        Enforcement::Posterior => reserve.budget().saturating_add(group.saturating_sub(1)),
        Enforcement::Apriori => reserve.budget().max(group),
    };
    added.saturating_add(more).min(window)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn reserve(capacity: Ticks, period: Ticks) -> Server {
        Server::new(capacity, period).unwrap()
    }

    /// The definition: capacity early in one period and late in the others, from each tick on.
    fn least_supply(capacity: u64, period: u64, window: u64) -> u64 {
        let served = |tick: u64| match tick < period {
            true => tick < capacity,
            false => tick % period >= period - capacity,
        };
        let from = |start: u64| (start..start + window).filter(|tick| served(*tick)).count() as u64;
        (0..2 * period).map(from).min().unwrap()
    }

    #[test]
    fn extremes_saturate() {
        let whole = reserve(5, 5);
        assert_eq!(supply(&whole, u64::MAX), u64::MAX);
        assert_eq!(time_to_supply(&reserve(1, 1 << 40), u64::MAX), u64::MAX);
        assert_eq!(usage(&whole, Enforcement::Posterior, u64::MAX, u64::MAX), u64::MAX);
    }

    /// What a reserve of TimeGraph does, tick by tick, on a GPU of its own with work without end.
    fn drive(c: u64, t: u64, enforcement: Enforcement, costs: &[u64], phase: u64) -> Vec<bool> {
        let mut budget = i64::try_from(c).unwrap();
        let mut busy = Vec::new();
        let mut costs = costs.iter().copied().cycle();
        let mut next = costs.next().unwrap();
        let (mut left, mut running) = (0, 0);
        for tick in 0..40 * t {
            let full = i64::try_from(c).unwrap();
            if left == 0 && running > 0 {
                budget -= i64::try_from(running).unwrap();
                running = 0;
            }
            let wanted = i64::try_from(next).unwrap();
            if (tick + phase).is_multiple_of(t) {
                budget = match enforcement {
                    Enforcement::Posterior => full.min(budget + full),
                    Enforcement::Apriori if wanted <= full => full,
                    Enforcement::Apriori => wanted.min(budget + full),
                };
            }
            let may_start = match enforcement {
                Enforcement::Posterior => budget > 0,
                Enforcement::Apriori => budget >= wanted,
            };
            if left == 0 && may_start {
                (left, running) = (next, next);
                next = costs.next().unwrap();
            }
            busy.push(left > 0);
            left = left.saturating_sub(1);
        }
        busy
    }

    proptest! {
        #[test]
        fn supply_agrees_with_the_definition(c in 1u64..8, more in 0u64..8, window in 0u64..60) {
            let period = c + more;
            prop_assert_eq!(supply(&reserve(c, period), window), least_supply(c, period, window));
        }

        #[test]
        fn time_is_the_inverse(c in 1u64..8, more in 0u64..8, work in 1u64..60) {
            let reserve = reserve(c, c + more);
            let time = time_to_supply(&reserve, work);
            prop_assert!(supply(&reserve, time) >= work);
            prop_assert!(supply(&reserve, time - 1) < work);
        }

        #[test]
        fn no_window_sees_more_than_the_usage(
            (c, t) in (1u64..8).prop_flat_map(|c| (Just(c), c..20)),
            costs in proptest::collection::vec(1u64..12, 1..8),
            phase in 0u64..20,
            apriori: bool,
        ) {
            let enforcement = if apriori { Enforcement::Apriori } else { Enforcement::Posterior };
            let busy = drive(c, t, enforcement, &costs, phase);
            let group = costs.iter().copied().max().unwrap();
            for length in 1..3 * t {
                let bound = usage(&reserve(c, t), enforcement, group, length);
                let windows = busy.windows(usize::try_from(length).unwrap());
                let most = windows.map(|w| w.iter().filter(|busy| **busy).count() as u64).max();
                prop_assert!(most <= Some(bound), "{most:?} > {bound} in {length}");
            }
        }
    }
}
