//! Groups come, run and end.

use super::Scheduler;
use super::in_flight::{Bound, Flying};
use super::lane::Head;
use super::queue::Waiting;

use crate::app::{AppId, GroupId, GroupKind};
use crate::event::{Action, Hold, LostBy, Refusal};
use crate::policy::Context;
use crate::time::{Cost, Estimate, Time};

impl Scheduler {
    pub(super) fn submit(&mut self, app: AppId, group: GroupId, kind: GroupKind, estimate: Estimate) {
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
    pub(super) fn schedule(&mut self) {
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

    pub(super) fn complete(&mut self, group: GroupId, finished: Time, _cost: Cost) {
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

    pub(super) fn lose_oldest(&mut self, by: LostBy, finished: Time) {
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
