//! How far the estimates of an app are believed.
//!
//! The scheduler takes each estimate as it gets it. A wrong one can keep its group from ever being
//! granted, and a group that never runs is never measured, so the error would stay. A [`Belief`]
//! stands between an app and the scheduler and limits the damage with two rules:
//!
//! * **Reservation cap.** If the app reserves time, no group is believed to take longer than what
//!   is left of its frame's reservation. Otherwise one long estimate would put the group behind all
//!   groups that end earlier, or plan a swap for the next period and release the app a period late. That is for
//!   estimates that are wrong: where groups do take much longer than the cap said, as their estimates had it, the cap
//!   is lifted until they do so no more. Otherwise a small reservation would let an app delay all others at will.
//! * **Work that cannot be cut.** A group that is held for its length waits as long as that is so, with the
//!   estimate that it has: if that is right, running it would break a promise, and only running it could
//!   tell. After [`BeliefTuning::patience`] the app is [stuck](Belief::stuck), which is told once for each
//!   group. Where the user lets such work of the app run ([`Uncut::Run`]), it is then believed to take
//!   next to nothing, and runs. Where no app has a contract, work of unknown length delays none, and runs at once.
//!
//! [`BeliefTuning`] has the numbers. ADR 0057 has the reasons.
//!
//! # Protocol
//!
//! One `Belief` per app. Events go in: [`submitted`](Belief::submitted), [`held`](Belief::held),
//! [`granted`](Belief::granted), [`preempted`](Belief::preempted), [`completed`](Belief::completed),
//! [`lost`](Belief::lost). Answers come out: `submitted` returns the believed estimate, which goes
//! into [`Event::Submit`](crate::Event::Submit); [`revise`](Belief::revise) returns a lower one when
//! it is due, which goes into [`Event::Revise`](crate::Event::Revise);
//! [`next_timeout`](Belief::next_timeout) says when to ask for it.
//! Like the scheduler, it reads no clock and takes all memory at construction.
//!
//! # Replay
//!
//! A log contains the answers, not the questions: `Event::Submit` with the believed estimate and
//! every `Event::Revise`. A replay feeds these events to a scheduler and needs no `Belief`, so it is
//! exact for every tuning, and stays exact for old logs if these rules change.

mod tuning;

use alloc::collections::VecDeque;

use crate::app::{GroupId, GroupKind};
use crate::event::Hold;
use crate::limits::{IN_FLIGHT_MAX, QUEUE_MAX};
use crate::time::{Cost, Estimate, Span, Time};

pub use tuning::BeliefTuning;

/// What is believed of the estimates of one app.
#[derive(Clone, Debug)]
pub struct Belief {
    tuning: BeliefTuning,
    reservation: FrameReserve,
    /// Submitted and not granted, in order of submission. The first one may be revised.
    waiting: VecDeque<Group>,
    /// Granted and not measured.
    in_flight: VecDeque<Group>,
    /// Whether the first waiting group is held because of its length.
    held: bool,
    /// When the first waiting group became the first.
    since: Time,
    /// Whether it was told that the first waiting group is stuck.
    told: bool,
    uncut: Uncut,
}

/// What becomes of groups that cannot be cut and fit nowhere.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Uncut {
    /// They wait.
    #[default]
    Wait,
    /// They run, whatever they delay.
    Run,
}

/// A group that has been held for its length for long.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Stuck {
    /// Which group.
    pub group: GroupId,
    /// How long it is believed to take.
    pub estimate: Estimate,
}

/// A lower estimate for a waiting group.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Revision {
    /// Which group.
    pub group: GroupId,
    /// How long it is believed to take from now on.
    pub estimate: Estimate,
}

#[derive(Copy, Clone, Debug)]
struct Group {
    group: GroupId,
    believed: Estimate,
    /// What its frame had left, if the app said more.
    cap: Option<Span>,
    /// It was preempted, so it has already run for a while.
    began: bool,
}

impl Default for Belief {
    fn default() -> Self {
        Self::new(BeliefTuning::default())
    }
}

