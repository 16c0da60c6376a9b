//! The thread that waits for fences, and all that follows from what it sees.

use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

use super::desk::{Desk, Fenced, Message, tell};
use super::fence::{Fence, Passed, Waited};
use super::late::{Clock, Complete, Late, Settled};
use super::processor::Worked;
use super::rows::Rows;
use super::{RENDERER, Submitted, beside_others, give_back, waiter};
use crate::client::group::Kind;
use crate::clock;
use crate::predict::GroupCost;
use crate::session::session;
use takt_client::ends::{Seen, Timing};

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

/// What the thread knows.
pub(super) struct Reaping<'a> {
    desk: &'a Desk,
    rows: Rows,
    late: Late,
    passed: Passed,
    worked: Worked,
    /// The last look that found a fence passed.
    seen_ns: u64,
}

impl<'a> Reaping<'a> {
    /// Nothing was seen yet.
    pub(super) fn new(desk: &'a Desk) -> Self {
        let (late, passed, worked) = Default::default();
        Self { desk, rows: Rows::open(), late, passed, worked, seen_ns: 0 }
    }

    /// Works as long as the process does.
    pub(super) fn run(&mut self) {
        // Naps are short: by default they take half as long again. Where that cannot be, so be it.
        // SAFETY: takes a number.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000) };
        loop {
            match self.next() {
                Some(message) => self.handle(message),
                None => session().give_back_unused(),
            }
        }
    }

    fn next(&mut self) -> Option<Message> {
        self.desk.queue.take().or_else(|| {
            self.rows.write();
            self.passed.release_forsaken();
            self.desk.queue.take_within(look())
        })
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Group(group) => {
                self.overtake(group.inserted_ns);
                self.group(group);
            }
            Message::Idle(submitted) => {
                self.overtake(submitted.submission.at_ns);
                self.idle(submitted);
            }
            Message::Seen { fence, submitted, timing, renderer } => {
                let worked_ns = self.worked.until(renderer);
                self.complete(submitted, timing, worked_ns);
                fence.into_iter().for_each(|fence| self.passed.keep(fence));
            }
            Message::Shown { fence, submitted, by_ns, renderer } => {
                let worked_ns = self.worked.until(renderer);
                let timing = match worked_ns {
                    Some(worked_ns) => self.desk.account.worked(&submitted.submission, worked_ns, by_ns),
                    None => self.desk.account.completed(&submitted.submission, Seen::at(by_ns)),
                };
                self.complete(submitted, timing, worked_ns);
                fence.into_iter().for_each(|fence| self.passed.keep(fence));
            }
            Message::Drain(done, ending) => {
                self.overtake(u64::MAX);
                self.settle(true);
                self.rows.write();
                waiter::release();
                ending.into_iter().for_each(|display| self.passed.forget(display));
                // Whoever asked may have lost patience.
                let _gone = done.send(());
            }
        }
    }

    /// Something is next that was submitted then: what was before it, and the program waits for, is
    /// seen to its end first.
    fn overtake(&mut self, submitted_ns: u64) {
        if let Some(group) = self.desk.take_older(submitted_ns) {
            self.group(group);
        }
    }

    fn group(&mut self, group: Fenced) {
        let Fenced { fence, submitted, inserted_ns } = group;
        let seen = match submitted.submission.gathered {
            Some(_) => look_for(&fence, inserted_ns),
            None => wait(&fence, inserted_ns, self.seen_ns).map(Seen::at),
        };
        match seen {
            Ok(seen) => {
                self.seen_ns = seen.at_ns;
                let timing = self.desk.completed(&submitted, seen);
                self.desk.saw_one();
                let worked_ns = submitted.software.then(|| self.worked.until(RENDERER.look())).flatten();
                self.complete(submitted, timing, worked_ns);
                self.passed.keep(fence);
            }
            Err(why) => {
                give_back(&submitted);
                self.desk.saw_one();
                // One that is lost is not ours any more: its name may be somebody else's.
                if why == Waited::NotYet {
                    self.passed.keep(fence);
                }
            }
        }
    }

    fn idle(&mut self, submitted: Box<Submitted>) {
        let timing = Timing::idle(&submitted.submission, submitted.submission.at_ns.max(self.seen_ns));
        tell(&submitted, timing);
        self.desk.saw_one();
        self.complete(submitted, timing, None);
    }

    /// A group is complete, and whoever waits for that was told.
    fn complete(&mut self, submitted: Box<Submitted>, timing: Timing, worked_ns: Option<u64>) {
        let learned = (!waits_for_timer(&submitted)).then(|| follow(&submitted, &timing));
        self.late.add(Complete { submitted, timing, worked_ns, learned });
        self.settle(false);
    }

    /// Writes and learns what is known by now; with `now`, everything.
    fn settle(&mut self, now: bool) {
        while let Some((submitted, settled)) = self.late.next(now) {
            self.rows.add(&submitted, &settled);
            learn(&submitted, &settled);
        }
    }
}

/// How long to wait for something to do, before leave that goes unused is looked for.
fn look() -> Duration {
    match (session().is_wanted(), session().is_hasty()) {
        (false, _) => FOREVER,
        (true, false) => LOOK,
        (true, true) => LOOK_SOON,
    }
}

/// Whether the cost of a group is left to its time stamps: where these are right, and nobody waits.
fn waits_for_timer(submitted: &Submitted) -> bool {
    let timed = submitted.stamped.as_ref().is_some_and(|stamped| stamped.judge.trusts_stamps());
    timed && !submitted.follow.is_awaited()
}

/// Tells long draws what a group of them cost; what the models are to learn from it, if anything.
fn follow(submitted: &Submitted, timing: &Timing) -> Option<u64> {
    submitted.follow.completed(timing, submitted.group.work.is_one_draw())
}

/// Tells the models what their group cost.
fn learn(submitted: &Submitted, settled: &Settled) {
    let timing = &settled.timing;
    let learned = settled.learned.unwrap_or_else(|| follow(submitted, timing));
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

/// When the fence was passed: at the last look, if it was there by then. If it was not, why.
fn wait(fence: &Fence, inserted_ns: u64, seen_ns: u64) -> Result<u64, Waited> {
    if fence.wait(0) == Waited::Passed {
        return Ok(if seen_ns >= inserted_ns { seen_ns } else { clock::now_ns() });
    }
    let patience = u64::try_from(PATIENCE.as_nanos()).unwrap_or(u64::MAX);
    match fence.wait(patience) {
        Waited::Passed => Ok(clock::now_ns()),
        ended => Err(ended),
    }
}

/// The same for groups from whose time nobody learns: looks now and then, as long as nobody waits for
/// leave that others may have to give up. Waiting can keep the program out of its display.
fn look_for(fence: &Fence, inserted_ns: u64) -> Result<Seen, Waited> {
    let patience_ns = u64::try_from(PATIENCE.as_nanos()).unwrap_or(u64::MAX);
    let mut not_before_ns = inserted_ns;
    loop {
        let ns = if session().is_awaited() { AWAITED_NS } else { 0 };
        if ns == 0 {
            thread::sleep(if session().is_alone() { NAP_ALONE } else { NAP });
        }
        let passed = fence.wait(ns);
        let at_ns = clock::now_ns();
        match passed {
            Waited::Passed => return Ok(Seen { at_ns, not_before_ns }),
            Waited::NotYet if at_ns.saturating_sub(inserted_ns) < patience_ns => not_before_ns = at_ns,
            ended => return Err(ended),
        }
    }
}
