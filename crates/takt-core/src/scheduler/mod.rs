//! The machine: queues, frame ledgers, groups in flight, misses and time-outs.

mod actions;
mod frames;
mod in_flight;
mod lane;
mod queue;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec::Vec;

pub use lane::{Head, Lane, Ledger};

use actions::Actions;
use frames::Frames;
use in_flight::{Bound, Flying, InFlight};
use queue::{Queue, Waiting};

use crate::app::{AppId, AppParams, GroupId, GroupKind};
use crate::config::Config;
use crate::event::{Action, Event, Hold, LostBy, Refusal};
use crate::limits::LOOKAHEAD_MAX;
use crate::policy::{Context, Policy};
use crate::refresh::{Period, Refresh, lcm};
use crate::time::{Cost, Estimate, Span, Time};

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
    /// Everything else about an app, by slot number.
    slots: Vec<Slot>,
    in_flight: InFlight,
    /// Lanes with a waiting group.
    waiting: usize,
    submissions: u64,
    /// Something happened since the last decision.
    undecided: bool,
    /// Reasons for holding groups may have changed since they were told.
    untold: bool,
    actions: Actions,
    stats: Stats,
}

/// An app that joins behind groups of unknown length starts after this time all the same.
const JOIN_DELAY_MAX: Span = Span::from_ms(1000);

/// Counters since construction.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Decisions taken.
    pub runs: u64,
    /// Groups dispatched.
    pub dispatched: u64,
    /// Groups whose completion was reported.
    pub completed: u64,
    /// Groups whose completion never came.
    pub lost: u64,
    /// Events refused.
    pub refused: u64,
    /// Groups dropped because their app left.
    pub dropped: u64,
    /// Refusals and misses that nobody was told of, because nobody fetched actions for too long.
    pub untold: u64,
}

#[derive(Debug)]
struct Slot {
    /// Where its lane is; `None` if the slot is free.
    lane: Option<usize>,
    generation: u32,
    queue: Queue,
    frames: Frames,
    exiting: bool,
}

impl Scheduler {
    /// A scheduler without apps; bounds in `config` are enforced silently (see
    /// [`Config::clamped`]).
    pub fn new(config: Config, policy: Box<dyn Policy>) -> Self {
        let config = config.clamped();
        let slot = || Slot {
            lane: None,
            generation: 0,
            queue: Queue::new(),
            frames: Frames::default(),
            exiting: false,
        };
        let mut scheduler = Self {
            config,
            policy,
            now: Time::ZERO,
            current: Period(0),
            next_vsync: Time::ZERO,
            next_judgement: Time::ZERO,
            lanes: Vec::with_capacity(config.apps_max as usize),
            slots: (0..config.apps_max).map(|_| slot()).collect(),
            in_flight: InFlight::new(),
            waiting: 0,
            submissions: 0,
            undecided: false,
            untold: false,
            actions: Actions::new(config.apps_max as usize),
            stats: Stats::default(),
        };
        scheduler.policy.apps_changed(&scheduler.lanes);
        scheduler.enter_period();
        scheduler.judge();
        scheduler
    }

    /// Something happened at `now`.
    pub fn handle_event(&mut self, now: Time, event: Event) {
        self.advance(now);
        let refused = self.stats.refused;
        match event {
            Event::Join { app, params, phase } => self.join(app, params, phase),
            Event::Leave { app } => self.leave(app),
            Event::Change { app, params } => self.change(app, params),
            Event::Submit { app, group, kind, estimate } => self.submit(app, group, kind, estimate),
            Event::Complete { group, finished, cost } => self.complete(group, finished, cost),
            Event::Refresh(refresh) => self.set_refresh(refresh),
        }
        // Nothing changed if it was refused, so there is nothing to decide.
        self.undecided |= self.stats.refused == refused;
    }

    /// The time of [`Self::poll_timeout`] has come (or not: a spurious call does nothing).
    pub fn handle_timeout(&mut self, now: Time) {
        self.undecided |= self.advance(now);
    }

    /// The next thing to do, in order.
    #[must_use = "actions must be carried out"]
    pub fn poll_action(&mut self) -> Option<Action> {
        if self.undecided {
            self.undecided = false;
            self.schedule();
        }
        self.actions.pop()
    }

