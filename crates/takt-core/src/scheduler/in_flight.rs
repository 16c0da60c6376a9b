//! Groups that were dispatched and are not known to be finished, and the question they answer:
//! when will the GPU be free?
//!
//! The GPU executes in order, so its future is a chain: each group starts when the one before it
//! ends, but not before it can have reached the GPU. The chain hangs on a known instant, the end
//! of the last completed group, and is rebuilt on every completion; errors do not accumulate. A
//! group that overruns its prediction pushes the whole chain ahead of it while it does.
//!
//! A GPU that serves processes in turn executes in any order, and groups that are in flight
//! together end together. But it is never idle as long as there is work, so all of it is done when
//! it would be in order: an end that was predicted holds for whatever is left, however much of it
//! has been done by then. Where that end is over and groups are not, it was wrong, and what is
//! left counts as a chain again.
//!
//! Divisible work is beside the chain: nothing waits for its end. It has one slot, so that a context of such work
//! has drained, and the GPU has begun with whatever waited, before another one comes.

use alloc::collections::VecDeque;

use super::lane::Head;
use crate::app::{AppId, GroupId};
use crate::config::Config;
use crate::limits::IN_FLIGHT_MAX;
use crate::time::{Span, Time};

/// A dispatched group.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Flying {
    pub(super) group: GroupId,
    pub(super) app: AppId,
    /// Tells an app from an earlier one in the same slot.
    pub(super) generation: u32,
    /// The app whose contract it runs on, if that is another one, and what tells it from an earlier one.
    pub(super) contract: Option<(AppId, u32)>,
    /// It is part of a frame of that app.
    pub(super) booked: bool,
    /// It is part of what was promised by a contract.
    pub(super) promised: bool,
    /// It was dispatched as one of a protected app, and pays for no other one beside it.
    pub(super) alone: bool,
    pub(super) head: Head,
    pub(super) dispatched: Time,
    pub(super) conservative: Bound,
    pub(super) optimistic: Bound,
    /// What of the first is the change of contexts to it.
    pub(super) enters: Span,
    /// When it becomes late and keeps no slot any more; set when it is dispatched.
    pub(super) late_from: Time,
    /// For how long the GPU stood still meanwhile, for which this group is not to blame.
    pub(super) stood_still: Span,
    /// The deadline that it should meet.
    pub(super) due: Time,
}

impl Flying {
    /// Whether it is one of that app, or runs on its contract.
    fn belongs_to(&self, app: AppId, generation: u32) -> bool {
        self.app == app && self.generation == generation || self.contract == Some((app, generation))
    }
}

/// When a group reaches the GPU and how long it runs, by one kind of prediction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Bound {
    pub(super) arrives: Time,
    pub(super) runs: Span,
}

/// The chain of dispatched groups.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    groups: VecDeque<Flying>,
    divisible: Option<Flying>,
    /// When the last completed group ended.
    idle_since: Time,
    conservative: Chain,
    optimistic: Chain,
    /// Groups may end in any order.
    any_order: bool,
    /// What a change of contexts costs.
    switch: Span,
    /// See [`Tuning::late_after`](crate::Tuning::late_after).
    late_after: Span,
    /// See [`Tuning::late_permille`](crate::Tuning::late_permille).
    late_permille: u32,
    /// See [`Tuning::unknown_runs_max`](crate::Tuning::unknown_runs_max).
    unknown_runs_max: Span,
}

/// Predicted ends of the first and of the last group of the chain.
#[derive(Copy, Clone, Default, Debug)]
struct Chain {
    first: Time,
    last: Time,
}

