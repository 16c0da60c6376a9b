//! Earliest deadline first: how long does a job take at most?
//!
//! * **Question.** A bound on the time from release to completion of any job of each task, if work
//!   can be preempted at any tick, only between segments (command groups or slices), or not at all.
//! * **Assumptions.** Sporadic tasks ([`crate::task`]) on one GPU that never idles while work
//!   waits. The earliest absolute deadline runs first; the bounds hold for every rule that breaks
//!   ties (Takt's is the lower index). Overheads are in the execution times. A busy interval
//!   begins at a whole tick, so a job that blocks has run for at least one.
//! * **Answer.** The largest over all offsets A of a release in a busy interval: the interval holds
//!   the task's own jobs up to A, jobs of others with deadlines no later than the own one and
//!   released before the job has run far enough not to be preempted again, and one piece of work
//!   with a later deadline that had begun.
//!   The offsets that matter are those at which one of these amounts grows.
//! * **Source.** Bozhko, Brandenburg 2020 (abstract response-time analysis, theorem 31 and its
//!   instances for EDF); for preemptive EDF it is the bound of Spuri 1996. Definitions are those of
//!   the `response-time-analysis` crate, with which the tests compare.
//! * **Cost.** Per task, n steps for each deadline in the busy period. The fixed point is searched
//!   only where it could exceed the best found so far.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::edf::{Excess, Limit, Verdict, busy_period};
use crate::task::{Task, Ticks, utilisation};
use takt_core::limits::ANALYSIS_STEPS_MAX;

/// Where running work can be preempted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Preemption {
    /// At any tick.
    Anywhere,
    /// After each piece of a job. All pieces have this length but the last, which is what is left.
    Segments(Ticks),
    /// After each piece of a job. Pieces have this length at most; how a job is cut is not known,
    /// so its last piece may be as short as a tick.
    Pieces(Ticks),
    /// Nowhere: a job that has begun runs to its end.
    Nowhere,
}

/// Why there are no bounds.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Unbounded {
    /// More than the whole GPU is demanded: responses grow for ever.
    Overload,
    /// The analysis gave up.
    Limit(Limit),
}

impl Preemption {
    /// The longest piece of a task that cannot be preempted.
    fn longest_piece(self, task: &Task) -> Ticks {
        match self {
            Self::Anywhere => 1,
            Self::Segments(length) | Self::Pieces(length) => length.clamp(1, task.wcet()),
            Self::Nowhere => task.wcet(),
        }
    }

    /// How much of a job is certainly left a tick after it can no longer be preempted.
    fn certain_rest(self, task: &Task) -> Ticks {
        match self {
            Self::Anywhere | Self::Pieces(_) => 0,
            Self::Segments(length) => (task.wcet() - 1) % length.max(1),
            Self::Nowhere => task.wcet() - 1,
        }
    }
}

/// A response-time bound for each task, in their order.
pub fn bounds(tasks: &[Task], preemption: Preemption) -> Result<Vec<Ticks>, Unbounded> {
    if tasks.len() > takt_core::limits::APPS_MAX {
        return Err(Unbounded::Limit(Limit::Tasks));
    }
    if utilisation(tasks) == Ordering::Greater {
        return Err(Unbounded::Overload);
    }
    let busy = busy_period(tasks).map_err(Unbounded::Limit)?;
    let steps = Steps { next: vec![0; tasks.len()], count: vec![0; tasks.len()] };
    let mut search = Search { tasks, preemption, busy, steps, left: ANALYSIS_STEPS_MAX };
    (0..tasks.len()).map(|index| search.bound_of(index).map_err(Unbounded::Limit)).collect()
}

/// Whether all responses stay within the deadlines.
pub fn verdict(tasks: &[Task], bounds: &Result<Vec<Ticks>, Unbounded>) -> Verdict {
    match bounds {
        Err(Unbounded::Overload) => Verdict::Unschedulable(Excess::Utilisation),
        Err(Unbounded::Limit(limit)) => Verdict::Undecided(*limit),
        Ok(bounds) => {
            let late = tasks.iter().zip(bounds).find(|(task, bound)| **bound > task.deadline());
            late.map_or(Verdict::Schedulable, |(task, _)| {
                Verdict::Unschedulable(Excess::Interval(task.deadline()))
            })
        }
    }
}

