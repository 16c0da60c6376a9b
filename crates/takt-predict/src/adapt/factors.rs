//! Correction factors: exponential smoothing with limited steps (thesis, listing 3.4).

use crate::cost::Parts;

/// The smallest factor.
pub const FACTOR_MIN: f64 = 1e-6;
/// The largest factor. The thesis has none; a model that is off by more has failed.
pub const FACTOR_MAX: f64 = 1e6;
/// Share of the old factor in the new one.
const SMOOTHING: f64 = 0.9;
/// Largest growth per group.
const STEP_UP: f64 = 1.1;
/// Largest decline per group.
const STEP_DOWN: f64 = 0.9;

/// By how much the predicted time of a group's type is multiplied.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct CorrectionFactor(f64);

impl Default for CorrectionFactor {
    fn default() -> Self {
        Self(1.0)
    }
}

impl CorrectionFactor {
    /// The factor itself.
    pub fn value(self) -> f64 {
        self.0
    }

    /// The corrected time of a group.
    pub fn apply(self, parts: &Parts) -> f64 {
        parts.of_type_ns * self.0 + parts.aux_ns
    }

    /// Moves towards the factor that would have been right; a tenth of the way, and by a tenth
    /// of itself at most.
    pub fn learn(&mut self, parts: &Parts, measured_ns: f64) {
        let right = (measured_ns - parts.aux_ns) / parts.of_type_ns;
        if !right.is_finite() {
            return;
        }
        let new = SMOOTHING * self.0 + (1.0 - SMOOTHING) * right;
        self.0 = new.clamp(self.0 * STEP_DOWN, self.0 * STEP_UP).clamp(FACTOR_MIN, FACTOR_MAX);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(of_type_ns: f64, aux_ns: f64) -> Parts {
        Parts { of_type_ns, aux_ns }
    }

    #[test]
    fn constant_errors_vanish() {
        for true_factor in [0.01, 0.5, 1.0, 3.0, 40.0] {
            let mut factor = CorrectionFactor::default();
            let parts = parts(500_000.0, 10_000.0);
            for _ in 0..200 {
                factor.learn(&parts, parts.of_type_ns * true_factor + parts.aux_ns);
            }
            assert!((factor.value() / true_factor - 1.0).abs() < 0.01, "{true_factor}: {factor:?}");
        }
    }

    #[test]
    fn the_first_step_is_a_tenth_at_most() {
        let mut factor = CorrectionFactor::default();
        factor.learn(&parts(1e5, 0.0), 1e9);
        assert_eq!(factor.value(), 1.1);
        let mut factor = CorrectionFactor::default();
        factor.learn(&parts(1e5, 5e4), 0.0);
        assert_eq!(factor.value(), 0.9);
        let mut factor = CorrectionFactor::default();
        factor.learn(&parts(1e5, 0.0), 1.2e5);
        assert!((factor.value() - 1.02).abs() < 1e-12);
    }

    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![any::<f64>(), 0.0..1e9, Just(0.0), Just(f64::INFINITY), Just(f64::NAN)]
    }

    proptest! {
        #[test]
        fn factors_never_run_away(samples in prop::collection::vec((number(), number(), number()), 1..300)) {
            let mut factor = CorrectionFactor::default();
            for (of_type, aux, measured) in samples {
                let before = factor.value();
                factor.learn(&parts(of_type, aux), measured);
                let step = factor.value() / before;
                prop_assert!((0.9 - 1e-12..=1.1 + 1e-12).contains(&step), "{}", step);
                prop_assert!((FACTOR_MIN..=FACTOR_MAX).contains(&factor.value()));
            }
        }

        #[test]
        fn scattered_errors_settle_around_their_mean(
            ratios in prop::collection::vec(0.8f64..1.2, 300..400),
            scale in 0.2f64..5.0,
        ) {
            let mut factor = CorrectionFactor::default();
            for ratio in ratios {
                factor.learn(&parts(1e6, 2e4), 1e6 * scale * ratio + 2e4);
            }
            prop_assert!((factor.value() / scale - 1.0).abs() < 0.2, "{} {}", factor.value(), scale);
        }
    }
}
