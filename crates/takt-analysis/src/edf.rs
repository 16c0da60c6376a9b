//! Preemptive earliest deadline first: does every job meet its deadline?
//!
//! * **Question.** Is the set schedulable by EDF, whenever its jobs are released? Since EDF is
//!   optimal, a set that is not cannot be scheduled by anything.
//! * **Assumptions.** Sporadic tasks ([`crate::task`]) on one GPU that preempts at any tick;
//!   overheads are in the execution times.
//! * **Answer.** Exact: utilisation at most one, and the *demand* of every interval (the work
//!   whose release and deadline both lie in it, if all tasks start together) at most its length.
//! * **Source.** Baruah, Mok, Rosier 1990 (processor demand); Zhang, Burns 2009 (QPA: walk from
//!   the longest interval that matters down, each time to the demand just found); Spuri 1996
//!   (synchronous busy period).
//! * **Cost.** One division per task and step. Few steps nearly always, but no polynomial bound is
//!   known, least of all at a utilisation of one; so there is a limit with a name.

use core::cmp::Ordering;

use crate::ratio;
use crate::task::{Task, Ticks, utilisation};
use takt_core::limits::{ANALYSIS_STEPS_MAX, APPS_MAX, HORIZON_MAX};

/// What an analysis can say about a set.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every job meets its deadline.
    Schedulable,
    /// Jobs miss deadlines in the worst case.
    Unschedulable(Excess),
    /// The limits of the analysis were reached first; take it for a "no".
    Undecided(Limit),
}

/// Why a set is not schedulable.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Excess {
    /// More than the whole GPU is demanded in the long run.
    Utilisation,
    /// An interval of this length must hold more work than fits.
    Interval(Ticks),
    /// The bound on a response time is above the deadline or, where bounds need it, the period.
    Bound,
}

/// What an analysis ran into.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Limit {
    /// More than [`APPS_MAX`] tasks.
    Tasks,
    /// More than [`ANALYSIS_STEPS_MAX`] steps.
    Steps,
    /// An interval longer than [`HORIZON_MAX`].
    Horizon,
}

impl Verdict {
    /// Whether deadlines are promised.
    pub const fn is_schedulable(self) -> bool {
        matches!(self, Self::Schedulable)
    }
}

/// Bounds longer than this many of the longest periods are compared with the busy period, which
/// costs steps to compute, but is much shorter at utilisations close to one.
const LONG_PERIODS: u64 = 16;

/// Whether EDF meets all deadlines.
pub fn test(tasks: &[Task]) -> Verdict {
    if tasks.len() > APPS_MAX {
        return Verdict::Undecided(Limit::Tasks);
    }
    let bound = match by_utilisation(tasks) {
        ByUtilisation::Decided(verdict) => return verdict,
        ByUtilisation::Bound(bound) => bound,
    };
    let longest = tasks.iter().map(Task::period).max().unwrap_or(0);
    let interval = match bound {
        Some(bound) if bound <= longest * LONG_PERIODS => bound,
        _ => match busy_period_below(tasks, bound.unwrap_or(HORIZON_MAX)) {
            Ok(busy) => busy,
            Err(limit) => match bound {
                Some(bound) if bound < HORIZON_MAX => bound,
                _ => return Verdict::Undecided(limit),
            },
        },
    };
    walk_down(tasks, interval)
}

/// What the utilisation says.
enum ByUtilisation {
    Decided(Verdict),
    /// No interval of this length or longer has too much demand, if that is known.
    Bound(Option<Ticks>),
}

/// Settles overload and sets without short deadlines. Otherwise `U·t + Σ (T − D)·C/T` over the
/// tasks with D < T is at least the demand of an interval t, which bounds those with excess.
///
/// Shares are rounded as in [`ratio`]; upwards, so that the bound holds.
#[inline]
fn by_utilisation(tasks: &[Task]) -> ByUtilisation {
    let largest = tasks.iter().fold(0, |most, task| most | task.wcet());
    let shift = ratio::shift_for(largest);
    let (mut high, mut early) = (0u64, 0u128);
    let mut any_early = false;
    for task in tasks {
        if task.wcet() > task.period() {
            return ByUtilisation::Decided(Verdict::Unschedulable(Excess::Utilisation));
        }
        let share = (task.wcet() << shift) / task.period() + 1;
        high += share;
        if let Some(lead) = task.period().checked_sub(task.deadline())
            && lead > 0
        {
            early += u128::from(lead) * u128::from(share);
            any_early = true;
        }
    }
    let one = 1u64 << shift;
    if high >= one && utilisation(tasks) == Ordering::Greater {
        return ByUtilisation::Decided(Verdict::Unschedulable(Excess::Utilisation));
    }
    if !any_early {
        return ByUtilisation::Decided(Verdict::Schedulable);
    }
    let rest = match one.checked_sub(high) {
        Some(rest) if rest > 0 => rest,
        _ => return ByUtilisation::Bound(None),
    };
    // One word is enough nearly always, and divides much faster than two.
    let bound = match u64::try_from(early) {
        Ok(early) => early / rest,
        Err(_) => u64::try_from(early / u128::from(rest)).unwrap_or(HORIZON_MAX),
    };
    ByUtilisation::Bound(Some(bound.saturating_add(1).min(HORIZON_MAX)))
}

/// QPA: between `demand(t)` and `t` nothing can exceed, so the next interval to look at is as long
/// as the demand of this one. Needs a utilisation of at most one.
fn walk_down(tasks: &[Task], from: Ticks) -> Verdict {
    let shortest = tasks.iter().map(Task::deadline).min().unwrap_or(0);
    let mut interval = from;
    for _ in 0..ANALYSIS_STEPS_MAX {
        let demand = demand(tasks, interval);
        if demand > interval {
            return Verdict::Unschedulable(Excess::Interval(interval));
        }
        if demand < shortest {
            return Verdict::Schedulable;
        }
        interval = if demand < interval { demand } else { interval - 1 };
    }
    Verdict::Undecided(Limit::Steps)
}

