//! What must hold, checked on two levels.
//!
//! * [`Scheduler::check_invariants`] looks at everything and panics: for tests.
//! * The guards run in every build. After each event they look at a few sums and at the lane that the
//!   event was about, at everything only where the event costs a pass over everything anyway. They
//!   never panic: the first thing that does not hold is kept, told, and everything runs
//!   [free](super::free) from then on.

use super::lane::{Lane, Ledger};
use super::queue::Waiting;
use super::{Scheduler, Slot};

use crate::app::AppId;
use crate::event::Event;
use crate::invariant::{Broken, Invariant};
use crate::limits::IN_FLIGHT_MAX;
use crate::time::{Span, Time};

/// Whether an app's groups in flight are counted: only where one of them ended.
const COUNTED: bool = true;
const UNCOUNTED: bool = false;

/// What does not hold, and about whom.
type Fault = (Invariant, Option<AppId>);

impl Scheduler {
    /// Panics if the state contradicts itself, or did so before. Costs a pass over everything.
    pub fn check_invariants(&self) {
        if let Some(broken) = self.broken {
            panic!("{broken}");
        }
        if let Some((what, app)) = self.fault() {
            panic!("{}", Broken { what, app, at: self.now });
        }
    }

    /// The first invariant that did not hold, if any: from then on everything runs free.
    pub fn broken(&self) -> Option<Broken> {
        self.broken
    }
}

/// Guards, for every event.
impl Scheduler {
    /// Looks at what `event` can have changed.
    #[inline]
    pub(super) fn guard_event(&mut self, event: &Event) {
        match *event {
            Event::Submit { app, .. } | Event::Revise { app, .. } => self.guard_lane(app),
            // The lane of the group was checked when the group ended.
            Event::Complete { .. } => {}
            _ => {
                if let Some((what, app)) = self.fault() {
                    self.break_off(what, app);
                }
            }
        }
        self.guard_time();
    }

    /// Looks at the sums, when time has passed.
    #[inline]
    pub(super) fn guard_time(&mut self) {
        if let Some(what) = self.fault_of_sums() {
            self.break_off(what, None);
        }
        self.guarded = self.now;
    }

    /// Looks at the lane of `app`, one group of which came, was changed or went.
    #[inline]
    pub(super) fn guard_lane(&mut self, app: AppId) {
        if let Some(what) = self.fault_of::<UNCOUNTED>(app) {
            self.break_off(what, Some(app));
        }
    }

    /// Looks at the slots, one of which was taken. The lane that took it is looked at when the group ends.
    #[inline]
    pub(super) fn guard_slots(&mut self, app: AppId) {
        if self.slots() > self.slots_most() {
            self.break_off(Invariant::Slots, Some(app));
        }
    }

    /// Looks at the lane of `app`, one group of which ended.
    #[inline]
    pub(super) fn guard_end(&mut self, app: AppId) {
        if let Some(what) = self.fault_of::<COUNTED>(app) {
            self.break_off(what, Some(app));
        }
    }

    /// Whether the policy chose something that waits.
    #[inline]
    pub(super) fn guard_choice(&mut self, index: usize) -> bool {
        let sound = self.lanes.get(index).is_some_and(|lane| lane.head.is_some());
        if !sound {
            self.break_off(Invariant::Choice, None);
        }
        sound
    }
}

/// What does not hold.
impl Scheduler {
    /// Of everything.
    fn fault(&self) -> Option<Fault> {
        if !self.lanes.is_sorted_by(|a, b| a.priority > b.priority) {
            return Some((Invariant::Order, None));
        }
        let attached = self.slots.iter().filter(|slot| slot.lane.is_some()).count();
        if attached != self.lanes.len() {
            return Some((Invariant::Slot, None));
        }
        for lane in &self.lanes {
            let what = self.fault_of::<COUNTED>(lane.app).or_else(|| self.deep_fault_of(lane));
            if let Some(what) = what {
                return Some((what, Some(lane.app)));
            }
        }
        let waiting = self.lanes.iter().filter(|lane| lane.head.is_some()).count();
        if waiting != self.waiting {
            return Some((Invariant::Waiting, None));
        }
        if self.slots() > self.slots_most() {
            return Some((Invariant::Slots, None));
        }
        self.fault_of_sums().map(|what| (what, None))
    }