    /// When to call [`Self::handle_timeout`] if nothing happens before; `None` without apps.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let overdue = self.in_flight.overdue_at(self.config.completion_timeout);
        let vsync = (!self.lanes.is_empty()).then_some(self.next_vsync.min(self.next_judgement));
        let policy = self.policy.timeout().filter(|_| self.waiting > 0);
        overdue.into_iter().chain(vsync).chain(policy).min()
    }

    /// Another policy decides from now on.
    pub fn set_policy(&mut self, policy: Box<dyn Policy>) {
        self.policy = policy;
        self.policy.apps_changed(&self.lanes);
        self.undecided = true;
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

    /// Free places in the queue of `app`.
    pub fn queue_room(&self, app: AppId) -> usize {
        self.slots.get(app.index()).map_or(0, |slot| crate::limits::QUEUE_MAX - slot.queue.len())
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
        self.now = self.now.max(now);
        let mut due = false;
        if self.now >= self.next_vsync {
            self.enter_period();
            due = true;
        }
        if self.now >= self.next_judgement {
            self.judge();
        }
        due |= self.waiting > 0 && self.policy.timeout().is_some_and(|at| at <= self.now);
        while self.in_flight.overdue_at(self.config.completion_timeout).is_some_and(|at| at <= self.now) {
            self.lose_oldest(LostBy::Timeout, self.now);
            due = true;
        }
        due
    }

    /// A refresh period began.
    fn enter_period(&mut self) {
        self.current = self.config.refresh.period_at(self.now);
        self.next_vsync = self.config.refresh.end(self.current);
    }

    /// Judges the deadlines of which everything must have been heard by now.
    fn judge(&mut self) {
        let refresh = self.config.refresh;
        let unheard = self.config.margins.completion_upper;
        let open = refresh.period_at(self.now - unheard);
        self.next_judgement = refresh.end(open) + unheard;
        for lane in &self.lanes {
            let frames = &mut self.slots[lane.app.index()].frames;
            if let Some(missed) = frames.judge(lane, open, &refresh) {
                self.stats.untold += u64::from(!self.actions.report(missed));
            }
        }
    }

    /// Another grid: every deadline moves to the nearest one of the new grid.
    fn set_refresh(&mut self, refresh: Refresh) {
        let before = self.config.refresh;
        self.config.refresh = refresh;
        self.enter_period();
        self.next_judgement = self.next_vsync;
        let moved = |period: Period| refresh.period_ending_near(before.end(period));
        for lane in &mut self.lanes {
            lane.target = moved(lane.target);
            self.slots[lane.app.index()].frames.rebase(moved);
        }
    }
}

/// Apps come, change and go.
impl Scheduler {
    fn join(&mut self, app: AppId, params: AppParams, phase: u32) {
        let Some(slot) = self.slots.get(app.index()) else {
            return self.refuse(app, None, Refusal::NoSuchSlot);
        };
        if slot.lane.is_some() {
            return self.refuse(app, None, Refusal::SlotTaken);
        }
        if let Err(reason) = self.admissible(app, params) {
            return self.refuse(app, None, reason);
        }
        let lead = params.stride.lead();
        // What was dispatched before the app came is still to run.
        let (free, _) = self.in_flight.free_at(self.now, self.config.margins.completion_upper);
        let free = free.min(self.now + JOIN_DELAY_MAX);
        let target = self.config.refresh.period_from(free.max(self.now)) + lead + u64::from(phase);
        let slot = &mut self.slots[app.index()];
        slot.frames = Frames::starting_at(target);
        slot.exiting = false;
        slot.queue.clear();
        self.insert_lane(Lane::new(app, params, target));
        self.policy.apps_changed(&self.lanes);
        let at = self.config.refresh.incipient_arrival(target, params.stride);
        self.actions.push(Action::Release { app, at });
    }

    fn change(&mut self, app: AppId, params: AppParams) {
        let Some(index) = self.lane_of(app) else {
            return self.refuse(app, None, Refusal::UnknownApp);
        };
        if let Err(reason) = self.admissible(app, params) {
            return self.refuse(app, None, reason);
        }
        let mut lane = self.lanes.remove(index);
        let before = lane.stride;
        lane.priority = params.priority;
        lane.stride = params.stride;
        lane.etpf = params.etpf;
        if before != lane.stride {
            let slot = &mut self.slots[app.index()];
            slot.frames.stride_changed(&mut lane, before, self.current);
            if slot.queue.is_empty() {
                // It may sleep towards the old deadline.
                let at = self.config.refresh.incipient_arrival(lane.target, lane.stride).max(self.now);
                self.actions.push(Action::Release { app, at });
            }
        }
        self.insert_lane(lane);
        self.policy.apps_changed(&self.lanes);
    }

