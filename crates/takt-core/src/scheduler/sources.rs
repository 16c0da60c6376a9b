//! Frames that several apps share: one of them owns them, the others are its *sources* (processes, streams).
//!
//! A source is an app without a contract that shares the reservation of an app with frames
//! ([`Reservation::Shared`]). Groups of sources that fit into the owner's open frame are *booked* on it when they are
//! submitted. Then the frame is that of one app with one queue: the first group of any of them begins it, groups go
//! in the order of their submission, and all of them are in its ledger. The owner alone ends it.
//!
//! So a policy sees one lane with the frame. Its head is the first group of all that are booked, of any app,
//! and the lane of a source has no head while its first group is booked. Each app keeps its own queue, and the
//! frames by which it is paced and judged.
//!
//! A group that does not fit is not booked and not promised anything; neither is what its app submits behind it, as
//! long as it waits.

use super::in_flight::Flying;
use super::lane::{Head, Lane, Ledger};
use super::queue::Waiting;
use super::{Scheduler, Slot};

use crate::app::GroupKind;
use crate::charge::Charge;
use crate::event::Hold;
use crate::service::Reservation;
use crate::time::{Span, Time};

/// Whose frames an app shares, by slot number.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Kin {
    /// The app whose frames it shares.
    pub(super) owner: Option<usize>,
    /// The first of its sources.
    pub(super) first: Option<usize>,
    /// The next source of the same owner.
    pub(super) next: Option<usize>,
}

impl Kin {
    /// Whether it shares frames with any app.
    pub(super) fn is_any(&self) -> bool {
        self.owner.is_some() || self.first.is_some()
    }

    /// Whether other apps share its frames.
    pub(super) fn has_sources(&self) -> bool {
        self.first.is_some()
    }
}

/// Who shares frames with whom.
impl Scheduler {
    /// The slots of the sources of the app in that slot.
    fn sources(&self, owner: usize) -> impl Iterator<Item = usize> {
        core::iter::successors(self.slots[owner].kin.first, |source| self.slots[*source].kin.next)
    }

    /// The booked groups of the sources of the app in that slot.
    fn booked(&self, owner: usize) -> impl Iterator<Item = &Waiting> {
        let groups = self.sources(owner).flat_map(|source| self.slots[source].queue.iter());
        groups.filter(|waiting| waiting.booked)
    }

    /// Finds out anew who shares frames with whom, after any change of apps or of the policy.
    pub(super) fn find_sources(&mut self) {
        let shares = self.policy.shares_frames();
        let is_source = |lane: &Lane| matches!(lane.service.reservation, Reservation::Shared(_));
        let possible = shares && self.lanes.iter().any(is_source);
        if !possible && !self.kindred {
            return;
        }
        self.slots.iter_mut().for_each(|slot| slot.kin = Kin { owner: slot.kin.owner, ..Kin::default() });
        self.kindred = false;
        // The most important source is the first in its owner's list.
        for index in (0..self.lanes.len()).rev() {
            let slot = self.lanes[index].app.index();
            let owner = self.owner_of(&self.lanes[index]).filter(|_| shares);
            if let Some(owner) = owner {
                self.slots[slot].kin.next = self.slots[owner].kin.first.replace(slot);
                self.kindred = true;
            }
            if self.slots[slot].kin.owner != owner {
                self.slots[slot].kin.owner = owner;
                self.slots[slot].queue.iter_mut().for_each(|waiting| waiting.booked = false);
            }
        }
        for slot in self.slots.iter_mut().filter(|slot| slot.lane.is_none()) {
            slot.kin = Kin::default();
        }
        for index in 0..self.lanes.len() {
            self.settle_ends(index);
        }
        for index in 0..self.lanes.len() {
            self.set_head(index, self.head_of(self.lanes[index].app.index()));
            self.charge_again(index);
            self.account_again(index);
        }
    }

    /// Slot of the app whose frames that lane shares: one that is attached and has frames of its own.
    fn owner_of(&self, lane: &Lane) -> Option<usize> {
        let Reservation::Shared(owner) = lane.service.reservation else {
            return None;
        };
        let shared = self.lane_of(owner).map(|index| &self.lanes[index]).filter(|shared| shared.has_budget());
        shared.filter(|_| owner != lane.app && !lane.has_budget()).map(|_| owner.index())
    }

    /// The lane whose frame the first waiting group of the lane at `index` is booked on.
    pub(super) fn booked_on(&self, index: usize) -> Option<usize> {
        let slot = &self.slots[self.lanes[index].app.index()];
        slot.queue.front().filter(|front| front.booked)?;
        self.slots[slot.kin.owner?].lane
    }

