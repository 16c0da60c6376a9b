//! How much of the control thread's time each user had lately.
//!
//! Of the connections that wait, those of users that had least are served first, so that a user with many
//! connections or expensive questions delays itself and not others. What was long ago counts less and less.

use std::collections::BTreeMap;

use takt_core::{Span, Time};

/// How often all that was spent is halved.
const HALF_LIFE: Span = Span::from_ms(100);
/// Most users that are told apart; what is more is counted as one.
const USERS_MAX: usize = 256;

/// So little needs no rest.
const FREE: Span = Span::from_ms(1);

/// The time that was spent on each user.
#[derive(Debug, Default)]
pub(super) struct Fair {
    /// None stands for all users that found no room.
    spent: BTreeMap<Option<u32>, Span>,
    halved: Time,
    /// Until when users that are not listed rest.
    rest: Time,
}

impl Fair {
    /// So much of a turn was spent on users that are not listed.
    pub(super) fn rest(&mut self, now: Time, spent: Span) {
        if spent > FREE {
            self.rest = now + spent;
        }
    }

    /// Whether users that are not listed rest now.
    pub(super) fn is_resting(&self, now: Time) -> bool {
        now < self.rest
    }

    /// Until when they rest; a time that is over if they do not.
    pub(super) fn rests_until(&self) -> Time {
        self.rest
    }

    /// So much time was spent on a user.
    pub(super) fn charge(&mut self, now: Time, uid: u32, span: Span) {
        while now.since(self.halved) >= HALF_LIFE && !self.spent.is_empty() {
            self.halved += HALF_LIFE;
            self.spent.values_mut().for_each(|spent| *spent = Span::from_ns(spent.as_ns() / 2));
            self.spent.retain(|_, spent| *spent > Span::ZERO);
        }
        if self.spent.is_empty() {
            self.halved = now;
        }
        let known = self.spent.len() < USERS_MAX || self.spent.contains_key(&Some(uid));
        *self.spent.entry(Some(uid).filter(|_| known)).or_default() += span;
    }

    /// How much was spent on a user lately.
    pub(super) fn spent(&self, uid: u32) -> Span {
        let known = self.spent.get(&Some(uid));
        let unknown = || self.spent.get(&None).filter(|_| self.spent.len() >= USERS_MAX);
        known.or_else(unknown).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_told_apart_and_forgiven() {
        let mut fair = Fair::default();
        let ms = Time::from_ms;
        fair.charge(ms(1_000), 7, Span::from_us(800));
        fair.charge(ms(1_001), 8, Span::from_us(100));
        assert_eq!(fair.spent(7), Span::from_us(800));
        assert_eq!(fair.spent(9), Span::ZERO);
        fair.charge(ms(1_300), 8, Span::from_us(1));
        assert_eq!(fair.spent(7), Span::from_us(100), "halved three times");
        fair.charge(ms(100_000), 8, Span::from_us(1));
        assert_eq!(fair.spent(7), Span::ZERO);
    }

    #[test]
    fn users_that_are_not_listed_rest_as_long_as_they_were_served() {
        let mut fair = Fair::default();
        fair.rest(Time::from_ms(10), FREE);
        assert!(!fair.is_resting(Time::from_ms(10)), "that was little");
        fair.rest(Time::from_ms(10), Span::from_ms(5));
        assert!(fair.is_resting(Time::from_ms(14)) && !fair.is_resting(Time::from_ms(15)));
        assert_eq!(fair.rests_until(), Time::from_ms(15));
    }

    #[test]
    fn only_so_many_users_are_told_apart() {
        let mut fair = Fair::default();
        (0..10_000).for_each(|uid| fair.charge(Time::from_ms(1), uid, Span::from_us(1)));
        assert_eq!(fair.spent.len(), USERS_MAX + 1);
        assert_eq!(fair.spent(3), Span::from_us(1));
        assert!(fair.spent(9_999) > Span::from_us(9_000), "the others share");
        fair.charge(Time::from_ms(20_000), 3, Span::from_us(1));
        assert_eq!(fair.spent(9_999), Span::ZERO);
    }
}
