//! Groups come, and go to the GPU.

use super::Scheduler;
use super::gaps::Comes;
use super::in_flight::{Bound, Flying};
use super::lane::{Head, Lane};
use super::queue::Waiting;

use crate::app::{AppId, GroupId, GroupKind};
use crate::contract;
use crate::event::{Action, Hold, Refusal};
use crate::invariant::Invariant;
use crate::limits::IN_FLIGHT_MAX;
use crate::policy::{Context, Paid};
use crate::time::{Estimate, Span, Time};

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
        let Comes { first, gap, way } = match booked_on.map(|owner| self.lanes[owner].app.index()) {
            Some(owner) => Comes::within(!core::mem::replace(&mut self.slots[owner].open, true)),
            None => self.comes(index, begins),
        };
        let head = Head {
            length,
            first,
            conservative: self.charged(booked_on.unwrap_or(index), length, first),
            gap,
            way,
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
                lane.front.enqueued += head.taken(self.config.per_group());
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
        while self.waiting > 0 && (self.has_slot() || self.has_spare_slot()) {
            self.untold = true;
            self.stats.runs += 1;
            self.tell_turns();
            let context = self.context();
            match self.policy.choose(&context, &mut self.lanes) {
                Some(index) if !self.guard_choice(index) => break,
                // Divisible work has a slot of its own.
                Some(index) if self.lanes[index].divisible => break,
                Some(index) if self.has_slot() || self.lanes[index].has_budget() => {
                    self.dispatch(index, &context);
                    self.surplus = 0;
                }
                Some(_) | None => break,
            }
        }
        self.fill_divisible_slot();
        if self.untold {
            self.untold = false;
            self.tell_holds();
        }
    }

    /// Lets a divisible group in beside whatever is in flight, if none is there.
    fn fill_divisible_slot(&mut self) {
        let waits = |lane: &Lane| lane.divisible && lane.head.is_some();
        let wanted = self.config.divisible.is_some() && self.lanes.iter().any(waits);
        if !wanted || !self.in_flight.has_divisible_slot() {
            return;
        }
        let context = self.context();
        let choice = self.policy.choose_divisible(&context, &mut self.lanes);
        if let Some(index) = choice.filter(|index| self.guard_choice(*index)) {
            self.dispatch(index, &context);
            self.untold = true;
        }
    }

    /// Whether groups end in any order and no choice is binding, so that one more can go beside those
    /// that were chosen.
    pub(super) fn serves_in_turn(&self) -> bool {
        self.config.gpu.is_time_shared() && self.policy.chooses_freely()
    }

    /// Whether one more group may be in flight.
    ///
    /// Where groups end in any order, one that is late keeps no slot: its app may do something else
    /// altogether, compile a shader say, and the others need not wait for that.
    pub(super) fn has_slot(&self) -> bool {
        self.in_flight.len() < IN_FLIGHT_MAX && self.slots() < self.config.mpcg as usize
    }

    /// Whether an app with reserved time waits that may have one slot more than there are, if it is
    /// its turn.
    ///
    /// A GPU that serves processes in turn begins with its group at once, and nothing is won by
    /// letting it wait for one of the others to end.
    pub(super) fn has_spare_slot(&self) -> bool {
        self.serves_in_turn()
            && self.in_flight.len() < IN_FLIGHT_MAX
            && self.slots() == self.config.mpcg as usize
            && self.lanes.iter().any(|lane| lane.head.is_some() && lane.has_budget())
    }

    /// How many groups in flight keep a slot.
    pub(super) fn slots(&self) -> usize {
        if self.config.gpu.is_time_shared() {
            self.in_flight.slots(self.now)
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
            free_c,
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
        // Groups beside others have paid for all changes.
        let enters = if lane.is_kept_apart() { lane.turn.enters } else { self.config.gpu.switch() };
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
            flying.enters = enters;
            if let Some(Paid { by, due, promised }) = paid {
                flying.contract = (by != app).then(|| (by, self.slots[by.index()].generation));
                (flying.due, flying.promised) = (due, promised);
            }
            if self.lanes[index].divisible {
                self.in_flight.push_divisible(flying);
            } else {
                // Turns of divisible work are paid by each group that waits for them.
                self.takes_turn(&flying);
                self.lanes[index].pause.ends_by = self.in_flight.push(flying);
            }
            if self.config.gpu.is_time_shared() {
                let itself = (flying.app, flying.generation);
                [Some(itself), flying.contract].into_iter().flatten().for_each(|app| self.look_at_end(app));
            }
            self.stats.dispatched += 1;
        }
        self.settle_holds(index);
        self.guard_slots(app);
    }

    /// Time was kept free for the group of the lane at `index` that was dispatched. If its app has no contract and
    /// nothing waits any more, groups that were held for that are behind it now.
    fn settle_holds(&mut self, index: usize) {
        let lane = &self.lanes[index];
        if lane.head.is_some() || contract::has_contract(&lane.params()) {
            return;
        }
        let app = lane.app;
        for lane in self.lanes.iter_mut().filter(|lane| lane.hold == Some(Hold::Protects { app })) {
            lane.hold = Some(Hold::Behind { app });
        }
    }

    /// Looks anew for what is due first on the GPU for that app.
    pub(super) fn look_at_end(&mut self, (app, generation): (AppId, u32)) {
        let slot = &self.slots[app.index()];
        let counts = self.config.gpu.later_work_delays() && slot.generation == generation;
        if let Some(index) = slot.lane.filter(|_| counts) {
            let lane = &mut self.lanes[index];
            (lane.on_gpu_due, lane.on_gpu_promised) = self.in_flight.due(app, generation, self.now);
        }
    }

    /// How long the group may be that is about to be dispatched, without and with switches: what was asked for,
    /// or more of it where no other app needs that time.
    fn stretched(&self, lane: &Lane, head: &Head) -> (Span, Span) {
        let stretch = self.config.tuning.stretch;
        if lane.is_kept_apart() && (self.excludes() || self.per_source(lane) > Span::ZERO) {
            return (head.length, head.length + lane.turn.enters + self.config.delay(head.length));
        }
        if lane.has_budget()
            || lane.is_kept_apart()
            || head.kind != GroupKind::Draw
            || head.conservative >= stretch
        {
            return (head.length, head.conservative);
        }
        // Nothing waits for the end of divisible work.
        let room = if lane.divisible { Span::FOREVER } else { self.policy.room() };
        let runs = head.conservative.max(room.min(stretch));
        (self.config.length_within(runs).max(head.length), runs)
    }

    /// The first waiting group of a lane leaves its queue for the GPU.
    pub(super) fn take_front(&mut self, index: usize) -> Option<Flying> {
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
            promised: framed.is_protected_now()
                && framed.is_within_promise(&head, self.config.per_group(), self.config.longest_group()),
            alone: framed.is_kept_apart(),
            head,
            dispatched: self.now,
            conservative: Bound { arrives: self.now + margins.dispatch_upper, runs: head.conservative },
            optimistic: Bound { arrives: self.now + margins.dispatch_lower, runs: head.optimistic },
            enters: Span::ZERO,
            late_from: Time::NEVER,
            stood_still: Span::ZERO,
            due: framed.due_of(framed.target),
        };
        self.account_front(index, booked_on, &waiting);
        Some(flying)
    }

    /// The last group of the front frame of a lane has left its queue.
    pub(super) fn close_front(&mut self, index: usize, last: &Head) {
        let lane = &mut self.lanes[index];
        let slot = &mut self.slots[lane.app.index()];
        let (per_group, longest) = (self.config.per_group(), self.config.longest_group());
        let beyond = !lane.is_protected_now() || !lane.is_within_promise(last, per_group, longest);
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
            dispatched = left(lane.front.dispatched, before.taken(per_group));
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
}

/// What is left of `whole`; of something without an end, everything.
fn left(whole: Span, gone: Span) -> Span {
    if whole == Span::FOREVER { whole } else { whole.saturating_sub(gone) }
}
