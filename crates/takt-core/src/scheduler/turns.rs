//! Protected apps have the GPU one at a time, where a change of contexts costs something.
//!
//! A protected group enters only if nothing of another protected app is in flight, so the GPU changes between
//! protected apps when the scheduler does, and slices end without a change. What that costs is charged to frames
//! ([`Charge`]); here is what it costs the next group of an app, as things are.

use super::Scheduler;
use super::in_flight::Flying;
use super::lane::Turn;

use crate::app::AppId;
use crate::time::{Span, Time};

/// Which protected app had the GPU last.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct LastTurn {
    holder: Option<AppId>,
    /// Something of another app was in flight when the holder dispatched last, or was dispatched since.
    disturbed: bool,
}

impl LastTurn {
    /// That app left; another one may have its slot.
    pub(super) fn forget(&mut self, app: AppId) {
        self.holder = self.holder.filter(|holder| *holder != app);
    }
}

/// What is in flight, as far as turns depend on it.
#[derive(Copy, Clone, Default)]
struct Occupied {
    /// An app that has groups in flight as a protected one, and whether there is another one.
    protected: Option<AppId>,
    several: bool,
    /// That app has left since.
    gone: bool,
    /// Something that is not the holder's.
    foreign: bool,
    /// What of the way back from that is still to come when the next group reaches the GPU.
    way_back: Span,
}

impl Scheduler {
    /// Whether protected apps have the GPU one at a time.
    pub(super) fn excludes(&self) -> bool {
        self.config.gpu.excludes() && self.policy.keeps_apart()
    }

    /// How long a group of that length keeps the GPU, if it is the first one of a frame of the lane at `index` or
    /// not.
    pub(super) fn charged(&self, index: usize, length: Span, first: bool) -> Span {
        let lane = &self.lanes[index];
        length + self.config.added(length, self.charge(lane, first)) + self.per_source(lane)
    }

    /// What waits in the lane at `index` belongs to a frame of its own.
    pub(super) fn begins_with_front(&mut self, index: usize) {
        let lane = &mut self.lanes[index];
        let slot = &mut self.slots[lane.app.index()];
        match slot.queue.get_mut(0) {
            Some(front) => {
                front.head.first = true;
                let head = Some(front.head);
                self.set_head(index, head);
                self.settle_heads(index);
            }
            None => slot.open = false,
        }
        self.charge_again(index);
    }

    /// Charges all waiting groups of the lane at `index` anew, and those that its sources have in its frames.
    pub(super) fn charge_again(&mut self, index: usize) {
        let slot = self.lanes[index].app.index();
        let kin = self.slots[slot].kin;
        let pays = self.config.gpu.excludes() || self.config.gpu.is_time_shared() && kin.is_any();
        if pays {
            self.charge_anew(index);
        }
    }

    /// The same whatever it pays for.
    pub(super) fn charge_anew(&mut self, index: usize) {
        let slot = self.lanes[index].app.index();
        let kin = self.slots[slot].kin;
        self.recharge(slot);
        let mut next = kin.first;
        while let Some(source) = next {
            self.recharge(source);
            next = self.slots[source].kin.next;
        }
        let head = self.head_of(slot);
        self.set_head(index, head);
        self.settle_heads(index);
        self.account_again(index);
        if let Some(owner) = kin.owner.and_then(|owner| self.slots[owner].lane) {
            self.account_again(owner);
        }
    }

    /// Charges all waiting groups in that slot anew.
    fn recharge(&mut self, slot: usize) {
        let own = self.slots[slot].lane;
        let owner = self.slots[slot].kin.owner.and_then(|owner| self.slots[owner].lane);
        for position in 0..self.slots[slot].queue.len() {
            let Some(waiting) = self.slots[slot].queue.get_mut(position).copied() else {
                return;
            };
            let Some(framed) = (if waiting.booked { owner } else { own }) else {
                return;
            };
            let conservative = self.charged(framed, waiting.head.length, waiting.head.first);
            if let Some(waiting) = self.slots[slot].queue.get_mut(position) {
                waiting.head.conservative = conservative;
            }
        }
    }

    /// Tells the policy how the next group of each app gets to the GPU.
    pub(super) fn tell_turns(&mut self) {
        if !self.excludes() {
            return self.tell_standstills();
        }
        if self.in_flight.all_late_from().is_some_and(|at| at <= self.now) {
            self.in_flight.share();
        }
        let occupied = self.occupied();
        for index in 0..self.lanes.len() {
            self.lanes[index].turn = self.turn_of(index, occupied);
        }
    }

    /// The same where apps share the GPU at no cost: a group may have to wait until everything that is due earlier is
    /// over, and the GPU stands still until it is there. Each frame has paid for that once, in front of its first group
    /// or for the frame that it displaced.
    fn tell_standstills(&mut self) {
        if !self.config.gpu.later_work_delays() || !self.policy.keeps_apart() {
            return;
        }
        let (per_frame, turnaround) = (self.config.per_frame(), self.config.margins.turnaround());
        let first = self.first_due_on_gpu(None);
        let others = self.first_due_on_gpu(first.map(|(_, app)| app));
        for index in 0..self.lanes.len() {
            let lane = &self.lanes[index];
            let earliest = if first.is_some_and(|(_, app)| app == lane.app) { others } else { first };
            let displaced = earliest.is_some_and(|(due, _)| due < lane.due_of(lane.target));
            let several = self.slots[lane.app.index()].kin.has_sources();
            let owed = match lane.head {
                Some(head) if head.way == Span::ZERO && lane.protected && lane.has_budget() => {
                    let begun = lane.front.dispatched > Span::ZERO;
                    match begun {
                        false => per_frame,
                        true if displaced && !several => turnaround,
                        true => Span::ZERO,
                    }
                }
                _ => Span::ZERO,
            };
            self.lanes[index].turn = Turn { owed, ..Turn::default() };
        }
    }

