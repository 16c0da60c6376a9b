//! The thread that waits for fences.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::account::{Account, Seen, Timing};
use super::fence::{Fence, Passed, Waited};
use super::late::{Clock, Complete, Late, Settled};
use super::processor::Worked;
use super::queue::Queue;
use super::rows::Rows;
use super::witness::Witness;
use super::{REAPER, RENDERER, Submitted, beside_others, waiter};
use crate::group::Kind;
use crate::predict::GroupCost;
use crate::settings::settings;
use crate::{clock, gate, guard, slice};

/// Groups that wait to be measured; beyond this, groups go unmeasured.
const WAITING_MAX: usize = 4096;

/// How long a fence is waited for before it is given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often to look for the end of a group that nobody learns from.
const NAP: Duration = Duration::from_micros(100);
/// The same where nobody else is scheduled.
const NAP_ALONE: Duration = Duration::from_millis(1);

/// How long to wait for it at once where leave depends on it.
const AWAITED_NS: u64 = 200_000;

/// How often to look for leave that goes unused, and that must not for long.
const LOOK: Duration = Duration::from_millis(50);
const LOOK_SOON: Duration = Duration::from_millis(2);
const FOREVER: Duration = Duration::from_secs(3600);

/// How long others wait for this thread at most.
const DRAIN: Duration = Duration::from_secs(1);

/// The way to the thread.
#[derive(Debug)]
pub(crate) struct Reaper {
    desk: Arc<Desk>,
    overflowed: AtomicBool,
}

/// What the thread shares with those who hand groups to it.
#[derive(Debug)]
struct Desk {
    queue: Queue<Message>,
    account: Mutex<Account>,
    /// Groups whose end is left to the thread.
    unseen: AtomicUsize,
}

#[derive(Debug)]
enum Message {
    /// A fence, what lies before it, and when it was inserted.
    Group(Fence, Box<Submitted>, u64),
    /// A group without work for the GPU.
    Idle(Box<Submitted>),
    /// A group that was seen to be complete, and its fence, if it has one; and when it ran, if the
    /// daemon was told.
    Seen(Option<Fence>, Box<Submitted>, Witness, Option<Timing>),
    /// Answer when everything before this is done; a display may be about to be terminated.
    Drain(SyncSender<()>, Option<usize>),
}

