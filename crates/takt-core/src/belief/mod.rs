//! How far the estimates of an app are believed.
//!
//! The scheduler takes each estimate as it gets it. A wrong one can keep its group from ever being
//! granted, and a group that never runs is never measured, so the error would stay. A [`Belief`]
//! stands between an app and the scheduler and limits the damage with two rules:
//!
//! * **Reservation cap.** If the app reserves time, no group is believed to take longer than what
//!   is left of its frame's reservation. Otherwise one long estimate would put the group behind all
//!   groups that end earlier, or plan a swap for the next period and release the app a period late.
//! * **Decay.** While the first waiting group is held because of its length, its estimate loses
//!   half every half second. It never falls below what such groups were measured to take. "Such
//!   groups" are groups of the same app with about the same estimate. A length counts as measured
//!   when two groups took it: on first use a driver compiles shaders, which can take as long as any
//!   wrong estimate.
//!
//! [`Tuning`] has the numbers. ADR 0031 has the reasons.
//!
//! # Protocol
//!
//! One `Belief` per app. Events go in: [`submitted`](Belief::submitted), [`held`](Belief::held),
//! [`granted`](Belief::granted), [`preempted`](Belief::preempted), [`measured`](Belief::measured),
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

mod measured;
mod tuning;

use alloc::collections::VecDeque;

use crate::app::{GroupId, GroupKind};
use crate::event::Hold;
use crate::limits::{IN_FLIGHT_MAX, QUEUE_MAX};
use crate::time::{Cost, Estimate, Span, Time};

use measured::{Class, Measured};
pub use tuning::{CONFIRMATIONS_MAX, Tuning};

/// What is believed of the estimates of one app.
#[derive(Clone, Debug)]
pub struct Belief {
    tuning: Tuning,
    reservation: Reservation,
    /// Submitted and not granted, in order of submission. The first one may be revised.
    waiting: VecDeque<Group>,
    /// Granted and not measured.
    in_flight: VecDeque<Group>,
    /// Whether the first waiting group is held because of its length.
    held: bool,
    /// When the first waiting group became the first, or was last revised.
    since: Time,
    measured: Measured,
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
    /// By the app's own estimate, so that a revised group still counts as what it was.
    class: Class,
    believed: Estimate,
    /// It was preempted, so it has already run for a while.
    began: bool,
}

impl Default for Belief {
    fn default() -> Self {
        Self::new(Tuning::default())
    }
}

impl Belief {
    /// For an app that has reserved nothing and submitted nothing. Takes all memory it will need.
    pub fn new(tuning: Tuning) -> Self {
        Self {
            tuning,
            reservation: Reservation::default(),
            // Preempted groups come back in addition to those that wait.
            waiting: VecDeque::with_capacity(QUEUE_MAX + IN_FLIGHT_MAX),
            in_flight: VecDeque::with_capacity(IN_FLIGHT_MAX),
            held: false,
            since: Time::ZERO,
            measured: Measured::new(),
        }
    }

    /// The app reserves `etpf` per frame from now on; zero reserves nothing and caps nothing.
    pub fn reserve(&mut self, etpf: Span) {
        self.reservation.per_frame = Some(etpf).filter(|etpf| *etpf > Span::ZERO);
    }

    /// The app submits a group. Returns the estimate to hand to the scheduler.
    pub fn submitted(&mut self, now: Time, group: GroupId, kind: GroupKind, estimate: Estimate) -> Estimate {
        let believed = self.reservation.capped(estimate, kind, &self.tuning);
        if self.waiting.is_empty() {
            (self.held, self.since) = (false, now);
        }
        // Beyond that the scheduler refuses the group (`Refusal::QueueFull`).
        if self.waiting.len() < QUEUE_MAX {
            let class = Class::of(estimate);
            self.waiting.push_back(Group { group, class, believed, began: false });
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
        self.since = now;
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
            self.since = now;
            self.waiting.push_front(Group { began: true, ..taken });
        }
    }

    /// A group took `cost`. Zero means that it was given back unused, which tells nothing.
    pub fn measured(&mut self, now: Time, group: GroupId, cost: Cost) {
        let done = self.land(group).or_else(|| self.done_when_preempted(now, group));
        if let Some(Group { class, .. }) = done.filter(|_| cost.span() > Span::ZERO) {
            self.measured.add(class, cost.span());
        }
    }

    /// The completion of a granted group is given up ([`Action::Lost`](crate::Action::Lost)).
    pub fn lost(&mut self, group: GroupId) {
        self.land(group);
    }

    /// The new estimate of the first waiting group, if it is due at `now`.
    pub fn revise(&mut self, now: Time) -> Option<Revision> {
        let estimate = self.lower_estimate()?;
        if now.since(self.since) < self.tuning.patience {
            return None;
        }
        let first = self.waiting.front_mut()?;
        first.believed = estimate;
        self.since = now;
        Some(Revision { group: first.group, estimate })
    }

    /// When [`Belief::revise`] is due next, if no other event comes first. May be in the past.
    pub fn next_timeout(&self) -> Option<Time> {
        self.lower_estimate().map(|_| self.since + self.tuning.patience)
    }

    /// What the next revision of the first waiting group would say, if it would change anything.
    fn lower_estimate(&self) -> Option<Estimate> {
        let first = self.waiting.front().filter(|first| self.held && !first.began)?;
        let tuning = &self.tuning;
        let decayed = first.believed.span().min(tuning.decay_from).scaled(tuning.keep_permille, 1000);
        let least = self.measured.confirmed(first.class, tuning).max(tuning.estimate_min);
        Some(Estimate::new(decayed.max(least))).filter(|lower| *lower < first.believed)
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
        self.since = now;
        self.waiting.pop_front()
    }
}

/// Whether a shorter estimate could end the hold. Waiting for a place, for a turn or for a more
/// important app has nothing to do with length.
fn is_for_length(reason: Hold) -> bool {
    matches!(reason, Hold::Protects { .. } | Hold::Clears { .. } | Hold::Unbounded | Hold::NoBudget { .. })
}

/// What an app reserves per frame, and what is left of it.
#[derive(Copy, Clone, Default, Debug)]
struct Reservation {
    per_frame: Option<Span>,
    /// How much of it the current frame has used so far, as believed.
    used: Span,
}

impl Reservation {
    /// What is believed of the next group.
    fn capped(&mut self, estimate: Estimate, kind: GroupKind, tuning: &Tuning) -> Estimate {
        let Some(per_frame) = self.per_frame else {
            return estimate;
        };
        let least = per_frame.scaled(tuning.group_share_permille, 1000);
        let left = per_frame.saturating_sub(self.used).max(least);
        let believed = estimate.min(Estimate::new(left));
        self.used = if kind.ends_frame() { Span::ZERO } else { self.used + believed.span() };
        believed
    }
}

#[cfg(test)]
mod tests;
