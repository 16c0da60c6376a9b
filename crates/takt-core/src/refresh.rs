//! The display's refresh grid: period `k` is `[start(k), start(k + 1))`, all deadlines are
//! period ends.
//!
//! A period is rarely a whole number of nanoseconds (60 Hz is 16 666 666⅔ ns), so the grid keeps
//! it as a fraction and rounds each start down on its own: the grid never drifts.

use core::fmt;
use core::num::NonZeroU32;
use core::ops::{Add, Sub};

use crate::app::Stride;
use crate::limits::STRIDE_MAX;
use crate::time::{Span, Time};

/// Sequence number of a refresh period.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Period(pub u64);

impl Add<u64> for Period {
    type Output = Self;
    fn add(self, rhs: u64) -> Self {
        Self(self.0.saturating_add(rhs))
    }
}

impl Sub<u64> for Period {
    type Output = Self;
    fn sub(self, rhs: u64) -> Self {
        Self(self.0.saturating_sub(rhs))
    }
}

/// A drift-free grid of refresh periods.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Refresh {
    origin: Time,
    /// The period is `num / den` nanoseconds, in lowest terms.
    num: u64,
    den: u64,
    mhz: u32,
}

/// Nanoseconds times millihertz of one cycle.
const NS_MHZ: u64 = 1_000_000_000_000;

/// Slowest and fastest display we accept, in millihertz (1 Hz to 1 kHz).
pub const REFRESH_MHZ: core::ops::RangeInclusive<u32> = 1_000..=1_000_000;

impl Refresh {
    /// 60 Hz from the clock's origin.
    pub const HZ_60: Self = Self::from_mhz_unchecked(60_000);

    /// A grid of `mhz` millihertz whose period 0 starts at the clock's origin.
    pub fn from_mhz(mhz: u32) -> Option<Self> {
        REFRESH_MHZ.contains(&mhz).then(|| Self::from_mhz_unchecked(mhz))
    }

    const fn from_mhz_unchecked(mhz: u32) -> Self {
        let divisor = gcd(NS_MHZ, mhz as u64);
        Self { origin: Time::ZERO, num: NS_MHZ / divisor, den: mhz as u64 / divisor, mhz }
    }

    /// A grid with periods of exactly `ns` nanoseconds, for tests and analyses on round numbers.
    pub const fn from_period_ns(ns: NonZeroU32) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "clamped to u32 just before")]
        let mhz = {
            let exact = NS_MHZ / ns.get() as u64;
            if exact < u32::MAX as u64 { exact as u32 } else { u32::MAX }
        };
        Self { origin: Time::ZERO, num: ns.get() as u64, den: 1, mhz }
    }

    /// The same rate with period 0 starting at `origin`.
    #[must_use]
    pub const fn with_origin(self, origin: Time) -> Self {
        Self { origin, ..self }
    }

    /// The same rate with `period` starting at `at`, or as near to it as the clock's origin allows.
    #[must_use]
    pub const fn starting(self, period: Period, at: Time) -> Self {
        let from_origin = self.start(period).as_ns() - self.origin.as_ns();
        self.with_origin(Time::from_ns(at.as_ns().saturating_sub(from_origin)))
    }

    /// When period 0 starts.
    pub const fn origin(&self) -> Time {
        self.origin
    }

    /// Refresh rate in millihertz.
    pub const fn mhz(&self) -> u32 {
        self.mhz
    }

    /// When `period` starts.
    pub const fn start(&self, period: Period) -> Time {
        let (whole, part) = (period.0 / self.den, period.0 % self.den);
        let ns = whole.saturating_mul(self.num).saturating_add(part * self.num / self.den);
        Time::from_ns(self.origin.as_ns().saturating_add(ns))
    }

    /// When `period` ends: the deadline of frames that target it.
    pub const fn end(&self, period: Period) -> Time {
        self.start(Period(period.0.saturating_add(1)))
    }

    /// The incipient arrival of a frame of that stride for `target`: when its groups may begin to
    /// arrive.
    pub fn incipient_arrival(&self, target: Period, stride: Stride) -> Time {
        self.start(target - stride.lead())
    }

    /// The period that `time` falls in; period 0 for anything before the origin.
    pub const fn period_at(&self, time: Time) -> Period {
        // The largest k with floor(k·num/den) ≤ t, that is k·num < (t + 1)·den, split so that
        // nothing overflows.
        let t1 = time.as_ns().saturating_sub(self.origin.as_ns()) + 1;
        let (whole, part) = (t1 / self.num, t1 % self.num);
        Period(if part == 0 {
            (whole * self.den).saturating_sub(1)
        } else {
            whole * self.den + (part * self.den - 1) / self.num
        })
    }

    /// The first period that starts at or after `time`.
    pub fn period_from(&self, time: Time) -> Period {
        let period = self.period_at(time);
        if self.start(period) >= time { period } else { period + 1 }
    }

    /// The period whose end is nearest to `time`.
    pub fn period_ending_near(&self, time: Time) -> Period {
        let period = self.period_at(time);
        let (start, end) = (self.start(period), self.end(period));
        if time.since(start) <= end.since(time) { period - 1 } else { period }
    }

    /// The shortest period of the grid (lengths differ by at most one nanosecond).
    pub const fn period_span(&self) -> Span {
        Span::from_ns(self.num / self.den)
    }

    /// The stride of an app that wants `fps_mhz` millihertz, which must divide the refresh rate.
    pub fn stride_for(&self, fps_mhz: u32) -> Result<Stride, RateError> {
        let error = RateError { refresh_mhz: self.mhz, fps_mhz };
        if fps_mhz == 0 || !self.mhz.is_multiple_of(fps_mhz) {
            return Err(error);
        }
        Stride::new(self.mhz / fps_mhz).ok_or(error)
    }
}

