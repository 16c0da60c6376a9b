//! The account of one constant bandwidth server.
//!
//! A server has a budget and a deadline. Work that finds it idle gives it both anew, unless what
//! is left of the old budget is so little that it fits the old deadline; a server that has used up
//! its budget gets another one together with a deadline later by a period. Nothing else changes
//! them, above all not an empty queue: a server that forgot its budget there would get more than
//! its share. All comparisons are exact.

use crate::service::{Enforcement, Reserve};
use crate::time::{Span, Time};

/// What happens when a budget is used up.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Exhaustion {
    /// The server goes on at once, with the later deadline.
    Soft,
    /// The server rests until its old deadline.
    Hard,
}

/// A constant bandwidth server at work.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Server {
    reserve: Reserve,
    /// What is left of the budget, never zero once work has arrived.
    budget: Span,
    deadline: Time,
    /// Nothing of it runs before.
    rests_until: Time,
}

impl Server {
    /// A server that never had work; `None` without a budget or a period.
    pub(super) fn new(reserve: Reserve) -> Option<Self> {
        let sensible = reserve.budget > Span::ZERO && reserve.period > Span::ZERO;
        let server = Self { reserve, budget: Span::ZERO, deadline: Time::ZERO, rests_until: Time::ZERO };
        sensible.then_some(server)
    }

    pub(super) fn reserve(&self) -> &Reserve {
        &self.reserve
    }

    /// How long it can run before its budget is used up.
    pub fn budget(&self) -> Span {
        self.budget
    }

    /// Whether it rests when a budget is used up, by what its reserve says.
    pub(super) fn exhaustion(&self) -> Exhaustion {
        match self.reserve.enforcement {
            Enforcement::Apriori => Exhaustion::Hard,
            Enforcement::Posterior => Exhaustion::Soft,
        }
    }

    /// The deadline that a group has which needs so much: that of the budget that covers it.
    pub(super) fn deadline_for(&self, need: Span) -> Time {
        self.deadline + self.reserve.period.times(self.budgets_missing(need))
    }

    /// Until when a group that needs so much waits, if it does.
    pub(super) fn waits_for(&self, need: Span, now: Time) -> Option<Time> {
        let missing = self.budgets_missing(need);
        if missing == 0 || self.exhaustion() == Exhaustion::Soft {
            return self.rests(now);
        }
        let until = self.deadline + self.reserve.period.times(missing - 1);
        Some(until.max(self.rests_until)).filter(|until| *until > now)
    }

    /// Postpones the deadline until its budget covers what is needed, and takes that off.
    pub(super) fn dispatch(&mut self, need: Span) {
        (self.budget, self.deadline) = (self.budget_for(need), self.deadline_for(need));
        self.charge(need, self.exhaustion());
    }

    /// A group took less than was taken off for it.
    pub(super) fn refund(&mut self, unused: Span) {
        self.budget = (self.budget + unused).min(self.reserve.budget);
    }

    /// The same server for a group that needs so much and waits since then. Nothing is made up for: a deadline that
    /// was over before the group came, or is over now that it is late, counts no more.
    pub(super) fn promising(mut self, need: Span, since: Time, now: Time) -> Self {
        if self.deadline <= since {
            self.begin(since);
        }
        if self.promised_by(need, since) <= now {
            self.begin(now);
        }
        self
    }

    /// By when a group is promised that needs so much and waits since then: no earlier than a period after that. What
    /// is left of a budget may be due at any moment, and not even the shortest group of another app could go before.
    pub(super) fn promised_by(&self, need: Span, since: Time) -> Time {
        self.deadline_for(need).max(since + self.reserve.period)
    }

    /// What is promised to such a group: by when, and how much until then.
    pub(super) fn promise(&self, need: Span, since: Time) -> (Time, Span) {
        let due = self.promised_by(need, since);
        (due, self.budget_for(need) + self.share_of(due.since(self.deadline_for(need))))
    }

    /// What is promised if it is idle and work may come at any time from `now` on.
    pub(super) fn promise_idle(mut self, now: Time) -> (Time, Span) {
        self.arrive(now);
        self.promise(Span::ZERO, now)
    }

    /// The same server after a group that needs so much.
    pub(super) fn after(mut self, need: Span) -> Self {
        self.dispatch(need);
        self
    }

    /// The same server for work that comes now or later: its budget is due no earlier than a period after that, and
    /// grows by its share for as long as its deadline is put off.
    pub(super) fn postponed(mut self, now: Time) -> Self {
        let due = now + self.reserve.period;
        let gained = self.share_of(due.since(self.deadline));
        self.budget = (self.budget + gained).min(self.reserve.budget);
        self.deadline = self.deadline.max(due);
        self
    }

    /// Its share of so much time, rounded up.
    fn share_of(&self, time: Span) -> Span {
        let wide = |span: Span| u128::from(span.as_ns());
        let share = (wide(time) * wide(self.reserve.budget)).div_ceil(wide(self.reserve.period).max(1));
        Span::from_ns(u64::try_from(share).unwrap_or(u64::MAX))
    }

