//! The life of a group that is measured.
//!
//! ```text
//! Fenced ──its fence was passed──────▶ Complete ──▶ settled: written down, learnt from
//!   │  ▲                                ▲   ▲       (waits for the GPU's time stamps where they count)
//!   │  └─ Kept: the program waits ──────┤   │
//!   └─ lost ▶ given back                │   │
//! Idle ──everything before is over──────┘   │
//! Shown ──the renderer's work was read──────┘
//! ```
//!
//! Program threads put groups in ([`Machine`]); one thread of ours takes them through (`thread`). Ends are
//! told to the daemon as soon as they are seen, by the thread that sees them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use takt_client::ends::{Account, Seen, Timing};
use takt_client::queue::Queue;
use takt_core::{Span, Time};

use super::Submitted;
use super::fence::Fence;
use super::processor::Reading;
use crate::guard;
use crate::session::session;

/// Groups that wait to be measured; beyond this, groups go unmeasured.
const WAITING_MAX: usize = 4096;

/// How long program threads wait for the measuring one at most.
const DRAIN: Duration = Duration::from_secs(1);

/// A group that is measured.
#[derive(Debug)]
pub(super) struct Tracked {
    pub(super) submitted: Box<Submitted>,
    pub(super) fence: Option<Fence>,
    pub(super) stage: Stage,
    /// What threads of a renderer on the CPU had done when the end was seen.
    pub(super) renderer: Option<Reading>,
}

/// How far it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// A fence is behind it, inserted then.
    Fenced { inserted_ns: u64 },
    /// It gives the GPU nothing to do, and is over when those before it are.
    Idle,
    /// It was shown by then; when it was complete is to be found out.
    Shown { by_ns: u64 },
    /// It is complete, and the daemon knows.
    Complete(Timing),
}

/// What the measuring thread is told.
#[derive(Debug)]
pub(super) enum Order {
    /// Take this group through.
    Track(Tracked),
    /// Answer when everything before this is settled; a display may be about to be terminated.
    Drain(SyncSender<()>, Option<usize>),
}

/// What program threads share with the measuring one. Methods that take a fence are to be called where
/// the context is current in which it was made.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) orders: Queue<Order>,
    pub(super) account: Account,
    /// Groups whose end is left to the measuring thread.
    unseen: AtomicUsize,
    kept: Mutex<Kept>,
    overflowed: AtomicBool,
}

/// The group that a program thread is about to see the end of.
#[derive(Default, Debug)]
struct Kept {
    group: Option<Tracked>,
    /// The number of the last one.
    last: u64,
}

impl Tracked {
    /// A group that was handed over.
    pub(super) fn new(submitted: Submitted, fence: Option<Fence>, stage: Stage) -> Self {
        Self { submitted: Box::new(submitted), fence, stage, renderer: None }
    }

    /// When it was handed over.
    pub(super) fn at_ns(&self) -> u64 {
        match self.stage {
            Stage::Fenced { inserted_ns } => inserted_ns,
            _ => self.submitted.submission.at_ns,
        }
    }
}

impl Machine {
    pub(super) fn new() -> Self {
        Self {
            orders: Queue::new(WAITING_MAX),
            account: Account::default(),
            unseen: AtomicUsize::new(0),
            kept: Mutex::default(),
            overflowed: AtomicBool::new(false),
        }
    }

    /// Leaves the end of a group to the measuring thread.
    pub(super) fn track(&self, mut group: Tracked) {
        // If a daemon waits for the end of an idle group, and it is there, it is told at once.
        if group.stage == Stage::Idle && group.submitted.grant.is_some() && self.has_seen_all() {
            let at_ns = group.submitted.submission.at_ns;
            let timing = tell(&group.submitted, Timing::idle(&group.submitted.submission, at_ns));
            group.stage = Stage::Complete(timing);
            return self.settle(group);
        }
        self.unseen.fetch_add(1, Ordering::Relaxed);
        let pushed = self.orders.push(Order::Track(group));
        self.took(pushed.inspect_err(|_| self.saw_one()));
    }

    /// Has a group written down and learnt from whose end the daemon knows, or does not wait for.
    pub(super) fn settle(&self, mut group: Tracked) {
        // Its end is not to be told once more.
        group.submitted.grant = None;
        let news = group.submitted.follow.is_news() && matches!(group.stage, Stage::Complete(_));
        let order = Order::Track(group);
        self.took(if news { self.orders.push(order) } else { self.orders.push_patiently(order) });
    }

    /// The measuring thread has seen a group end that was left to it, and told.
    pub(super) fn saw_one(&self) {
        self.unseen.fetch_sub(1, Ordering::Release);
    }

    /// Whether everything that was left to the measuring thread is over, and was told.
    fn has_seen_all(&self) -> bool {
        self.unseen.load(Ordering::Acquire) == 0
    }

