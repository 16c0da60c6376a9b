//! Which primitives of a known range to look at.
//!
//! The error of an estimate comes from two things: how large the primitives are that were not
//! looked at, and whether they face the viewer. So large ones are picked more often than small
//! ones, in proportion to their size in space, and those that face in similar directions are
//! taken together and spread over the mesh. A primitive that is picked stands for as many as its
//! size makes it rare, so that the expected estimate is right whatever the sizes.
//!
//! This is systematic sampling with probability proportional to size, within strata.

use crate::table::mix;

/// A primitive that may be picked.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Candidate {
    /// How likely it is to be picked; 0 if it need not be.
    weight: f32,
    /// Where it faces.
    class: u8,
}

/// Directions that are told apart: signs of the normal's components, and their order by size.
const CLASSES: usize = 64;

impl Candidate {
    /// One of those that all count alike.
    pub(super) const EQUAL: Self = Self { weight: 1.0, class: 0 };

    /// A triangle in space, by its size and by where it faces.
    #[inline]
    pub(super) fn triangle(normal: [f32; 3]) -> Self {
        let [x, y, z] = normal.map(f32::abs);
        let [back_x, back_y, back_z] = normal.map(|value| u8::from(value < 0.0));
        let order = u8::from(x > y) | u8::from(y > z) << 1 | u8::from(z > x) << 2;
        let weight = x + y + z;
        // What is no number cannot be seen either.
        let weight = if weight < f32::MAX { weight } else { 0.0 };
        Self { weight, class: back_x | back_y << 1 | back_z << 2 | order << 3 }
    }

    /// The same, standing for several.
    pub(super) fn times(self, count: u32) -> Self {
        Self { weight: self.weight * count as f32, ..self }
    }
}

/// A candidate that was picked.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Pick {
    /// Its place among the candidates.
    pub(super) number: usize,
    /// How many of its like it stands for.
    pub(super) weight: f64,
    /// How many picks fell on it: large candidates can get several.
    pub(super) picks: f64,
}

/// Picks up to `most` candidates, which must be above [`CLASSES`], in their order.
pub(super) fn pick(candidates: &[Candidate], most: usize, seed: u64, mut take: impl FnMut(Pick)) {
    let total = total(candidates);
    // Each class may have one more than its share.
    let step = total / most.saturating_sub(CLASSES).max(1) as f64;
    if step <= 0.0 || !step.is_finite() {
        return;
    }
    let mut classes: [Class; CLASSES] =
        std::array::from_fn(|class| Class::new(mix(seed ^ class as u64), step));
    for (number, candidate) in candidates.iter().enumerate() {
        let class = &mut classes[usize::from(candidate.class) % CLASSES];
        class.sum += f64::from(candidate.weight);
        if class.sum > class.next {
            let picks = class.advance(step);
            take(Pick { number, weight: picks * step / f64::from(candidate.weight), picks });
        }
    }
}

/// The sum of all weights, in lanes that do not wait for each other.
fn total(candidates: &[Candidate]) -> f64 {
    let (quads, rest) = candidates.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for quad in quads {
        for (sum, candidate) in sums.iter_mut().zip(quad) {
            *sum += f64::from(candidate.weight);
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|one| f64::from(one.weight)).sum::<f64>()
}

struct Class {
    /// Weights so far.
    sum: f64,
    /// The sum at which the next one is picked.
    next: f64,
    picked: f64,
    seed: u64,
}

impl Class {
    fn new(seed: u64, step: f64) -> Self {
        let mut class = Self { sum: 0.0, next: 0.0, picked: 0.0, seed };
        class.place(step);
        class
    }

    /// Puts the next pick somewhere within its step: a fixed place would meet the same part of
    /// regular meshes again and again.
    fn place(&mut self, step: f64) {
        self.seed = mix(self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
        let within = (self.seed >> 11) as f64 / (1u64 << 53) as f64;
        self.next = (self.picked + within) * step;
    }

    /// Moves on beyond the sum, which has passed the next pick, and tells how many it passed: a
    /// huge candidate passes many steps at once.
    fn advance(&mut self, step: f64) -> f64 {
        let before = self.picked;
        self.picked = (self.sum / step).floor().max(before);
        if self.picked > before {
            self.place(step);
        }
        if self.sum > self.next {
            self.picked += 1.0;
            self.place(step);
        }
        self.picked - before
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn picked(candidates: &[Candidate], most: usize, seed: u64) -> Vec<(usize, f64)> {
        let mut all = Vec::new();
        pick(candidates, most, seed, |pick| all.push((pick.number, pick.weight)));
        all
    }

    #[test]
    fn candidates_of_no_size_are_never_picked() {
        assert_eq!(picked(&[Candidate::triangle([0.0; 3]); 100], 80, 1), []);
        assert_eq!(picked(&[Candidate::triangle([f32::NAN; 3]); 100], 80, 1), []);
        assert_eq!(picked(&[], 80, 1), []);
    }

    #[test]
    fn every_candidate_counts_once_on_average() {
        let sizes = |n: u32| [(n * 7919 % 100) as f32 + 0.1, (n * 104_729 % 50) as f32 - 25.0, 1.0];
        let candidates: Vec<Candidate> = (0..500).map(|n| Candidate::triangle(sizes(n))).collect();
        let mut counted = vec![0.0; candidates.len()];
        const SEEDS: u64 = 4000;
        for seed in 0..SEEDS {
            for (number, weight) in picked(&candidates, 200, mix(seed)) {
                counted[number] += weight / SEEDS as f64;
            }
        }
        let mean = counted.iter().sum::<f64>() / counted.len() as f64;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        // Of the rarest, one in about 700 is picked: five standard deviations.
        assert!(counted.iter().all(|count| (count - 1.0).abs() < 0.35 * 5.0), "{counted:?}");
        let large = counted.iter().zip(&candidates).filter(|(_, candidate)| candidate.weight > 50.0);
        assert!(large.into_iter().all(|(count, _)| (count - 1.0).abs() < 0.15));
    }

    proptest! {
        #[test]
        fn never_more_than_asked_for(
            sizes in prop::collection::vec(prop::array::uniform3(any::<f32>()), 0..500),
            most in CLASSES + 1..600,
            seed in any::<u64>(),
        ) {
            let candidates: Vec<Candidate> = sizes.iter().map(|size| Candidate::triangle(*size)).collect();
            let all = picked(&candidates, most, seed);
            prop_assert!(all.len() <= most);
            prop_assert!(all.is_sorted_by(|a, b| a.0 < b.0));
            prop_assert!(all.iter().all(|(_, weight)| weight.is_finite() && *weight > 0.0));
        }
    }
}