    fn leave(&mut self, app: AppId) {
        let Some(index) = self.lane_of(app) else {
            return self.refuse(app, None, Refusal::UnknownApp);
        };
        let slot = &mut self.slots[app.index()];
        let dropped = u32::try_from(slot.queue.len()).unwrap_or(u32::MAX);
        self.stats.dropped += u64::from(dropped);
        self.waiting -= usize::from(!slot.queue.is_empty());
        slot.queue.clear();
        slot.lane = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.lanes.remove(index);
        self.renumber_lanes();
        self.policy.apps_changed(&self.lanes);
        self.actions.push(Action::Left { app, dropped });
    }

    /// Whether `app` may have these parameters beside all others.
    fn admissible(&self, app: AppId, params: AppParams) -> Result<(), Refusal> {
        let others = || self.lanes.iter().filter(|lane| lane.app != app);
        if let Some(by) = others().find(|lane| lane.priority == params.priority) {
            return Err(Refusal::PriorityTaken { by: by.app, priority: by.priority });
        }
        let periods = others().fold(params.stride.periods(), |acc, lane| lcm(acc, lane.stride.periods()));
        if periods + 2 > LOOKAHEAD_MAX {
            return Err(Refusal::LookaheadTooLong { periods });
        }
        Ok(())
    }

    fn lane_of(&self, app: AppId) -> Option<usize> {
        self.slots.get(app.index())?.lane
    }

    fn insert_lane(&mut self, lane: Lane) {
        let index = self.lanes.partition_point(|other| other.priority > lane.priority);
        self.lanes.insert(index, lane);
        self.renumber_lanes();
    }

    fn renumber_lanes(&mut self) {
        for (index, lane) in self.lanes.iter().enumerate() {
            self.slots[lane.app.index()].lane = Some(index);
        }
    }

    fn refuse(&mut self, app: AppId, group: Option<GroupId>, reason: Refusal) {
        self.stats.refused += 1;
        self.stats.untold += u64::from(!self.actions.report(Action::Refused { app, group, reason }));
    }
}

/// Groups come, run and end.
impl Scheduler {
    fn submit(&mut self, app: AppId, group: GroupId, kind: GroupKind, estimate: Estimate) {
        let Some(index) = self.lane_of(app) else {
            return self.refuse(app, Some(group), Refusal::UnknownApp);
        };
        let slot = &mut self.slots[app.index()];
        if slot.exiting {
            return self.refuse(app, Some(group), Refusal::Exited);
        }
        if slot.queue.is_full() {
            return self.refuse(app, Some(group), Refusal::QueueFull);
        }
        let margins = &self.config.margins;
        let head = Head {
            conservative: margins.conservative(estimate),
            optimistic: margins.optimistic(estimate),
            order: self.submissions,
        };
        self.submissions += 1;
        slot.exiting = kind == GroupKind::Exit;
        slot.queue.push(Waiting { group, kind, head });

        let lane = &mut self.lanes[index];
        let first_whole = self.config.refresh.period_from(self.now);
        slot.frames.submitted(lane, self.current, first_whole);
        if lane.head.is_none() {
            lane.head = Some(head);
            self.waiting += 1;
            self.untold = true;
        }
        if !lane.front.complete {
            lane.front.enqueued += head.conservative + margins.per_group(self.config.mpcg);
            lane.front.complete = kind.ends_frame();
        }
    }

    /// Takes decisions until no slot is free or nothing may run.
    fn schedule(&mut self) {
        while self.waiting > 0 && self.in_flight.len() < self.config.mpcg as usize {
            self.untold = true;
            self.stats.runs += 1;
            let context = self.context();
            match self.policy.choose(&context, &mut self.lanes) {
                Some(index) => self.dispatch(index, &context),
                None => break,
            }
        }
        if self.untold {
            self.untold = false;
            self.tell_holds();
        }
    }

    fn context(&self) -> Context {
        let margins = &self.config.margins;
        let (free_c, free_o) = self.in_flight.free_at(self.now, self.config.margins.completion_upper);
        Context {
            now: self.now,
            current: self.current,
            free_o: free_o.max(self.now),
            ready_c: free_c.max(self.now + margins.dispatch_upper),
            ready_o: free_o.max(self.now + margins.dispatch_lower),
            config: self.config,
        }
    }

