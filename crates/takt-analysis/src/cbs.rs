//! Constant bandwidth servers: which can be admitted, and how long do their jobs take?
//!
//! * **Question.** Each server is promised a budget Q in each period P, whatever the jobs of the
//!   others do. Which servers can have that together, and what does it mean for a task in one?
//! * **Assumptions.** EDF among the servers, preemption at any tick. A job that finds its server
//!   idle at time t gives it the deadline t + P and a full budget, unless what is left of the old
//!   budget fits the old deadline (c < (d − t)·Q/P). An exhausted server gets Q again and a
//!   deadline later by P: at once (*soft*) or at the old deadline (*hard*). The bounds hold for
//!   both.
//!   A server with a deadline D of its own counts as one whose period is min(D, P).
//! * **Answer.** Servers fit if Σ Q/P is at most one: exact. From a fresh start on, each portion of
//!   Q is done P later than the one before it, so the k-th job of a task, released (k − 1)·T
//!   later at the earliest, ends ⌈k·C/Q⌉·P after the start at the latest.
//! * **Source.** Abeni, Buttazzo 1998 (admission, isolation); HERCULES D5.2, section 2.2. The
//!   bound is derived here from the deadlines of the portions.
//! * **Cost.** One division per server; for a bound, few steps, or its closed form after a limit.

use core::cmp::Ordering;

use crate::ratio;
use crate::task::{Task, Ticks};
use takt_core::limits::{ANALYSIS_STEPS_MAX, APPS_MAX, TICKS_MAX};
use takt_core::refresh::gcd;

/// A constant bandwidth server.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Server {
    budget: Ticks,
    period: Ticks,
}

impl Server {
    /// A server; `None` unless `1 <= budget <= period <= `[`TICKS_MAX`].
    pub const fn new(budget: Ticks, period: Ticks) -> Option<Self> {
        if 1 <= budget && budget <= period && period <= TICKS_MAX {
            Some(Self { budget, period })
        } else {
            None
        }
    }

    /// GPU time per period (Q).
    pub const fn budget(&self) -> Ticks {
        self.budget
    }

    /// The period, which is also the relative deadline (P).
    pub const fn period(&self) -> Ticks {
        self.period
    }
}

/// Whether the servers can all have their budgets; no if there are more than [`APPS_MAX`].
pub fn admits(servers: &[Server]) -> bool {
    let shares = servers.iter().map(|server| (server.budget, server.period));
    servers.len() <= APPS_MAX && ratio::compare_sum_to_one(shares) != Ordering::Greater
}

/// A response-time bound for a task that is alone in an admitted server; `None` if the task
/// demands more than the server has, since responses then grow for ever.
pub fn response_bound(server: &Server, task: &Task) -> Option<Ticks> {
    let [budget, period] = [server.budget, server.period].map(u128::from);
    let [wcet, gap] = [task.wcet(), task.period()].map(u128::from);
    if wcet * period > budget * gap {
        return None;
    }
    // After so many jobs the remainders of k·C by Q repeat, with responses no longer than before.
    let cycle = server.budget / gcd(server.budget, task.wcet());
    let (mut worst, mut job) = (0, 0);
    while job < u128::from(cycle) {
        job += 1;
        // The bound without rounding to whole portions; it never rises, so it holds for the rest.
        let ceiling = (period * (job * wcet + budget - 1) / budget).saturating_sub((job - 1) * gap);
        if ceiling <= worst {
            break;
        }
        if job >= u128::from(ANALYSIS_STEPS_MAX) {
            worst = ceiling;
            break;
        }
        let ends = (job * wcet).div_ceil(budget) * period;
        worst = worst.max(ends.saturating_sub((job - 1) * gap));
    }
    Some(Ticks::try_from(worst).unwrap_or(Ticks::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn server(budget: Ticks, period: Ticks) -> Server {
        Server::new(budget, period).unwrap()
    }

    fn task(wcet: Ticks, period: Ticks) -> Task {
        Task::new(wcet, period, period).unwrap()
    }

    #[test]
    fn admission_is_exact() {
        assert!(admits(&[]));
        assert!(admits(&[server(1, 3), server(1, 3), server(1, 3)]));
        assert!(!admits(&[server(1, 3), server(1, 3), server(100_001, 300_000)]));
        assert!(!admits(&[server(1, TICKS_MAX); APPS_MAX + 1]));
        assert_eq!(Server::new(0, 5), None);
        assert_eq!(Server::new(6, 5), None);
        assert_eq!(Server::new(1, TICKS_MAX + 1), None);
    }

    #[test]
    fn a_job_that_fits_its_server_ends_within_the_period() {
        assert_eq!(response_bound(&server(3, 10), &task(3, 10)), Some(10));
        assert_eq!(response_bound(&server(3, 10), &task(2, 15)), Some(10));
        assert_eq!(response_bound(&server(3, 10), &task(4, 15)), Some(20));
        assert_eq!(response_bound(&server(3, 10), &task(4, 13)), None);
        // The second job finds most of the third portion used: 2·4 of 3·3.
        assert_eq!(response_bound(&server(3, 10), &task(2, 7)), Some(13));
    }

    #[test]
    fn extremes_end() {
        let bound = response_bound(&server(TICKS_MAX - 1, TICKS_MAX), &task(TICKS_MAX - 2, TICKS_MAX - 1));
        assert!(bound.is_some_and(|bound| bound >= TICKS_MAX));
        assert!(response_bound(&server(1, TICKS_MAX), &task(1, TICKS_MAX)).is_some());
        assert_eq!(response_bound(&server(1, TICKS_MAX), &task(TICKS_MAX, TICKS_MAX)), None);
    }

    proptest! {
        /// The definition: the remainders of k·C by Q repeat after Q jobs at the latest.
        #[test]
        fn agrees_with_the_definition(q in 1u64..12, p in 12u64..40, c in 1u64..40, t in 1u64..80) {
            prop_assume!(c * p <= q * t);
            let of = |k: u64| ((k * c).div_ceil(q) * p).saturating_sub((k - 1) * t);
            let expected = (1..=2 * q).map(of).max();
            prop_assert_eq!(response_bound(&server(q, p), &task(c, t)), expected);
        }
    }
}