impl Belief {
    /// For an app that has reserved nothing and submitted nothing. Takes all memory it will need.
    pub fn new(tuning: BeliefTuning) -> Self {
        Self {
            tuning,
            reservation: FrameReserve::default(),
            // Preempted groups come back in addition to those that wait.
            waiting: VecDeque::with_capacity(QUEUE_MAX + IN_FLIGHT_MAX),
            in_flight: VecDeque::with_capacity(IN_FLIGHT_MAX),
            held: false,
            since: Time::ZERO,
            told: false,
            uncut: Uncut::Wait,
        }
    }

    /// The app reserves `etpf` per frame from now on; zero reserves nothing and caps nothing.
    pub fn reserve(&mut self, etpf: Span) {
        self.reservation.per_frame = Some(etpf).filter(|etpf| *etpf > Span::ZERO);
    }

    /// What becomes of groups of the app that cannot be cut and fit nowhere, from now on.
    pub fn set_uncut(&mut self, uncut: Uncut) {
        self.uncut = uncut;
    }

    /// The app submits a group. Returns the estimate to hand to the scheduler.
    pub fn submitted(&mut self, now: Time, group: GroupId, kind: GroupKind, estimate: Estimate) -> Estimate {
        let (believed, cap) = self.reservation.capped(estimate, kind, &self.tuning);
        if self.waiting.is_empty() {
            self.held = false;
            self.first_since(now);
        }
        // Beyond that the scheduler refuses the group (`Refusal::QueueFull`).
        if self.waiting.len() < QUEUE_MAX {
            self.waiting.push_back(Group { group, believed, cap, began: false });
        }
        believed
    }

    /// The app ends its frame without a group ([`Event::EndFrame`](crate::Event::EndFrame)).
    pub fn end_frame(&mut self) {
        self.reservation.used = Span::ZERO;
    }

    /// The first waiting group is held ([`Action::Hold`](crate::Action::Hold)).
    pub fn held(&mut self, reason: Hold) {
        self.held = is_for_length(reason);
    }

    /// A group is granted ([`Action::Dispatch`](crate::Action::Dispatch)).
    ///
    /// The reason of the last hold stays: the scheduler does not repeat it if it holds for the next
    /// group as well.
    pub fn granted(&mut self, now: Time, group: GroupId) {
        self.first_since(now);
        while let Some(first) = self.waiting.pop_front() {
            if first.group == group {
                return self.fly(first);
            }
        }
    }

    /// A granted group is taken back and waits again, as the first one
    /// ([`Action::Preempt`](crate::Action::Preempt)).
    ///
    /// It is not revised any more: it has run, so its estimate did not keep it from running, and
    /// the scheduler counts on the rest of it only.
    pub fn preempted(&mut self, now: Time, group: GroupId) {
        if let Some(taken) = self.land(group) {
            self.first_since(now);
            self.waiting.push_front(Group { began: true, ..taken });
        }
    }

    /// A group is over; it took that long.
    pub fn completed(&mut self, now: Time, group: GroupId, cost: Cost) {
        match self.land(group) {
            Some(landed) => self.reservation.measured(landed.cap, cost, &self.tuning),
            None => {
                self.done_when_preempted(now, group);
            }
        }
    }

    /// The completion of a granted group is given up ([`Action::Lost`](crate::Action::Lost)).
    pub fn lost(&mut self, group: GroupId) {
        self.land(group);
    }

    /// The first waiting group, if it has been held for its length for so long that the app is to be told;
    /// once for each group.
    pub fn stuck(&mut self, now: Time) -> Option<Stuck> {
        let first = self.waiting.front().filter(|first| self.held && !first.began)?;
        let long = first.believed.span() > self.tuning.estimate_min;
        if self.told || !long || now.since(self.since) < self.tuning.patience {
            return None;
        }
        self.told = true;
        Some(Stuck { group: first.group, estimate: first.believed })
    }

    /// The new estimate of the first waiting group, if it may run and that is due at `now`.
    pub fn revise(&mut self, now: Time) -> Option<Revision> {
        let estimate = self.lower_estimate()?;
        if now.since(self.since) < self.tuning.patience {
            return None;
        }
        let first = self.waiting.front_mut()?;
        first.believed = estimate;
        Some(Revision { group: first.group, estimate })
    }

    /// Whether a group of unknown length waits first, held for that.
    pub fn is_unbounded(&self) -> bool {
        let first = self.waiting.front().filter(|first| self.held && !first.began);
        first.is_some_and(|first| first.believed == Estimate::UNBOUNDED)
    }