    /// The lane whose group is the head of the lane at `index`.
    pub(super) fn lane_of_head(&self, index: usize) -> usize {
        let slot = self.lanes[index].app.index();
        if !self.slots[slot].kin.has_sources() {
            return index;
        }
        let Some(order) = self.lanes[index].head.map(|head| head.order) else {
            return index;
        };
        let is_first = |source: &usize| {
            self.slots[*source].queue.front().is_some_and(|front| front.booked && front.head.order == order)
        };
        let source = self.sources(slot).find(is_first);
        source.and_then(|source| self.slots[source].lane).unwrap_or(index)
    }
}

/// Booking.
impl Scheduler {
    /// The lane on whose open frame a group of that length is booked, if it is.
    pub(super) fn books(&self, index: usize, kind: GroupKind, length: Span) -> Option<usize> {
        let slot = &self.slots[self.lanes[index].app.index()];
        let owner = slot.kin.owner?;
        let on = self.slots[owner].lane?;
        // Groups of one app go in order, whether they are booked or not.
        let behind = slot.queue.iter().any(|waiting| !waiting.booked);
        if behind || kind == GroupKind::Exit || self.slots[owner].exiting {
            return None;
        }
        let (per_group, longest) = (self.config.per_group(), self.config.longest_group());
        let conservative = self.charged(on, length, true);
        let fits = self.pledged(owner)? + conservative + per_group <= self.lanes[on].etpf;
        (fits && conservative <= longest).then_some(on)
    }

    /// What the open frame of the app in that slot has so far; `None` if what waits of it is not all promised.
    fn pledged(&self, owner: usize) -> Option<Span> {
        let slot = &self.slots[owner];
        let front = &self.lanes[slot.lane?].front;
        let ended = slot.queue.iter().rev().find(|waiting| waiting.ends_frame);
        let ended = ended.map(|waiting| waiting.head.order).max(slot.ends.last_open());
        let is_open = |waiting: &&Waiting| ended.is_none_or(|ended| waiting.head.order > ended);
        let mut pledged = if front.complete { Span::ZERO } else { front.dispatched };
        for Waiting { head, .. } in slot.queue.iter().chain(self.booked(owner)).filter(is_open) {
            if head.conservative > self.config.longest_group() {
                return None;
            }
            pledged += head.taken(self.config.per_group());
        }
        Some(pledged)
    }

    /// A group was booked on the open frame of the lane at `index`.
    pub(super) fn book(&mut self, index: usize, head: &Head) {
        self.begin(index);
        let lane = &mut self.lanes[index];
        self.slots[lane.app.index()].last = head.order;
        if !lane.front.complete {
            lane.front.enqueued += head.taken(self.config.per_group());
        }
    }

    /// What each group of a frame pays besides its length if contexts take turns and several of them have groups in
    /// it: they may end together, or one waits until the other is off the GPU. Then the GPU stands still until more
    /// of the frame comes, as with groups of servers.
    pub(super) fn per_source(&self, lane: &Lane) -> Span {
        let several = lane.protected && self.slots[lane.app.index()].kin.has_sources();
        let pays = several && self.config.gpu.is_time_shared() && self.policy.keeps_apart();
        if pays { self.config.per_arrival() } else { Span::ZERO }
    }

    /// Which switches a group of that lane pays for. Each one of a frame with several sources may be the first of
    /// its context.
    pub(super) fn charge(&self, lane: &Lane, first: bool) -> Charge {
        let several = || self.slots[lane.app.index()].kin.has_sources();
        if !lane.is_kept_apart() || !self.policy.keeps_apart() {
            Charge::Beside
        } else if first || !lane.has_budget() || several() {
            Charge::Enters
        } else {
            Charge::Stays
        }
    }
}

/// Booked groups go and end.
impl Scheduler {
    /// The first group of the lane at `index` has left its queue; it was part of a frame of another lane if it was
    /// `booked_on` that.
    pub(super) fn account_front(&mut self, index: usize, booked_on: Option<usize>, waiting: &Waiting) {
        let taken = waiting.head.taken(self.config.per_group());
        match booked_on {
            None if !waiting.ends_frame => self.lanes[index].front.dispatched += taken,
            _ if waiting.ends_frame => self.close_front(index, &waiting.head),
            _ => {}
        }
        let Some(owner) = booked_on else {
            return;
        };
        let ends = &self.slots[self.lanes[owner].app.index()].ends;
        if ends.behind(waiting.head.order) > 0 {
            // It ends nothing by its kind but a frame of its own app.
            self.close_front(owner, &Head { kind: GroupKind::Draw, ..waiting.head });
        } else {
            self.lanes[owner].front.dispatched += taken;
        }
    }

    /// A group is over that may have run on the contract of another app than its own: a frame of that one may be
    /// done with it.
    pub(super) fn look_at_contract(&mut self, flying: &Flying, finished: Option<Time>) {
        let Some((app, generation)) = flying.contract else {
            return;
        };
        let slot = &self.slots[app.index()];
        if let Some(index) = slot.lane.filter(|_| slot.generation == generation) {
            if self.lanes[index].on_gpu_due.is_some() {
                self.look_at_end((app, generation));
            }
            if flying.booked {
                self.tell_done(index, finished);
            }
        }
    }
}

