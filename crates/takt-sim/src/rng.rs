//! Random numbers that stay the same for ever.
//!
//! A library's generator or its mapping to ranges may change with a new version, and then every
//! recorded seed would mean something else. So these few lines are ours: SplitMix64 (Steele, Lea,
//! Flood 2014) and a multiply-shift mapping to ranges.

use takt_core::Span;

use crate::model::{CostDist, SHARE_ONE, SpanRange};

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The stream number `stream` of `seed`; streams are independent of one another.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut mixer = Self(seed ^ 0x7461_6b74_0000_0000);
        let base = mixer.next_u64();
        Self(base ^ stream.wrapping_mul(0xa076_1d64_78bd_642f))
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `lo..=hi`; `lo` if the range is empty.
    pub fn between(&mut self, lo: u64, hi: u64) -> u64 {
        let width = hi.saturating_sub(lo);
        if width == 0 {
            return lo;
        }
        let wide = u128::from(self.next_u64()) * (u128::from(width) + 1);
        let offset = (wide >> 64) as u64;
        lo + offset
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        let drawn = self.between(0, u64::from(bound.saturating_sub(1)));
        u32::try_from(drawn).unwrap_or(0)
    }

    /// A signed number in `lo..=hi`; `lo` if the range is empty.
    pub fn between_signed(&mut self, lo: i64, hi: i64) -> i64 {
        if hi <= lo {
            return lo;
        }
        lo.wrapping_add_unsigned(self.between(0, hi.abs_diff(lo)))
    }

    /// True in `share_ppm` of a million cases.
    pub fn chance(&mut self, share_ppm: u32) -> bool {
        share_ppm > 0 && self.between(1, u64::from(SHARE_ONE)) <= u64::from(share_ppm)
    }

    /// A span of the range.
    pub fn span(&mut self, range: SpanRange) -> Span {
        Span::from_ns(self.between(range.lo.as_ns(), range.hi.as_ns()))
    }

    /// One of `items`.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let last = items.len().checked_sub(1)?;
        let index = self.between(0, last as u64);
        items.get(usize::try_from(index).unwrap_or(last))
    }

    /// A cost of the distribution.
    pub fn cost(&mut self, dist: &CostDist) -> (usize, Span) {
        let bucket = self.bucket(dist);
        let cost = dist.buckets.get(bucket).map_or(Span::ZERO, |bucket| self.span(bucket.range));
        (bucket, cost)
    }

    fn bucket(&mut self, dist: &CostDist) -> usize {
        if dist.buckets.len() <= 1 {
            return 0;
        }
        let mut rest = self.between(1, u64::from(SHARE_ONE));
        for (index, bucket) in dist.buckets.iter().enumerate() {
            let share = u64::from(bucket.share_ppm);
            if rest <= share {
                return index;
            }
            rest -= share;
        }
        dist.buckets.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_pinned() {
        let mut rng = Rng::new(1, 0);
        let first = [rng.next_u64(), rng.next_u64()];
        assert_eq!(first, [5_919_884_211_285_921_801, 6_908_328_281_811_707_588]);
        assert_ne!(Rng::new(1, 1).next_u64(), first[0]);
        assert_ne!(Rng::new(2, 0).next_u64(), first[0]);
    }

    #[test]
    fn ranges_are_inclusive_and_even() {
        let mut rng = Rng::new(7, 7);
        let mut seen = [0u32; 5];
        for _ in 0..50_000 {
            seen[usize::try_from(rng.between(10, 14) - 10).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&n| (9_500..10_500).contains(&n)), "{seen:?}");
        assert_eq!(rng.between(3, 3), 3);
        assert_eq!(rng.between(3, 2), 3);
        assert!((-3..=3).contains(&rng.between_signed(-3, 3)));
    }

    #[test]
    fn chances_are_met() {
        let mut rng = Rng::new(3, 3);
        assert!(!rng.chance(0));
        assert!(rng.chance(SHARE_ONE));
        let hits = (0..100_000).filter(|_| rng.chance(100_000)).count();
        assert!((9_500..10_500).contains(&hits), "{hits}");
    }
}
