//! The thread that takes groups through their stages.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

use takt_client::ends::{Seen, Timing};
use takt_os::signals::without_signals;

use super::fence::{Fence, Passed, Waited};
use super::machine::{Machine, Order, Stage, Tracked, give_back, tell};
use super::processor::Worked;
use super::rows::Rows;
use super::settle::{Clock, Complete, Settled};
use super::{RENDERER, Submitted, beside_others, waiter};
use crate::client::group::Kind;
use crate::predict::GroupCost;
use crate::session::session;
use crate::{clock, guard};

/// How long a fence is waited for before it is given up.
const PATIENCE_NS: u64 = 10_000_000_000;

/// How often to look for the end of a group that no model learns from.
const NAP: Duration = Duration::from_micros(100);
/// The same for the only client.
const NAP_ALONE: Duration = Duration::from_millis(1);

/// How long to wait for it at once where a grant depends on it.
const AWAITED_NS: u64 = 200_000;

/// How often to look for grants that go unused, and for those that must not for long.
const LOOK: Duration = Duration::from_millis(50);
const LOOK_SOON: Duration = Duration::from_millis(2);
const FOREVER: Duration = Duration::from_secs(3600);

/// Groups that wait for their time stamps; beyond this, the time of the fence counts for the first.
const STAMPS_MAX: usize = 16;

/// Starts the thread; false if that is impossible.
pub(super) fn start(machine: &'static Machine) -> bool {
    let started = without_signals(|| {
        let body = move || {
            guard::shielded(|| Measuring::new(machine).run());
        };
        thread::Builder::new().name("takt-measure".to_owned()).spawn(body)
    });
    if let Err(error) = &started {
        guard::say(&format!("cannot start a thread, so nothing is measured: {error}"));
    }
    started.is_ok()
}

/// What the thread knows.
struct Measuring {
    machine: &'static Machine,
    rows: Rows,
    /// Complete groups, in their order, whose time stamps may still come.
    complete: VecDeque<Complete>,
    passed: Passed,
    worked: Worked,
    /// The last look that found a fence passed.
    seen_ns: u64,
}

impl Measuring {
    fn new(machine: &'static Machine) -> Self {
        let (complete, passed, worked) = Default::default();
        Self { machine, rows: Rows::open(), complete, passed, worked, seen_ns: 0 }
    }

    /// Works as long as the process does.
    fn run(&mut self) {
        // Naps are short; by default the kernel makes them half as long again.
        // SAFETY: takes a number.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000) };
        loop {
            match self.next() {
                Some(Order::Track(group)) => self.track(group),
                Some(Order::Drain(done, ending)) => {
                    self.drain(ending);
                    // The program may have lost patience.
                    let _gone = done.send(());
                }
                None => session().give_back_unused(),
            }
        }
    }

    fn next(&mut self) -> Option<Order> {
        self.machine.orders.take().or_else(|| {
            self.rows.write();
            self.passed.release_forsaken();
            self.machine.orders.take_within(until_look())
        })
    }

    fn drain(&mut self, ending: Option<usize>) {
        self.overtake(u64::MAX);
        self.settle(StampWait::GivenUp);
        self.rows.write();
        waiter::release();
        ending.into_iter().for_each(|display| self.passed.forget(display));
    }

    /// Takes a group to its end.
    fn track(&mut self, group: Tracked) {
        let (submission, renderer) = (&group.submitted.submission, group.renderer.clone());
        match group.stage {
            Stage::Fenced { inserted_ns } => {
                self.overtake(inserted_ns);
                self.fenced(group, inserted_ns);
            }
            Stage::Idle => {
                self.overtake(submission.at_ns);
                let timing = Timing::idle(submission, submission.at_ns.max(self.seen_ns));
                tell(&group.submitted, timing);
                self.machine.saw_one();
                self.complete(group, timing, None);
            }
            Stage::Shown { by_ns } => {
                let worked_ns = self.worked.until(renderer);
                let timing = match worked_ns {
                    Some(worked_ns) => self.machine.account.worked(submission, worked_ns, by_ns),
                    None => self.machine.account.completed(submission, Seen::at(by_ns)),
                };
                self.complete(group, timing, worked_ns);
            }
            Stage::Complete(timing) => {
                let worked_ns = self.worked.until(renderer);
                self.complete(group, timing, worked_ns);
            }
        }
    }

