//! Random numbers that stay the same for ever.
//!
//! A library's generator or its mapping to ranges may change with a new version, and then every
//! recorded seed would mean something else. So these few lines are ours: SplitMix64 (Steele, Lea,
//! Flood 2014) and a multiply-shift mapping to ranges. All crates draw from here.

#![no_std]
#![forbid(unsafe_code)]

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng(u64);

/// From one state to the next: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// The whole, in the shares of [`Rng::chance`].
const MILLION: u32 = 1_000_000;

impl Rng {
    /// The stream of `seed`.
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// The stream number `stream` of `seed`; streams are independent of one another.
    pub fn new(seed: u64, stream: u64) -> Self {
        let base = Self(seed ^ 0x7461_6b74_0000_0000).next_u64();
        Self(base ^ stream.wrapping_mul(0xa076_1d64_78bd_642f))
    }

    /// The stream of `seed` from its number `index` on.
    pub const fn from_nth(seed: u64, index: u64) -> Self {
        Self(seed.wrapping_add(index.wrapping_mul(STEP)))
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
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
        lo + (wide >> 64) as u64
    }

    /// A signed number in `lo..=hi`; `lo` if the range is empty.
    pub fn between_signed(&mut self, lo: i64, hi: i64) -> i64 {
        if hi <= lo {
            return lo;
        }
        lo.wrapping_add_unsigned(self.between(0, hi.abs_diff(lo)))
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        let drawn = self.between(0, u64::from(bound.saturating_sub(1)));
        u32::try_from(drawn).unwrap_or(0)
    }

    /// An index of something with `length` elements; 0 if it has none.
    pub fn index(&mut self, length: usize) -> usize {
        let drawn = self.between(0, (length as u64).saturating_sub(1));
        usize::try_from(drawn).unwrap_or(0)
    }

    /// One of `items`.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let _some = items.first()?;
        items.get(self.index(items.len()))
    }

    /// True in `share_ppm` of a million cases.
    pub fn chance(&mut self, share_ppm: u32) -> bool {
        share_ppm > 0 && self.between(1, MILLION.into()) <= share_ppm.into()
    }

    /// True in `percent` of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.between(1, 100) <= percent
    }

    /// A number from 0 to just below 1.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
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
        assert_eq!(Rng::seeded(0).next_u64(), 0xe220_a839_7b1d_cdaf, "as its authors published it");
        let mut seeded = Rng::seeded(9);
        seeded.next_u64();
        assert_eq!(Rng::from_nth(9, 1).next_u64(), seeded.next_u64());
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
        assert_eq!((rng.below(0), rng.index(0), rng.pick::<u8>(&[])), (0, 0, None));
    }

    #[test]
    fn chances_are_met() {
        let mut rng = Rng::new(3, 3);
        assert!(!rng.chance(0));
        assert!(rng.chance(MILLION));
        let hits = (0..100_000).filter(|_| rng.chance(100_000)).count();
        assert!((9_500..10_500).contains(&hits), "{hits}");
    }

    #[test]
    fn units_fill_their_range() {
        let mut rng = Rng::seeded(5);
        let (mut least, mut most, mut sum) = (1.0_f64, 0.0_f64, 0.0);
        for _ in 0..100_000 {
            let unit = rng.unit();
            assert!((0.0..1.0).contains(&unit), "{unit}");
            (least, most, sum) = (least.min(unit), most.max(unit), sum + unit);
        }
        assert!(least < 0.001 && most > 0.999 && (sum - 50_000.0).abs() < 500.0, "{least} {most} {sum}");
    }
}
