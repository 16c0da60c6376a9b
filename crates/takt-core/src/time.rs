//! Time as integers with meaning.
//!
//! [`Time`] is an instant, [`Span`] a length; both count nanoseconds of one monotonic clock.
//! [`Estimate`] (predicted) and [`Cost`] (measured) are lengths of GPU time that must never be
//! taken for one another, so they are types of their own and convert only by name.
//!
//! Arithmetic saturates: a hostile estimate can make a span as long as [`Span::FOREVER`], but
//! cannot wrap around or panic.

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};

/// An instant on the monotonic clock, in nanoseconds since an arbitrary origin.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A length of time in nanoseconds.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

/// A predicted length of GPU time, before any safety margin.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Estimate(Span);

/// A measured length of GPU time.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Cost(Span);

/// 2^60 ns is 36 years: far beyond any real time, and small enough that the sum of a few of
/// them still fits in 64 signed bits.
const FOREVER_NS: u64 = 1 << 60;

impl Time {
    /// The origin of the clock.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const NEVER: Self = Self(FOREVER_NS);

    /// The instant `ns` nanoseconds after the origin.
    pub const fn from_ns(ns: u64) -> Self {
        Self(if ns < FOREVER_NS { ns } else { FOREVER_NS })
    }

    /// The instant `us` microseconds after the origin.
    pub const fn from_us(us: u64) -> Self {
        Self::from_ns(us.saturating_mul(1_000))
    }

    /// The instant `ms` milliseconds after the origin.
    pub const fn from_ms(ms: u64) -> Self {
        Self::from_ns(ms.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the origin.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// How much later `self` is than `earlier`; zero if it is not later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than anything that ends.
    pub const FOREVER: Self = Self(FOREVER_NS);

    /// A span of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(if ns < FOREVER_NS { ns } else { FOREVER_NS })
    }

    /// A span of `us` microseconds.
    pub const fn from_us(us: u64) -> Self {
        Self::from_ns(us.saturating_mul(1_000))
    }

    /// A span of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self::from_ns(ms.saturating_mul(1_000_000))
    }

    /// Length in nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Length in nanoseconds as a signed number, for differences.
    pub const fn as_signed_ns(self) -> i64 {
        self.0.cast_signed()
    }

    /// Length in whole microseconds, rounded down.
    pub const fn as_us(self) -> u64 {
        self.0 / 1_000
    }

    /// `self − other`, or zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self · num / den`, saturating at [`Span::FOREVER`]; `den` must not be zero.
    pub const fn scaled(self, num: u32, den: u32) -> Self {
        let wide = self.0 as u128 * num as u128 / den as u128;
        Self(if wide < FOREVER_NS as u128 {
            #[expect(clippy::cast_possible_truncation, reason = "compared just above")]
            let ns = wide as u64;
            ns
        } else {
            FOREVER_NS
        })
    }

    /// `self · count`, saturating at [`Span::FOREVER`].
    pub const fn times(self, count: u64) -> Self {
        Self::from_ns(self.0.saturating_mul(count))
    }
}

impl Estimate {
    /// "No bound is known": such a group fits nowhere and is never granted by a deadline rule.
    pub const UNBOUNDED: Self = Self(Span::FOREVER);

    /// An estimate of `span`.
    pub const fn new(span: Span) -> Self {
        Self(span)
    }

    /// The estimated length.
    pub const fn span(self) -> Span {
        self.0
    }
}

impl Cost {
    /// A measured cost of `span`.
    pub const fn new(span: Span) -> Self {
        Self(span)
    }

    /// The measured length.
    pub const fn span(self) -> Span {
        self.0
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, rhs: Span) -> Self {
        // Neither side exceeds 2^60, so the sum cannot wrap.
        Self::from_ns(self.0 + rhs.0)
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, rhs: Span) {
        *self = *self + rhs;
    }
}

impl Sub<Span> for Time {
    type Output = Self;
    fn sub(self, rhs: Span) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self::from_ns(self.0 + rhs.0)
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl SubAssign for Span {
    fn sub_assign(&mut self, rhs: Self) {
        *self = self.saturating_sub(rhs);
    }
}

impl core::iter::Sum for Span {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, |a, b| a + b)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", Span(self.0))
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Microseconds with three decimals: exact, and the unit people think in here.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self >= Self::FOREVER {
            return f.write_str("∞");
        }
        write!(f, "{}.{:03}us", self.0 / 1_000, self.0 % 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Time::NEVER + Span::FOREVER, Time::NEVER);
        assert_eq!(Span::FOREVER + Span::FOREVER, Span::FOREVER);
        assert_eq!(Time::ZERO - Span::from_ns(1), Time::ZERO);
        assert_eq!(Span::from_ns(u64::MAX), Span::FOREVER);
        assert_eq!(Span::FOREVER.scaled(105, 100), Span::FOREVER);
        assert_eq!(Span::FOREVER.times(u64::MAX), Span::FOREVER);
    }

    #[test]
    fn since_is_zero_backwards() {
        assert_eq!(Time::from_ns(3).since(Time::from_ns(5)), Span::ZERO);
        assert_eq!(Time::from_ns(5).since(Time::from_ns(3)), Span::from_ns(2));
    }

    #[test]
    fn scaling_is_exact() {
        assert_eq!(Span::from_us(200).scaled(105, 100), Span::from_us(210));
        assert_eq!(Span::from_ns(3).scaled(1, 2), Span::from_ns(1));
    }

    #[test]
    fn prints_microseconds() {
        assert_eq!(format!("{}", Span::from_ns(1_234_567)), "1234.567us");
        assert_eq!(format!("{:?}", Time::from_us(5)), "@5.000us");
        assert_eq!(format!("{}", Span::FOREVER), "∞");
    }
}