/// The work of all jobs with release and deadline in an interval, if all tasks start with it.
///
/// No overflow for intervals up to [`HORIZON_MAX`] if the utilisation is at most one.
#[inline]
fn demand(tasks: &[Task], interval: Ticks) -> Ticks {
    let of = |task: &Task| match interval.checked_sub(task.deadline()) {
        Some(rest) => (rest / task.period() + 1) * task.wcet(),
        None => 0,
    };
    tasks.iter().map(of).sum()
}

/// How long the GPU is busy without a pause at most: from a common start of all tasks until
/// everything released so far is done. Needs a utilisation of at most one.
pub fn busy_period(tasks: &[Task]) -> Result<Ticks, Limit> {
    if tasks.len() > APPS_MAX {
        return Err(Limit::Tasks);
    }
    busy_period_below(tasks, HORIZON_MAX)
        .and_then(|busy| if busy < HORIZON_MAX { Ok(busy) } else { Err(Limit::Horizon) })
}

/// The same, or `enough` if it is longer.
fn busy_period_below(tasks: &[Task], enough: Ticks) -> Result<Ticks, Limit> {
    let mut busy: Ticks = tasks.iter().map(Task::wcet).sum();
    for _ in 0..ANALYSIS_STEPS_MAX {
        if busy >= enough {
            return Ok(enough);
        }
        let released = tasks.iter().map(|task| busy.div_ceil(task.period()) * task.wcet()).sum();
        if released == busy {
            return Ok(busy);
        }
        busy = released;
    }
    Err(Limit::Steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn tasks(numbers: &[(u64, u64, u64)]) -> Vec<Task> {
        numbers.iter().map(|&(c, d, t)| Task::new(c, d, t).unwrap()).collect()
    }

    /// The definition: every interval up to the hyperperiod plus the longest deadline.
    fn oracle(tasks: &[Task]) -> bool {
        let hyperperiod = tasks.iter().fold(1, |acc, task| takt_core::refresh::lcm(acc, task.period()));
        let longest = tasks.iter().map(Task::deadline).max().unwrap_or(0);
        utilisation(tasks) != Ordering::Greater
            && (0..=hyperperiod + longest).all(|interval| demand(tasks, interval) <= interval)
    }

    #[test]
    fn full_utilisation_is_exact() {
        assert!(test(&[]).is_schedulable());
        assert!(test(&tasks(&[(1, 3, 3), (1, 3, 3), (1, 3, 3)])).is_schedulable());
        let over = tasks(&[(1, 3, 3), (1, 3, 3), (100_001, 300_000, 300_000)]);
        assert_eq!(test(&over), Verdict::Unschedulable(Excess::Utilisation));
        assert_eq!(test(&tasks(&[(2, 3, 4), (2, 3, 4)])), Verdict::Unschedulable(Excess::Interval(3)));
        assert!(test(&tasks(&[(2, 2, 4), (2, 4, 4)])).is_schedulable());
    }

    #[test]
    fn extremes_neither_panic_nor_wrap() {
        use takt_core::limits::TICKS_MAX;
        let huge = Task::new(TICKS_MAX, TICKS_MAX, TICKS_MAX).unwrap();
        let small = Task::new(1, 1, TICKS_MAX).unwrap();
        let tight = Task::new(TICKS_MAX / 4096 - 1, TICKS_MAX - 1, TICKS_MAX).unwrap();
        assert!(test(&[huge]).is_schedulable());
        assert_eq!(test(&[huge, small]), Verdict::Unschedulable(Excess::Utilisation));
        assert!(!test(&[small; 4096]).is_schedulable());
        assert!(test(&[tight; 4096]).is_schedulable());
        assert_eq!(test(&[small; 4097]), Verdict::Undecided(Limit::Tasks));
    }

    #[test]
    fn utilisations_close_to_one_are_decided() {
        // Coprime periods: the hyperperiod is far beyond reach.
        let near = tasks(&[(33_332, 90_000, 100_003), (33_333, 99_000, 100_019), (33_330, 100_000, 100_043)]);
        assert!(!matches!(test(&near), Verdict::Undecided(_)));
    }

    #[test]
    fn the_busy_period_ends_when_all_work_is_done() {
        assert_eq!(busy_period(&tasks(&[(1, 4, 4), (2, 6, 6), (3, 12, 12)])), Ok(10));
        assert_eq!(busy_period(&tasks(&[(2, 4, 4), (2, 4, 4)])), Ok(4));
        assert_eq!(busy_period(&[]), Ok(0));
    }

    fn sets() -> impl Strategy<Value = Vec<Task>> {
        let period = proptest::sample::select(&[4u64, 5, 6, 8, 10, 12, 15, 20, 24, 30][..]);
        let one = (period, 1u64..8, 1u64..40).prop_map(|(t, c, d)| Task::new(c.min(t), d, t).unwrap());
        proptest::collection::vec(one, 0..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn agrees_with_the_definition(set in sets()) {
            prop_assert_eq!(test(&set).is_schedulable(), oracle(&set));
        }

        /// The interval that a refusal names does have too much demand.
        #[test]
        fn excess_is_real(set in sets()) {
            if let Verdict::Unschedulable(Excess::Interval(interval)) = test(&set) {
                prop_assert!(demand(&set, interval) > interval);
            }
        }
    }
}
