//! The analyses of recurring tasks behind one door.
//!
//! * **Question.** The same for every method: does each task meet its deadlines on this machine,
//!   and how long do its jobs take at most?
//! * **Overheads.** What the machine adds to jobs goes in here, once, where each analysis wants
//!   it: into execution times, into segments, or between the turns of a runlist.
//! * **Source and cost.** Those of the analysis behind each variant.

use alloc::vec::Vec;

use crate::edf::{self, Excess, Verdict};
use crate::edf_response::{self, Preemption};
use crate::runlist::{self, Runlist};
use crate::task::{Overheads, Task, TaskError, Ticks};

/// How the GPU is scheduled.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Method {
    /// Earliest deadline first, preemption anywhere.
    Edf,
    /// Earliest deadline first without preemption.
    NpEdf,
    /// Earliest deadline first, preemption between pieces of this length.
    LpEdf {
        /// Longest piece that cannot be preempted.
        segment: Ticks,
    },
    /// Channels in turn, all tasks at the highest level.
    Runlist {
        /// Timeslice of the tasks' channels.
        slice: Ticks,
        /// Timeslice of a less important channel; 0 if there is none.
        lower_slice: Ticks,
        /// Whether each change of channel costs a switch, or only the end of an own turn.
        every_switch: bool,
        /// Whether to count the work that other tasks can have, or to take them for always busy.
        by_arrivals: bool,
    },
}

/// What a method can say about a set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Whether every deadline is promised.
    pub verdict: Verdict,
    /// A bound on the response time of each task, in their order, if there are any.
    pub bounds: Option<Vec<Ticks>>,
}

impl Method {
    /// Verdict and bounds; fails if an execution time with overheads is out of range.
    pub fn answer(&self, tasks: &[Task], overheads: Overheads) -> Result<Answer, TaskError> {
        let preemption = match *self {
            Self::Edf => Preemption::Anywhere,
            Self::NpEdf => Preemption::Nowhere,
            // With overheads in it, a job is no longer cut into segments of equal length.
            Self::LpEdf { segment } => match overheads.per_job() {
                0 => Preemption::Segments(segment),
                _ => Preemption::Pieces(overheads.inflate_segment(segment)),
            },
            Self::Runlist { slice, lower_slice, every_switch, by_arrivals } => {
                let list = Runlist { slice, lower_slice, switch: overheads.switch, every_switch };
                let submitted = Overheads { switch: 0, ..overheads };
                let bounds = if by_arrivals { runlist::bounds_by_arrivals } else { runlist::bounds };
                let tasks = submitted.inflate(tasks)?;
                return Ok(on_runlist(&tasks, bounds(&tasks, &list)));
            }
        };
        let tasks = overheads.inflate(tasks)?;
        let bounds = edf_response::bounds(&tasks, preemption);
        // The demand test is exact and decides where bounds are out of reach.
        let verdict = match preemption {
            Preemption::Anywhere => edf::test(&tasks),
            _ => edf_response::verdict(&tasks, &bounds),
        };
        Ok(Answer { verdict, bounds: bounds.ok() })
    }

    /// The verdict alone, which costs less where no bounds are needed for it.
    pub fn verdict(&self, tasks: &[Task], overheads: Overheads) -> Result<Verdict, TaskError> {
        match self {
            Self::Edf => Ok(edf::test(&overheads.inflate(tasks)?)),
            _ => Ok(self.answer(tasks, overheads)?.verdict),
        }
    }
}

fn on_runlist(tasks: &[Task], bounds: Vec<Ticks>) -> Answer {
    let verdict = match runlist::is_schedulable(tasks, &bounds) {
        true => Verdict::Schedulable,
        false => Verdict::Unschedulable(Excess::Bound),
    };
    Answer { verdict, bounds: Some(bounds) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn set() -> Vec<Task> {
        vec![Task::new(2, 10, 20).unwrap(), Task::new(9, 40, 40).unwrap()]
    }

    #[test]
    fn overheads_go_where_each_analysis_wants_them() {
        let bounds = |method: Method, switch, submission| {
            method.answer(&set(), Overheads { switch, submission }).unwrap().bounds
        };
        assert_eq!(bounds(Method::Edf, 1, 2), Some(vec![6, 19]));
        assert_eq!(bounds(Method::NpEdf, 0, 0), Some(vec![10, 11]));
        assert_eq!(bounds(Method::LpEdf { segment: 4 }, 0, 0), Some(vec![5, 11]));
        assert_eq!(bounds(Method::LpEdf { segment: 4 }, 1, 0), Some(vec![9, 15]));
        let runlist =
            |every_switch| Method::Runlist { slice: 4, lower_slice: 4, every_switch, by_arrivals: false };
        assert_eq!(bounds(runlist(false), 0, 0), Some(vec![10, 27]));
        // One switch per own turn; or one for each of the three channels of a round.
        assert_eq!(bounds(runlist(false), 1, 0), Some(vec![11, 30]));
        assert_eq!(bounds(runlist(true), 1, 0), Some(vec![13, 36]));
    }

    #[test]
    fn the_verdict_is_that_of_the_answer() {
        let tight = vec![Task::new(9, 10, 20).unwrap(), Task::new(20, 40, 40).unwrap()];
        let methods = [
            Method::Edf,
            Method::NpEdf,
            Method::LpEdf { segment: 3 },
            Method::Runlist { slice: 4, lower_slice: 1, every_switch: false, by_arrivals: true },
        ];
        for method in methods {
            for tasks in [set(), tight.clone()] {
                let none = Overheads::default();
                let answer = method.answer(&tasks, none).unwrap();
                assert_eq!(method.verdict(&tasks, none).unwrap(), answer.verdict, "{method:?}");
            }
        }
        assert_eq!(
            methods[3].verdict(&tight, Overheads::default()),
            Ok(Verdict::Unschedulable(Excess::Bound))
        );
    }
}
