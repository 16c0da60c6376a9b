//! Whether it pays to stay awake.
//!
//! Falling asleep and being woken takes microseconds on bare metal, and tens of them on a virtual
//! machine whose other processors have gone to sleep. Staying awake takes processor time that
//! others could use. So whoever waits stays awake for a short while if that has paid lately.

use takt_core::Span;

/// So many of the last eight waits must have been short.
const MOST: u32 = 6;

/// What is known of the last waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vigil {
    limit: Span,
    /// One bit for each of the last waits, set for the short ones.
    short: u8,
}

impl Vigil {
    /// Stays awake for `limit` at most; nothing has been waited for yet.
    pub const fn new(limit: Span) -> Self {
        Self { limit, short: 0 }
    }

    /// How long to stay awake this time.
    pub const fn patience(&self) -> Span {
        if self.short.count_ones() >= MOST { self.limit } else { Span::ZERO }
    }

    /// Something came after so long.
    pub fn waited(&mut self, span: Span) {
        let is_short = self.limit > Span::ZERO && span <= self.limit;
        self.short = self.short << 1 | u8::from(is_short);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Span = Span::from_us(50);

    fn after(waits_us: &[u64]) -> Span {
        let mut vigil = Vigil::new(LIMIT);
        waits_us.iter().for_each(|us| vigil.waited(Span::from_us(*us)));
        vigil.patience()
    }

    #[test]
    fn it_stays_awake_where_that_has_paid() {
        assert_eq!(after(&[]), Span::ZERO, "nothing is known");
        assert_eq!(after(&[10; 8]), LIMIT);
        assert_eq!(after(&[1000; 100]), Span::ZERO);
        assert_eq!(after(&[10, 1000, 10, 1000, 10, 1000, 10, 1000]), Span::ZERO, "every other time");
        assert_eq!(after(&[10, 10, 10, 10, 1000, 10, 10, 1000]), LIMIT, "most of the time");
        assert_eq!(after(&[10, 10, 10, 10, 10, 10, 10, 10, 1000, 1000, 1000]), Span::ZERO, "not any more");
    }

    #[test]
    fn without_a_limit_it_sleeps() {
        let mut vigil = Vigil::new(Span::ZERO);
        (0..8).for_each(|_| vigil.waited(Span::ZERO));
        assert_eq!(vigil.patience(), Span::ZERO);
    }
}
