//! Quantiles of measured / predicted, tracked in constant memory.
//!
//! A tracker holds one number: where it believes the quantile to be. Each value moves it up if
//! it lies above and down if below, in the ratio of the two shares, so that it comes to rest
//! where the shares are as wished (stochastic approximation, Robbins and Monro 1951). Unlike an
//! estimate of the distribution this needs no assumption about it: with steps of size `s`, the
//! share of values above the tracker differs from the wish after `n` values by no more than the
//! way it has gone, divided by `s · n`. That holds for any order of values; a table of the last
//! hundred values could not even hold a quantile of 1 % with certainty.
//!
//! Steps are in proportion to how far values scatter. A tracker that has not been passed for
//! several times as long as it should moves faster: something has changed, and a bound far out
//! wastes time that others could use.

use super::AdaptionConfig;

/// One tracked quantile.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub struct Quantile {
    place: f64,
    /// Values since the last one of the rarer kind.
    quiet: f64,
}

impl Quantile {
    /// Where the quantile is believed to be.
    pub fn place(self) -> f64 {
        self.place
    }

    /// Takes a value into account: `rare` tells whether it lies beyond the quantile, as `share`
    /// of all values shall. The quantile is that of large values if `outward` is positive, and
    /// that of small ones if it is negative; steps have its size.
    fn step(&mut self, rare: bool, share: f64, outward: f64) {
        if rare {
            self.quiet = 0.0;
            self.place += outward * (1.0 - share);
            return;
        }
        self.quiet += 1.0;
        let expected = self.quiet * share;
        let haste = if expected > QUIET_MAX { expected } else { 1.0 };
        self.place -= outward * share * haste;
    }

    /// Takes a value into account; `share` of all values shall be larger.
    pub fn learn_upper(&mut self, value: f64, share: f64, step: f64) {
        self.step(value > self.place, share, step);
    }

    /// Takes a value into account; `share` of all values shall be smaller.
    pub fn learn_lower(&mut self, value: f64, share: f64, step: f64) {
        self.step(value < self.place, share, -step);
    }
}

/// How far measurements scatter around predictions.
///
/// Everything is in logarithms: a measurement of half the prediction is as far off as one of
/// twice of it, and bounds stay positive.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub struct Spread {
    centre: f64,
    deviation: f64,
    below: Quantile,
    above: Quantile,
    /// The largest value, which fades.
    largest: f64,
    samples: u32,
}

impl Spread {
    /// By what to multiply a prediction so that few measurements lie below.
    pub fn lower(&self) -> f64 {
        self.below.place().min(self.centre - LEAST).clamp(-LOG_MAX, LOG_MAX).exp()
    }

    /// By what to multiply a prediction so that few measurements lie above.
    ///
    /// That is not far above all that was ever measured: where there are two kinds of values, a bell
    /// curve over both reaches many times as far, and work that is believed to take that long may
    /// never be dispatched, so that the mistake would never show. Nor is it closer than clocks can tell.
    pub fn upper(&self) -> f64 {
        let place = self.above.place().min(self.largest + HEADROOM).max(self.centre + LEAST);
        place.clamp(-LOG_MAX, LOG_MAX).exp()
    }

    /// Takes a measurement into account, as a multiple of its prediction.
    pub fn learn(&mut self, ratio: f64, config: &AdaptionConfig) {
        let value = ratio.ln();
        if value.is_nan() {
            return;
        }
        // A single absurd value must not make all steps absurd.
        let value = value.clamp(-LOG_MAX, LOG_MAX);
        self.samples = self.samples.saturating_add(1);
        if self.samples == 1 {
            (self.centre, self.largest) = (value, value);
        }
        self.largest = value.max(self.largest - FADING);
        let weight = f64::from(self.samples.min(SCALE_SAMPLES)).recip();
        self.deviation += ((value - self.centre).abs() - self.deviation) * weight;
        self.centre += (value - self.centre) * weight;
        if self.samples <= BELL_SAMPLES {
            // Too early to count rare values: start where a bell curve would have them, and
            // farther out above, because measured times have a long tail there.
            self.below.place = self.centre - LOWER_DEVIATIONS * self.deviation;
            self.above.place = self.centre + UPPER_DEVIATIONS * self.deviation;
            return;
        }
        let step = STEP * self.deviation.max(DEVIATION_MIN);
        self.above.learn_upper(value, config.upper_risk, step);
        self.below.learn_lower(value, config.lower_risk, step);
    }
}

