//! Groups come, run and end.

use super::Scheduler;
use super::in_flight::{Bound, Flying};
use super::lane::{Head, Lane};
use super::queue::Waiting;

use crate::app::{AppId, GroupId, GroupKind};
use crate::event::{Action, Hold, LostBy, Refusal};
use crate::invariant::Invariant;
use crate::limits::IN_FLIGHT_MAX;
use crate::policy::{Context, Ended, Paid};
use crate::time::{Cost, Estimate, Span, Time};

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
        let length = self.config.margins.conservative(estimate);
        let booked_on = self.books(index, kind, length);
        let slot = &mut self.slots[app.index()];
        let begins = !core::mem::replace(&mut slot.open, !kind.ends_frame());
        let first = match booked_on.map(|owner| self.lanes[owner].app.index()) {
            Some(owner) => !core::mem::replace(&mut self.slots[owner].open, true),
            None => begins,
        };
        let head = Head {
            length,
            first,
            conservative: self.charged(booked_on.unwrap_or(index), length, first),
            optimistic: self.config.margins.optimistic(estimate),
            order: self.submissions,
            submitted: self.now,
            kind,
            preempted: false,
        };
        self.submissions += 1;
        let booked = booked_on.is_some();
        self.enqueue(index, Waiting { group, head, ends_frame: kind.ends_frame(), booked }, begins);
        if let Some(owner) = booked_on {
            self.book(owner, &head);
        }
        self.settle_heads(index);
        let lane = &self.lanes[index];
        let was_idle = self.slots[app.index()].queue.len() == 1 && lane.in_flight == 0;
        self.policy.submitted(self.now, lane, was_idle);
    }

    /// A group of the lane at `index` comes, with which a frame of its app `begins` or not.
    fn enqueue(&mut self, index: usize, waiting: Waiting, begins: bool) {
        let Waiting { head, booked, .. } = waiting;
        let slot = &mut self.slots[self.lanes[index].app.index()];
        slot.last = head.order;
        slot.exiting = head.kind == GroupKind::Exit;
        slot.queue.push(waiting);
        // While its groups are part of other frames, it has no account that would show that a frame is open.
        if !booked || begins && slot.queue.len() == 1 {
            self.begin(index);
        } else {
            slot.jobs.begin(self.now);
        }
        let lane = &mut self.lanes[index];
        if waiting.ends_frame {
            self.slots[lane.app.index()].jobs.close();
        }
        lane.came(&waiting);
        if lane.head.is_none() {
            self.untold = true;
            lane.head = Some(head);
            self.waiting += 1;
        }
        if !lane.front.complete {
            if !booked {
                lane.front.enqueued += head.conservative + self.config.per_group();
            }
            lane.front.complete = head.kind.ends_frame();
        }
    }

    /// The app of the lane at `index` does something for its open frame, which may begin with it.
    pub(super) fn begin(&mut self, index: usize) {
        let lane = &mut self.lanes[index];
        let silent = lane.is_silent(self.now, self.config.tuning.suspend_after);
        let slot = &mut self.slots[lane.app.index()];
        slot.frames.submitted(lane, self.now);
        slot.jobs.begin(self.now);
        if silent {
            lane.returning = Some(lane.target);
        }
        let own = lane.clock.is_own().then(|| lane.due_of(lane.target));
        if let Some(due) = slot.jobs.next_due().or(own) {
            self.next_judgement = self.next_judgement.min(due + self.config.margins.completion_upper);
        }
    }

    /// Takes decisions until no slot is free or nothing may run.
    pub(super) fn schedule(&mut self) {
        if self.config.gpu.gives_back() {
            self.preempt();
        }
        self.look_at_ends(|_| false);
        while self.waiting > 0 && (self.has_place() || self.has_spare_place()) {
            self.untold = true;
            self.stats.runs += 1;
            self.tell_turns();
            let context = self.context();
            match self.policy.choose(&context, &mut self.lanes) {
                Some(index) if !self.guard_choice(index) => break,
                // Divisible work has a place of its own.
                Some(index) if self.lanes[index].divisible => break,
                Some(index) if self.has_place() || self.lanes[index].has_budget() => {
                    self.dispatch(index, &context);
                    self.surplus = 0;
                }
                Some(_) | None => break,
            }
        }
        self.fill_divisible_place();
        if self.untold {
            self.untold = false;
            self.tell_holds();
        }
    }

    /// Lets a divisible group in beside whatever is in flight, if none is there.
    fn fill_divisible_place(&mut self) {
        let waits = |lane: &Lane| lane.divisible && lane.head.is_some();
        let wanted = self.config.divisible.is_some() && self.lanes.iter().any(waits);
        if !wanted || !self.in_flight.has_divisible_place() {
            return;
        }
        let context = self.context();
        let choice = self.policy.choose_divisible(&context, &mut self.lanes);
        if let Some(index) = choice.filter(|index| self.guard_choice(*index)) {
            self.dispatch(index, &context);
        }
    }

    /// Whether groups end in any order and no choice is binding, so that one more can go beside those
    /// that were chosen.
    pub(super) fn serves_in_turn(&self) -> bool {
        self.config.gpu.is_time_shared() && self.policy.chooses_freely()
    }

    /// Whether one more group may be in flight.
    ///
    /// Where groups end in any order, one that is late keeps no place: its app may do something else
    /// altogether, compile a shader say, and the others need not wait for that.
    pub(super) fn has_place(&self) -> bool {
        self.in_flight.len() < IN_FLIGHT_MAX && self.places() < self.config.mpcg as usize
    }

    /// Whether an app with reserved time waits that may have one place more than there are, if it is
    /// its turn.
    ///
    /// A GPU that serves processes in turn begins with its group at once, and nothing is won by
    /// letting it wait for one of the others to end.
    pub(super) fn has_spare_place(&self) -> bool {
        self.serves_in_turn()
            && self.in_flight.len() < IN_FLIGHT_MAX
            && self.places() == self.config.mpcg as usize
            && self.lanes.iter().any(|lane| lane.head.is_some() && lane.has_budget())
    }

    /// How many groups in flight keep a place.
    pub(super) fn places(&self) -> usize {
        if self.config.gpu.is_time_shared() {
            self.in_flight.places(self.now)
        } else {
            self.in_flight.chained()
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
            in_flight: self.in_flight.chained(),
            newest: self.in_flight.newest().map(|flying| flying.app),
            config: self.config,
        }
    }

    /// The first waiting group of a lane goes to the GPU.
    fn dispatch(&mut self, index: usize, context: &Context) {
        let lane = &self.lanes[index];
        let from = self.lane_of_head(index);
        let app = self.lanes[from].app;
        let Some(front) = self.slots[app.index()].queue.front() else {
            return self.break_off(Invariant::Head, Some(app));
        };
        let (length, runs) = self.stretched(lane, &front.head);
        self.actions.push(Action::Dispatch {
            app,
            group: front.group,
            target: lane.target,
            start: context.ready_c,
            reserved: length,
        });
        let paid = self.policy.dispatched(context, &self.lanes, from);
        if let Some(mut flying) = self.take_front(from) {
            flying.conservative.runs = runs;
            if let Some(Paid { by, due }) = paid {
                flying.contract = (by != app).then(|| (by, self.slots[by.index()].generation));
                flying.due = due;
            }
            if self.lanes[index].divisible {
                self.in_flight.push_divisible(flying);
            } else {
                // Turns of divisible work are paid by each group that waits for them.
                self.takes_turn(&flying);
                self.in_flight.push(flying);
            }
            if self.config.gpu.is_time_shared() {
                let itself = (flying.app, flying.generation);
                [Some(itself), flying.contract].into_iter().flatten().for_each(|app| self.look_at_end(app));
            }
            self.stats.dispatched += 1;
        }
        self.guard_places(app);
    }

    /// Looks anew for what is due first on the GPU for that app.
    pub(super) fn look_at_end(&mut self, (app, generation): (AppId, u32)) {
        let slot = &self.slots[app.index()];
        if let Some(index) = slot.lane.filter(|_| slot.generation == generation) {
            self.lanes[index].on_gpu_due = self.in_flight.due(app, generation, self.now);
        }
    }

    /// How long the group may be that is about to be dispatched, without and with switches: what was asked for,
    /// or more of it where no other app needs that time.
    fn stretched(&self, lane: &Lane, head: &Head) -> (Span, Span) {
        let stretch = self.config.tuning.stretch;
        if lane.protected && (self.excludes() || self.per_source(lane) > Span::ZERO) {
            return (head.length, head.length + lane.turn.enters + self.config.delay(head.length));
        }
        if lane.has_budget() || lane.protected || head.kind != GroupKind::Draw || head.conservative >= stretch
        {
            return (head.length, head.conservative);
        }
        // Nothing waits for the end of divisible work.
        let room = if lane.divisible { Span::FOREVER } else { self.policy.room() };
        let runs = head.conservative.max(room.min(stretch));
        (self.config.length_within(runs).max(head.length), runs)
    }

    /// The first waiting group of a lane leaves its queue for the GPU.
    fn take_front(&mut self, index: usize) -> Option<Flying> {
        let booked_on = self.booked_on(index);
        let lane = &mut self.lanes[index];
        let slot = &mut self.slots[lane.app.index()];
        let waiting = slot.queue.pop()?;
        let Waiting { group, head, .. } = waiting;
        let (app, generation) = (lane.app, slot.generation);
        lane.went(&waiting);
        lane.hold = None;
        lane.in_flight += 1;
        let next = slot.queue.front().map(|waiting| waiting.head);
        self.set_head(index, next);
        self.settle_heads(index);
        let margins = &self.config.margins;
        let framed = &self.lanes[booked_on.unwrap_or(index)];
        let owner = booked_on.map(|_| (framed.app, self.slots[framed.app.index()].generation));
        let flying = Flying {
            group,
            app,
            generation,
            contract: owner,
            booked: waiting.booked,
            alone: framed.protected,
            head,
            dispatched: self.now,
            conservative: Bound { arrives: self.now + margins.dispatch_upper, runs: head.conservative },
            optimistic: Bound { arrives: self.now + margins.dispatch_lower, runs: head.optimistic },
            late_from: Time::NEVER,
            due: framed.due_of(framed.target),
        };
        self.account_front(index, booked_on, &waiting);
        Some(flying)
    }

    /// The last group of the front frame of a lane has left its queue.
    pub(super) fn close_front(&mut self, index: usize, last: &Head) {
        let lane = &mut self.lanes[index];
        let slot = &mut self.slots[lane.app.index()];
        let per_group = self.config.per_group();
        let beyond = lane.front.dispatched + last.conservative + per_group > lane.etpf
            || last.conservative > self.config.tuning.group_max
            || !lane.is_protected_now();
        // What waits of a source is behind what it has on other frames.
        let waiting = lane.head.or_else(|| slot.queue.front().map(|front| front.head));
        let next = waiting.map(|waiting| waiting.submitted);
        if last.kind.ends_frame() {
            slot.frames.closed(lane, self.now, slot.ends.first_behind(last.order).or(next));
        }
        slot.ends.close(last.order, &mut slot.frames, lane, (self.now, next));
        self.lanes[index].front = self.front_ledger(index);
        let lane = &mut self.lanes[index];
        if beyond && lane.is_behind(self.now) {
            lane.returning = Some(lane.target);
        }
        if self.slots[lane.app.index()].queue.is_empty() && last.kind != GroupKind::Exit {
            self.release(index);
        }
    }

    /// Takes groups back from the GPU as long as the policy wants to, the last one first.
    fn preempt(&mut self) {
        while let Some(newest) = self.in_flight.newest() {
            let slot = &self.slots[newest.app.index()];
            let (Some(index), true) = (slot.lane, slot.generation == newest.generation) else {
                return;
            };
            let context = self.context();
            if self.lanes[index].service.uninterruptible
                || !self.policy.preempts(&context, &self.lanes, index)
            {
                return;
            }
            self.put_back(index);
        }
    }

    /// The group that was dispatched last, of the lane at `index`, waits again.
    fn put_back(&mut self, index: usize) {
        let Some((flying, ran)) = self.in_flight.withdraw(self.now) else {
            return;
        };
        let lane = &mut self.lanes[index];
        let slot = &mut self.slots[lane.app.index()];
        let per_group = self.config.per_group();
        let before = flying.head;
        let head = Head {
            length: left(before.length, ran),
            conservative: left(before.conservative, ran),
            optimistic: left(before.optimistic, ran),
            preempted: true,
            ..before
        };
        let closed = u32::from(head.kind.ends_frame()) + slot.ends.behind(head.order);
        slot.ends.reopen(head.order);
        let waiting = Waiting { group: flying.group, head, ends_frame: closed > 0, booked: false };
        slot.queue.push_front(waiting);
        lane.came(&waiting);
        lane.in_flight -= 1;
        let mut dispatched = Span::ZERO;
        if closed > 0 {
            // What went before it in its frame was forgotten when the frame was closed.
            slot.frames.reopened(lane, closed);
        } else {
            dispatched = left(lane.front.dispatched, before.conservative + per_group);
        }
        self.set_head(index, Some(head));
        self.settle_heads(index);
        self.lanes[index].front = self.front_ledger(index).after(dispatched);
        self.stats.preempted += 1;
        self.actions.push(Action::Preempt { app: flying.app, group: flying.group });
        self.guard_lane(flying.app);
    }

    /// Reports each reason for holding a group that differs from the one reported before.
    fn tell_holds(&mut self) {
        self.tell_sources();
        for lane in &mut self.lanes {
            if lane.hold.is_none() && lane.head.is_some() {
                // No decision has looked at this group: there was no free slot to decide about.
                lane.hold = Some(Hold::NoSlot);
            }
            if lane.hold != lane.hold_told {
                lane.hold_told = lane.hold;
                if let Some(reason) = lane.hold.filter(|_| lane.waiting > 0) {
                    self.actions.push(Action::Hold { app: lane.app, reason });
                }
            }
        }
    }

    pub(super) fn complete(&mut self, group: GroupId, finished: Time, cost: Cost, frames: u32) {
        if let Some(flying) = self.in_flight.take_divisible(group) {
            self.stats.completed += 1;
            let finished = finished.max(flying.dispatched).min(self.now);
            return self.ended(flying, Some(finished), cost.span(), frames);
        }
        let Some(position) = self.in_flight.position(group) else {
            return self.complete_taken_back(group, finished, cost, frames);
        };
        let ended_last = self.in_flight.all_ended_by(finished);
        let finished = self.in_flight.plausible_end(position, finished, self.now);
        if self.config.gpu.is_time_shared() {
            if let Some(flying) = self.in_flight.remove(position, finished) {
                if ended_last {
                    self.is_back(&flying);
                }
                self.stats.completed += 1;
                // The turns of others are no part of what it cost, but of what it was believed to take.
                let occupied = cost.span() + self.config.delay(cost.span());
                self.ended(flying, Some(finished), occupied, frames);
            }
            return;
        }
        for _ in 0..position {
            self.lose(LostBy::Order, finished);
        }
        let begun = self.in_flight.oldest_begun();
        if let Some(flying) = self.in_flight.pop(finished) {
            self.stats.completed += 1;
            self.ended(flying, Some(finished), finished.since(begun), frames);
        }
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
            self.ended(flying, Some(finished.min(self.now)), cost.span(), frames);
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
            self.ended(flying, known, finished.since(begun), 0);
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
        self.ended(flying, None, self.now.since(dispatched), 0);
        true
    }

    /// A dispatched group is over, one way or the other; `finished` if it is known when. So many
    /// `frames` ended inside of it.
    fn ended(&mut self, flying: Flying, finished: Option<Time>, occupied: Span, frames: u32) {
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
        let kind = flying.head.kind;
        // Where contexts take turns, switches are no part of what a group is measured to take.
        let believed = match self.config.gpu.is_time_shared() {
            true => flying.head.length + self.config.delay(flying.head.length),
            false => flying.head.conservative,
        };
        let ended = Ended { finished: finished.unwrap_or(self.now), occupied, believed, kind };
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

/// What is left of `whole`; of something without an end, everything.
fn left(whole: Span, gone: Span) -> Span {
    if whole == Span::FOREVER { whole } else { whole.saturating_sub(gone) }
}
