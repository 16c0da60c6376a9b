//! Apps come, change and go.

use core::cmp::Reverse;

use super::Scheduler;
use super::frames::Frames;
use super::lane::Lane;

use crate::app::{AppId, AppParams, GroupId};
use crate::clock::Clock;
use crate::contract;
use crate::event::{Action, Hold, Refusal};
use crate::limits::{DISPLAYS_MAX, LOOKAHEAD_MAX, OWN_PERIODS};
use crate::refresh::lcm;
use crate::service::Reservation;
use crate::time::Span;

impl Scheduler {
    pub(super) fn join(&mut self, app: AppId, params: AppParams, phase: u32) {
        let params = params.framed();
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
        let free = free.min(self.now + self.config.tuning.join_delay_max);
        let grid = params.clock.grid(&self.config);
        let grid = if params.clock.is_own() { grid.with_origin(self.now) } else { grid };
        let target = grid.period_from(free.max(self.now)) + lead + u64::from(phase);
        let slot = &mut self.slots[app.index()];
        slot.frames = Frames::starting_at(target);
        slot.jobs.reset();
        (slot.exiting, slot.open) = (false, false);
        slot.queue.clear();
        slot.ends.clear();
        slot.priority = params.priority;
        slot.told = params.priority;
        self.lanes.push(Lane::new(app, params, grid, target));
        self.rank();
        if let Some(index) = self.lane_of(app) {
            self.release(index);
        }
    }

    pub(super) fn change(&mut self, app: AppId, params: AppParams) {
        let params = params.framed();
        let Some(index) = self.lane_of(app) else {
            return self.refuse(app, None, Refusal::UnknownApp);
        };
        if let Err(reason) = self.admissible(app, params) {
            return self.refuse(app, None, reason);
        }
        let lane = &mut self.lanes[index];
        let slot = &mut self.slots[app.index()];
        let before = lane.stride;
        let mut asleep = false;
        let breaks = contract::has_contract(&lane.params()) && !contract::has_contract(&params);
        slot.priority = params.priority;
        slot.told = params.priority;
        lane.stride = params.stride;
        lane.etpf = params.etpf;
        lane.service = params.service;
        lane.pause.left = lane.pause.left.min(params.service.gaps.count);
        if lane.clock != params.clock {
            lane.clock = params.clock;
            lane.tail = params.clock.tail();
            let grid = params.clock.grid(&self.config);
            lane.grid = if params.clock.is_own() { grid.with_origin(self.now) } else { grid };
            slot.frames.restarted(lane, self.now);
            asleep = slot.queue.is_empty();
        } else if before != lane.stride {
            slot.frames.stride_changed(lane, before, lane.period_at(self.now));
            asleep = slot.queue.is_empty();
        }
        if breaks {
            self.forget_holds(|hold| hold.promised() == Some(app));
        }
        self.rank();
        if let (Some(index), true) = (self.lane_of(app), asleep) {
            // It may sleep towards the old deadline.
            self.release(index);
        }
    }

    /// Groups that were held for these reasons are not any more. If no decision finds others, they wait for a slot.
    fn forget_holds(&mut self, wrong: impl Fn(Hold) -> bool) {
        for lane in self.lanes.iter_mut().filter(|lane| lane.hold.is_some_and(&wrong)) {
            lane.hold = None;
            self.untold = true;
        }
    }

    /// The app of the lane at `index` may start the frame that it is at.
    pub(super) fn release(&mut self, index: usize) {
        let lane = &self.lanes[index];
        // An app with a clock of its own decides when it starts.
        let planned = if lane.clock.is_own() { self.now } else { lane.release_of(lane.target).max(self.now) };
        let at = self.policy.release(self.now, lane, planned, &lane.grid);
        self.actions.push(Action::Release { app: lane.app, at });
    }

    /// The focus moves; an app that is not attached may have it, too.
    pub(super) fn set_focus(&mut self, app: Option<AppId>) {
        self.focus = app;
        self.rank();
    }

    pub(super) fn leave(&mut self, app: AppId) {
        let Some(index) = self.lane_of(app) else {
            return self.refuse(app, None, Refusal::UnknownApp);
        };
        let slot = &mut self.slots[app.index()];
        let dropped = u32::try_from(slot.queue.len()).unwrap_or(u32::MAX);
        self.stats.dropped += u64::from(dropped);
        self.waiting -= usize::from(self.lanes[index].head.is_some());
        slot.queue.clear();
        slot.lane = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.lanes.remove(index);
        self.turns.forget(app);
        self.forget_holds(|hold| hold.names() == Some(app));
        self.rank();
        self.actions.push(Action::Left { app, dropped });
    }

