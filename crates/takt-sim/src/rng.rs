//! Draws from the ranges and distributions of scenarios.

use takt_core::Span;
pub use takt_rng::Rng;

use crate::model::{CostDist, SHARE_ONE, SpanRange};

impl SpanRange {
    /// A span of the range.
    pub fn draw(self, rng: &mut Rng) -> Span {
        Span::from_ns(rng.between(self.lo.as_ns(), self.hi.as_ns()))
    }
}

impl CostDist {
    /// A cost, and the bucket that it is of.
    pub fn draw(&self, rng: &mut Rng) -> (usize, Span) {
        let bucket = self.bucket(rng);
        (bucket, self.buckets.get(bucket).map_or(Span::ZERO, |bucket| bucket.range.draw(rng)))
    }

    fn bucket(&self, rng: &mut Rng) -> usize {
        if self.buckets.len() <= 1 {
            return 0;
        }
        let mut rest = rng.between(1, u64::from(SHARE_ONE));
        for (index, bucket) in self.buckets.iter().enumerate() {
            let share = u64::from(bucket.share_ppm);
            if rest <= share {
                return index;
            }
            rest -= share;
        }
        self.buckets.len() - 1
    }
}
