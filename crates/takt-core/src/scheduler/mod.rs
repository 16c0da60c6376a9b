//! The machine: queues, frame ledgers, groups in flight, misses and time-outs.

mod actions;
mod adjust;
mod apps;
mod ends;
mod frame_ends;
mod frames;
mod free;
mod gaps;
mod groups;
mod in_flight;
mod invariants;
mod jobs;
mod lane;
mod protect;
mod queue;
mod sources;
#[cfg(test)]
mod tests;
mod turns;

use alloc::boxed::Box;
use alloc::vec::Vec;

pub use lane::{Head, Lane, Ledger, Pause, Turn};

use actions::Actions;
use frame_ends::FrameEnds;
use frames::Frames;
use in_flight::InFlight;
use jobs::Jobs;
use queue::Queue;
use sources::Kin;
use turns::LastTurn;

use crate::analysis::contracts::{Claim, Workspace};
use crate::app::{AppId, Priority};
use crate::clock::{Clock, DisplayId};
use crate::config::Config;
use crate::event::{Action, Event, LostBy, Refusal};
use crate::invariant::{Broken, Invariant};
use crate::limits::DISPLAYS_MAX;
use crate::policy::Policy;
use crate::refresh::{Period, Refresh};
use crate::time::Time;

/// The scheduler of one GPU.
///
/// Methods come in three families, to be called in this order:
///
/// 1. [`handle_event`](Self::handle_event) when something happened, and
///    [`handle_timeout`](Self::handle_timeout) when the time of `poll_timeout` has come. Late or
///    spurious calls are harmless; time never runs backwards here, an earlier `now` counts as
///    the latest one seen.
/// 2. [`poll_action`](Self::poll_action) until it returns `None`: what to do now. Decisions are
///    taken here and not before, so hand in everything that is known to have happened first: a
///    group that is not there yet cannot be preferred.
/// 3. [`poll_timeout`](Self::poll_timeout): when to call again at the latest.
///
/// All memory is taken by [`new`](Self::new); nothing is allocated afterwards.
#[derive(Debug)]
pub struct Scheduler {
    config: Config,
    policy: Box<dyn Policy>,
    now: Time,
    current: Period,
    next_vsync: Time,
    next_judgement: Time,
    /// Attached apps by falling priority.
    lanes: Vec<Lane>,
    /// Whose window has the input focus.
    focus: Option<AppId>,
    /// Everything else about an app, by slot number.
    slots: Vec<Slot>,
    in_flight: InFlight,
    turns: LastTurn,
    /// What apps claim, while it is looked at.
    claims: Vec<Claim>,
    workspace: Workspace,
    /// Groups in flight when `mpcg` or the policy changed last: no more than that until the next
    /// dispatch.
    surplus: usize,
    /// Lanes with a waiting group.
    waiting: usize,
    /// Some apps share frames.
    kindred: bool,
    submissions: u64,
    /// Times that decisions were due.
    round: u64,
    /// Something happened since the last decision.
    undecided: bool,
    /// Reasons for holding groups may have changed since they were told.
    untold: bool,
    /// When the state was last looked at.
    guarded: Time,
    /// Groups that were taken back from the GPU and had ended.
    ended_waiting: u64,
    /// What did not hold: everything runs free.
    broken: Option<Broken>,
    actions: Actions,
    stats: Stats,
}

/// Counters since construction.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Decisions taken.
    pub runs: u64,
    /// Groups dispatched.
    pub dispatched: u64,
    /// Groups taken back from the GPU.
    pub preempted: u64,
    /// Groups whose completion was reported.
    pub completed: u64,
    /// Groups whose completion never came.
    pub lost: u64,
    /// Events refused.
    pub refused: u64,
    /// Groups dropped because their app left.
    pub dropped: u64,
    /// Refusals and misses that were not reported, because actions were not fetched for too long.
    pub untold: u64,
}

#[derive(Debug)]
struct Slot {
    /// Where its lane is; `None` if the slot is free.
    lane: Option<usize>,
    /// The priority it asked for.
    priority: Priority,
    /// The priority in force that was last told to the outside.
    told: Priority,
    generation: u32,
    queue: Queue,
    /// Order of the group that it submitted last.
    last: u64,
    ends: FrameEnds,
    frames: Frames,
    jobs: Jobs,
    /// The app has submitted a group of a frame that has not ended.
    open: bool,
    exiting: bool,
    /// Whose frames it shares.
    kin: Kin,
}