impl Reaper {
    /// Starts the thread; none if that is impossible.
    pub(crate) fn start() -> Option<Self> {
        let desk = Arc::new(Desk {
            queue: Queue::new(WAITING_MAX),
            account: Mutex::default(),
            unseen: AtomicUsize::new(0),
        });
        let shared = desk.clone();
        let started = without_signals(|| {
            let body = move || {
                guard::shielded(|| run(&shared));
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

    /// Has a group measured, behind which a fence was inserted at that time.
    pub(crate) fn hand_over(&self, fence: Fence, submitted: Box<Submitted>, inserted_ns: u64) {
        self.leave(Message::Group(fence, submitted, inserted_ns));
    }

    /// Has a group measured that is over when those before it are.
    pub(crate) fn hand_over_idle(&self, submitted: Box<Submitted>) {
        self.leave(Message::Idle(submitted));
    }

    fn leave(&self, message: Message) {
        self.desk.unseen.fetch_add(1, Ordering::Relaxed);
        let pushed = self.desk.queue.push(message);
        if pushed.is_err() {
            self.desk.saw_one();
        }
        self.kept(pushed);
    }

    /// Whether everything that was left to the thread is over, and the daemon was told.
    pub(crate) fn has_seen_all(&self) -> bool {
        self.desk.unseen.load(Ordering::Acquire) == 0
    }

    /// Has a group written down and learnt from that is complete. The daemon is told at once.
    pub(crate) fn hand_over_seen(
        &self,
        fence: Option<Fence>,
        mut submitted: Box<Submitted>,
        witness: Witness,
    ) {
        let told = submitted.pass.is_some().then(|| self.desk.completed(&submitted, Seen::at(witness.at_ns)));
        submitted.pass = None;
        self.kept(self.desk.queue.push_patiently(Message::Seen(fence, submitted, witness, told)));
    }

    fn kept(&self, pushed: Result<(), Message>) {
        let (fence, submitted) = match pushed {
            Err(Message::Group(fence, submitted, _)) => (Some(fence), submitted),
            Err(Message::Seen(fence, submitted, ..)) => (fence, submitted),
            Err(Message::Idle(submitted)) => (None, submitted),
            Ok(()) | Err(Message::Drain(..)) => return,
        };
        fence.into_iter().for_each(Fence::remove);
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

impl Desk {
    /// When a group ran that was seen to be complete, which the daemon is told.
    fn completed(&self, submitted: &Submitted, seen: Seen) -> Timing {
        let timing = self.account().completed(submitted, seen);
        if let Some(pass) = submitted.pass {
            gate::complete(pass, timing.completed_ns, timing.cost_ns);
        }
        timing
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn saw_one(&self) {
        self.unseen.fetch_sub(1, Ordering::Release);
    }
}

fn run(desk: &Desk) {
    // Naps are short: by default they take half as long again. Where that cannot be, so be it.
    // SAFETY: takes a number.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000) };
    let mut rows = Rows::open();
    let mut late = Late::default();
    let mut passed = Passed::default();
    let mut worked = Worked::default();
    // The last look that found a fence passed.
    let mut seen_ns = 0;
    loop {
        let Some(message) = desk.queue.take().or_else(|| {
            rows.write();
            passed.release_forsaken();
            desk.queue.take_within(look())
        }) else {
            gate::give_back_unused();
            continue;
        };
        match message {
            Message::Drain(done, ending) => {
                settle(&mut late, &mut rows, true);
                rows.write();
                waiter::release();
                ending.into_iter().for_each(|display| passed.forget(display));
                // Whoever asked may have lost patience.
                let _gone = done.send(());
            }
            Message::Group(fence, submitted, inserted_ns) => {
                let seen = match submitted.gathered {
                    Some(_) => look_for(&fence, inserted_ns),
                    None => wait(&fence, inserted_ns, seen_ns).map(Seen::at),
                };
                match seen {
                    Some(seen) => {
                        seen_ns = seen.at_ns;
                        let timing = desk.completed(&submitted, seen);
                        let learned = (!waits_for_timer(&submitted)).then(|| told(&submitted, &timing));
                        let worked_ns = submitted.software.then(|| worked.until(RENDERER.look())).flatten();
                        late.add(Complete { submitted, timing, worked_ns, learned });
                        settle(&mut late, &mut rows, false);
                    }
                    None => super::give_back(&submitted),
                }
                desk.saw_one();
                passed.keep(fence);
            }
            Message::Idle(submitted) => {
                let seen = Seen::at(submitted.at_ns.max(seen_ns));
                let timing = desk.completed(&submitted, seen);
                desk.saw_one();
                let learned = Some(told(&submitted, &timing));
                late.add(Complete { submitted, timing, worked_ns: None, learned });
                settle(&mut late, &mut rows, false);
            }
            Message::Seen(fence, submitted, Witness { at_ns, renderer }, told_timing) => {
                let worked_ns = worked.until(renderer);
                let timing = told_timing.unwrap_or_else(|| match worked_ns {
                    Some(worked_ns) => desk.account().worked(&submitted, worked_ns, at_ns),
                    None => desk.account().completed(&submitted, Seen::at(at_ns)),
                });
                let learned = (!waits_for_timer(&submitted)).then(|| told(&submitted, &timing));
                late.add(Complete { submitted, timing, worked_ns, learned });
                settle(&mut late, &mut rows, false);
                fence.into_iter().for_each(|fence| passed.keep(fence));
            }
        }
    }
}

/// How long to wait for something to do, before leave that goes unused is looked for.
fn look() -> Duration {
    match (gate::is_wanted(), gate::is_hasty()) {
        (false, _) => FOREVER,
        (true, false) => LOOK,
        (true, true) => LOOK_SOON,
    }
}

/// Writes and learns what is known by now; with `now`, everything.
fn settle(late: &mut Late, rows: &mut Rows, now: bool) {
    while let Some((submitted, settled)) = late.next(now) {
        rows.add(&submitted, &settled);
        learn(&submitted, &settled);
    }
}

/// Whether the cost of a group is left to its time stamps: where these are right, and nobody waits.
fn waits_for_timer(submitted: &Submitted) -> bool {
    let timed = submitted.stamped.as_ref().is_some_and(|stamped| stamped.judge.trusts_stamps());
    timed && !submitted.follow.is_awaited()
}

/// Tells long draws what a group of them cost; what the models are to learn from it, if anything.
fn told(submitted: &Submitted, timing: &Timing) -> Option<u64> {
    submitted.follow.completed(timing, submitted.group.work.is_one_draw())
}

/// Tells the models what their group cost.
fn learn(submitted: &Submitted, settled: &Settled) {
    let timing = &settled.timing;
    let learned = settled.learned.unwrap_or_else(|| told(submitted, timing));
    if let Some(((models, predicted), ns)) = submitted.predicted.as_ref().zip(learned) {
        let pieces = submitted.follow.part.is_some();
        let cost = GroupCost {
            ns: if pieces { ns } else { timing.cost_ns },
            fence_ns: if pieces { ns } else { settled.fence_ns },
            by_timer: settled.clock == Clock::Timer,
            disturbance: beside_others(settled.disturbance, submitted.software),
            ends_frame: submitted.group.kind == Kind::Swap,
        };
        if let Some(models) = models.upgrade() {
            models.lock().unwrap_or_else(PoisonError::into_inner).learn(predicted, &cost);
        }
    }
}

/// When the fence was passed: at the last look, if it was there by then.
fn wait(fence: &Fence, inserted_ns: u64, seen_ns: u64) -> Option<u64> {
    if fence.wait(0) == Waited::Passed {
        return Some(if seen_ns >= inserted_ns { seen_ns } else { clock::now_ns() });
    }
    let patience = u64::try_from(PATIENCE.as_nanos()).unwrap_or(u64::MAX);
    (fence.wait(patience) == Waited::Passed).then(clock::now_ns)
}

/// The same for groups from whose time nobody learns: looks now and then, as long as nobody waits for
/// leave that others may have to give up. Waiting can keep the program out of its display.
fn look_for(fence: &Fence, inserted_ns: u64) -> Option<Seen> {
    let patience_ns = u64::try_from(PATIENCE.as_nanos()).unwrap_or(u64::MAX);
    let mut not_before_ns = inserted_ns;
    loop {
        let ns = if gate::is_awaited() { AWAITED_NS } else { 0 };
        if ns == 0 {
            thread::sleep(if gate::is_alone() { NAP_ALONE } else { NAP });
        }
        let passed = fence.wait(ns);
        let at_ns = clock::now_ns();
        match passed {
            Waited::Passed => return Some(Seen { at_ns, not_before_ns }),
            Waited::NotYet if at_ns.saturating_sub(inserted_ns) < patience_ns => not_before_ns = at_ns,
            Waited::NotYet | Waited::Lost => return None,
        }
    }
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
