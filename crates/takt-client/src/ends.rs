//! When groups ran, by what was seen of their ends.
//!
//! A GPU that was idle at a submission starts then, and a busy one when the group before was complete.
//! Groups that are seen complete at one look share its time; so groups can take no time at all.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::gather::Gathered;

/// What the time of a group depends on.
#[derive(Clone, Default, Debug)]
pub struct Submission {
    /// When it was handed over; for a swap, when the call began.
    pub at_ns: u64,
    /// How long the renderer worked for it inside of the program's calls.
    pub in_calls_ns: u64,
    /// Set where several frames are in it.
    pub gathered: Option<Gathered>,
}

/// When a group ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// When it was submitted.
    pub submitted_ns: u64,
    /// When it was seen to be complete.
    pub completed_ns: u64,
    /// What it cost.
    pub cost_ns: u64,
    /// Whether it was seen to be complete together with the group before it.
    pub together: bool,
    /// How much of that was in calls of the program.
    pub in_calls_ns: u64,
}

/// What looks for the end of a group found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// It was complete.
    pub at_ns: u64,
    /// It was not complete yet.
    pub not_before_ns: u64,
}

impl Seen {
    /// A thread waited for it.
    pub fn at(at_ns: u64) -> Self {
        Self { at_ns, not_before_ns: at_ns }
    }
}

/// Follows what the GPU does, group by group. Any thread may, and none waits for another.
#[derive(Default, Debug)]
pub struct Account {
    last_completed_ns: AtomicU64,
}

impl Account {
    /// A group was seen complete, and was not at a look before. Groups come in the order of their
    /// submission.
    pub fn completed(&self, submitted: &Submission, seen: Seen) -> Timing {
        let Submission { at_ns: submitted_ns, in_calls_ns, ref gathered } = *submitted;
        let at_ns = seen.at_ns;
        let last_ns = self.last_completed_ns.fetch_max(at_ns, Ordering::Relaxed);
        let start_ns = submitted_ns.max(last_ns);
        let together = at_ns <= start_ns;
        let mut cost_ns = at_ns.saturating_sub(start_ns) + in_calls_ns;
        if let Some(gathered) = gathered {
            let least_ns = seen.not_before_ns.saturating_sub(start_ns) + in_calls_ns;
            let since_ns = gathered.since_ns.max(last_ns);
            cost_ns = gathered.cost_ns(least_ns, at_ns.saturating_sub(since_ns) + in_calls_ns);
        }
        Timing { submitted_ns, completed_ns: at_ns, cost_ns, together, in_calls_ns }
    }

    /// A group was complete by then, for which a renderer on the CPU has worked so long: it is taken
    /// to have begun as soon as it could, and to have worked without a break.
    pub fn worked(&self, submitted: &Submission, worked_ns: u64, by_ns: u64) -> Timing {
        let start_ns = submitted.at_ns.max(self.last_completed_ns.load(Ordering::Relaxed));
        self.completed(submitted, Seen::at(start_ns.saturating_add(worked_ns).min(by_ns)))
    }
}

impl Timing {
    /// A group without work for the GPU was over by then. That says nothing about other groups.
    pub fn idle(submitted: &Submission, completed_ns: u64) -> Self {
        Self { submitted_ns: submitted.at_ns, completed_ns, cost_ns: 0, together: true, in_calls_ns: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submitted(at_ns: u64, in_calls_ns: u64) -> Submission {
        Submission { at_ns, in_calls_ns, gathered: None }
    }

    #[test]
    fn an_idle_gpu_starts_at_submission_and_a_busy_one_at_the_last_completion() {
        let account = Account::default();
        assert_eq!(account.completed(&submitted(100, 0), Seen::at(150)).cost_ns, 50);
        assert_eq!(account.completed(&submitted(120, 0), Seen::at(190)).cost_ns, 40);
        assert_eq!(account.completed(&submitted(300, 0), Seen::at(310)).cost_ns, 10);
    }

    #[test]
    fn groups_seen_at_one_look_take_no_time() {
        let account = Account::default();
        account.completed(&submitted(100, 0), Seen::at(150));
        let second = account.completed(&submitted(110, 0), Seen::at(150));
        assert_eq!((second.cost_ns, second.together), (0, true));
    }

    #[test]
    fn a_late_look_goes_by_the_work() {
        let account = Account::default();
        let timing = account.worked(&submitted(100, 30), 50, 500);
        assert_eq!((timing.completed_ns, timing.cost_ns, timing.together), (150, 80, false));
        let timing = account.worked(&submitted(120, 0), 40, 500);
        assert_eq!((timing.completed_ns, timing.cost_ns), (190, 40), "it waited for the one before");
        let timing = account.worked(&submitted(300, 0), 900, 500);
        assert_eq!((timing.completed_ns, timing.cost_ns), (500, 200), "no longer than until it was seen");
    }

    #[test]
    fn idle_groups_take_no_time_from_others() {
        let account = Account::default();
        let idle = Timing::idle(&submitted(140, 0), 140);
        assert_eq!((idle.completed_ns, idle.cost_ns), (140, 0));
        assert_eq!(account.completed(&submitted(100, 0), Seen::at(150)).cost_ns, 50);
    }

    #[test]
    fn software_counts_the_time_in_calls() {
        let account = Account::default();
        assert_eq!(account.completed(&submitted(100, 30), Seen::at(150)).cost_ns, 80);
        assert_eq!(
            account.completed(&submitted(160, 30), Seen::at(155)).cost_ns,
            30,
            "a clock that steps back"
        );
    }
}
