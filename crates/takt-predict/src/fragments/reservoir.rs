//! Picks some primitives out of a stream whose length is not known.
//!
//! The stream is cut into blocks of 2^k primitives and one of each block is kept, so samples are
//! spread evenly over a mesh instead of clustering by chance. k starts at 0: small draws are
//! kept whole. When the buffer is full, one of every two samples is dropped and k grows by one.
//! At 2^7 the buffer stays as it is, and further samples go to the caller at once.
//!
//! Which primitive of a block is kept looks random: a fixed place would always find the same
//! half of each quad. It follows from a seed, so that equal streams give equal samples and the
//! estimate does not flicker between frames.

use super::draw::{Shape, Vertex};
use crate::table::mix;

/// The smallest share of primitives that is sampled is 2 to the minus this.
pub(super) const SHIFT_MAX: u32 = 7;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Reservoir {
    /// Three per sample, so that they can go to a position source in one call.
    vertices: Vec<Vertex>,
    /// What the samples are; all are of one shape.
    shape: Shape,
    /// Primitives seen.
    recorded: u64,
    /// The next one that is a sample, counted from the first seen.
    next: u64,
    /// The block that it is in.
    block: u64,
    /// Primitives per block, as a power of two.
    shift: u32,
    /// Samples that are kept.
    capacity: usize,
    seed: u64,
}

impl Reservoir {
    /// Keeps up to `capacity` samples, an even number. Takes memory when they come.
    pub(super) fn new(capacity: usize, seed: u64) -> Self {
        assert!(capacity.is_multiple_of(2), "samples are dropped in pairs");
        let vertices = Vec::new();
        Self { vertices, shape: Shape::Triangle, recorded: 0, next: 0, block: 0, shift: 0, capacity, seed }
    }

    /// Takes all memory now.
    pub(super) fn with_room(mut self) -> Self {
        self.vertices.reserve_exact(3 * self.capacity);
        self
    }

    /// Forgets all samples.
    pub(super) fn clear(&mut self, shape: Shape) {
        self.vertices.clear();
        self.shape = shape;
        (self.recorded, self.next, self.block, self.shift) = (0, 0, 0, 0);
    }

    /// Reads on by `count` primitives. `fetch` gives the vertices of the `n`-th of them, and
    /// `overflow` takes the samples that are not kept.
    pub(super) fn record(
        &mut self,
        count: u64,
        mut fetch: impl FnMut(u64) -> [Vertex; 3],
        mut overflow: impl FnMut([Vertex; 3]),
    ) {
        let start = self.recorded;
        self.recorded = start.saturating_add(count);
        while self.next < self.recorded {
            if self.must_thin() {
                self.thin();
                self.pick();
                continue;
            }
            let sample = fetch(self.next - start);
            if self.len() < self.capacity {
                self.vertices.extend(sample);
            } else {
                overflow(sample);
            }
            self.block += 1;
            self.pick();
        }
    }

    /// Those that were seen stand for so many; nothing more is recorded then.
    pub(super) fn stand_for(&mut self, primitives: u64) {
        self.recorded = primitives;
    }

    /// Whether room must be made before another sample is kept.
    fn must_thin(&self) -> bool {
        self.len() == self.capacity && self.shift < SHIFT_MAX
    }

    /// Picks the sample of a block. Before thinning out, that is its first primitive: only when
    /// it comes is it known that the stream goes on, and the choice is then made anew.
    fn pick(&mut self) {
        let size = 1u64 << self.shift;
        let place = if self.must_thin() { 0 } else { self.random(self.block) & (size - 1) };
        self.next = self.block.saturating_mul(size).saturating_add(place);
    }

    /// Drops one of every two samples; blocks double.
    fn thin(&mut self) {
        for pair in 0..self.capacity / 2 {
            let odd = usize::from(self.random(pair as u64) >> 63 == 1);
            let from = 3 * (2 * pair + odd);
            self.vertices.copy_within(from..from + 3, 3 * pair);
        }
        self.vertices.truncate(3 * self.capacity / 2);
        self.block /= 2;
        self.shift += 1;
    }

    fn random(&self, number: u64) -> u64 {
        mix(self.seed ^ (number << 8) ^ u64::from(self.shift))
    }

    /// Samples kept.
    pub(super) fn len(&self) -> usize {
        self.vertices.len() / 3
    }

    /// Primitives seen.
    pub(super) fn recorded(&self) -> u64 {
        self.recorded
    }

    /// What the samples are.
    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// Vertices of the samples, three each.
    pub(super) fn vertices(&self) -> &[Vertex] {
        &self.vertices
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The numbers of the samples kept of a stream given in pieces, and of those passed on.
    fn sampled(pieces: &[u64], seed: u64) -> (Vec<u64>, Vec<u64>) {
        let mut reservoir = Reservoir::new(256, seed);
        let mut overflow = Vec::new();
        let mut start = 0;
        let number = |vertex: &Vertex| u64::from(vertex.index);
        for &piece in pieces {
            let vertex = |n: u64| Vertex { index: u32::try_from(start + n).unwrap(), position: [0.0; 4] };
            reservoir.record(piece, |n| [vertex(n); 3], |sample| overflow.push(number(&sample[0])));
            start += piece;
        }
        assert_eq!(reservoir.recorded(), start);
        (reservoir.vertices().iter().step_by(3).map(number).collect(), overflow)
    }

    #[test]
    fn small_streams_are_kept_whole() {
        assert_eq!(sampled(&[100, 156], 1), ((0..256).collect(), vec![]));
    }

    #[test]
    fn halving_keeps_one_of_each_block() {
        for (count, blocks, size) in [(257, 128, 2), (7172, 224, 32), (14_348, 224, 64), (32_768, 256, 128)] {
            let (kept, overflow) = sampled(&[count], 7);
            assert!(kept.len().abs_diff(blocks) <= 1, "{count}: {}", kept.len());
            for (block, sample) in kept.iter().enumerate() {
                assert_eq!(sample / size, block as u64, "{count}");
            }
            assert!(overflow.is_empty());
        }
    }

    #[test]
    fn beyond_the_floor_samples_are_passed_on() {
        let (kept, overflow) = sampled(&[69_666], 7);
        assert_eq!(kept.len(), 256);
        assert!(overflow.len().abs_diff(69_666 / 128 - 256) <= 1, "{}", overflow.len());
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(pieces in prop::collection::vec(0u64..5000, 1..12), seed in any::<u64>()) {
            let whole = [pieces.iter().sum()];
            prop_assert_eq!(sampled(&pieces, seed), sampled(&whole, seed));
        }
    }

    #[test]
    fn every_primitive_is_as_likely_as_any_other() {
        let mut hits = [0u32; 1024];
        for seed in 0..2000 {
            for sample in sampled(&[1024], mix(seed)).0 {
                hits[usize::try_from(sample).unwrap()] += 1;
            }
        }
        // 500 of 2000 expected, standard deviation 19.
        assert!(hits.iter().all(|&hits| (400..600).contains(&hits)), "{hits:?}");
    }
}