/// What lanes show of it.
impl Scheduler {
    /// The first waiting group that the lane of that slot has to show.
    pub(super) fn head_of(&self, slot: usize) -> Option<Head> {
        let Slot { queue, kin, .. } = &self.slots[slot];
        let own = queue.front().filter(|front| !front.booked).map(|front| front.head);
        if !kin.has_sources() {
            return own;
        }
        let fronts = self.sources(slot).filter_map(|source| self.slots[source].queue.front());
        let booked = fronts.filter(|front| front.booked).map(|front| front.head);
        own.into_iter().chain(booked).min_by_key(|head| head.order)
    }

    /// The head of the lane at `index` is this one.
    pub(super) fn set_head(&mut self, index: usize, head: Option<Head>) {
        let lane = &mut self.lanes[index];
        self.waiting += usize::from(head.is_some());
        self.waiting -= usize::from(lane.head.is_some());
        lane.head = head;
    }

    /// Sets the heads of the lane at `index` and of the one whose frames it shares.
    pub(super) fn settle_heads(&mut self, index: usize) {
        let slot = self.lanes[index].app.index();
        if !self.slots[slot].kin.is_any() {
            return;
        }
        self.set_head(index, self.head_of(slot));
        let owner = self.slots[slot].kin.owner;
        if let Some((owner, on)) = owner.and_then(|owner| Some((owner, self.slots[owner].lane?))) {
            self.set_head(on, self.head_of(owner));
        }
    }

    /// The account of the first frame of the lane at `index` that is not closed, if none of it was dispatched yet.
    pub(super) fn front_ledger(&self, index: usize) -> Ledger {
        let slot = self.lanes[index].app.index();
        let Slot { queue, ends, kin, .. } = &self.slots[slot];
        let per_group = self.config.per_group();
        if !kin.has_sources() {
            return queue.front_ledger(per_group);
        }
        let own_end = queue.iter().find(|waiting| waiting.ends_frame).map(|waiting| waiting.head.order);
        let end = own_end.into_iter().chain(ends.first_open()).min();
        let mut ledger = Ledger { complete: end.is_some(), ..Ledger::default() };
        for Waiting { head, .. } in queue.iter().chain(self.booked(slot)) {
            if end.is_none_or(|end| head.order <= end) {
                ledger.enqueued += head.taken(per_group);
            }
        }
        ledger
    }

    /// Reports why booked groups of sources wait: as the frame does that they are part of.
    pub(super) fn tell_sources(&mut self) {
        for index in (0..self.lanes.len()).filter(|_| self.kindred) {
            if let Some(owner) = self.booked_on(index) {
                self.lanes[index].hold = self.lanes[owner].hold.or(Some(Hold::NoSlot));
            }
        }
    }
}

/// Sources go in the middle of a frame.
impl Scheduler {
    /// Frames of the lane at `index` that ended behind groups which are not part of them any more end behind the
    /// groups before those, or now.
    fn settle_ends(&mut self, index: usize) {
        let slot = self.lanes[index].app.index();
        let waiting = self.slots[slot].queue.iter().chain(self.booked(slot));
        if let Some(last) = waiting.map(|waiting| waiting.head.order).max() {
            self.slots[slot].last = last;
        }
        let mut closed = false;
        for end in 0..self.slots[slot].ends.len() {
            let Some(behind) = self.slots[slot].ends.open_at(end) else {
                continue;
            };
            let waiting = self.slots[slot].queue.iter().chain(self.booked(slot));
            let before = waiting.map(|waiting| waiting.head.order).filter(|order| *order <= behind);
            match before.max() {
                Some(last) if last == behind => {}
                Some(last) => self.end_behind(index, end, last),
                None => {
                    let next = self.head_of(slot).map(|next| next.submitted);
                    let (lane, slot) = (&mut self.lanes[index], &mut self.slots[slot]);
                    lane.front = Ledger::default();
                    slot.ends.close_at(end, &mut slot.frames, lane, (self.now, next));
                    closed = true;
                }
            }
        }
        if closed {
            self.tell_done(index, Some(self.now));
            if self.slots[slot].queue.is_empty() {
                self.release(index);
            }
        }
    }

    /// That frame of the lane at `index` ends behind the group of that order.
    fn end_behind(&mut self, index: usize, end: usize, order: u64) {
        let lane = &mut self.lanes[index];
        let slot = &mut self.slots[lane.app.index()];
        slot.ends.put_behind(end, order);
        if let Some(last) = slot.queue.iter_mut().find(|waiting| waiting.head.order == order) {
            lane.batches += u32::from(!last.ends_batch());
            last.ends_frame = true;
        }
    }
}
