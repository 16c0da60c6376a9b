//! Numbers as they are written, and what they mean.
//!
//! Scenario files say `2.1` milliseconds; the model counts nanoseconds. The step between them is
//! taken here, once, on decimal digits: binary floating point never gets to round anything.
//! Each [`Quantity`] names its unit, how fine it is, and the bounds that make sense.

use std::fmt::Write as _;

use takt_core::limits::{APPS_MAX, GAPS_MAX, IN_FLIGHT_MAX, OWN_PERIODS, STRIDE_MAX};
use takt_core::refresh::REFRESH_MHZ;

/// Bytes of a scenario file.
pub const FILE_BYTES_MAX: usize = 4 << 20;
/// Bytes of a recording.
pub const RECORDING_BYTES_MAX: usize = 64 << 20;
/// Records that a history may have.
pub const HISTORY_RECORDS_MAX: i128 = 4096;
/// Characters of a name.
pub const NAME_CHARS_MAX: usize = 64;
/// Characters of a description.
pub const DESCRIPTION_CHARS_MAX: usize = 4096;
/// Longest simulation, and latest instant in one: a day, in nanoseconds.
pub const DURATION_NS_MAX: i128 = 86_400_000_000_000;
/// Longest single delay, cost or reservation: a minute, in nanoseconds.
pub const SPAN_NS_MAX: i128 = 60_000_000_000;
/// Longest refresh period: 4 s, in nanoseconds.
pub const PERIOD_NS_MAX: i128 = 4_000_000_000;
/// Groups in the GPU's queue.
pub const GPU_QUEUE_MAX: i128 = 4096;
/// Fastest clock, in permille of the nominal one.
pub const SPEED_PERMILLE_MAX: i128 = 100_000;
/// Largest factor on costs, group numbers or predictions, in permille.
pub const FACTOR_PERMILLE_MAX: i128 = 1_000_000;
/// Groups before the swap of one frame.
pub const GROUPS_PER_FRAME_MAX: i128 = 10_000;
/// Periods by which a first deadline may be delayed.
pub const PHASE_PERIODS_MAX: i128 = 100_000;
/// Draws, mixture parts, changes and phases in all apps together, after `count`.
pub const ITEMS_MAX: usize = 1_000_000;

/// What a number counts.
#[derive(Debug)]
pub(super) struct Quantity {
    /// Unit as written in the file, with a leading space if it has a name.
    unit: &'static str,
    /// The model counts units of 10^-`decimals`.
    decimals: u32,
    min: i128,
    max: i128,
    /// Name of the upper bound.
    max_name: &'static str,
}

impl Quantity {
    pub(super) const fn new(unit: &'static str, decimals: u32, min: i128, max: (i128, &'static str)) -> Self {
        Self { unit, decimals, min, max: max.0, max_name: max.1 }
    }

    /// What the bounds are, in words.
    fn bounds(&self) -> String {
        let Self { unit, decimals, .. } = self;
        let (min, max) = (fixed_point(self.min, *decimals), fixed_point(self.max, *decimals));
        format!("{min} to {max}{unit} ({})", self.max_name)
    }
}

const DURATION_MAX: (i128, &str) = (DURATION_NS_MAX, "DURATION_NS_MAX");
const SPAN_MAX: (i128, &str) = (SPAN_NS_MAX, "SPAN_NS_MAX");
const FACTOR_MAX: (i128, &str) = (FACTOR_PERMILLE_MAX, "FACTOR_PERMILLE_MAX");

pub(super) const DURATION_S: Quantity = Quantity::new(" s", 9, 1, DURATION_MAX);
pub(super) const INSTANT_S: Quantity = Quantity::new(" s", 9, 0, DURATION_MAX);
pub(super) const SPAN_US: Quantity = Quantity::new(" us", 3, 0, SPAN_MAX);
pub(super) const SPAN_MS: Quantity = Quantity::new(" ms", 6, 0, SPAN_MAX);
pub(super) const TIMEOUT_MS: Quantity = Quantity::new(" ms", 6, 1, SPAN_MAX);
pub(super) const INTERVAL_US: Quantity = Quantity::new(" us", 3, 1000, SPAN_MAX);
pub(super) const OWN_PERIOD_US: Quantity = Quantity::new(
    " us",
    3,
    OWN_PERIODS.start().as_ns() as i128,
    (OWN_PERIODS.end().as_ns() as i128, "OWN_PERIODS"),
);
pub(super) const ERROR_US: Quantity = Quantity::new(" us", 3, -SPAN_NS_MAX, SPAN_MAX);
pub(super) const PERIOD_US: Quantity = Quantity::new(" us", 3, 1, (PERIOD_NS_MAX, "PERIOD_NS_MAX"));
pub(super) const REFRESH_HZ: Quantity =
    Quantity::new(" Hz", 3, *REFRESH_MHZ.start() as i128, (*REFRESH_MHZ.end() as i128, "REFRESH_MHZ"));