    /// Something is next that was handed over then: a kept group from before it is seen to its end first.
    fn overtake(&mut self, handed_over_ns: u64) {
        if let Some(group) = self.machine.take_older(handed_over_ns) {
            let inserted_ns = group.at_ns();
            self.fenced(group, inserted_ns);
        }
    }

    /// Waits for the fence of a group.
    fn fenced(&mut self, group: Tracked, inserted_ns: u64) {
        let submitted = &group.submitted;
        let seen = match (&group.fence, &submitted.submission.gathered) {
            (None, _) => Err(Waited::Lost),
            (Some(fence), Some(_)) => look_for(fence, inserted_ns),
            (Some(fence), None) => wait(fence, inserted_ns, self.seen_ns).map(Seen::at),
        };
        match seen {
            Ok(seen) => {
                self.seen_ns = seen.at_ns;
                let timing = self.machine.completed(submitted, seen);
                self.machine.saw_one();
                let worked_ns = submitted.software.then(|| self.worked.until(RENDERER.look())).flatten();
                self.complete(group, timing, worked_ns);
            }
            Err(why) => {
                give_back(submitted);
                self.machine.saw_one();
                // One that is lost is not ours any more: its name may be another fence's.
                if why == Waited::NotYet {
                    group.fence.into_iter().for_each(|fence| self.passed.keep(fence));
                }
            }
        }
    }

    /// A group is complete, and the daemon knows.
    fn complete(&mut self, group: Tracked, timing: Timing, worked_ns: Option<u64>) {
        let Tracked { submitted, fence, .. } = group;
        let learned = (!waits_for_timer(&submitted)).then(|| follow(&submitted, &timing));
        self.complete.push_back(Complete { submitted, timing, worked_ns, learned });
        self.settle(StampWait::Awaited);
        fence.into_iter().for_each(|fence| self.passed.keep(fence));
    }

    /// Writes and learns what is known by now.
    fn settle(&mut self, stamps: StampWait) {
        while let Some(first) = self.complete.front() {
            let patient = stamps == StampWait::Awaited && self.complete.len() <= STAMPS_MAX;
            let Some(settled) = first.settle(patient) else {
                return;
            };
            self.rows.add(&first.submitted, &settled);
            learn(&first.submitted, &settled);
            self.complete.pop_front();
        }
    }
}

/// Whether groups wait for their time stamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StampWait {
    Awaited,
    GivenUp,
}

/// How long to wait for something to do, before looking for unused grants.
fn until_look() -> Duration {
    match (session().is_wanted(), session().is_hasty()) {
        (false, _) => FOREVER,
        (true, false) => LOOK,
        (true, true) => LOOK_SOON,
    }
}

/// Whether the cost of a group is left to its time stamps: where these are right, and no thread waits.
fn waits_for_timer(submitted: &Submitted) -> bool {
    let timed = submitted.stamped.as_ref().is_some_and(|stamped| stamped.judge.trusts_stamps());
    timed && !submitted.follow.is_awaited()
}

/// Tells long draws what a group of them cost; what the models are to learn from it, if anything.
fn follow(submitted: &Submitted, timing: &Timing) -> Option<u64> {
    submitted.follow.completed(timing, submitted.group.work.is_one_command())
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
    match fence.wait(PATIENCE_NS) {
        Waited::Passed => Ok(clock::now_ns()),
        ended => Err(ended),
    }
}

/// The same for groups from whose time no model learns: looks now and then, as long as no thread waits
/// for a grant. Waiting can keep the program out of its display.
fn look_for(fence: &Fence, inserted_ns: u64) -> Result<Seen, Waited> {
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
            Waited::NotYet if at_ns.saturating_sub(inserted_ns) < PATIENCE_NS => not_before_ns = at_ns,
            ended => return Err(ended),
        }
    }
}