    /// Whether `app` may have these parameters beside all others.
    fn admissible(&self, app: AppId, params: AppParams) -> Result<(), Refusal> {
        let others = || self.lanes.iter().filter(|lane| lane.app != app);
        let has_priority = |lane: &&Lane| self.slots[lane.app.index()].priority == params.priority;
        if let Some(by) = others().find(has_priority) {
            return Err(Refusal::PriorityTaken { by: by.app, priority: params.priority });
        }
        match params.clock {
            Clock::Display(display) if usize::from(display.0) >= DISPLAYS_MAX => {
                return Err(Refusal::NoSuchDisplay);
            }
            Clock::Own { period, deadline }
                if !OWN_PERIODS.contains(&period) || deadline == Span::ZERO || deadline > period =>
            {
                return Err(Refusal::ImpossibleClock);
            }
            _ => {}
        }
        if self.feeds_itself(app, params) {
            return Err(Refusal::FeedsItself);
        }
        if self.is_source_of_source(app, params) {
            return Err(Refusal::SourceOfSource);
        }
        let periods = others().fold(params.stride.periods(), |acc, lane| lcm(acc, lane.stride.periods()));
        if periods + 2 > LOOKAHEAD_MAX {
            return Err(Refusal::LookaheadTooLong { periods });
        }
        Ok(())
    }

    pub(super) fn lane_of(&self, app: AppId) -> Option<usize> {
        self.slots.get(app.index())?.lane
    }

    /// Whether the chain of consumers that begins at `app` comes back to it.
    fn feeds_itself(&self, app: AppId, params: AppParams) -> bool {
        let after = |consumer: &AppId| self.lanes[self.lane_of(*consumer)?].service.feeds;
        let chain = core::iter::successors(params.service.feeds, after);
        // Without a circle, no app occurs twice.
        chain.take(self.lanes.len() + 1).any(|consumer| consumer == app)
    }

    /// Whether a chain would come of what `app` shares: what one app has is shared by others at first hand only.
    fn is_source_of_source(&self, app: AppId, params: AppParams) -> bool {
        let Reservation::Shared(owner) = params.service.reservation else {
            return false;
        };
        let shares = |lane: &Lane| match lane.service.reservation {
            Reservation::Shared(with) => lane.app == owner || with == app,
            _ => false,
        };
        owner == app || self.lanes.iter().filter(|lane| lane.app != app).any(shares)
    }

    /// Puts the lanes in order after any change of apps or focus, and tells the policy.
    ///
    /// Of the apps with automatic priority, the one with the focus takes the highest of their
    /// priorities, and those it passes take the next lower one each: priorities stay unique.
    fn rank(&mut self) {
        for lane in &mut self.lanes {
            lane.priority = self.slots[lane.app.index()].priority;
        }
        self.lanes.sort_unstable_by_key(|lane| Reverse(lane.priority));
        let focused = |lane: &Lane| lane.service.follows_focus && Some(lane.app) == self.focus;
        if let Some(mut at) = self.lanes.iter().position(focused) {
            for above in (0..at).rev() {
                if self.lanes[above].service.follows_focus {
                    let priority = self.lanes[above].priority;
                    self.lanes[above].priority = self.lanes[at].priority;
                    self.lanes[at].priority = priority;
                    self.lanes.swap(above, at);
                    at = above;
                }
            }
        }
        for (index, lane) in self.lanes.iter().enumerate() {
            let slot = &mut self.slots[lane.app.index()];
            slot.lane = Some(index);
            if slot.told != lane.priority {
                slot.told = lane.priority;
                let ranked = Action::Ranked { app: lane.app, priority: lane.priority };
                self.stats.untold += u64::from(!self.actions.report(ranked));
            }
        }
        self.find_sources();
        self.find_jobs();
        self.protect();
        self.policy.apps_changed(self.now, &self.lanes);
    }

    pub(super) fn refuse(&mut self, app: AppId, group: Option<GroupId>, reason: Refusal) {
        self.stats.refused += 1;
        self.stats.untold += u64::from(!self.actions.report(Action::Refused { app, group, reason }));
    }
}