    /// No app has a contract, so nothing is delayed that counts: a first waiting group of unknown length is believed
    /// to take next to nothing at once.
    pub fn revise_unopposed(&mut self) -> Option<Revision> {
        let estimate = Estimate::new(self.tuning.estimate_min);
        if !self.is_unbounded() {
            return None;
        }
        let first = self.waiting.front_mut()?;
        first.believed = estimate;
        Some(Revision { group: first.group, estimate })
    }

    /// When [`Belief::revise`] is due next, if no other event comes first. May be in the past.
    pub fn next_timeout(&self) -> Option<Time> {
        self.lower_estimate().map(|_| self.since + self.tuning.patience)
    }

    /// What the next revision of the first waiting group would say, if it would change anything.
    fn lower_estimate(&self) -> Option<Estimate> {
        let first = self.waiting.front().filter(|first| self.held && !first.began)?;
        let least = Estimate::new(self.tuning.estimate_min);
        (self.uncut == Uncut::Run && least < first.believed).then_some(least)
    }

    /// Another group is the first one that waits.
    fn first_since(&mut self, now: Time) {
        (self.since, self.told) = (now, false);
    }

    /// Puts a group among those in flight. The oldest one gives way: it was lost and not reported
    /// so, because the scheduler never has more in flight.
    fn fly(&mut self, group: Group) {
        if self.in_flight.len() >= IN_FLIGHT_MAX {
            self.in_flight.pop_front();
        }
        self.in_flight.push_back(group);
    }

    /// Takes a group off those in flight, if it is one of them.
    fn land(&mut self, group: GroupId) -> Option<Group> {
        let at = self.in_flight.iter().position(|flying| flying.group == group)?;
        self.in_flight.remove(at)
    }

    /// A group that was taken back when it had just finished waits no longer.
    fn done_when_preempted(&mut self, now: Time, group: GroupId) -> Option<Group> {
        self.waiting.front().filter(|first| first.began && first.group == group)?;
        self.first_since(now);
        self.waiting.pop_front()
    }
}

/// Whether a shorter estimate could end the hold. Waiting for a slot, for a turn or for a more
/// important app has nothing to do with length.
fn is_for_length(reason: Hold) -> bool {
    matches!(
        reason,
        Hold::Protects { .. }
            | Hold::Clears { .. }
            | Hold::Unbounded
            | Hold::NoBudget { .. }
            | Hold::LookAhead
    )
}

/// What an app reserves per frame, and what is left of it.
#[derive(Copy, Clone, Default, Debug)]
struct FrameReserve {
    per_frame: Option<Span>,
    /// How much of it the current frame has used so far, as believed.
    used: Span,
    /// How often the cap was wrong of late ([`BeliefTuning::cap_wrong_weight`]).
    wrong: u32,
}

impl FrameReserve {
    /// What is believed of the next group, and what its frame has left if that is less than was said.
    fn capped(
        &mut self,
        estimate: Estimate,
        kind: GroupKind,
        tuning: &BeliefTuning,
    ) -> (Estimate, Option<Span>) {
        let Some(per_frame) = self.per_frame else {
            return (estimate, None);
        };
        let least = per_frame.scaled(tuning.group_share_permille, 1000);
        let left = per_frame.saturating_sub(self.used).max(least);
        let cap = (estimate.span() > left).then_some(left);
        let capped = cap.filter(|_| self.wrong <= tuning.cap_wrong_weight);
        let believed = capped.map_or(estimate, Estimate::new);
        self.used = if kind.ends_frame() { Span::ZERO } else { self.used + believed.span() };
        (believed, cap)
    }

    /// A group took that long for which its frame had less left than was said. If it took more than twice of that, the
    /// cap was wrong; if no more than that, what was said was.
    fn measured(&mut self, cap: Option<Span>, cost: Cost, tuning: &BeliefTuning) {
        let weight = tuning.cap_wrong_weight;
        match cap {
            Some(cap) if cost.span() > cap.times(2) => {
                self.wrong = self.wrong.saturating_add(weight).min(weight.saturating_mul(2));
            }
            Some(cap) if cost.span() <= cap => self.wrong = self.wrong.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
