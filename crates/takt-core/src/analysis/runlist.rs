//! The runlist of NVIDIA's host: how long does a job of the highest level take at most?
//!
//! * **Question.** A bound on the response time of jobs on channels of the highest interleaving
//!   level, if the GPU serves the entries of its runlist in turn, each for a timeslice at most.
//! * **Assumptions.** One channel per task. Between two entries of a channel of the highest level
//!   lie one entry of each other channel of that level and one entry of a lower level. A channel
//!   that drains gives the GPU away; work that arrives at that moment waits for its next entry. No
//!   task has two jobs at once, so bounds hold together, if each is within its period: then
//!   nothing can pile up and fill the timeslice of a channel whose jobs are shorter.
//! * **Source.** HERCULES D5.2, appendix, theorem 1 and formula 3.
//! * **Cost.** n steps.
//!
//! Formula 3 charges one switch per turn of the task's own channel. Where each change of channel
//! costs time, that is too little; [`Runlist::every_switch`] charges them all.

use alloc::vec::Vec;

use super::task::{Task, Ticks};

/// How the runlist is set up.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Runlist {
    /// Timeslice of the channels of the highest level (TS); 0 is taken for 1.
    pub slice: Ticks,
    /// Longest timeslice of a channel of a lower level; 0 if there is none.
    pub lower_slice: Ticks,
    /// Cost of the preemption at the end of a timeslice (ξ).
    pub switch: Ticks,
    /// Whether each change of channel costs `switch`, not only those away from the own channel.
    pub every_switch: bool,
}

/// A bound for each task, in their order. Bounds beyond the range of ticks saturate.
pub fn bounds(tasks: &[Task], runlist: &Runlist) -> Vec<Ticks> {
    let slice = runlist.slice.max(1);
    let switch = if runlist.every_switch { runlist.switch } else { 0 };
    let turn = |task: &Task| u128::from(task.wcet().min(slice)) + u128::from(switch);
    let lower = match runlist.lower_slice {
        0 => 0,
        lower => u128::from(lower) + u128::from(switch),
    };
    let round = lower + tasks.iter().map(turn).sum::<u128>();
    let bound = |task: &Task| {
        let wait = round - turn(task) + u128::from(runlist.switch);
        let turns = u128::from(task.wcet().div_ceil(slice));
        let bound = turns.saturating_mul(wait).saturating_add(u128::from(task.wcet()));
        Ticks::try_from(bound).unwrap_or(Ticks::MAX)
    };
    tasks.iter().map(bound).collect()
}

/// Whether all bounds are within deadlines and periods, without which they would not hold.
pub fn is_schedulable(tasks: &[Task], bounds: &[Ticks]) -> bool {
    tasks.iter().zip(bounds).all(|(task, bound)| *bound <= task.deadline().min(task.period()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn task(wcet: Ticks, period: Ticks) -> Task {
        Task::new(wcet, period, period).unwrap()
    }

    #[test]
    fn theorem_1_by_hand() {
        let tasks = [task(4_000, 33_000), task(3_000, 40_000), task(500, 16_000)];
        let runlist = Runlist { slice: 1_000, lower_slice: 2_000, switch: 100, every_switch: false };
        // Waits: 1000 + 500 + 2000, the same, 1000 + 1000 + 2000; plus ξ, times turns, plus C.
        assert_eq!(bounds(&tasks, &runlist), vec![18_400, 13_800, 4_600]);
        let every = Runlist { every_switch: true, ..runlist };
        assert_eq!(bounds(&tasks, &every), vec![19_600, 14_700, 4_900]);
        assert!(is_schedulable(&tasks, &bounds(&tasks, &every)));
        assert!(!is_schedulable(&tasks[..1], &[33_001]));
    }

    #[test]
    fn a_slice_as_long_as_the_jobs_means_one_turn() {
        let tasks = [task(4, 100), task(6, 100)];
        let runlist = Runlist { slice: 10, lower_slice: 0, switch: 0, every_switch: true };
        assert_eq!(bounds(&tasks, &runlist), vec![10, 10]);
    }

    #[test]
    fn extremes_saturate() {
        let largest = crate::limits::TICKS_MAX;
        let runlist = Runlist { slice: 0, lower_slice: u64::MAX, switch: u64::MAX, every_switch: true };
        assert_eq!(bounds(&[task(largest, largest)], &runlist), vec![Ticks::MAX]);
        assert_eq!(bounds(&[], &runlist), vec![]);
    }
}