pub(super) const FPS: Quantity = Quantity::new(" FPS", 3, 1, (*REFRESH_MHZ.end() as i128, "REFRESH_MHZ"));
pub(super) const STRIDE: Quantity = Quantity::new(" periods", 0, 1, (STRIDE_MAX as i128, "STRIDE_MAX"));
pub(super) const PHASE_PERIODS: Quantity =
    Quantity::new(" periods", 0, 0, (PHASE_PERIODS_MAX, "PHASE_PERIODS_MAX"));
pub(super) const GAPS: Quantity = Quantity::new(" gaps", 0, 1, (GAPS_MAX as i128, "GAPS_MAX"));
pub(super) const SEED: Quantity = Quantity::new("", 0, 0, (u64::MAX as i128, "u64::MAX"));
pub(super) const PRIORITY: Quantity = Quantity::new("", 0, 0, (u32::MAX as i128, "u32::MAX"));
pub(super) const MPCG: Quantity = Quantity::new(" groups", 0, 1, (IN_FLIGHT_MAX as i128, "IN_FLIGHT_MAX"));
pub(super) const APPS: Quantity = Quantity::new(" apps", 0, 1, (APPS_MAX as i128, "APPS_MAX"));
pub(super) const GPU_QUEUE: Quantity = Quantity::new(" groups", 0, 1, (GPU_QUEUE_MAX, "GPU_QUEUE_MAX"));
pub(super) const GROUPS: Quantity =
    Quantity::new(" groups", 0, 0, (GROUPS_PER_FRAME_MAX, "GROUPS_PER_FRAME_MAX"));
pub(super) const RECORDS: Quantity =
    Quantity::new(" records", 0, 1, (HISTORY_RECORDS_MAX, "HISTORY_RECORDS_MAX"));
pub(super) const SHARE: Quantity = Quantity::new("", 6, 0, (1_000_000, "all of it"));
pub(super) const NOISE: Quantity = Quantity::new("", 3, 0, (1000, "all of it"));
pub(super) const FACTOR: Quantity = Quantity::new("", 3, 0, FACTOR_MAX);
pub(super) const SPEED: Quantity = Quantity::new("", 3, 1, (SPEED_PERMILLE_MAX, "SPEED_PERMILLE_MAX"));

/// A number as written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Decimal {
    /// `mantissa · 10^exponent`, the mantissa without trailing zeros.
    Finite {
        mantissa: i128,
        exponent: i32,
    },
    /// So many digits that it is out of every bound.
    TooLong,
    PlusInfinity,
    MinusInfinity,
    NotANumber,
    /// Stands in for something that is no number at all, which has been reported.
    Broken,
}

/// Why a number does not fit its quantity: what is wrong, and what to do; `None` if that has been
/// said before.
pub(super) type Misfit = Option<(String, String)>;

impl Decimal {
    pub(super) const ZERO: Self = Self::Finite { mantissa: 0, exponent: 0 };

    /// Reads digits of the given radix with a sign.
    pub(super) fn integer(digits: &str, radix: u32) -> Self {
        i128::from_str_radix(digits, radix).map_or(Self::TooLong, |value| Self::reduced(value, 0))
    }

