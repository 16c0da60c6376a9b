//! Groups end, or are given up.

use super::Scheduler;
use super::in_flight::Flying;
use super::lane::Lane;

use crate::app::{AppId, GroupId, GroupKind};
use crate::event::{Action, LostBy, Refusal};
use crate::policy::Ended;
use crate::time::{Cost, Span, Time};

/// How a group ended.
struct Over {
    /// When, if that is known.
    finished: Option<Time>,
    /// How long it can have occupied the GPU.
    occupied: Span,
    /// By how much earlier the GPU is free for another group, because it ended.
    freed: Span,
    /// How many frames ended inside of it.
    frames: u32,
}

impl Default for Over {
    fn default() -> Self {
        // In order, what a group did not use is free at once.
        Self { finished: None, occupied: Span::ZERO, freed: Span::FOREVER, frames: 0 }
    }
}

impl Scheduler {
    pub(super) fn complete(&mut self, group: GroupId, finished: Time, cost: Cost, frames: u32) {
        if let Some(flying) = self.in_flight.take_divisible(group) {
            self.stats.completed += 1;
            let finished = finished.max(flying.dispatched).min(self.now);
            let (finished, occupied) = (Some(finished), cost.span());
            return self.ended(flying, Over { finished, occupied, frames, ..Over::default() });
        }
        let Some(position) = self.in_flight.position(group) else {
            return self.complete_taken_back(group, finished, cost, frames);
        };
        let ended_last = self.in_flight.all_ended_by(finished);
        let finished = self.in_flight.plausible_end(position, finished, self.now);
        if self.config.gpu.is_time_shared() {
            let before = self.free_from();
            if let Some(flying) = self.in_flight.remove(position, finished) {
                if ended_last {
                    self.is_back(&flying);
                }
                self.stats.completed += 1;
                // The turns of others are no part of what it cost, but of what it was believed to take.
                let occupied = cost.span() + self.config.delay(cost.span());
                let (finished, freed) = (Some(finished), before.since(self.free_from()));
                self.ended(flying, Over { finished, occupied, freed, frames });
            }
            return;
        }
        for _ in 0..position {
            self.lose(LostBy::Order, finished);
        }
        let begun = self.in_flight.oldest_begun();
        if let Some(flying) = self.in_flight.pop(finished) {
            self.stats.completed += 1;
            let (finished, occupied) = (Some(finished), finished.since(begun));
            self.ended(flying, Over { finished, occupied, frames, ..Over::default() });
        }
    }

    /// From when on the GPU is free for a group that is picked now.
    fn free_from(&self) -> Time {
        let margins = &self.config.margins;
        let (free, _) = self.in_flight.free_at(self.now, margins.completion_upper);
        free.max(self.now + margins.dispatch_upper)
    }

    /// A group that was taken back had finished just before.
    fn complete_taken_back(&mut self, group: GroupId, finished: Time, cost: Cost, frames: u32) {
        let taken_back = |lane: &Lane| {
            let front = self.slots[lane.app.index()].queue.front();
            front.is_some_and(|waiting| waiting.group == group && waiting.head.preempted)
        };
        let Some(index) = self.lanes.iter().position(taken_back) else {
            return self.refuse(AppId(u32::MAX), Some(group), Refusal::UnknownGroup);
        };
        if let Some(flying) = self.take_front(index) {
            self.stats.completed += 1;
            self.ended_waiting += 1;
            let (finished, occupied) = (Some(finished.min(self.now)), cost.span());
            self.ended(flying, Over { finished, occupied, frames, ..Over::default() });
        }
    }

    /// The end of the oldest group will not be told any more.
    pub(super) fn lose(&mut self, by: LostBy, finished: Time) {
        let begun = self.in_flight.oldest_begun();
        if let Some(flying) = self.in_flight.pop(finished) {
            self.stats.lost += 1;
            self.actions.push(Action::Lost { app: flying.app, group: flying.group, by });
            // Known to have ended by then if a later one did; after a time-out nothing is known.
            let known = (by == LostBy::Order).then_some(finished);
            self.ended(flying, Over { finished: known, occupied: finished.since(begun), ..Over::default() });
        }
    }

    /// Gives up the divisible group if its end was not told in time; says whether it did.
    pub(super) fn lose_divisible(&mut self) -> bool {
        let Some(flying) = self.in_flight.take_overdue(self.now, self.config.completion_timeout) else {
            return false;
        };
        let Flying { app, group, dispatched, .. } = flying;
        self.stats.lost += 1;
        self.actions.push(Action::Lost { app, group, by: LostBy::Timeout });
        self.ended(flying, Over { occupied: self.now.since(dispatched), ..Over::default() });
        true
    }

    /// A dispatched group is over, one way or the other.
    fn ended(&mut self, flying: Flying, over: Over) {
        let Over { finished, occupied, freed, frames } = over;
        self.look_at_contract(&flying, finished);
        let slot = &self.slots[flying.app.index()];
        let (Some(index), true) = (slot.lane, slot.generation == flying.generation) else {
            return;
        };
        if self.lanes[index].on_gpu_due.is_some() {
            self.look_at_end((flying.app, flying.generation));
        }
        let lane = &mut self.lanes[index];
        lane.in_flight -= 1;
        lane.pause.since = self.now;
        let kind = flying.head.kind;
        // Where contexts take turns, switches are no part of what a group is measured to take.
        let believed = match self.config.gpu.is_time_shared() {
            true => flying.head.length + self.config.delay(flying.head.length),
            false => flying.head.conservative,
        };
        let ended = Ended { finished: finished.unwrap_or(self.now), occupied, believed, freed, kind };
        self.policy.ended(self.now, &ended, lane);
        if frames > 0 {
            // What is waiting belongs to a frame of its own.
            self.lanes[index].front = self.front_ledger(index);
            self.begins_with_front(index);
        }
        self.finish_within(index, ended.finished, frames);
        if kind == GroupKind::Exit {
            return self.leave(flying.app);
        }
        if kind.ends_frame() {
            let mut done = self.finish_frame(index, ended.finished, flying.due);
            done.met &= finished.is_some();
            self.actions.push(Action::FrameDone(done));
        }
        self.tell_done(index, finished);
        let lane = &self.lanes[index];
        if lane.in_flight == 0 && lane.divisible != self.divides(index) {
            // It has been something else since it was told so.
            self.protect();
        }
        self.guard_end(flying.app);
    }
}