    fn dispatch(&mut self, index: usize, context: &Context) {
        let lane = &mut self.lanes[index];
        let slot = &mut self.slots[lane.app.index()];
        let Some(Waiting { group, kind, head }) = slot.queue.pop() else {
            unreachable!("policies choose lanes with a waiting group");
        };
        let margins = &self.config.margins;
        let per_group = margins.per_group(self.config.mpcg);
        let action = Action::Dispatch {
            app: lane.app,
            group,
            target: lane.target,
            start: context.ready_c,
            reserved: head.conservative,
        };
        self.actions.push(action);
        self.in_flight.push(Flying {
            group,
            app: lane.app,
            generation: slot.generation,
            kind,
            dispatched: self.now,
            conservative: Bound { arrives: self.now + margins.dispatch_upper, runs: head.conservative },
            optimistic: Bound { arrives: self.now + margins.dispatch_lower, runs: head.optimistic },
        });
        lane.head = slot.queue.front().map(|waiting| waiting.head);
        lane.hold = None;
        self.waiting -= usize::from(lane.head.is_none());
        if kind.ends_frame() {
            lane.front = slot.queue.front_ledger(per_group);
            slot.frames.closed(lane, self.current);
            if slot.queue.is_empty() && kind == GroupKind::Swap {
                let at = self.config.refresh.incipient_arrival(lane.target, lane.stride).max(self.now);
                self.actions.push(Action::Release { app: lane.app, at });
            }
        } else {
            lane.front.dispatched += head.conservative + per_group;
        }
        self.stats.dispatched += 1;
    }

    /// Reports each reason for holding a group that differs from the one reported before.
    fn tell_holds(&mut self) {
        for lane in &mut self.lanes {
            if lane.hold.is_none() && lane.head.is_some() {
                // No decision has looked at this group: there was no free slot to decide about.
                lane.hold = Some(Hold::NoSlot);
            }
            if lane.hold != lane.hold_told {
                lane.hold_told = lane.hold;
                if let (Some(reason), Some(_)) = (lane.hold, lane.head) {
                    self.actions.push(Action::Hold { app: lane.app, reason });
                }
            }
        }
    }

    fn complete(&mut self, group: GroupId, finished: Time, _cost: Cost) {
        let Some(position) = self.in_flight.position(group) else {
            return self.refuse(AppId(u32::MAX), Some(group), Refusal::UnknownGroup);
        };
        let finished = self.in_flight.plausible_end(position, finished, self.now);
        for _ in 0..position {
            self.lose_oldest(LostBy::Order, finished);
        }
        if let Some(flying) = self.in_flight.pop(finished) {
            self.stats.completed += 1;
            self.ended(flying, Some(finished));
        }
    }

    fn lose_oldest(&mut self, by: LostBy, finished: Time) {
        if let Some(flying) = self.in_flight.pop(finished) {
            self.stats.lost += 1;
            self.actions.push(Action::Lost { app: flying.app, group: flying.group, by });
            // Known to have ended by then if a later one did; after a time-out nothing is known.
            self.ended(flying, (by == LostBy::Order).then_some(finished));
        }
    }

    /// A dispatched group is over, one way or the other; `finished` if it is known when.
    fn ended(&mut self, flying: Flying, finished: Option<Time>) {
        let slot = &mut self.slots[flying.app.index()];
        let (Some(index), true) = (slot.lane, slot.generation == flying.generation) else {
            return;
        };
        if flying.kind.ends_frame() {
            let lane = &mut self.lanes[index];
            let mut done = slot.frames.finished(lane, finished.unwrap_or(self.now), &self.config.refresh);
            done.met &= finished.is_some();
            if flying.kind == GroupKind::Swap {
                self.actions.push(Action::FrameDone(done));
            } else {
                self.leave(flying.app);
            }
        }
    }
}

/// Checks for tests.
impl Scheduler {
    /// Panics if the state contradicts itself. Costs a pass over everything.
    pub fn check_invariants(&self) {
        let per_group = self.config.margins.per_group(self.config.mpcg);
        let mut waiting = 0;
        assert!(self.lanes.is_sorted_by(|a, b| a.priority > b.priority), "lanes in order, priorities unique");
        for (index, lane) in self.lanes.iter().enumerate() {
            let slot = &self.slots[lane.app.index()];
            assert_eq!(slot.lane, Some(index), "slot and lane point at each other");
            assert_eq!(lane.head, slot.queue.front().map(|front| front.head), "head mirrors the queue");
            waiting += usize::from(lane.head.is_some());
            let mut ledger = slot.queue.front_ledger(per_group);
            let dispatched = lane.front.dispatched;
            ledger.enqueued += dispatched;
            ledger.dispatched = dispatched;
            if ledger.enqueued < Span::FOREVER {
                assert_eq!(lane.front, ledger, "ledger mirrors the first frame");
            }
            slot.frames.check_invariants(lane);
        }
        assert_eq!(waiting, self.waiting, "lanes with a waiting group are counted");
        let attached = self.slots.iter().filter(|slot| slot.lane.is_some()).count();
        assert_eq!(attached, self.lanes.len(), "one lane per attached slot");
        assert!(self.in_flight.len() <= self.config.mpcg as usize, "at most mpcg in flight");
        assert!(self.now < self.next_vsync, "the clock is inside the current period");
    }
}
