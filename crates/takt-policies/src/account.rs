//! A budget that comes back in every period: the account of one reserve.
//!
//! * **Rule.** The budget `e` starts at the capacity `C`. What a group occupied the GPU is taken
//!   off when it ends, so `e` may become negative. At the end of each period
//!   `e = min(max(C, x), e + C)`, where `x` is the cost of the dearest group that was found to
//!   exceed the budget; a reserve that is enforced afterwards has `x = 0`.
//! * **Source.** Kato, Lakshmanan, Rajkumar, Ishikawa, "TimeGraph", USENIX ATC 2011, section 5.1.
//!   There an a-priori reserve with `x ≤ C` gets "at most `C`"; read as `min(C, e + C)`, a debt
//!   from a wrong prediction is paid back, and for right predictions nothing differs.
//! * **Cost.** Constant. Periods that passed unobserved are added at once.

use takt_core::service::{Enforcement, Reserve};
use takt_core::time::{Span, Time};

/// The state of a reserve.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Account {
    terms: Reserve,
    /// What may still be used, in nanoseconds; negative after an overrun.
    budget: i64,
    /// The next replenishment.
    next: Time,
    /// The dearest group that waits for budget (`x`).
    awaited: Span,
}

impl Account {
    /// A full account.
    pub(crate) fn open(terms: Reserve, now: Time) -> Self {
        let terms = Reserve { period: terms.period.max(PERIOD_MIN), ..terms };
        Self { terms, budget: terms.budget.as_signed_ns(), next: now + terms.period, awaited: Span::ZERO }
    }

    /// Other terms from now on. A debt stays, and nothing is gained before the next period.
    pub(crate) fn renegotiate(&mut self, terms: Reserve, now: Time) {
        let before = self.budget;
        *self = Self::open(terms, now);
        self.budget = self.budget.min(before);
    }

    /// Whether these are the terms in force.
    pub(crate) fn has_terms(&self, terms: Reserve) -> bool {
        let terms = Reserve { period: terms.period.max(PERIOD_MIN), ..terms };
        self.terms == terms
    }

    /// What the reserve may take of the GPU, in millionths, rounded up.
    pub(crate) fn share_ppm(terms: Reserve) -> u128 {
        let period = u128::from(terms.period.max(PERIOD_MIN).as_ns());
        (u128::from(terms.budget.as_ns()) * 1_000_000).div_ceil(period)
    }

    /// Adds what came back up to and including `until`.
    pub(crate) fn replenish(&mut self, until: Time) {
        if until < self.next {
            return;
        }
        let periods = until.since(self.next).as_ns() / self.terms.period.as_ns() + 1;
        let full = self.terms.budget.max(self.awaited).as_signed_ns();
        let gained = self.terms.budget.times(periods).as_signed_ns();
        self.budget = self.budget.saturating_add(gained).min(full);
        self.next += self.terms.period.times(periods);
    }

    /// A group occupied the GPU for that long, up to `finished`.
    pub(crate) fn charge(&mut self, occupied: Span, finished: Time) {
        // What comes back in the very instant of the end pays for later groups.
        self.replenish(finished - Span::from_ns(1));
        self.budget = self.budget.saturating_sub(occupied.as_signed_ns());
    }

    /// Whether a group that is predicted to take `cost` may run.
    pub(crate) fn allows(&self, cost: Span) -> bool {
        self.budget >= self.needed(cost)
    }

    /// A group that is predicted to take `cost` does not fit and waits for budget; says until when.
    pub(crate) fn await_budget(&mut self, cost: Span) -> Time {
        if self.terms.enforcement == Enforcement::Apriori {
            self.awaited = self.awaited.max(cost);
        }
        let missing = self.needed(cost).saturating_sub(self.budget).max(0).cast_unsigned();
        match self.terms.budget.as_ns() {
            0 => Time::NEVER,
            capacity => {
                let periods = missing.div_ceil(capacity);
                self.next + self.terms.period.times(periods.saturating_sub(1))
            }
        }
    }

    /// Nothing is known to wait for budget any longer.
    pub(crate) fn await_nothing(&mut self) {
        self.awaited = Span::ZERO;
    }

    /// The least budget with which a group that is predicted to take `cost` may run.
    fn needed(&self, cost: Span) -> i64 {
        match self.terms.enforcement {
            Enforcement::Posterior => 1,
            Enforcement::Apriori => cost.as_signed_ns().max(1),
        }
    }
}

