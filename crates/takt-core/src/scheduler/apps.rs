//! Apps come, change and go.

use super::Scheduler;
use super::frames::Frames;
use super::lane::Lane;

use crate::app::{AppId, AppParams, GroupId};
use crate::event::{Action, Refusal};
use crate::limits::LOOKAHEAD_MAX;
use crate::refresh::lcm;
use crate::time::Span;

/// An app that joins behind groups of unknown length starts after this time all the same.
const JOIN_DELAY_MAX: Span = Span::from_ms(1000);

impl Scheduler {
    pub(super) fn join(&mut self, app: AppId, params: AppParams, phase: u32) {
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

    pub(super) fn change(&mut self, app: AppId, params: AppParams) {
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

    pub(super) fn leave(&mut self, app: AppId) {
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

    pub(super) fn lane_of(&self, app: AppId) -> Option<usize> {
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

    pub(super) fn refuse(&mut self, app: AppId, group: Option<GroupId>, reason: Refusal) {
        self.stats.refused += 1;
        self.stats.untold += u64::from(!self.actions.report(Action::Refused { app, group, reason }));
    }
}
