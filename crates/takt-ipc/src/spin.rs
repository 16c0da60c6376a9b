//! How long to spin before falling asleep.
//!
//! Falling asleep and being woken takes microseconds on bare metal, and tens of them on a virtual
//! machine whose other processors sleep. Spinning takes processor time that others could use. So a
//! waiting thread spins for a short while, and only if most of its recent waits were short.

use takt_core::Span;

/// So many of the last eight waits must have been short.
const MOST: u32 = 6;

/// How long the next wait spins, learnt from the last ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpinBudget {
    most: Span,
    /// One bit for each of the last waits, set for the short ones.
    short: u8,
}

impl SpinBudget {
    /// Spins for `most` at most, and not at all before the first short waits.
    pub const fn new(most: Span) -> Self {
        Self { most, short: 0 }
    }

    /// How long to spin this time.
    pub const fn limit(&self) -> Span {
        if self.short.count_ones() >= MOST { self.most } else { Span::ZERO }
    }

    /// A wait took this long.
    pub fn waited(&mut self, span: Span) {
        let is_short = self.most > Span::ZERO && span <= self.most;
        self.short = self.short << 1 | u8::from(is_short);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Span = Span::from_us(50);

    fn after(waits_us: &[u64]) -> Span {
        let mut budget = SpinBudget::new(LIMIT);
        waits_us.iter().for_each(|us| budget.waited(Span::from_us(*us)));
        budget.limit()
    }

    #[test]
    fn it_spins_after_short_waits() {
        assert_eq!(after(&[]), Span::ZERO, "nothing is known");
        assert_eq!(after(&[10; 8]), LIMIT);
        assert_eq!(after(&[1000; 100]), Span::ZERO);
        assert_eq!(after(&[10, 1000, 10, 1000, 10, 1000, 10, 1000]), Span::ZERO, "every other time");
        assert_eq!(after(&[10, 10, 10, 10, 1000, 10, 10, 1000]), LIMIT, "most of the time");
        assert_eq!(after(&[10, 10, 10, 10, 10, 10, 10, 10, 1000, 1000, 1000]), Span::ZERO, "not any more");
    }

    #[test]
    fn without_a_budget_it_sleeps() {
        let mut budget = SpinBudget::new(Span::ZERO);
        (0..8).for_each(|_| budget.waited(Span::ZERO));
        assert_eq!(budget.limit(), Span::ZERO);
    }
}
