//! How long something took, of many times.

use takt_core::Span;

/// Width of a class.
const CLASS: Span = Span::from_us(500);
/// Classes; what takes longer is in the last one.
const CLASSES: usize = 1024;

/// Times in classes of half a millisecond.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Times {
    classes: Vec<u32>,
    count: u64,
    longest: Span,
}

impl Times {
    /// One more.
    pub fn add(&mut self, time: Span) {
        self.classes.resize(CLASSES, 0);
        let class = usize::try_from(time.as_ns() / CLASS.as_ns()).unwrap_or(usize::MAX).min(CLASSES - 1);
        self.classes[class] = self.classes[class].saturating_add(1);
        self.count += 1;
        self.longest = self.longest.max(time);
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest.
    pub fn longest(&self) -> Span {
        self.longest
    }

    /// So many of a hundred took no longer than that, to the next class.
    pub fn percentile(&self, of_hundred: u64) -> Span {
        let wanted = self.count.saturating_mul(of_hundred).div_ceil(100);
        let mut seen = 0;
        for (class, count) in (1..).zip(self.classes.iter().take(CLASSES - 1)) {
            seen += u64::from(*count);
            if seen >= wanted {
                return CLASS.times(class).min(self.longest);
            }
        }
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_true_to_a_class() {
        let mut times = Times::default();
        assert_eq!((times.percentile(99), times.longest(), times.count()), (Span::ZERO, Span::ZERO, 0));
        for ms in 1..=100 {
            times.add(Span::from_ms(ms));
        }
        assert_eq!(times.percentile(50), Span::from_us(50_500));
        assert_eq!(times.percentile(99), Span::from_us(99_500));
        assert_eq!(times.percentile(100), Span::from_ms(100));
        times.add(Span::from_ms(10_000));
        assert_eq!(
            (times.percentile(99), times.percentile(100)),
            (Span::from_us(100_500), Span::from_ms(10_000))
        );
    }
}