impl Scheduler {
    /// A scheduler without apps; bounds in `config` are enforced silently (see
    /// [`Config::clamped`]).
    pub fn new(config: Config, policy: Box<dyn Policy>) -> Self {
        let config = config.clamped();
        let slot = || Slot {
            lane: None,
            priority: Priority(0),
            told: Priority(0),
            generation: 0,
            queue: Queue::new(),
            last: 0,
            ends: FrameEnds::new(),
            frames: Frames::default(),
            jobs: Jobs::new(),
            open: false,
            exiting: false,
            kin: Kin::default(),
        };
        let mut scheduler = Self {
            config,
            policy,
            now: Time::ZERO,
            current: Period(0),
            next_vsync: Time::ZERO,
            next_judgement: Time::ZERO,
            lanes: Vec::with_capacity(config.apps_max as usize),
            focus: None,
            slots: (0..config.apps_max).map(|_| slot()).collect(),
            in_flight: InFlight::new(&config),
            turns: LastTurn::default(),
            claims: Vec::with_capacity(config.apps_max as usize),
            workspace: Workspace::for_claims(config.apps_max as usize),
            surplus: 0,
            waiting: 0,
            kindred: false,
            submissions: 0,
            round: 0,
            undecided: false,
            untold: false,
            guarded: Time::ZERO,
            ended_waiting: 0,
            broken: None,
            actions: Actions::new(config.apps_max as usize),
            stats: Stats::default(),
        };
        scheduler.introduce_policy();
        scheduler.enter_period();
        scheduler.judge();
        scheduler
    }

    /// Something happened at `now`.
    pub fn handle_event(&mut self, now: Time, event: Event) {
        self.undecided |= self.advance(now);
        if self.broken.is_some() {
            return self.handle_free(event);
        }
        let refused = self.stats.refused;
        match event {
            Event::Join { app, params, phase } => self.join(app, params, phase),
            Event::Leave { app } => self.leave(app),
            Event::Change { app, params } => self.change(app, params),
            Event::Submit { app, group, kind, estimate } => self.submit(app, group, kind, estimate),
            Event::EndFrame { app } => self.end_frame(app),
            Event::Revise { app, group, estimate } => self.revise(app, group, estimate),
            Event::Complete { group, finished, cost, frames } => self.complete(group, finished, cost, frames),
            Event::Refresh { display, refresh } => self.set_refresh(display, refresh),
            Event::Adjust(adjustable) => self.adjust(adjustable),
            Event::Focus { app } => self.set_focus(app),
        }
        // Nothing changed if it was refused, so there is nothing to decide.
        self.undecided |= self.stats.refused == refused;
        self.guard_event(&event);
    }

    /// The time of [`Self::poll_timeout`] has come (or not: a spurious call does nothing).
    pub fn handle_timeout(&mut self, now: Time) {
        self.undecided |= self.advance(now);
        self.guard_time();
    }

    /// The next thing to do, in order.
    #[must_use = "actions must be carried out"]
    pub fn poll_action(&mut self) -> Option<Action> {
        if self.undecided {
            self.undecided = false;
            self.round += 1;
            self.schedule();
        }
        let next = self.actions.pop();
        if next.is_none() && self.broken.is_some() {
            return self.next_free();
        }
        next
    }

    /// When to call [`Self::handle_timeout`] if nothing happens before; `None` without apps.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.broken.is_some() {
            return None;
        }
        let overdue = self.in_flight.next_overdue(&self.config);
        let vsync = (!self.lanes.is_empty()).then_some(self.next_vsync.min(self.next_judgement));
        // One that is over was served already, unless the decision is still to come.
        let ahead = |at: &Time| self.has_work() && (*at > self.now || self.undecided);
        let policy = self.policy.timeout().filter(ahead);
        let late = self.in_flight.next_late(self.now).filter(|_| self.waits_for_a_slot());
        overdue.into_iter().chain(vsync).chain(policy).chain(late).chain(self.all_late()).min()
    }

    /// Another policy decides from now on; returns the one before it. Nothing is allocated if the
    /// policy is [prepared](Policy::prepare).
    pub fn replace_policy(&mut self, policy: Box<dyn Policy>) -> Box<dyn Policy> {
        let before = core::mem::replace(&mut self.policy, policy);
        self.introduce_policy();
        // It may know nothing of divisible work, nor of sources.
        self.divide();
        self.find_sources();
        (0..self.lanes.len()).for_each(|index| self.charge_again(index));
        self.surplus = self.slots();
        self.undecided = true;
        before
    }

    fn introduce_policy(&mut self) {
        self.policy.prepare(&self.config);
        self.policy.apps_changed(self.now, &self.lanes);
    }

    /// Name of the policy that decides.
    pub fn policy_name(&self) -> &'static str {
        self.policy.name()
    }

    /// Parameters in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Counters since construction.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Attached apps by falling priority.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Groups dispatched and not known to be finished.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Room in the queue of `app`.
    pub fn queue_room(&self, app: AppId) -> usize {
        self.slots
            .get(app.index())
            .map_or(0, |slot| crate::limits::QUEUE_MAX.saturating_sub(slot.queue.len()))
    }

    /// Whether a frame of `app` may end without a group now.
    pub fn may_end_frame(&self, app: AppId) -> bool {
        self.slots.get(app.index()).is_some_and(|slot| !slot.ends.is_full(self.round))
    }

    /// The period that the latest event fell in.
    pub fn current_period(&self) -> Period {
        self.current
    }
}

