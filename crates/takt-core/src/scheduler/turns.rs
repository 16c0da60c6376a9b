//! Protected apps have the GPU one at a time, where a change of contexts costs something.
//!
//! A protected group enters only if nothing of another protected app is in flight, so the GPU changes between
//! protected apps when the scheduler does, and slices end without a change. What that costs is charged to frames
//! ([`Charge`]); here is what it costs the next group of an app, as things are.

use super::Scheduler;
use super::in_flight::Flying;
use super::lane::{Lane, Turn};

use crate::app::AppId;
use crate::gpu::Charge;
use crate::time::Span;

/// Which protected app had the GPU last.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Turns {
    holder: Option<AppId>,
    /// Something of another app was in flight when the holder dispatched last, or was dispatched since.
    disturbed: bool,
}

impl Turns {
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
    /// Something that is not the holder's.
    foreign: bool,
}

impl Scheduler {
    /// Whether protected apps have the GPU one at a time.
    pub(super) fn excludes(&self) -> bool {
        self.config.gpu.excludes() && self.policy.keeps_apart()
    }

    /// Which switches a group of that lane pays for.
    fn charge(&self, lane: &Lane, first: bool) -> Charge {
        if !lane.protected || !self.policy.keeps_apart() {
            Charge::Beside
        } else if first || !lane.has_budget() {
            Charge::Enters
        } else {
            Charge::Stays
        }
    }

    /// How long a group of that length keeps the GPU, if it is the first one of its frame or not.
    pub(super) fn charged(&self, index: usize, length: Span, first: bool) -> Span {
        length + self.config.added(length, self.charge(&self.lanes[index], first))
    }

    /// What waits in the lane at `index` belongs to a frame of its own.
    pub(super) fn begins_with_front(&mut self, index: usize) {
        let lane = &mut self.lanes[index];
        let slot = &mut self.slots[lane.app.index()];
        match slot.queue.get_mut(0) {
            Some(front) => {
                front.head.first = true;
                lane.head = Some(front.head);
            }
            None => slot.open = false,
        }
        self.charge_again(index);
    }

    /// Charges all waiting groups of the lane at `index` anew.
    pub(super) fn charge_again(&mut self, index: usize) {
        if !self.config.gpu.excludes() {
            return;
        }
        let slot = self.lanes[index].app.index();
        for position in 0..self.slots[slot].queue.len() {
            let Some(head) = self.slots[slot].queue.get_mut(position).map(|waiting| waiting.head) else {
                return;
            };
            let conservative = self.charged(index, head.length, head.first);
            if let Some(waiting) = self.slots[slot].queue.get_mut(position) {
                waiting.head.conservative = conservative;
            }
        }
        self.lanes[index].head = self.slots[slot].queue.front().map(|front| front.head);
        self.account_again(index);
    }

    /// Tells the policy how the next group of each app gets to the GPU.
    pub(super) fn tell_turns(&mut self) {
        if !self.excludes() {
            return;
        }
        if self.in_flight.all_late_from().is_some_and(|at| at <= self.now) {
            self.in_flight.share();
        }
        let occupied = self.occupied();
        for index in 0..self.lanes.len() {
            self.lanes[index].turn = self.turn_of(&self.lanes[index], occupied);
        }
    }

    /// What is in flight.
    fn occupied(&self) -> Occupied {
        let mut occupied = Occupied::default();
        for flying in self.in_flight.iter() {
            occupied.foreign |= Some(flying.app) != self.turns.holder;
            if flying.alone {
                occupied.several |= occupied.protected.is_some_and(|app| app != flying.app);
                occupied.protected = Some(flying.app);
            }
        }
        occupied
    }

    fn turn_of(&self, lane: &Lane, occupied: Occupied) -> Turn {
        if !lane.protected {
            return Turn::default();
        }
        let (switch, gap) = (self.config.gpu.switch(), self.config.margins.turnaround());
        let waits_for = occupied.protected.filter(|app| *app != lane.app || occupied.several);
        let holds = self.turns.holder == Some(lane.app);
        let disturbs = if holds { Span::ZERO } else { switch + gap };
        let begun = lane.has_budget() && lane.front.dispatched > Span::ZERO;
        let turn = Turn { waits_for, disturbs, ..Turn::default() };
        match lane.head {
            _ if begun && !holds => Turn { enters: switch, checked: switch, owed: switch + gap, ..turn },
            // What disturbed it has paid for the way back, but is forgotten.
            _ if begun && self.turns.disturbed && !occupied.foreign => {
                Turn { enters: switch, checked: switch, owed: switch, ..turn }
            }
            _ if begun => turn,
            // Its own charge has both switches.
            Some(head) if head.first || !lane.has_budget() => {
                Turn { enters: switch, owed: self.config.per_frame(), ..turn }
            }
            _ => Turn { enters: switch, checked: switch.times(2), owed: self.config.per_frame(), ..turn },
        }
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
            self.turns = Turns { holder: Some(app), disturbed };
        } else {
            self.turns.disturbed = true;
        }
    }
}
