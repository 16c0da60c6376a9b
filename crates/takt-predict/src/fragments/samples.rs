//! `ts`: some of the primitives, projected and extrapolated.
//!
//! Works with every shader whose position can be computed, needs no coverage factor, and rarely
//! underestimates. Fragments that the depth test removes are counted all the same.
//!
//! Draws from client memory share one buffer of 256 samples per batch, as in the thesis. Draws
//! from buffers come again and again, so their samples are kept by name, there are more of them,
//! and they are chosen with more care: that is done once.

use super::draw::{Draw, RangeKey, Shape, Vertex};
use super::range::{INSTANCES_MAX, Memory, RangeSamples, Weighting};
use super::reservoir::{Reservoir, SHIFT_MAX};
use super::{FragmentEstimator, Scene, View};
use crate::table::{Lookup, Table, mix};

/// Samples of a batch of draws from client memory.
pub const SAMPLES_MAX: usize = 256;

/// See the module.
#[derive(Clone, Debug)]
pub struct TriangleSamples {
    /// Samples of the draws without a name.
    stream: Reservoir,
    /// Samples of the draws with one.
    ranges: Table<RangeKey, RangeSamples>,
    memory: Memory,
    seed: u64,
    /// Fragments of the batch that are already counted.
    fragments: f64,
    /// Samples of the stream beyond those that it keeps.
    overflow: Overflow,
    scratch: Vec<[f32; 4]>,
}

impl TriangleSamples {
    /// An estimator that keeps the samples of `ranges` buffer ranges, up to 128 KiB each.
    ///
    /// The seed selects which primitives are looked at; an app that knows it can hide others.
    pub fn new(ranges: usize, seed: u64) -> Self {
        Self {
            stream: Reservoir::new(SAMPLES_MAX, seed).with_room(),
            ranges: Table::new(ranges, &RangeSamples::EMPTY()),
            memory: Memory::new(),
            seed,
            fragments: 0.0,
            overflow: Overflow::default(),
            scratch: vec![[0.0; 4]; 3 * SAMPLES_MAX],
        }
    }

    /// Counts a draw with a name, reading its vertices only if they are new.
    fn record_range(&mut self, key: &RangeKey, draw: &Draw<'_>, scene: &Scene<'_>) {
        let (samples, found) = self.ranges.entry(key);
        let weighting = Weighting::of(scene);
        if found == Lookup::Miss || !samples.fits(weighting) {
            samples.read(draw, weighting, self.seed, &mut self.memory);
        }
        self.fragments += samples.fragments(scene, draw.instances, &mut self.memory);
    }
}

impl Default for TriangleSamples {
    fn default() -> Self {
        Self::new(RANGES, SEED)
    }
}

impl FragmentEstimator for TriangleSamples {
    fn record(&mut self, draw: &Draw<'_>, scene: &Scene<'_>) {
        if draw.instances == 0 || draw.primitives() == 0 {
            return;
        }
        if let Some(key) = &draw.key {
            return self.record_range(key, draw, scene);
        }
        let some = draw.primitives().min(primitives_max(scene));
        // One stream holds one shape, one number of instances and one share of primitives; what
        // differs is counted now.
        let alone = draw.instances > 1 || some < draw.primitives();
        if draw.mode.shape() != self.stream.shape() || alone {
            self.settle(scene, 1);
            self.stream.clear(draw.mode.shape());
        }
        read(&mut self.stream, draw, some, scene, &mut self.overflow);
        if alone {
            self.stream.stand_for(u64::from(draw.primitives()));
        }
        if alone || scene.position.needs_draw() {
            self.settle(scene, draw.instances);
        }
    }

    fn take(&mut self, scene: &Scene<'_>) -> Option<f64> {
        self.settle(scene, 1);
        Some(std::mem::take(&mut self.fragments))
    }
}