/// A frame rate that the display cannot show evenly.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RateError {
    /// Refresh rate of the display in millihertz.
    pub refresh_mhz: u32,
    /// The rate asked for, in millihertz.
    pub fps_mhz: u32,
}

impl RateError {
    /// The allowed rates in millihertz, fastest first.
    pub fn allowed(&self) -> impl Iterator<Item = u32> {
        let refresh_mhz = self.refresh_mhz;
        (1..=STRIDE_MAX)
            .filter(move |stride| refresh_mhz.is_multiple_of(*stride))
            .map(move |stride| refresh_mhz / stride)
    }
}

/// How many allowed rates an error message lists before it says "…".
const RATES_SHOWN: usize = 12;

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} FPS does not divide the refresh rate of {} Hz (allowed:",
            Millihertz(self.fps_mhz),
            Millihertz(self.refresh_mhz)
        )?;
        for mhz in self.allowed().take(RATES_SHOWN) {
            write!(f, " {}", Millihertz(mhz))?;
        }
        if self.allowed().nth(RATES_SHOWN).is_some() {
            f.write_str(" …")?;
        }
        f.write_str(")")
    }
}

impl core::error::Error for RateError {}

/// Prints millihertz as hertz without trailing zeros.
struct Millihertz(u32);

impl fmt::Display for Millihertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 1000, self.0 % 1000) {
            (hz, 0) => write!(f, "{hz}"),
            (hz, rest) if rest % 100 == 0 => write!(f, "{hz}.{}", rest / 100),
            (hz, rest) if rest % 10 == 0 => write!(f, "{hz}.{:02}", rest / 10),
            (hz, rest) => write!(f, "{hz}.{rest:03}"),
        }
    }
}

/// Greatest common divisor.
pub const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Least common multiple, saturating.
pub const fn lcm(a: u64, b: u64) -> u64 {
    (a / gcd(a, b)).saturating_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    #[test]
    fn sixty_hertz_never_drifts() {
        let grid = Refresh::HZ_60;
        assert_eq!(grid.start(Period(1)), Time::from_ns(16_666_666));
        assert_eq!(grid.start(Period(3)), Time::from_ns(50_000_000));
        assert_eq!(grid.start(Period(60 * 3600 * 24)), Time::from_ms(24 * 3_600_000));
        assert_eq!(grid.period_span(), Span::from_ns(16_666_666));
    }

    #[test]
    fn impossible_rates_list_the_possible_ones() {
        let error = Refresh::HZ_60.stride_for(45_000).unwrap_err();
        let allowed: Vec<u32> = error.allowed().take(5).collect();
        assert_eq!(allowed, [60_000, 30_000, 20_000, 15_000, 12_000]);
        assert!(error.to_string().starts_with("45 FPS does not divide the refresh rate of 60 Hz"));
        assert_eq!(Refresh::HZ_60.stride_for(20_000).map(Stride::get), Ok(3));
        assert!(Refresh::HZ_60.stride_for(0).is_err());
    }

    proptest! {
        #[test]
        fn period_at_inverts_start(
            mhz in 1_000u32..=1_000_000,
            k in 0u64..1_000_000_000,
            origin in 0u64..1_000_000_000,
        ) {
            let grid = Refresh::from_mhz(mhz).unwrap().with_origin(Time::from_ns(origin));
            let start = grid.start(Period(k));
            prop_assert_eq!(grid.period_at(start), Period(k));
            prop_assert_eq!(grid.period_from(start), Period(k));
            prop_assert_eq!(grid.period_at(grid.end(Period(k)) - Span::from_ns(1)), Period(k));
            let length = grid.end(Period(k)).since(start).as_ns();
            let nominal = grid.period_span().as_ns();
            prop_assert!(length == nominal || length == nominal + 1);
        }
    }
}