    /// Of what costs the same whatever there is.
    #[inline]
    fn fault_of_sums(&self) -> Option<Invariant> {
        let stats = &self.stats;
        // Whatever was taken back was dispatched before, and may have ended all the same.
        let went = stats.dispatched + self.ended_waiting;
        let ended = stats.completed + stats.lost + stats.preempted;
        let flying = self.in_flight.len();
        if self.now < self.guarded {
            Some(Invariant::Time)
        } else if self.now >= self.next_vsync {
            Some(Invariant::Period)
        } else if flying > IN_FLIGHT_MAX {
            Some(Invariant::Slots)
        } else if went != ended + flying as u64 {
            Some(Invariant::Balance)
        } else if self.waiting > self.lanes.len() {
            Some(Invariant::Waiting)
        } else {
            None
        }
    }

    /// Of what one app has, without a look at all that waits; its groups in flight are counted if so told.
    #[inline(always)]
    fn fault_of<const COUNT: bool>(&self, app: AppId) -> Option<Invariant> {
        let slot = self.slots.get(app.index())?;
        let Some(index) = slot.lane else {
            return (!slot.queue.is_empty()).then_some(Invariant::Queue);
        };
        let Some(lane) = self.lanes.get(index).filter(|lane| lane.app == app) else {
            return Some(Invariant::Slot);
        };
        if !self.shows_first(lane, slot) {
            Some(Invariant::Head)
        } else if lane.waiting as usize != slot.queue.len() || lane.batches > lane.waiting {
            Some(Invariant::Queue)
        } else if lane.head.is_some() && self.waiting == 0 {
            Some(Invariant::Waiting)
        } else if !covers_head(lane) {
            Some(Invariant::Ledger)
        } else if COUNT && self.in_flight.count_of(app, slot.generation) != lane.in_flight as usize {
            Some(Invariant::InFlight)
        } else {
            slot.frames.fault(lane)
        }
    }

    /// Whether the head of a lane is the group that should be.
    #[inline]
    fn shows_first(&self, lane: &Lane, slot: &Slot) -> bool {
        if slot.kin.is_any() {
            return lane.head == self.head_of(lane.app.index());
        }
        is_first(lane, slot.queue.front())
    }

    /// Of what needs a look at all groups of a lane.
    fn deep_fault_of(&self, lane: &Lane) -> Option<Invariant> {
        let slot = &self.slots[lane.app.index()];
        let ends_batch = |waiting: &&Waiting| waiting.ends_batch();
        if lane.head != self.head_of(lane.app.index()) {
            return Some(Invariant::Head);
        }
        if lane.batches as usize != slot.queue.iter().filter(ends_batch).count() {
            return Some(Invariant::Queue);
        }
        if !slot.ends.are_sound() || !slot.jobs_are_sound() {
            return Some(Invariant::Judged);
        }
        let in_turn = self.config.gpu.is_time_shared();
        let (due, promised) = self.in_flight.due(lane.app, slot.generation, self.now);
        let differs = |told: Option<Time>, due: Option<Time>| {
            told.is_some_and(|told| told > self.now && Some(told) != due.filter(|_| in_turn))
        };
        if differs(lane.on_gpu_due, due) || differs(lane.on_gpu_promised, promised) {
            return Some(Invariant::OnGpu);
        }
        let ledger = slot.lane.map_or_else(Ledger::default, |index| self.front_ledger(index));
        let ledger = ledger.after(lane.front.dispatched);
        // Sums without an end cannot be taken apart again.
        let differs = ledger.enqueued < Span::FOREVER && lane.front != ledger;
        differs.then_some(Invariant::Ledger)
    }

    /// How many groups may keep a slot: those of `mpcg`, one more with reserved time where groups end in
    /// any order, and as many as there were when that was changed.
    fn slots_most(&self) -> usize {
        let spare = usize::from(self.serves_in_turn());
        self.surplus.max(self.config.mpcg as usize + spare)
    }
}

/// Whether the head of a lane is that group. Each has a number of its own, so that the rest need not be
/// compared.
#[inline]
fn is_first(lane: &Lane, front: Option<&Waiting>) -> bool {
    match (&lane.head, front) {
        (Some(head), Some(front)) => {
            head.order == front.head.order && head.conservative == front.head.conservative
        }
        (None, None) => true,
        _ => false,
    }
}

/// Whether what waits first, and what went before it, is part of what its frame has.
#[inline]
fn covers_head(lane: &Lane) -> bool {
    let head = lane.head.as_ref().map_or(Span::ZERO, |head| head.conservative);
    lane.front.dispatched + head <= lane.front.enqueued
}