/// Which jobs of each task have deadlines no later than that of a job released at an offset.
struct Steps {
    /// Offset at which one more job of the task counts.
    next: Vec<Ticks>,
    /// Jobs that count now.
    count: Vec<u64>,
}

impl Steps {
    /// Sets everything up for offset 0.
    fn start(&mut self, tasks: &[Task], under: &Task) {
        for ((task, next), count) in tasks.iter().zip(&mut self.next).zip(&mut self.count) {
            // The k-th job counts from offset k·T + D − D(under) on.
            (*next, *count) = match under.deadline().checked_sub(task.deadline()) {
                None => (task.deadline() - under.deadline(), 0),
                Some(lead) => {
                    let jobs = lead / task.period() + 1;
                    (jobs * task.period() - lead, jobs)
                }
            };
        }
    }

    /// The next offset at which something changes.
    fn next_offset(&self) -> Ticks {
        self.next.iter().copied().min().unwrap_or(Ticks::MAX)
    }

    /// Moves on to an offset; returns by how much the work grew.
    fn advance(&mut self, tasks: &[Task], offset: Ticks) -> Ticks {
        let mut more = 0;
        for ((task, next), count) in tasks.iter().zip(&mut self.next).zip(&mut self.count) {
            if *next == offset {
                *next += task.period();
                *count += 1;
                more += task.wcet();
            }
        }
        more
    }
}

/// The search for the bounds of a set.
struct Search<'a> {
    tasks: &'a [Task],
    preemption: Preemption,
    /// Length of the busy period.
    busy: Ticks,
    steps: Steps,
    /// Passes over the tasks that may still be made.
    left: u32,
}

impl Search<'_> {
    fn bound_of(&mut self, index: usize) -> Result<Ticks, Limit> {
        let tasks = self.tasks;
        let Some(under) = tasks.get(index) else {
            return Ok(0);
        };
        let rest = self.preemption.certain_rest(under);
        self.steps.start(tasks, under);
        let counted = tasks.iter().zip(&self.steps.count);
        let mut due: Ticks = counted.map(|(task, count)| task.wcet() * count).sum();
        let (mut offset, mut worst) = (0, 0);
        let (mut blocked_before, mut begun) = (Ticks::MAX, 0);
        while offset < self.busy {
            self.take_step()?;
            let blocked = blocking(tasks, under.deadline() + offset, self.preemption);
            // Even if everything that is due first were released in time.
            if blocked + due > worst + offset {
                let own = under.wcet() * self.steps.count.get(index).copied().unwrap_or(0);
                // Later releases begin later, as long as they are blocked alike.
                let earliest = if blocked == blocked_before { begun } else { 0 };
                begun = self.settle(index, blocked + own - rest, earliest)?;
                blocked_before = blocked;
                worst = worst.max(begun.saturating_sub(offset) + rest);
            }
            offset = self.steps.next_offset();
            due += self.steps.advance(tasks, offset);
        }
        Ok(worst)
    }

    /// The least time x, not before `earliest`, with `x = fixed + Σ min(jobs released before x,
    /// jobs that count)·C` over the other tasks.
    fn settle(&mut self, index: usize, fixed: Ticks, earliest: Ticks) -> Result<Ticks, Limit> {
        let mut time = fixed.max(earliest).max(1);
        loop {
            self.take_step()?;
            let of = |(other, (task, count)): (usize, (&Task, &u64))| match other == index {
                true => 0,
                false => time.div_ceil(task.period()).min(*count) * task.wcet(),
            };
            let work = fixed + self.tasks.iter().zip(&self.steps.count).enumerate().map(of).sum::<Ticks>();
            if work <= time {
                return Ok(work);
            }
            time = work;
        }
    }

    fn take_step(&mut self) -> Result<(), Limit> {
        self.left = self.left.checked_sub(1).ok_or(Limit::Steps)?;
        Ok(())
    }
}