impl InFlight {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            groups: VecDeque::with_capacity(IN_FLIGHT_MAX),
            divisible: None,
            idle_since: Time::ZERO,
            conservative: Chain::default(),
            optimistic: Chain::default(),
            any_order: config.gpu.is_time_shared(),
            switch: config.gpu.switch(),
            late_after: config.tuning.late_after,
            late_permille: config.tuning.late_permille,
            unknown_runs_max: config.tuning.unknown_runs_max,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.groups.len() + usize::from(self.divisible.is_some())
    }

    /// How many of them are not divisible.
    pub(super) fn chained(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Flying> {
        self.groups.iter()
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.groups.clear();
        self.divisible = None;
    }

    /// How many groups of that app there are.
    pub(super) fn count_of(&self, app: AppId, generation: u32) -> usize {
        self.all().filter(|flying| flying.app == app && flying.generation == generation).count()
    }

    /// All of them.
    fn all(&self) -> impl Iterator<Item = &Flying> {
        self.groups.iter().chain(&self.divisible)
    }

    /// Whether the slot for divisible work is empty.
    pub(super) fn has_divisible_slot(&self) -> bool {
        self.divisible.is_none() && self.len() < IN_FLIGHT_MAX
    }

    /// A divisible group takes its slot.
    pub(super) fn push_divisible(&mut self, flying: Flying) {
        assert!(self.has_divisible_slot(), "there is one slot");
        self.divisible = Some(flying);
    }

    /// Takes the divisible group out if it is that one.
    pub(super) fn take_divisible(&mut self, group: GroupId) -> Option<Flying> {
        self.divisible.take_if(|flying| flying.group == group)
    }

    /// Takes the divisible group out if its end was not told in time. All other work may have delayed it.
    pub(super) fn take_overdue(&mut self, now: Time, timeout: Span) -> Option<Flying> {
        let overdue = self.divisible_overdue_at(timeout).is_some_and(|at| at <= now);
        self.divisible.take_if(|_| overdue)
    }

    fn divisible_overdue_at(&self, timeout: Span) -> Option<Time> {
        let Bound { arrives, runs } = self.divisible.as_ref()?.conservative;
        Some(arrives + runs.min(self.unknown_runs_max) + self.unknown_runs_max + timeout)
    }

    /// A group goes to the GPU; says by when it is over, unless later ones delay it.
    pub(super) fn push(&mut self, mut flying: Flying) -> Time {
        assert!(self.groups.len() < IN_FLIGHT_MAX, "slots bound what is in flight");
        let count = self.groups.len() + 1;
        extend(&mut self.conservative, self.idle_since, flying.conservative, count);
        extend(&mut self.optimistic, self.idle_since, flying.optimistic, count);
        let due = self.conservative.last;
        flying.late_from = due + self.runs(&flying).scaled(self.late_permille, 1000) + self.late_after;
        self.groups.push_back(flying);
        due
    }

    /// How long a group runs at most, as far as that is known.
    fn runs(&self, flying: &Flying) -> Span {
        flying.conservative.runs.min(self.unknown_runs_max)
    }

    /// How many groups keep a slot: all that are not late.
    pub(super) fn slots(&self, now: Time) -> usize {
        self.groups.iter().filter(|flying| flying.late_from > now).count()
    }

    /// When the next group will be late.
    pub(super) fn next_late(&self, now: Time) -> Option<Time> {
        self.groups.iter().map(|flying| flying.late_from).filter(|at| *at > now).min()
    }

    /// From when on no app waits for any of them: all should have been over before. Groups that were dispatched
    /// later may have made others late.
    pub(super) fn all_late_from(&self) -> Option<Time> {
        (!self.groups.is_empty()).then(|| self.conservative.last + self.late_after)
    }

    /// They are late, and keep no other app waiting from now on: one may never end.
    pub(super) fn share(&mut self) {
        self.groups.iter_mut().for_each(|flying| flying.alone = false);
    }

    /// Whether a group of that app, or of its frames, is in flight that came no later than the one of that
    /// [order](Head::order).
    pub(super) fn has_until(&self, app: AppId, generation: u32, order: u64) -> bool {
        let of_app = |flying: &&Flying| {
            flying.app == app && flying.generation == generation
                || flying.booked && flying.belongs_to(app, generation)
        };
        self.all().filter(of_app).any(|flying| flying.head.order <= order)
    }

    /// The first deadline after `now` that a group should meet which is that app's or runs on its contract, and the
    /// first one of those that were promised.
    pub(super) fn due(&self, app: AppId, generation: u32, now: Time) -> (Option<Time>, Option<Time>) {
        let counts = |flying: &&Flying| flying.belongs_to(app, generation) && flying.due > now;
        let groups = || self.groups.iter().filter(counts);
        let promised = groups().filter(|flying| flying.promised).map(|flying| flying.due).min();
        (groups().map(|flying| flying.due).min(), promised)
    }

    /// Deadlines are at other times from now on.
    pub(super) fn rebase(&mut self, moved: impl Fn(AppId, Time) -> Time) {
        for flying in self.groups.iter_mut().chain(&mut self.divisible) {
            let app = flying.contract.map_or(flying.app, |(app, _)| app);
            flying.due = moved(app, flying.due);
        }
    }

    pub(super) fn position(&self, group: GroupId) -> Option<usize> {
        self.groups.iter().position(|flying| flying.group == group)
    }

    /// Whether all groups whose end is known ended by then.
    pub(super) fn all_ended_by(&self, time: Time) -> bool {
        self.idle_since <= time
    }

    /// The end that the group at `position` can have had, if `finished` is reported at `now`: not
    /// before it was dispatched nor, in order, before the group that ended last.
    pub(super) fn plausible_end(&self, position: usize, finished: Time, now: Time) -> Time {
        let dispatched = self.groups.get(position).map_or(self.idle_since, |flying| flying.dispatched);
        let earliest = if self.any_order { dispatched } else { dispatched.max(self.idle_since) };
        finished.max(earliest).min(now)
    }

    /// Takes the oldest group out; it ended at `finished`.
    pub(super) fn pop(&mut self, finished: Time) -> Option<Flying> {
        self.remove(0, finished)
    }

    /// Takes the group at `position` out; it ended at `finished`, whatever those before it do.
    pub(super) fn remove(&mut self, position: usize, finished: Time) -> Option<Flying> {
        let flying = self.groups.remove(position)?;
        self.idle_since = self.idle_since.max(finished);
        let all_done = self.conservative.last;
        // Everything should have been over before, and nothing was: the GPU as a whole stood still.
        let stood_still = finished.since(all_done);
        self.groups.iter_mut().for_each(|other| other.stood_still += stood_still);
        // The way back from it was part of its charge.
        let goes_on = self.groups.iter().any(|other| other.app != flying.app);
        self.rebuild(if goes_on { self.switch } else { Span::ZERO });
        // An end that is over was none.
        if self.any_order && all_done > finished {
            self.conservative.last = self.conservative.last.min(all_done);
        }
        Some(flying)
    }

    /// The group that was dispatched last.
    pub(super) fn newest(&self) -> Option<&Flying> {
        self.groups.back()
    }

    /// Takes the group that was dispatched last back; says how long it can have been on the GPU.
    pub(super) fn withdraw(&mut self, now: Time) -> Option<(Flying, Span)> {
        let begun = self.oldest_begun();
        let flying = self.groups.pop_back()?;
        let mut ran = Span::ZERO;
        if self.groups.is_empty() {
            ran = now.since(begun);
            self.idle_since = self.idle_since.max(now);
        }
        self.rebuild(Span::ZERO);
        Some((flying, ran))
    }

    /// The earliest time at which the oldest group can have begun.
    pub(super) fn oldest_begun(&self) -> Time {
        self.groups.front().map_or(self.idle_since, |flying| self.idle_since.max(flying.dispatched))
    }

    /// Predicts all ends anew, if what is in flight can go on after `change`.
    fn rebuild(&mut self, change: Span) {
        for (count, next) in self.groups.iter().enumerate() {
            let mut bound = next.conservative;
            if count == 0 {
                // The GPU does not change before the group is there.
                bound.arrives += change.saturating_sub(next.enters);
            }
            extend(&mut self.conservative, self.idle_since + change, bound, count + 1);
            extend(&mut self.optimistic, self.idle_since, next.optimistic, count + 1);
        }
    }

    /// When the GPU is free, conservatively and optimistically (`busy_until`); `now` if it is.
    /// Completions may be heard of as late as `unheard` after the fact.
    pub(super) fn free_at(&self, now: Time, unheard: Span) -> (Time, Time) {
        if self.groups.is_empty() {
            return (now, now);
        }
        let seen_now = |chain: Chain, bound: fn(&Flying) -> Bound| {
            let heard_until = now - unheard;
            if heard_until <= if self.any_order { chain.last } else { chain.first } {
                return chain.last;
            }
            // The first group should have ended already, or all of them; they have not, and the others
            // may come after it.
            let rest = self.groups.iter().skip(1).map(bound);
            rest.fold(heard_until, |free, next| free.max(next.arrives) + next.runs)
        };
        let conservative = seen_now(self.conservative, |flying| flying.conservative);
        // A GPU that serves processes in turn begins with another one at once.
        let optimistic =
            if self.any_order { now } else { seen_now(self.optimistic, |flying| flying.optimistic) };
        (conservative, optimistic)
    }

    /// When to stop waiting for the first group, or for the divisible one.
    pub(super) fn next_overdue(&self, config: &Config) -> Option<Time> {
        let divisible = self.divisible_overdue_at(config.completion_timeout);
        self.overdue_at(config).into_iter().chain(divisible).min()
    }

    /// When to stop waiting for the first group.
    ///
    /// In any order, each end of another group may mean that this one has only begun. But it takes turns with no more
    /// than `mpcg` others at a time, so it is over when each of them could have had as much of the GPU as it needs.
    /// That takes a GPU that works: a driver that makes contexts can stop all groups for half a second, and then the
    /// one that came first is given up at most.
    pub(super) fn overdue_at(&self, config: &Config) -> Option<Time> {
        let first = self.groups.front()?;
        let (runs, timeout) = (self.runs(first), config.completion_timeout);
        let at = self.idle_since.max(first.conservative.arrives) + runs + timeout;
        let at_last = first.late_from + first.stood_still + runs.times(config.mpcg.into()) + timeout;
        Some(if self.any_order { at.min(at_last) } else { at })
    }
}

fn extend(chain: &mut Chain, idle_since: Time, bound: Bound, count: usize) {
    let free = if count == 1 { idle_since } else { chain.last };
    chain.last = free.max(bound.arrives) + bound.runs;
    if count == 1 {
        chain.first = chain.last;
    }
}
