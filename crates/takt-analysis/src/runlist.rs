//! The runlist of NVIDIA's host: how long does a job of the highest level take at most?
//!
//! * **Question.** A bound on the response time of jobs on channels of the highest interleaving
//!   level, if the GPU serves the entries of its runlist in turn, each for a timeslice at most.
//! * **Assumptions.** One channel per task. Between two entries of a channel of the highest level
//!   lie one entry of each other channel of that level and one entry of a lower level. A channel
//!   that drains gives the GPU away; work that arrives at that moment waits for its next entry. No
//!   task has two jobs at once, so bounds hold together, if each is within its period: then
//!   nothing can pile up and fill the timeslice of a channel whose jobs are shorter.
//! * **Source.** HERCULES D5.2, appendix, theorem 1 and formula 3. That other tasks do not always
//!   have work ([`bounds_by_arrivals`]) is the usual argument about jobs in a window.
//! * **Cost.** n steps; n times the jobs of the others in a window where arrivals count.
//!
//! Formula 3 charges one switch per turn of the task's own channel. Where each change of channel
//! costs time, that is too little; [`Runlist::every_switch`] charges them all.

use alloc::vec::Vec;

use crate::task::{Task, Ticks};
use takt_core::limits::ANALYSIS_STEPS_MAX;

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

impl Runlist {
    fn slice(&self) -> Ticks {
        self.slice.max(1)
    }

    /// What a change of channel costs that formula 3 leaves out.
    fn change(&self) -> u128 {
        if self.every_switch { self.switch.into() } else { 0 }
    }

    /// The longest turn of another channel of the highest level.
    fn turn(&self, task: &Task) -> u128 {
        u128::from(task.wcet().min(self.slice())) + self.change()
    }

    /// What passes between two turns besides those of other channels of the highest level.
    fn between(&self) -> u128 {
        let lower = match self.lower_slice {
            0 => 0,
            lower => u128::from(lower) + self.change(),
        };
        lower + u128::from(self.switch)
    }

    fn turns(&self, task: &Task) -> u128 {
        task.wcet().div_ceil(self.slice()).into()
    }
}

/// A bound for each task, in their order. Bounds beyond the range of ticks saturate.
pub fn bounds(tasks: &[Task], runlist: &Runlist) -> Vec<Ticks> {
    let round = runlist.between() + tasks.iter().map(|task| runlist.turn(task)).sum::<u128>();
    let bound = |task: &Task| {
        let wait = round - runlist.turn(task);
        let bound = runlist.turns(task).saturating_mul(wait).saturating_add(task.wcet().into());
        Ticks::try_from(bound).unwrap_or(Ticks::MAX)
    };
    tasks.iter().map(bound).collect()
}

/// Tighter bounds: between two turns of a channel each other one has at most one turn, but over
/// all of them it has no more work than its jobs bring that can fall into the window. There are
/// ⌈(R + D) / T⌉ of them if none is late, so these bounds, too, hold only together.
pub fn bounds_by_arrivals(tasks: &[Task], runlist: &Runlist) -> Vec<Ticks> {
    let always_busy = bounds(tasks, runlist);
    let bound = |(index, (task, most)): (usize, (&Task, &Ticks))| {
        let turns = runlist.turns(task);
        let own = turns.saturating_mul(runlist.between()).saturating_add(task.wcet().into());
        let others = || tasks.iter().enumerate().filter(|(other, _)| *other != index);
        let within = |window: Ticks| {
            let work = others().map(|(_, other)| {
                let limit = u128::from(other.deadline().min(other.period()));
                let jobs = (u128::from(window) + limit).div_ceil(other.period().into());
                let job = u128::from(other.wcet()) + runlist.turns(other) * runlist.change();
                jobs.saturating_mul(job).min(turns.saturating_mul(runlist.turn(other)))
            });
            let bound = work.fold(own, u128::saturating_add);
            Ticks::try_from(bound).unwrap_or(Ticks::MAX)
        };
        let mut window = task.wcet();
        for _ in 0..ANALYSIS_STEPS_MAX {
            let longer = within(window);
            if longer <= window {
                return window;
            }
            window = longer;
        }
        *most
    };
    tasks.iter().zip(&always_busy).enumerate().map(bound).collect()
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
    fn arrivals_count_where_they_are_rare() {
        let tasks = [task(4_000, 33_000), task(3_000, 40_000), task(500, 16_000)];
        let runlist = Runlist { slice: 1_000, lower_slice: 2_000, switch: 100, every_switch: false };
        // Four turns: 4 · 2100 + 4000, and the other two with 4 turns or 2 jobs and 3 jobs of work.
        assert_eq!(bounds_by_arrivals(&tasks, &runlist), vec![17_900, 13_300, 4_600]);
        // Others that never rest take every turn.
        let busy = [task(4_000, 33_000), task(1_000, 1_000), task(500, 500)];
        assert_eq!(bounds_by_arrivals(&busy, &runlist)[0], bounds(&busy, &runlist)[0]);
    }

    #[test]
    fn a_slice_as_long_as_the_jobs_means_one_turn() {
        let tasks = [task(4, 100), task(6, 100)];
        let runlist = Runlist { slice: 10, lower_slice: 0, switch: 0, every_switch: true };
        assert_eq!(bounds(&tasks, &runlist), vec![10, 10]);
    }

    #[test]
    fn extremes_saturate() {
        let largest = takt_core::limits::TICKS_MAX;
        let runlist = Runlist { slice: 0, lower_slice: u64::MAX, switch: u64::MAX, every_switch: true };
        assert_eq!(bounds(&[task(largest, largest)], &runlist), vec![Ticks::MAX]);
        assert_eq!(bounds_by_arrivals(&[task(largest, largest); 2], &runlist), vec![Ticks::MAX; 2]);
        assert_eq!(bounds(&[], &runlist), vec![]);
    }
}