/// The longest that work with a deadline after `deadline`, counted from the begin of the busy
/// interval, can hold up what is more urgent.
fn blocking(tasks: &[Task], deadline: Ticks, preemption: Preemption) -> Ticks {
    let later = tasks.iter().filter(|task| task.deadline() > deadline);
    later.map(|task| preemption.longest_piece(task) - 1).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tasks(numbers: &[(u64, u64, u64)]) -> Vec<Task> {
        numbers.iter().map(|&(c, d, t)| Task::new(c, d, t).unwrap()).collect()
    }

    /// The definition, offset by offset and tick by tick.
    fn oracle(tasks: &[Task], index: usize, preemption: Preemption) -> Ticks {
        let released = |task: &Task, within: Ticks| within.div_ceil(task.period()) * task.wcet();
        let total = |within: Ticks| tasks.iter().map(|task| released(task, within)).sum::<Ticks>();
        let busy = (1..).find(|&length| total(length) <= length).unwrap();
        let under = &tasks[index];
        let rest = preemption.certain_rest(under);
        let at = |offset: Ticks| {
            let blocking = blocking(tasks, under.deadline() + offset, preemption);
            let work = |time: Ticks| {
                let others = tasks.iter().enumerate().filter(|(other, _)| *other != index);
                let others = others.map(|(_, task)| {
                    let window = (offset + 1 + under.deadline()).saturating_sub(task.deadline());
                    released(task, time.min(window))
                });
                blocking + released(under, offset + 1) - rest + others.sum::<Ticks>()
            };
            let begun = (1..).find(|&time| work(time) <= time).unwrap();
            begun.saturating_sub(offset) + rest
        };
        (0..busy).map(at).max().unwrap()
    }

    #[test]
    fn overload_and_nothing_are_answered() {
        assert_eq!(bounds(&tasks(&[(3, 9, 4), (2, 9, 4)]), Preemption::Anywhere), Err(Unbounded::Overload));
        assert_eq!(bounds(&[], Preemption::Nowhere), Ok(vec![]));
    }

    #[test]
    fn a_long_job_blocks_for_a_tick_less_than_its_length() {
        let set = tasks(&[(2, 10, 20), (9, 40, 40)]);
        assert_eq!(bounds(&set, Preemption::Anywhere), Ok(vec![2, 11]));
        assert_eq!(bounds(&set, Preemption::Nowhere), Ok(vec![10, 11]));
        assert_eq!(bounds(&set, Preemption::Segments(4)), Ok(vec![5, 11]));
        assert_eq!(bounds(&set, Preemption::Pieces(0)), Ok(vec![2, 11]));
    }

    /// Coprime periods at a utilisation just below one: the busy period is very long.
    #[test]
    fn long_searches_end() {
        let periods = [100_003, 100_019, 100_043, 100_049, 100_057, 100_069, 100_103, 100_109];
        let nearly = periods.map(|period| Task::new(period / 8, period - 7, period).unwrap());
        for preemption in [Preemption::Anywhere, Preemption::Nowhere] {
            match bounds(&nearly, preemption) {
                Ok(bounds) => assert_eq!(bounds.len(), nearly.len()),
                Err(reason) => assert_eq!(reason, Unbounded::Limit(Limit::Steps)),
            }
        }
    }

    fn sets() -> impl Strategy<Value = Vec<Task>> {
        let one = (4u64..30, 1u64..8, 1u64..60).prop_map(|(t, c, d)| Task::new(c.min(t), d, t).unwrap());
        proptest::collection::vec(one, 1..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn agrees_with_the_definition(set in sets(), segment in 1u64..6) {
            prop_assume!(utilisation(&set) == Ordering::Less);
            prop_assume!(busy_period(&set).unwrap() < 2_000);
            let all = [
                Preemption::Anywhere,
                Preemption::Segments(segment),
                Preemption::Pieces(segment),
                Preemption::Nowhere,
            ];
            for preemption in all {
                let expected: Vec<Ticks> = (0..set.len()).map(|i| oracle(&set, i, preemption)).collect();
                prop_assert_eq!(bounds(&set, preemption), Ok(expected));
            }
        }

        /// Bounds within the deadlines and demand within the intervals are the same question.
        #[test]
        fn agrees_with_the_demand_test(set in sets()) {
            let by_response = verdict(&set, &bounds(&set, Preemption::Anywhere));
            prop_assert_eq!(by_response.is_schedulable(), crate::edf::test(&set).is_schedulable());
        }
    }
}
