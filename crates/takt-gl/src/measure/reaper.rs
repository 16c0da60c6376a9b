//! The way to the thread that waits for fences.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use super::desk::{Desk, Fenced, Message, tell};
use super::fence::Fence;
use super::processor::Reading;
use super::reaping::Reaping;
use super::{REAPER, Submitted};
use crate::settings::settings;
use crate::{guard, slice};
use takt_client::ends::{Seen, Timing};

/// Groups that wait to be measured; beyond this, groups go unmeasured.
const WAITING_MAX: usize = 4096;

/// How long others wait for this thread at most.
const DRAIN: Duration = Duration::from_secs(1);

/// See the module. What takes a fence is to be called where the context is current in which it was
/// made.
#[derive(Debug)]
pub(crate) struct Reaper {
    desk: Arc<Desk>,
    overflowed: AtomicBool,
}

impl Reaper {
    /// Starts the thread; none if that is impossible.
    pub(crate) fn start() -> Option<Self> {
        let desk = Arc::new(Desk::new(WAITING_MAX));
        let shared = desk.clone();
        let started = without_signals(|| {
            let body = move || {
                guard::shielded(|| Reaping::new(&shared).run());
            };
            thread::Builder::new().name("takt-reaper".to_owned()).spawn(body)
        });
        if let Err(error) = started {
            guard::say(&format!("cannot start a thread, so nothing is measured: {error}"));
            return None;
        }
        // SAFETY: the function takes no arguments and stays loaded, as this library does.
        unsafe { libc::atexit(at_exit) };
        Some(Self { desk, overflowed: AtomicBool::new(false) })
    }

    /// Has a group measured.
    pub(super) fn hand_over(&self, group: Fenced) {
        self.kept(self.desk.leave(Message::Group(group)));
    }

    /// Has a group measured that gives the GPU nothing to do, and is over when those before it are.
    pub(super) fn hand_over_idle(&self, submitted: Box<Submitted>) {
        // Where somebody waits for its end, and it is there, it is told at once.
        if submitted.grant.is_some() && self.desk.has_seen_all() {
            let timing = tell(&submitted, Timing::idle(&submitted.submission, submitted.submission.at_ns));
            return self.pass_on(None, submitted, timing, None);
        }
        self.kept(self.desk.leave(Message::Idle(submitted)));
    }

    /// Keeps a group whose end the program will see: its number. None if its end is left to the thread,
    /// because another one is kept or, with `in_order`, one before it is not over.
    pub(super) fn keep(&self, group: Fenced, in_order: bool) -> Option<u64> {
        let kept = self.desk.keep(group, in_order);
        kept.map_err(|group| self.hand_over(group)).ok()
    }

    /// The group of that number, unless its end was left to the thread meanwhile.
    pub(super) fn take(&self, number: u64) -> Option<Fenced> {
        self.desk.take(number)
    }

    /// A group was seen to be complete: tells the daemon, and has it written down and learnt from.
    pub(super) fn hand_over_seen(&self, group: Fenced, at_ns: u64, renderer: Option<Reading>) {
        let Fenced { fence, submitted, .. } = group;
        let timing = self.desk.completed(&submitted, Seen::at(at_ns));
        self.pass_on(Some(fence), submitted, timing, renderer);
    }

    /// The same after the daemon was told.
    fn pass_on(
        &self,
        fence: Option<Fence>,
        mut submitted: Box<Submitted>,
        timing: Timing,
        renderer: Option<Reading>,
    ) {
        // Its end is not to be told once more.
        submitted.grant = None;
        let news = submitted.follow.is_news();
        let message = Message::Seen { fence, submitted, timing, renderer };
        let queue = &self.desk.queue;
        self.kept(if news { queue.push(message) } else { queue.push_patiently(message) });
    }

    /// Has a group written down and learnt from that was complete by then. Nobody waits for its end.
    pub(super) fn hand_over_shown(
        &self,
        fence: Option<Fence>,
        submitted: Box<Submitted>,
        by_ns: u64,
        renderer: Option<Reading>,
    ) {
        let message = Message::Shown { fence, submitted, by_ns, renderer };
        self.kept(self.desk.queue.push_patiently(message));
    }

    fn kept(&self, pushed: Result<(), Message>) {
        let (fence, submitted) = match pushed {
            Err(Message::Group(Fenced { fence, submitted, .. })) => (Some(fence), submitted),
            Err(Message::Seen { fence, submitted, .. } | Message::Shown { fence, submitted, .. }) => {
                (fence, submitted)
            }
            Err(Message::Idle(submitted)) => (None, submitted),
            Ok(()) | Err(Message::Drain(..)) => return,
        };
        fence.into_iter().for_each(Fence::remove_here);
        super::give_back(&submitted);
        if !self.overflowed.swap(true, Ordering::Relaxed) {
            guard::say(&format!("more than {WAITING_MAX} groups wait for the GPU; some go unmeasured"));
        }
    }

    /// Waits until everything before this is measured; not for long. A display may be about to be
    /// terminated.
    pub(crate) fn drain(&self, ending: Option<usize>) {
        let (done, wait) = sync_channel(1);
        if self.desk.queue.push(Message::Drain(done, ending)).is_ok() {
            // Too late or too bad are no reason to keep the program waiting.
            let _unfinished = wait.recv_timeout(DRAIN);
        }
    }
}

/// Before a process ends, drivers take their displays apart; nothing may wait for a fence then.
extern "C" fn at_exit() {
    // In a process that was forked there is nobody to wait for, and nothing to be said.
    if guard::is_switched_off() {
        return;
    }
    guard::shielded(|| {
        if let Some(Some(reaper)) = REAPER.get() {
            reaper.drain(None);
        }
        if let Some(line) = slice::line().filter(|_| settings().verbose) {
            guard::say(&line);
        }
    });
}

/// The program's signals are the program's: a thread of ours must not receive them.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: plain data without invariants; both calls below fill it in.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    let mut before = all;
    // SAFETY: the set is ours.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: both sets are ours; a thread inherits the mask of the thread that starts it.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
    let result = start();
    // SAFETY: puts back what was there.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    result
}
