//! What a prediction says: the time itself, and between which times it is believed to lie.

use takt_core::{Estimate, Span};

/// A predicted time with a lower and an upper quantile.
///
/// The scheduler uses the upper one where a group must not be underestimated (`predC`), and the
/// lower one where it must not be overestimated (`predO`).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Prediction {
    /// Rarely undercut.
    pub lower: Estimate,
    /// Expected.
    pub value: Estimate,
    /// Rarely exceeded.
    pub upper: Estimate,
}

impl Prediction {
    /// A prediction from times in nanoseconds, put in order around the expected one.
    pub fn from_ns(lower: f64, value: f64, upper: f64) -> Self {
        Self { lower: estimate(lower.min(value)), value: estimate(value), upper: estimate(upper.max(value)) }
    }

    /// The expected time and the upper one, times a factor; the lower one stays.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        #[expect(clippy::float_cmp, reason = "the common case changes nothing")]
        if factor == 1.0 {
            return self;
        }
        let ns = |estimate: Estimate| estimate.span().as_ns() as f64;
        Self::from_ns(ns(self.lower), ns(self.value) * factor, ns(self.upper) * factor)
    }
}

/// Whole nanoseconds, rounded up; what is no number has no bound.
fn estimate(ns: f64) -> Estimate {
    if ns.is_nan() {
        return Estimate::UNBOUNDED;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, as is meant")]
    let ns = ns.ceil() as u64;
    Estimate::new(Span::from_ns(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_enclose_the_value() {
        let prediction = Prediction::from_ns(20.0, 10.0, 5.0);
        assert_eq!([prediction.lower, prediction.upper].map(|estimate| estimate.span().as_ns()), [10, 10]);
    }

    #[test]
    fn hostile_numbers_are_no_problem() {
        let ns = |value: f64| Prediction::from_ns(value, value, value).value;
        assert_eq!(ns(f64::NAN), Estimate::UNBOUNDED);
        assert_eq!(ns(f64::INFINITY), Estimate::UNBOUNDED);
        assert_eq!(ns(-5.0), Estimate::new(Span::ZERO));
        assert_eq!(ns(1e300), Estimate::UNBOUNDED);
        assert_eq!(ns(0.1), Estimate::new(Span::from_ns(1)));
    }
}