    /// Keeps a group whose end the program will see: its number. None if its end is left to the
    /// measuring thread, because another one is kept or, with `in_order`, one before it is not over.
    pub(super) fn keep(&self, group: Tracked, in_order: bool) -> Option<u64> {
        let mut kept = self.kept();
        if kept.group.is_some() || in_order && !self.has_seen_all() {
            drop(kept);
            self.track(group);
            return None;
        }
        kept.group = Some(group);
        kept.last += 1;
        Some(kept.last)
    }

    /// The kept group of that number, unless its end was left to the measuring thread meanwhile.
    pub(super) fn take(&self, number: u64) -> Option<Tracked> {
        let mut kept = self.kept();
        if kept.last == number { kept.group.take() } else { None }
    }

    /// Leaves a kept group to the measuring thread, if it was handed over before that: ends come in
    /// order.
    pub(super) fn take_older(&self, than_ns: u64) -> Option<Tracked> {
        let mut kept = self.kept();
        let older = kept.group.take_if(|group| group.at_ns() < than_ns)?;
        // Before another one can be kept.
        self.unseen.fetch_add(1, Ordering::Relaxed);
        Some(older)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a group ran that was seen to be complete; tells the daemon.
    pub(super) fn completed(&self, submitted: &Submitted, seen: Seen) -> Timing {
        tell(submitted, self.account.completed(&submitted.submission, seen))
    }

    fn took(&self, pushed: Result<(), Order>) {
        let Err(Order::Track(group)) = pushed else {
            return;
        };
        group.fence.into_iter().for_each(Fence::remove_here);
        give_back(&group.submitted);
        if !self.overflowed.swap(true, Ordering::Relaxed) {
            guard::say(&format!("more than {WAITING_MAX} groups wait for the GPU; some go unmeasured"));
        }
    }

    /// Waits until everything before this is measured; not for long. A display may be about to be
    /// terminated.
    pub(super) fn drain(&self, ending: Option<usize>) {
        let (done, wait) = sync_channel(1);
        if self.orders.push(Order::Drain(done, ending)).is_ok() {
            // Too late or too bad are no reason to keep the program waiting.
            let _unfinished = wait.recv_timeout(DRAIN);
        }
    }
}

/// Tells the daemon when a group was over.
pub(super) fn tell(submitted: &Submitted, timing: Timing) -> Timing {
    if let Some(grant) = submitted.grant {
        session().complete(grant, Time::from_ns(timing.completed_ns), Span::from_ns(timing.cost_ns));
    }
    timing
}

/// A group whose end will not be seen counts as over.
pub(super) fn give_back(submitted: &Submitted) {
    if let Some(grant) = submitted.grant {
        session().complete(grant, takt_os::clock::now(), Span::ZERO);
    }
    submitted.follow.lost();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::group::{Builder, End};
    use crate::slice::Follow;
    use takt_client::ends::Submission;
    use takt_predict::adapt::Disturbance;

    fn group(at_ns: u64, stage: Stage) -> Tracked {
        let mut builder = Builder::default();
        builder.draw(None, 3);
        let submitted = Submitted {
            group: builder.end(0, End::Flush).unwrap(),
            submission: Submission { at_ns, ..Submission::default() },
            software: false,
            predicted: None,
            grant: None,
            follow: Follow::default(),
            stamped: None,
            disturbance: Disturbance::None,
        };
        Tracked::new(submitted, None, stage)
    }

    fn fenced(inserted_ns: u64) -> Tracked {
        group(inserted_ns, Stage::Fenced { inserted_ns })
    }

    #[test]
    fn one_group_is_kept_at_a_time_and_by_its_number() {
        let machine = Machine::new();
        let first = machine.keep(fenced(10), true).expect("nothing is before it");
        assert_eq!(machine.keep(fenced(20), true), None, "another one is kept");
        assert!(!machine.has_seen_all(), "so it was left to the measuring thread");
        assert!(machine.take(first + 1).is_none());
        assert_eq!(machine.take(first).map(|group| group.at_ns()), Some(10));
        assert_eq!(machine.keep(fenced(30), true), None, "one before it is not over");
        assert!(machine.keep(fenced(30), false).is_some());
    }

    #[test]
    fn a_kept_group_is_left_to_the_thread_when_a_later_one_comes() {
        let machine = Machine::new();
        let number = machine.keep(fenced(10), true).expect("kept");
        assert!(machine.take_older(10).is_none(), "it is not older");
        assert_eq!(machine.take_older(11).map(|group| group.at_ns()), Some(10));
        assert!(machine.take(number).is_none(), "the program comes too late");
        assert!(!machine.has_seen_all());
        machine.saw_one();
        assert!(machine.has_seen_all());
    }

    #[test]
    fn groups_beyond_the_bound_are_given_back() {
        let machine = Machine::new();
        machine.overflowed.store(true, Ordering::Relaxed);
        for at_ns in 0..=WAITING_MAX as u64 {
            machine.track(group(at_ns, Stage::Idle));
        }
        assert_eq!(machine.unseen.load(Ordering::Relaxed), WAITING_MAX);
        let first = machine.orders.take();
        assert!(matches!(first, Some(Order::Track(group)) if group.at_ns() == 0), "they come in order");
    }
}