    /// How many more budgets cover what is needed. A server that rests until it gets them loses what was left of the
    /// one before: together they would be more than its share of the time that it has for them.
    fn budgets_missing(&self, need: Span) -> u64 {
        let left = match self.exhaustion() {
            Exhaustion::Hard if need > self.budget => Span::ZERO,
            _ => self.budget,
        };
        need.saturating_sub(left).as_ns().div_ceil(self.reserve.budget.as_ns().max(1))
    }

    /// The budget that covers what is needed.
    fn budget_for(&self, need: Span) -> Span {
        match (self.budgets_missing(need), self.exhaustion()) {
            (0, _) => self.budget,
            (missing, Exhaustion::Hard) => self.reserve.budget.times(missing),
            (missing, Exhaustion::Soft) => self.budget + self.reserve.budget.times(missing),
        }
    }

    /// Whether work that arrives now, and finds it idle, gets a budget and a deadline anew.
    fn renews(&self, now: Time) -> bool {
        let wide = |span: Span| u128::from(span.as_ns());
        let left = self.deadline.since(now);
        wide(self.budget) * wide(self.reserve.period) >= wide(left) * wide(self.reserve.budget)
    }

    /// Until when it rests, if it does.
    pub(super) fn rests(&self, now: Time) -> Option<Time> {
        Some(self.rests_until).filter(|until| *until > now)
    }

    /// Work arrives while the server has none.
    pub(super) fn arrive(&mut self, now: Time) {
        if self.renews(now) {
            self.begin(now);
        }
    }

    /// It gets a budget and a deadline anew.
    fn begin(&mut self, now: Time) {
        self.budget = self.reserve.budget;
        self.deadline = now + self.reserve.deadline;
        self.rests_until = Time::ZERO;
    }

    /// The GPU was used for so long on its account.
    pub fn charge(&mut self, used: Span, exhaustion: Exhaustion) {
        if used < self.budget {
            self.budget -= used;
            return;
        }
        // More than one budget may be gone where groups run to their end.
        let excess = used.saturating_sub(self.budget).as_ns();
        let full = self.reserve.budget.as_ns();
        let others = excess / full;
        let last = self.deadline + self.reserve.period.times(others);
        self.budget = Span::from_ns(full - excess % full);
        self.deadline = last + self.reserve.period;
        if exhaustion == Exhaustion::Hard {
            self.rests_until = last;
        }
    }

    /// Another reserve from now on; debts stay.
    pub(super) fn change(&mut self, reserve: Reserve) {
        self.reserve = reserve;
        self.budget = self.budget.min(reserve.budget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(budget: u64, period: u64) -> Server {
        let [budget, period] = [budget, period].map(Span::from_ns);
        let reserve = Reserve { budget, period, deadline: period, enforcement: Enforcement::default() };
        Server::new(reserve).unwrap()
    }

    fn state(server: &Server) -> (u64, u64, u64) {
        (server.budget.as_ns(), server.deadline.as_ns(), server.rests_until.as_ns())
    }

    #[test]
    fn a_budget_outlives_an_empty_queue() {
        let mut server = server(4, 10);
        server.arrive(Time::from_ns(100));
        server.charge(Span::from_ns(3), Exhaustion::Hard);
        assert_eq!(state(&server), (1, 110, 0));
        // One of four is left; from 108 on that is more than fits until the deadline.
        server.arrive(Time::from_ns(107));
        assert_eq!(state(&server), (1, 110, 0));
        server.arrive(Time::from_ns(108));
        assert_eq!(state(&server), (4, 118, 0));
    }

    #[test]
    fn soft_and_hard_differ_in_nothing_but_the_rest() {
        for (exhaustion, rests) in [(Exhaustion::Soft, 0), (Exhaustion::Hard, 110)] {
            let mut server = server(4, 10);
            server.arrive(Time::from_ns(100));
            server.charge(Span::from_ns(4), exhaustion);
            assert_eq!(state(&server), (4, 120, rests));
            // It is idle and gets no third budget before its time.
            server.arrive(Time::from_ns(109));
            assert_eq!(state(&server), (4, 120, rests));
            server.arrive(Time::from_ns(110));
            assert_eq!(state(&server), (4, 120, 0));
        }
    }

    #[test]
    fn an_overrun_is_paid_with_later_budgets() {
        let mut server = server(4, 10);
        server.arrive(Time::ZERO);
        server.charge(Span::from_ns(4 + 9), Exhaustion::Hard);
        // Two more budgets and one of the third are gone.
        assert_eq!(state(&server), (3, 40, 30));
        assert_eq!(server.rests(Time::from_ns(29)), Some(Time::from_ns(30)));
        assert_eq!(server.rests(Time::from_ns(30)), None);
        server.arrive(Time::from_ns(31));
        assert_eq!(state(&server), (3, 40, 30));
    }

    #[test]
    fn nothing_overflows() {
        let mut server = server(1, 1 << 60);
        server.arrive(Time::NEVER);
        server.charge(Span::FOREVER, Exhaustion::Hard);
        server.arrive(Time::NEVER);
        assert!(Server::new(Reserve { budget: Span::ZERO, ..*server.reserve() }).is_none());
    }
}