/// Time passes.
impl Scheduler {
    /// Moves the clock and does what became due; says whether anything did.
    fn advance(&mut self, now: Time) -> bool {
        let waited = self.waits_for_a_slot();
        let all_late = self.all_late();
        self.now = self.now.max(now);
        let mut due = all_late.is_some_and(|at| at <= self.now);
        if self.now >= self.next_vsync {
            self.enter_period();
            due = true;
        }
        if self.now >= self.next_judgement && self.broken.is_none() {
            self.judge();
        }
        due |= self.has_work() && self.policy.timeout().is_some_and(|at| at <= self.now);
        due |= waited && (self.has_slot() || self.has_spare_slot());
        let overdue = |this: &Self| this.in_flight.overdue_at(&this.config);
        while overdue(self).is_some_and(|at| at <= self.now) {
            self.lose(LostBy::Timeout, self.now);
            due = true;
        }
        due |= self.lose_divisible();
        due
    }

    /// Whether groups wait that could go as soon as one in flight is late.
    fn waits_for_a_slot(&self) -> bool {
        let in_turn = self.config.gpu.is_time_shared();
        in_turn && self.waiting > 0 && self.slots() >= self.config.mpcg as usize
    }

    /// From when on no protected app waits for another one that has groups in flight, if that is to come.
    fn all_late(&self) -> Option<Time> {
        let late = self.in_flight.all_late_from().filter(|_| self.waiting > 0 && self.excludes());
        late.filter(|at| *at > self.now)
    }

    /// Whether there is anything a policy could decide about.
    fn has_work(&self) -> bool {
        self.waiting > 0 || self.in_flight.len() > 0
    }

    /// A refresh period began.
    fn enter_period(&mut self) {
        self.current = self.config.refresh.period_at(self.now);
        self.next_vsync = self.config.refresh.end(self.current);
        self.look_at_ends(|_| false);
    }

    /// Looks anew for what is due first on the GPU, in lanes where that deadline is over or `doubtful`: what is
    /// due later can still be met.
    pub(super) fn look_at_ends(&mut self, doubtful: impl Fn(&Lane) -> bool) {
        if !self.config.gpu.later_work_delays() {
            return;
        }
        let now = self.now;
        let over = |lane: &Lane| lane.on_gpu_due.is_some_and(|due| due <= now);
        for lane in self.lanes.iter_mut().filter(|lane| over(lane) || doubtful(lane)) {
            let generation = self.slots[lane.app.index()].generation;
            (lane.on_gpu_due, lane.on_gpu_promised) = self.in_flight.due(lane.app, generation, now);
        }
    }

    /// Judges the deadlines of which everything must have been heard by now.
    fn judge(&mut self) {
        let refresh = self.config.refresh;
        let unheard = self.config.margins.completion_upper;
        let heard = self.now - unheard;
        let open = refresh.period_at(heard);
        self.next_judgement = refresh.end(open) + unheard;
        let mut waiting = 0;
        for lane in &self.lanes {
            waiting += usize::from(lane.head.is_some());
            let mut open = open;
            if lane.clock != Clock::default() {
                open = lane.period_at(heard + lane.tail);
                self.next_judgement = self.next_judgement.min(lane.due_of(open) + unheard);
            }
            let slot = &mut self.slots[lane.app.index()];
            if let Some(missed) = slot.missed(lane, open, heard) {
                self.stats.untold += u64::from(!self.actions.report(missed));
            }
            if let Some(due) = slot.jobs.next_due() {
                self.next_judgement = self.next_judgement.min(due + unheard);
            }
        }
        // Only here are all lanes looked at anyway, whatever is decided.
        if waiting != self.waiting {
            self.break_off(Invariant::Waiting, None);
        }
    }

    /// Another grid of a display: every deadline of its apps moves to the nearest one of the new grid.
    fn set_refresh(&mut self, display: DisplayId, refresh: Refresh) {
        let before = *self.config.display(display);
        match usize::from(display.0).checked_sub(1) {
            None => self.config.refresh = refresh,
            Some(index) if index < DISPLAYS_MAX - 1 => self.config.more_displays[index] = refresh,
            Some(_) => return self.refuse(AppId(u32::MAX), None, Refusal::NoSuchDisplay),
        }
        let (slots, lanes) = (&self.slots, &self.lanes);
        let shown = |app: AppId| {
            let lane = slots[app.index()].lane.map(|lane| &lanes[lane]);
            lane.is_some_and(|lane| lane.has_budget() && lane.clock.display() == Some(display))
        };
        let near = |due: Time| refresh.end(refresh.period_ending_near(due));
        self.in_flight.rebase(|app, due| if shown(app) { near(due) } else { due });
        let moved = |period: Period| refresh.period_ending_near(before.end(period));
        for lane in self.lanes.iter_mut().filter(|lane| lane.clock.display() == Some(display)) {
            lane.grid = refresh;
            (lane.target, lane.due) = (moved(lane.target), moved(lane.due));
            self.slots[lane.app.index()].frames.rebase(moved);
        }
        self.enter_period();
        self.protect();
        self.next_judgement = self.next_vsync;
        self.look_at_ends(|_| true);
    }
}
