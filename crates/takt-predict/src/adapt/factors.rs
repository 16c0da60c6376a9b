//! Correction factors: exponential smoothing with limited steps (thesis, listing 3.4).
//!
//! Two things are added. The first measurements of a kind of groups move its factor at once,
//! because the factor they find stands for nothing; the thesis's steps of a tenth take forty
//! groups to correct a model that is off by forty. And where errors keep having one sign, the
//! factor follows faster: what is drawn is changing.

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

/// Share of the measurement while errors have one sign.
const FOLLOWING: f64 = 0.3;
/// Errors have one sign if their mean is this share of their mean size.
const ONE_SIGN: f64 = 0.6;
/// Weight of an error in both means.
const ERROR_WEIGHT: f64 = 0.2;
/// Predicted time that stands behind a factor which is weighed: that it is right, before anything is
/// known, and what it goes back to at most.
const WEIGHT_NS_MIN: f64 = 1e6;
const WEIGHT_NS_MAX: f64 = 100e6;
/// Share of a measurement in the factor, by how many there were before; later ones are as above.
const SETTLING: [f64; 10] = [1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25];

/// By how much the predicted time of a group's type is multiplied.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct CorrectionFactor {
    value: f64,
    /// Measurements so far.
    samples: usize,
    /// Mean relative error of late, and mean size of it.
    error: f64,
    error_size: f64,
    /// Predicted time that stands behind the factor where it is weighed.
    weight_ns: f64,
}

impl Default for CorrectionFactor {
    fn default() -> Self {
        Self::starting_at(1.0)
    }
}

impl CorrectionFactor {
    /// A factor that has learnt nothing yet.
    pub fn starting_at(value: f64) -> Self {
        Self { value, samples: 0, error: 0.0, error_size: 0.0, weight_ns: WEIGHT_NS_MIN }
    }

    /// The factor itself.
    pub fn value(self) -> f64 {
        self.value
    }

    /// Whether enough was measured for the factor to move by small steps only.
    pub fn is_settled(self) -> bool {
        self.samples >= SETTLING.len()
    }

    /// The corrected time of a group.
    pub fn apply(self, parts: &Parts) -> f64 {
        parts.of_type_ns * self.value + parts.aux_ns
    }

    /// The same for a factor of groups that differ much: each counts as much as was predicted of it,
    /// so that the factor is that of all their time. What gets in the way of a short group is many times
    /// as long, and taken by itself would say that all others take many times as long as well.
    pub fn weigh(&mut self, parts: &Parts, measured_ns: f64) {
        let right = (measured_ns - parts.aux_ns) / parts.of_type_ns;
        // A single group does not count for more than a part of all.
        let weight_ns = parts.of_type_ns.min(WEIGHT_NS_MAX / 10.0);
        let behind = self.weight_ns + weight_ns;
        let share = weight_ns / behind;
        if !right.is_finite() || !(0.0..=1.0).contains(&share) {
            return;
        }
        self.value += (right.clamp(FACTOR_MIN, FACTOR_MAX) - self.value) * share;
        self.weight_ns = behind.min(WEIGHT_NS_MAX);
        self.samples = self.samples.saturating_add(1);
    }

    /// Moves towards the factor that would have been right; once it has settled, a tenth of the
    /// way, three tenths while it runs after a change, and by a tenth of itself at most.
    pub fn learn(&mut self, parts: &Parts, measured_ns: f64) {
        let right = (measured_ns - parts.aux_ns) / parts.of_type_ns;
        if !right.is_finite() {
            return;
        }
        let right = right.clamp(FACTOR_MIN, FACTOR_MAX);
        let at = self.samples;
        self.samples = at.saturating_add(1);
        if let Some(share) = SETTLING.get(at) {
            self.value += (right - self.value) * share;
            return;
        }
        let error = (right / self.value - 1.0).clamp(-1.0, 1.0);
        self.error += (error - self.error) * ERROR_WEIGHT;
        self.error_size += (error.abs() - self.error_size) * ERROR_WEIGHT;
        let follows = self.error.abs() > ONE_SIGN * self.error_size;
        let share = if follows { FOLLOWING } else { 1.0 - SMOOTHING };
        let new = self.value + (right - self.value) * share;
        let steps = self.value * STEP_DOWN..=self.value * STEP_UP;
        self.value = new.clamp(*steps.start(), *steps.end()).clamp(FACTOR_MIN, FACTOR_MAX);
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

    /// A factor that has settled at 1, with errors of both signs.
    fn settled() -> CorrectionFactor {
        let mut factor = CorrectionFactor::default();
        for n in 0..40 {
            factor.learn(&parts(1e5, 0.0), if n % 2 == 0 { 1.01e5 } else { 0.99e5 });
        }
        CorrectionFactor { value: 1.0, ..factor }
    }

    #[test]
    fn a_settled_factor_moves_by_a_tenth_at_most() {
        let mut factor = settled();
        factor.learn(&parts(1e5, 0.0), 1e9);
        assert_eq!(factor.value(), 1.1);
        let mut factor = settled();
        factor.learn(&parts(1e5, 5e4), 0.0);
        assert_eq!(factor.value(), 0.9);
        let mut factor = settled();
        factor.learn(&parts(1e5, 0.0), 1.005e5);
        assert!((factor.value() - 1.0005).abs() < 1e-12, "{factor:?}");
    }

    #[test]
    fn the_first_measurement_is_believed_and_a_bad_one_soon_forgotten() {
        let mut factor = CorrectionFactor::default();
        factor.learn(&parts(1e5, 1e4), 41e5 + 1e4);
        assert_eq!(factor.value(), 41.0);
        (0..12).for_each(|_| factor.learn(&parts(1e5, 1e4), 2e5 + 1e4));
        assert!(factor.value() < 3.0, "{factor:?}");
    }

    #[test]
    fn what_changes_steadily_is_followed_closely() {
        let mut factor = settled();
        let mut target = 1.0;
        let mut worst: f64 = 0.0;
        for n in 0..200 {
            target *= 1.01;
            if n > 20 {
                worst = worst.max((factor.value() / target - 1.0).abs());
            }
            factor.learn(&parts(1e5, 0.0), target * 1e5);
        }
        assert!(worst < 0.04, "a tenth of the way would stay 9 % behind: {worst}");
    }

    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![any::<f64>(), 0.0..1e9, Just(0.0), Just(f64::INFINITY), Just(f64::NAN)]
    }

    proptest! {
        #[test]
        fn factors_never_run_away(samples in prop::collection::vec((number(), number(), number()), 1..300)) {
            let mut factor = CorrectionFactor::default();
            for (of_type, aux, measured) in samples {
                let (before, settled) = (factor.value(), factor.is_settled());
                factor.learn(&parts(of_type, aux), measured);
                let step = factor.value() / before;
                prop_assert!(!settled || (0.9 - 1e-12..=1.1 + 1e-12).contains(&step), "{}", step);
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