/// Shorter periods are taken for this one.
const PERIOD_MIN: Span = Span::from_ns(1);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn terms(budget: u64, period: u64, enforcement: Enforcement) -> Reserve {
        let (budget, period) = (Span::from_ns(budget), Span::from_ns(period));
        Reserve { budget, period, deadline: period, enforcement }
    }

    #[test]
    fn an_overrun_is_paid_in_the_next_period() {
        let mut account = Account::open(terms(10, 25, Enforcement::Posterior), Time::ZERO);
        account.charge(Span::from_ns(16), Time::from_ns(20));
        assert!(!account.allows(Span::ZERO));
        assert_eq!(account.await_budget(Span::ZERO), Time::from_ns(25));
        account.replenish(Time::from_ns(25));
        assert_eq!(account.budget, 4);
        account.replenish(Time::from_ns(1000));
        assert_eq!(account.budget, 10, "nothing is saved up");
    }

    #[test]
    fn a_large_overrun_takes_several_periods() {
        let mut account = Account::open(terms(10, 25, Enforcement::Posterior), Time::ZERO);
        account.charge(Span::from_ns(50), Time::from_ns(20));
        assert_eq!(account.await_budget(Span::ZERO), Time::from_ns(125), "-40, then 0 at 100");
        account.replenish(Time::from_ns(100));
        assert!(!account.allows(Span::ZERO));
        account.replenish(Time::from_ns(125));
        assert!(account.allows(Span::ZERO));
    }

    #[test]
    fn a_group_beyond_the_capacity_is_saved_for() {
        let mut account = Account::open(terms(10, 25, Enforcement::Apriori), Time::ZERO);
        assert!(account.allows(Span::from_ns(10)));
        assert_eq!(account.await_budget(Span::from_ns(23)), Time::from_ns(50));
        account.replenish(Time::from_ns(25));
        assert_eq!(account.budget, 20);
        account.replenish(Time::from_ns(75));
        assert_eq!(account.budget, 23, "and no further than needed");
    }

    #[test]
    fn other_terms_do_not_forgive_a_debt() {
        let mut account = Account::open(terms(10, 25, Enforcement::Posterior), Time::ZERO);
        account.charge(Span::from_ns(30), Time::from_ns(20));
        account.renegotiate(terms(15, 25, Enforcement::Posterior), Time::from_ns(20));
        assert_eq!(account.budget, -20);
        let mut full = Account::open(terms(10, 25, Enforcement::Posterior), Time::ZERO);
        full.renegotiate(terms(15, 25, Enforcement::Posterior), Time::from_ns(20));
        assert_eq!(full.budget, 10, "nor do they give budget away");
    }

    #[test]
    fn extreme_terms_are_harmless() {
        for (budget, period) in [(0, 0), (u64::MAX, 0), (0, u64::MAX), (u64::MAX, u64::MAX)] {
            let mut account = Account::open(terms(budget, period, Enforcement::Apriori), Time::ZERO);
            account.await_budget(Span::FOREVER);
            account.charge(Span::FOREVER, Time::NEVER);
            account.charge(Span::FOREVER, Time::NEVER);
            account.replenish(Time::NEVER);
            account.await_budget(Span::from_ns(7));
            Account::share_ppm(terms(budget, period, Enforcement::Apriori));
        }
    }

    proptest! {
        /// Periods one by one or all at once, the outcome is the same; the answer to "when" is the
        /// first instant at which the group may run.
        #[test]
        fn lazily_replenished_as_if_by_timers(
            budget in 0u64..50,
            period in 1u64..60,
            apriori in any::<bool>(),
            used in 0u64..300,
            cost in 0u64..200,
        ) {
            let enforcement = if apriori { Enforcement::Apriori } else { Enforcement::Posterior };
            let cost = Span::from_ns(cost);
            let mut stepped = Account::open(terms(budget, period, enforcement), Time::ZERO);
            stepped.charge(Span::from_ns(used), Time::from_ns(1));
            let mut lazy = stepped;
            let until = lazy.await_budget(cost);
            stepped.await_budget(cost);
            if !stepped.allows(cost) {
                for at in 1..2000 {
                    stepped.replenish(Time::from_ns(at));
                    prop_assert_eq!(stepped.allows(cost), Time::from_ns(at) >= until, "at {}", at);
                    prop_assert!(stepped.budget <= lazy.terms.budget.max(cost).as_signed_ns());
                }
                lazy.replenish(Time::from_ns(1999));
                prop_assert_eq!(lazy.budget, stepped.budget);
                prop_assert_eq!(lazy.next, stepped.next);
            }
        }
    }
}
