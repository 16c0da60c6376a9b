//! Everything runs free, because an invariant was broken.
//!
//! A scheduler that has contradicted itself cannot say any more which app should wait. So none waits: each
//! group goes to the GPU in the order of submissions, as if there were no scheduler. Nothing is judged,
//! nothing is promised, and nothing is known of groups once they went, so that no table can be full.
//! Only the list of attached apps and their queues are still believed; the rest may be wrong.

use super::Scheduler;
use super::frames::Frames;
use super::lane::{Head, Lane};
use super::queue::Waiting;

use crate::app::{AppId, AppParams, GroupId, GroupKind};
use crate::event::{Action, Event, Refusal};
use crate::invariant::{Broken, Invariant};
use crate::time::{Estimate, Span};

impl Scheduler {
    /// Something does not hold. Whatever is under way ends early: nothing waits for a decision, and
    /// nothing is in flight.
    #[cold]
    pub(super) fn break_off(&mut self, what: Invariant, app: Option<AppId>) {
        if self.broken.is_some() {
            return;
        }
        let broken = Broken { what, app, at: self.now };
        self.broken = Some(broken);
        self.actions.push(Action::Broken(broken));
        self.in_flight.clear();
        (self.waiting, self.surplus) = (0, 0);
        for lane in &mut self.lanes {
            (lane.in_flight, lane.on_gpu_due, lane.on_gpu_promised) = (0, None, None);
            (lane.head, lane.hold, lane.protected) = (None, None, false);
        }
    }

    /// Takes an event without a decision.
    #[cold]
    pub(super) fn handle_free(&mut self, event: Event) {
        match event {
            Event::Join { app, params, .. } => self.join_free(app, params),
            Event::Leave { app } => self.leave_free(app),
            Event::Submit { app, group, kind, estimate } => self.submit_free(app, group, kind, estimate),
            Event::EndFrame { app } => self.end_frame_free(app),
            // Nothing depends on any of these.
            Event::Change { .. }
            | Event::Revise { .. }
            | Event::Complete { .. }
            | Event::Refresh { .. }
            | Event::Adjust(_)
            | Event::Focus { .. } => {}
        }
    }

    /// The group that was submitted first of all that wait. What follows from its going comes next.
    #[cold]
    pub(super) fn next_free(&mut self) -> Option<Action> {
        let first = |(_, slot): &(usize, &super::Slot)| slot.queue.front().map(|front| front.head.order);
        let waiting = self.slots.iter().enumerate().filter(|slot| first(slot).is_some());
        let (index, _) = waiting.min_by_key(first)?;
        let queue = &mut self.slots[index].queue;
        let Waiting { group, head, ends_frame, .. } = queue.pop()?;
        let (app, last) = (AppId(u32::try_from(index).unwrap_or(u32::MAX)), queue.is_empty());
        self.stats.dispatched += 1;
        match head.kind {
            // As a display would have it.
            GroupKind::Exit => self.leave_free(app),
            kind if last && (ends_frame || kind == GroupKind::Swap) => self.release_free(app),
            _ => {}
        }
        let (target, start, reserved) = (self.current, self.now, head.length);
        Some(Action::Dispatch { app, group, target, start, reserved })
    }

    /// A frame ends without a group: with those that wait, or now.
    fn end_frame_free(&mut self, app: AppId) {
        if !self.is_attached(app) {
            return self.refuse(app, None, Refusal::UnknownApp);
        }
        if self.slots.get(app.index()).is_some_and(|slot| slot.queue.is_empty()) {
            self.release_free(app);
        }
    }

    /// The next frame may begin when a display would let it.
    fn release_free(&mut self, app: AppId) {
        let at = self.config.refresh.end(self.config.refresh.period_at(self.now));
        self.actions.push(Action::Release { app, at });
    }

    fn is_attached(&self, app: AppId) -> bool {
        self.lanes.iter().any(|lane| lane.app == app)
    }

    fn join_free(&mut self, app: AppId, params: AppParams) {
        // A list that is too long as it is would take memory.
        let room = self.lanes.len() < self.slots.len();
        let taken = self.is_attached(app) || !room;
        let Some(slot) = self.slots.get_mut(app.index()) else {
            return self.refuse(app, None, Refusal::NoSuchSlot);
        };
        if taken {
            return self.refuse(app, None, Refusal::SlotTaken);
        }
        slot.queue.clear();
        slot.frames = Frames::starting_at(self.current);
        slot.exiting = false;
        self.lanes.push(Lane::new(app, params, params.clock.grid(&self.config), self.current));
        self.actions.push(Action::Release { app, at: self.now });
    }

    fn leave_free(&mut self, app: AppId) {
        if !self.is_attached(app) {
            return self.refuse(app, None, Refusal::UnknownApp);
        }
        self.lanes.retain(|lane| lane.app != app);
        let mut dropped = 0;
        if let Some(slot) = self.slots.get_mut(app.index()) {
            dropped = u32::try_from(slot.queue.len()).unwrap_or(u32::MAX);
            slot.queue.clear();
        }
        self.stats.dropped += u64::from(dropped);
        self.actions.push(Action::Left { app, dropped });
    }

    fn submit_free(&mut self, app: AppId, group: GroupId, kind: GroupKind, estimate: Estimate) {
        let attached = self.is_attached(app);
        let (order, submitted) = (self.submissions, self.now);
        let Some(slot) = self.slots.get_mut(app.index()).filter(|_| attached) else {
            return self.refuse(app, Some(group), Refusal::UnknownApp);
        };
        if slot.exiting {
            return self.refuse(app, Some(group), Refusal::Exited);
        }
        if slot.queue.is_full() {
            return self.refuse(app, Some(group), Refusal::QueueFull);
        }
        let head = Head {
            length: self.config.margins.conservative(estimate),
            first: false,
            conservative: self.config.margins.conservative(estimate),
            gap: Span::ZERO,
            way: Span::ZERO,
            optimistic: self.config.margins.optimistic(estimate),
            order,
            submitted,
            kind,
            preempted: false,
        };
        slot.exiting = kind == GroupKind::Exit;
        slot.queue.push(Waiting { group, head, ends_frame: false, booked: false });
        self.submissions += 1;
    }
}