impl TriangleSamples {
    /// Counts what is in the stream, for this many instances, and empties it.
    fn settle(&mut self, scene: &Scene<'_>, instances: u32) {
        let overflow = std::mem::take(&mut self.overflow);
        self.fragments += extrapolate(&self.stream, overflow, scene, instances, &mut self.scratch);
        self.stream.clear(self.stream.shape());
    }
}

/// Samples that were counted without being kept.
#[derive(Copy, Clone, Default, Debug)]
struct Overflow {
    samples: u64,
    fragments: f64,
}

/// Primitives of a draw that are read. Any program can say that a draw has four thousand million, and
/// the time that samples take must not follow. Positions that need the whole shader are computed
/// together, so there are no more of them than are kept.
fn primitives_max(scene: &Scene<'_>) -> u32 {
    if scene.position.needs_draw() { SHADED_PRIMITIVES_MAX } else { PRIMITIVES_MAX }
}

/// Reads some of the primitives of a draw into a reservoir, evenly spread.
fn read(reservoir: &mut Reservoir, draw: &Draw<'_>, some: u32, scene: &Scene<'_>, overflow: &mut Overflow) {
    let shape = draw.mode.shape();
    let (some, all) = (u64::from(some), u64::from(draw.primitives()));
    let fetch = |n: u64| {
        let (start, end) = (n * all / some, (n + 1) * all / some);
        let number = start + mix(n) % (end - start).max(1);
        draw.primitive(u32::try_from(number).unwrap_or(u32::MAX))
    };
    reservoir.record(some, fetch, |sample: [Vertex; 3]| {
        let mut clip = [[0.0; 4]; 3];
        scene.position.positions(0, &sample, &mut clip);
        overflow.samples += 1;
        overflow.fragments += primitive(scene.view, shape, &clip);
    });
}

/// Fragments of all primitives that a reservoir has seen, over all instances.
fn extrapolate(
    reservoir: &Reservoir,
    overflow: Overflow,
    scene: &Scene<'_>,
    instances: u32,
    scratch: &mut [[f32; 4]],
) -> f64 {
    let vertices = reservoir.vertices();
    let samples = reservoir.len() as u64 + overflow.samples;
    if samples == 0 {
        return 0.0;
    }
    let looked_at = if scene.position.instances_differ() { instances.clamp(1, INSTANCES_MAX) } else { 1 };
    let mut kept = 0.0;
    for nth in 0..looked_at {
        let instance = u64::from(nth) * u64::from(instances) / u64::from(looked_at);
        let clip = &mut scratch[..vertices.len()];
        scene.position.positions(u32::try_from(instance).unwrap_or(u32::MAX), vertices, clip);
        let (triples, _) = clip.as_chunks::<3>();
        kept += triples.iter().map(|clip| primitive(scene.view, reservoir.shape(), clip)).sum::<f64>();
    }
    let of_one = kept / f64::from(looked_at) + overflow.fragments;
    of_one * f64::from(instances) * (reservoir.recorded() as f64 / samples as f64)
}

pub(super) fn primitive(view: &View, shape: Shape, clip: &[[f32; 4]; 3]) -> f64 {
    match shape {
        Shape::Point => view.point(&clip[0]),
        Shape::Line => view.line(&[clip[0], clip[1]]),
        Shape::Triangle => view.triangle(clip),
    }
}

/// Primitives of a draw that are read, if one matrix places them.
const PRIMITIVES_MAX: u32 = 1 << 21;
/// The same if it takes the whole shader.
const SHADED_PRIMITIVES_MAX: u32 = 1 << 15;
const _: () =
    assert!(SHADED_PRIMITIVES_MAX as usize == SAMPLES_MAX << SHIFT_MAX, "none is counted by itself");
/// Buffer ranges whose samples are kept, unless told otherwise.
const RANGES: usize = 128;
/// Used unless told otherwise.
const SEED: u64 = 0x7461_6b74;

#[cfg(test)]
mod tests;