    /// Reads a decimal number with optional fraction and exponent, `inf` or `nan`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        match unsigned {
            "inf" if negative => return Some(Self::MinusInfinity),
            "inf" => return Some(Self::PlusInfinity),
            "nan" => return Some(Self::NotANumber),
            _ => {}
        }
        let (digits, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !all_digits(whole) || !all_digits(part) {
            return None;
        }
        let part = part.trim_end_matches('0');
        let Ok(exponent) = exponent.parse::<i16>() else {
            return Some(Self::TooLong);
        };
        let (Ok(places), Ok(mantissa)) =
            (i32::try_from(part.len()), format!("{whole}{part}").parse::<i128>())
        else {
            return Some(Self::TooLong);
        };
        let signed = if negative { -mantissa } else { mantissa };
        Some(Self::reduced(signed, i32::from(exponent) - places))
    }

    fn reduced(mut mantissa: i128, mut exponent: i32) -> Self {
        if mantissa == 0 {
            exponent = 0;
        }
        while mantissa != 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            exponent += 1;
        }
        Self::Finite { mantissa, exponent }
    }

    /// The number in the model's units, if it makes sense as a `quantity`.
    pub(super) fn count(self, quantity: &Quantity) -> Result<i128, Misfit> {
        let in_bounds = || format!("use a value from {}", quantity.bounds());
        let (mantissa, exponent) = match self {
            Self::Finite { mantissa, exponent } => (mantissa, exponent),
            Self::NotANumber => return Err(Some(("is not a number".to_owned(), in_bounds()))),
            Self::Broken => return Err(None),
            Self::PlusInfinity | Self::MinusInfinity => {
                return Err(Some(("is not finite".to_owned(), in_bounds())));
            }
            Self::TooLong => return Err(Some(("is out of bounds".to_owned(), in_bounds()))),
        };
        if mantissa < 0 && quantity.min >= 0 {
            return Err(Some(("must not be negative".to_owned(), in_bounds())));
        }
        let shift = exponent.saturating_add_unsigned(quantity.decimals);
        let power = 10_i128.checked_pow(shift.unsigned_abs());
        if shift < 0 && mantissa != 0 {
            return Err(Some(too_fine(quantity)));
        }
        let count = match (mantissa, power) {
            (0, _) => Some(0),
            (_, Some(power)) => mantissa.checked_mul(power),
            (_, None) => None,
        };
        match count {
            Some(count) if (quantity.min..=quantity.max).contains(&count) => Ok(count),
            Some(0) => Err(Some(("must be more than zero".to_owned(), in_bounds()))),
            _ => Err(Some(("is out of bounds".to_owned(), in_bounds()))),
        }
    }
}

fn too_fine(quantity: &Quantity) -> (String, String) {
    match quantity.decimals {
        0 => ("must be a whole number".to_owned(), "leave out the fraction".to_owned()),
        places => (format!("is finer than {places} decimals"), format!("round it to {places} decimals")),
    }
}

/// `value · 10^-decimals`, exactly and without trailing zeros.
pub(super) fn fixed_point(value: i128, decimals: u32) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let unit = 10_u128.pow(decimals);
    let (whole, part) = (value.unsigned_abs() / unit, value.unsigned_abs() % unit);
    let mut text = format!("{sign}{whole}");
    if part != 0 {
        let width = decimals as usize;
        // Writing to a string cannot fail.
        let _infallible = write!(text, ".{part:0width$}");
        text.truncate(text.trim_end_matches('0').len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn count(text: &str, quantity: &Quantity) -> Result<i128, Misfit> {
        Decimal::parse(text).unwrap().count(quantity)
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(count("2.1", &SPAN_US), Ok(2_100));
        assert_eq!(count("0.001", &SPAN_US), Ok(1));
        assert_eq!(count("1e3", &SPAN_US), Ok(1_000_000));
        assert_eq!(count("59.94", &REFRESH_HZ), Ok(59_940));
        assert_eq!(count("-0.0", &SPAN_US), Ok(0));
        assert_eq!(count("0e-9999", &SPAN_US), Ok(0));
        assert_eq!(Decimal::integer("1F", 16).count(&SEED), Ok(31));
    }

    #[test]
    fn misfits_say_why() {
        let why = |text, quantity| count(text, quantity).unwrap_err().unwrap().0;
        assert_eq!(why("0.0001", &SPAN_US), "is finer than 3 decimals");
        assert_eq!(why("1.5", &MPCG), "must be a whole number");
        assert_eq!(why("-1", &SPAN_US), "must not be negative");
        assert_eq!(why("0", &MPCG), "must be more than zero");
        assert_eq!(why("65", &MPCG), "is out of bounds");
        assert_eq!(why("1e300", &SPAN_US), "is out of bounds");
        assert_eq!(why("1e99999", &SPAN_US), "is out of bounds");
        assert_eq!(why("nan", &SPAN_US), "is not a number");
        assert_eq!(why("inf", &SPAN_US), "is not finite");
    }

    proptest! {
        #[test]
        fn printing_and_reading_are_inverse(value in -SPAN_NS_MAX..=SPAN_NS_MAX) {
            prop_assert_eq!(count(&fixed_point(value, 3), &ERROR_US), Ok(value));
        }

        #[test]
        fn never_panics(text in "[-+]?[0-9]{0,50}[.]?[0-9]{0,50}(e[-+]?[0-9]{0,6})?") {
            if let Some(number) = Decimal::parse(&text) {
                for quantity in [&SPAN_US, &MPCG, &DURATION_S, &ERROR_US] {
                    if let Ok(count) = number.count(quantity) {
                        prop_assert!((quantity.min..=quantity.max).contains(&count));
                    }
                }
            }
        }
    }
}
