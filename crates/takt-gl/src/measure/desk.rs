//! What the program's threads share with the one that waits for fences.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Submitted;
use super::fence::Fence;
use super::processor::Reading;
use crate::session::session;
use takt_client::ends::{Account, Seen, Timing};
use takt_client::queue::Queue;
use takt_core::{Span, Time};

/// A group, and the fence behind it.
#[derive(Debug)]
pub(super) struct Fenced {
    pub(super) fence: Fence,
    pub(super) submitted: Box<Submitted>,
    /// When the fence was inserted.
    pub(super) inserted_ns: u64,
}

/// What is left to the thread.
#[derive(Debug)]
pub(super) enum Message {
    /// To see a group end.
    Group(Fenced),
    /// A group without work for the GPU, which is over when those before it are.
    Idle(Box<Submitted>),
    /// To write down and learn what a group cost whose end was seen.
    Seen {
        fence: Option<Fence>,
        submitted: Box<Submitted>,
        timing: Timing,
        /// What threads of a renderer on the CPU had done by then.
        renderer: Option<Reading>,
    },
    /// The same where it was shown by then, and is to be found out when it was complete.
    Shown { fence: Option<Fence>, submitted: Box<Submitted>, by_ns: u64, renderer: Option<Reading> },
    /// Answer when everything before this is done; a display may be about to be terminated.
    Drain(SyncSender<()>, Option<usize>),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) queue: Queue<Message>,
    pub(super) account: Account,
    /// Groups whose end is left to the thread.
    unseen: AtomicUsize,
    witnessed: Mutex<Witnessed>,
}

/// The group that a thread of the program is about to see the end of.
#[derive(Default, Debug)]
struct Witnessed {
    group: Option<Fenced>,
    /// The number of the last one.
    last: u64,
}

impl Desk {
    /// With room for so many messages.
    pub(super) fn new(messages: usize) -> Self {
        Self {
            queue: Queue::new(messages),
            account: Account::default(),
            unseen: AtomicUsize::new(0),
            witnessed: Mutex::default(),
        }
    }

    /// Leaves the end of a group to the thread; gives the message back if too many wait.
    pub(super) fn leave(&self, message: Message) -> Result<(), Message> {
        self.unseen.fetch_add(1, Ordering::Relaxed);
        self.queue.push(message).inspect_err(|_| self.saw_one())
    }

    /// The thread has seen a group end that was left to it, and told.
    pub(super) fn saw_one(&self) {
        self.unseen.fetch_sub(1, Ordering::Release);
    }

    /// Whether everything that was left to the thread is over, and was told.
    pub(super) fn has_seen_all(&self) -> bool {
        self.unseen.load(Ordering::Acquire) == 0
    }

    /// Keeps a group whose end the program will see; its number. Gives it back if another thread waits
    /// for one already or, with `in_order`, if the end of one before it is left to our thread.
    pub(super) fn keep(&self, group: Fenced, in_order: bool) -> Result<u64, Fenced> {
        let mut witnessed = self.witnessed();
        if witnessed.group.is_some() || in_order && !self.has_seen_all() {
            return Err(group);
        }
        witnessed.group = Some(group);
        witnessed.last += 1;
        Ok(witnessed.last)
    }

    /// The group of that number, unless it was left to the thread meanwhile.
    pub(super) fn take(&self, number: u64) -> Option<Fenced> {
        let mut witnessed = self.witnessed();
        if witnessed.last == number { witnessed.group.take() } else { None }
    }

    /// Leaves a kept group to the thread, if it was submitted before that: ends come in order.
    pub(super) fn take_older(&self, than_ns: u64) -> Option<Fenced> {
        let mut witnessed = self.witnessed();
        let older = witnessed.group.take_if(|group| group.inserted_ns < than_ns)?;
        // Before another one can be kept.
        self.unseen.fetch_add(1, Ordering::Relaxed);
        Some(older)
    }

    fn witnessed(&self) -> MutexGuard<'_, Witnessed> {
        self.witnessed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a group ran that was seen to be complete, which the daemon is told.
    pub(super) fn completed(&self, submitted: &Submitted, seen: Seen) -> Timing {
        tell(submitted, self.account.completed(&submitted.submission, seen))
    }
}

/// Tells the daemon when a group was over.
pub(super) fn tell(submitted: &Submitted, timing: Timing) -> Timing {
    if let Some(grant) = submitted.grant {
        session().complete(grant, Time::from_ns(timing.completed_ns), Span::from_ns(timing.cost_ns));
    }
    timing
}