/// Measurements that the mean deviation is taken over.
const SCALE_SAMPLES: u32 = 256;
/// How many times longer than expected may pass without a rare value: by chance, once in fifty.
const QUIET_MAX: f64 = 4.0;
/// Step of a tracker, in mean deviations.
const STEP: f64 = 0.8;
/// Measurements before rare ones are counted.
const BELL_SAMPLES: u32 = 64;
/// The 1 % and the 99.9 % quantile of a bell curve, in mean deviations.
const LOWER_DEVIATIONS: f64 = 2.92;
const UPPER_DEVIATIONS: f64 = 3.87;
/// How far beyond the largest measurement a bound may lie: half as much again.
const HEADROOM: f64 = 0.405;
/// How far bounds are from the middle at least: a fiftieth. Where a GPU repeats itself to half a
/// thousandth, closer ones are passed by chance, and nothing is won by them.
const LEAST: f64 = 0.02;
/// How fast that one is forgotten: by a factor of e in a thousand measurements.
pub(super) const FADING: f64 = 1e-3;
/// Perfect predictions still need steps.
const DEVIATION_MIN: f64 = 1e-4;
/// Ratios beyond e^20 are no ratios.
const LOG_MAX: f64 = 20.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_two_kinds_of_values_are_not_far_beyond_the_larger_kind() {
        // Mostly short, now and then 40 times as long: what lies in the way of a swap.
        let mut spread = Spread::default();
        for index in 0..400_u32 {
            spread.learn(if index % 4 == 0 { 8.0 } else { 0.2 }, &AdaptionConfig::default());
            let upper = spread.upper();
            assert!(index < 4 || (8.0..=12.1).contains(&upper), "after {index}: {upper}");
        }
        // The larger kind is gone.
        (0..4_000).for_each(|_| spread.learn(0.2, &AdaptionConfig::default()));
        assert!(spread.upper() < 0.5, "{}", spread.upper());
    }

    /// Distributions that are the same everywhere.
    struct Random(takt_rng::Rng);

    impl Random {
        fn uniform(&mut self) -> f64 {
            self.0.unit()
        }

        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
        }
    }

    /// Shares of values above the upper and below the lower bound, as bounds were when they came.
    fn shares(mut next: impl FnMut(&mut Random, u32) -> f64, config: &AdaptionConfig) -> [f64; 2] {
        const SAMPLES: u32 = 100_000;
        let mut random = Random(takt_rng::Rng::seeded(7));
        let mut spread = Spread::default();
        let mut outside = [0u32; 2];
        for n in 0..SAMPLES {
            let ratio = next(&mut random, n);
            if n >= BELL_SAMPLES {
                outside[0] += u32::from(ratio > spread.upper());
                outside[1] += u32::from(ratio < spread.lower());
            }
            spread.learn(ratio, config);
        }
        outside.map(|count| f64::from(count) / f64::from(SAMPLES - BELL_SAMPLES))
    }

    #[track_caller]
    fn check(next: impl FnMut(&mut Random, u32) -> f64) {
        let config = AdaptionConfig::default();
        let [above, below] = shares(next, &config);
        assert!((0.003..=0.005).contains(&above), "{above}");
        assert!((below - 0.01).abs() <= 0.003, "{below}");
    }

    #[test]
    fn shares_are_as_wished_whatever_the_distribution() {
        check(|random, _| 1.0 + 0.05 * random.normal());
        check(|random, _| (0.4 * random.normal()).exp());
        check(|random, _| 1.0 + random.uniform());
        check(|random, _| 1.0 - 0.1 * random.uniform().max(1e-9).ln());
        check(|random, _| if random.uniform() < 0.03 { 3.0 } else { 0.95 } + 0.02 * random.normal());
        check(|random, _| 1e-3 * (1.0 + 1e-2 * random.normal()));
    }

    #[test]
    fn bounds_are_no_closer_than_clocks_can_tell() {
        let next = |random: &mut Random, _| 1e-3 * (1.0 + 1e-4 * random.normal());
        assert_eq!(shares(next, &AdaptionConfig::default()), [0.0, 0.0]);
    }

    #[test]
    fn slow_drifts_and_jumps_are_followed() {
        check(|random, n| 1.0 + f64::from(n) / 40_000.0 + 0.05 * random.normal());
        check(|random, n| if n / 5000 % 2 == 0 { 1.0 } else { 1.2 } + 0.05 * random.normal());
    }

    #[test]
    fn bounds_come_back_after_a_bad_time() {
        let config = AdaptionConfig::default();
        let (mut random, mut spread) = (Random(takt_rng::Rng::seeded(3)), Spread::default());
        for n in 0..6000 {
            let scatter = if n < 1000 { 0.5 } else { 0.02 };
            spread.learn((scatter * random.normal()).exp(), &config);
        }
        assert!(spread.upper() < 1.15 && spread.lower() > 0.85, "{spread:?}");
    }

    #[test]
    fn hostile_ratios_leave_bounds_usable() {
        let config = AdaptionConfig::default();
        let mut spread = Spread::default();
        let ratios = [f64::NAN, f64::INFINITY, 0.0, -1.0, 1e300, 1e-300];
        for n in 0..10_000 {
            spread.learn(ratios[n % ratios.len()], &config);
            assert!(spread.lower() > 0.0 && spread.upper().is_finite(), "{spread:?}");
        }
    }
}