    /// What is due first of what protected apps have on the GPU, but for one of them.
    fn first_due_on_gpu(&self, except: Option<AppId>) -> Option<(Time, AppId)> {
        let others = self.lanes.iter().filter(|lane| lane.protected && Some(lane.app) != except);
        others.filter_map(|lane| Some((lane.on_gpu_promised?, lane.app))).min()
    }

    /// What is in flight. The way back from it is part of its charge, but the GPU takes that way only when the next
    /// group is there.
    fn occupied(&self) -> Occupied {
        let margins = &self.config.margins;
        let (free, _) = self.in_flight.free_at(self.now, margins.completion_upper);
        let switch = self.config.gpu.switch();
        let back = self.now + margins.dispatch_upper + switch;
        let way_back = back.since(free).min(switch);
        let mut occupied = Occupied { way_back, ..Occupied::default() };
        for flying in self.in_flight.iter() {
            occupied.foreign |= Some(flying.app) != self.turns.holder;
            if flying.alone {
                occupied.several |= occupied.protected.is_some_and(|app| app != flying.app);
                occupied.protected = Some(flying.app);
                occupied.gone = self.slots[flying.app.index()].generation != flying.generation;
            }
        }
        occupied
    }

    fn turn_of(&self, index: usize, occupied: Occupied) -> Turn {
        let lane = &self.lanes[index];
        if !lane.is_kept_apart() {
            return Turn::default();
        }
        // Each source has a context of its own.
        let app = self.lanes[self.lane_of_head(index)].app;
        let several = self.slots[lane.app.index()].kin.has_sources();
        let (switch, gap) = (self.config.gpu.switch(), self.config.margins.turnaround());
        let waits_for = occupied.protected.filter(|other| *other != app || occupied.several);
        let holds = self.turns.holder == Some(app);
        let disturbs = if holds { Span::ZERO } else { switch + gap };
        let begun = lane.has_budget() && lane.front.dispatched > Span::ZERO;
        let turn = Turn { waits_for, gone: occupied.gone, disturbs, ..Turn::default() };
        match lane.head {
            // Each group has paid for its own way.
            _ if several => {
                let owed = if begun { Span::ZERO } else { self.config.per_frame() };
                Turn { enters: switch, owed, ..turn }
            }
            // What comes after a gap pays for its way as the first group of a frame does.
            None if lane.may_pause() => turn,
            Some(head) if head.way > Span::ZERO || begun && head.first => Turn { enters: switch, ..turn },
            _ if begun && !holds => {
                // By their due dates, what was displaced goes on when the other one is over. If not, that one has
                // to come back, which none has paid for.
                let back = if self.holder_goes_on() { disturbs } else { Span::ZERO };
                Turn { enters: switch, checked: switch + back, owed: switch + gap, ..turn }
            }
            // What disturbed it has paid for the way back, but is forgotten.
            _ if begun && self.turns.disturbed && !occupied.foreign => {
                Turn { enters: switch, checked: switch, owed: switch, ..turn }
            }
            _ if begun && self.turns.disturbed => {
                Turn { enters: occupied.way_back, checked: occupied.way_back, ..turn }
            }
            _ if begun => turn,
            // Its own charge has both switches.
            Some(head) if head.first || !lane.has_budget() => {
                Turn { enters: switch, owed: self.config.per_frame(), ..turn }
            }
            _ => Turn { enters: switch, checked: switch.times(2), owed: self.config.per_frame(), ..turn },
        }
    }

    /// Whether the app that had the GPU last is in the middle of a frame, and waits.
    fn holder_goes_on(&self) -> bool {
        let holder =
            self.turns.holder.and_then(|holder| self.lane_of(holder)).map(|index| &self.lanes[index]);
        holder.is_some_and(|lane| {
            lane.front.dispatched > Span::ZERO && lane.head.is_some_and(|head| !head.first)
        })
    }

    /// This group ended after all others. If it is the holder's, and nothing else is in flight, nothing disturbs it
    /// any more.
    pub(super) fn is_back(&mut self, ended: &Flying) {
        let holder = self.turns.holder;
        if holder == Some(ended.app) && self.in_flight.iter().all(|flying| Some(flying.app) == holder) {
            self.turns.disturbed = false;
        }
    }

    /// The group that was chosen goes to the GPU.
    pub(super) fn takes_turn(&mut self, flying: &Flying) {
        let app = flying.app;
        if flying.alone {
            let disturbed = self.in_flight.iter().any(|other| other.app != app);
            self.turns = LastTurn { holder: Some(app), disturbed };
        } else {
            self.turns.disturbed = true;
        }
    }
}
