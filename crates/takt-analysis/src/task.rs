//! Recurring work as the analyses of this folder see it.
//!
//! * **Model.** A sporadic task releases jobs at least [`Task::period`] apart. Each needs the GPU
//!   for at most [`Task::wcet`] and should end within [`Task::deadline`] of its release, which may
//!   be shorter or longer than the period. Jobs of one task run in order of release, tasks do not
//!   wait for one another.
//! * **Ticks.** Lengths are whole [`Ticks`], and nothing happens between two of them. How long a
//!   tick is, the caller decides; bounds of work that cannot be preempted depend on it, because a
//!   job that blocks must have begun at least one tick earlier. This is why these analyses do not
//!   count in [`Span`](takt_core::Span)s.
//! * **Overheads.** They go into the execution times ([`Overheads::inflate`]) before an analysis.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

use crate::ratio;
use takt_core::limits::TICKS_MAX;

/// A length of time in units that the caller chooses.
pub type Ticks = u64;

/// A sporadic task.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Task {
    wcet: Ticks,
    deadline: Ticks,
    period: Ticks,
}

/// Which number of a task is out of range.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum TaskError {
    /// The execution time.
    Wcet,
    /// The relative deadline.
    Deadline,
    /// The period.
    Period,
}

impl Task {
    /// A task; each number must be within `1..=`[`TICKS_MAX`], so that no sum can overflow.
    pub const fn new(wcet: Ticks, deadline: Ticks, period: Ticks) -> Result<Self, TaskError> {
        if !in_range(wcet) {
            Err(TaskError::Wcet)
        } else if !in_range(deadline) {
            Err(TaskError::Deadline)
        } else if !in_range(period) {
            Err(TaskError::Period)
        } else {
            Ok(Self { wcet, deadline, period })
        }
    }

    /// Longest execution time of a job (C).
    pub const fn wcet(&self) -> Ticks {
        self.wcet
    }

    /// Time from the release of a job to its deadline (D).
    pub const fn deadline(&self) -> Ticks {
        self.deadline
    }

    /// Shortest time between two releases (T).
    pub const fn period(&self) -> Ticks {
        self.period
    }
}

const fn in_range(ticks: Ticks) -> bool {
    1 <= ticks && ticks <= TICKS_MAX
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Wcet => "execution time",
            Self::Deadline => "deadline",
            Self::Period => "period",
        };
        write!(f, "the {what} must be between 1 and {TICKS_MAX}")
    }
}

impl core::error::Error for TaskError {}

/// How the demanded share of the GPU (Σ C/T) compares with the whole GPU; exact.
pub fn utilisation(tasks: &[Task]) -> Ordering {
    ratio::compare_sum_to_one(tasks.iter().map(|task| (task.wcet, task.period)))
}

/// What the machine adds to jobs.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Overheads {
    /// One context switch. Each job pays for two: the one to itself, and the one back to the job
    /// that it preempted. The second also covers a switch to less important work that had begun
    /// when the job arrived and must end first.
    pub switch: Ticks,
    /// Handing a job over from the CPU to the GPU.
    pub submission: Ticks,
}

impl Overheads {
    /// An addition to the execution time of a job.
    pub const fn per_job(&self) -> Ticks {
        self.switch.saturating_mul(2).saturating_add(self.submission)
    }

    /// The tasks with overheads included; fails if an execution time grows out of range.
    pub fn inflate(&self, tasks: &[Task]) -> Result<Vec<Task>, TaskError> {
        let inflate =
            |task: &Task| Task::new(task.wcet.saturating_add(self.per_job()), task.deadline, task.period);
        tasks.iter().map(inflate).collect()
    }

    /// The longest piece that cannot be preempted, overheads included: all that a job pays may
    /// fall into one of its segments.
    pub const fn inflate_segment(&self, segment: Ticks) -> Ticks {
        segment.saturating_add(self.per_job())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn numbers_out_of_range_are_named() {
        assert_eq!(Task::new(0, 1, 1), Err(TaskError::Wcet));
        assert_eq!(Task::new(1, 0, 1), Err(TaskError::Deadline));
        assert_eq!(Task::new(1, 1, TICKS_MAX + 1), Err(TaskError::Period));
        assert_eq!(TaskError::Wcet.to_string(), "the execution time must be between 1 and 281474976710656");
    }

    #[test]
    fn each_job_pays_for_two_switches() {
        let tasks = [Task::new(10, 50, 60).unwrap()];
        let overheads = Overheads { switch: 3, submission: 2 };
        assert_eq!(overheads.inflate(&tasks), Ok(vec![Task::new(18, 50, 60).unwrap()]));
        assert_eq!(overheads.inflate_segment(5), 13);
        let endless = Overheads { switch: u64::MAX, submission: u64::MAX };
        assert_eq!(endless.inflate(&tasks), Err(TaskError::Wcet));
    }
}
