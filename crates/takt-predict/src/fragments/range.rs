//! Samples of a buffer range, kept for all frames that draw it.

use super::attribute::Attribute;
use super::draw::{Draw, Shape, Vertex};
use super::facets::{Facets, normal};
use super::pick::{Candidate, pick};
use super::samples::primitive;
use super::{Elements, Mode, Scene};
use crate::table::mix;

/// Samples of a buffer range.
pub const RANGE_SAMPLES_MAX: usize = 1792;
/// Primitives of a range among which samples are chosen; of larger ranges, one of each block.
const EXAMINED_MAX: u32 = 8192;
/// Samples that are looked at where each must be clipped by itself.
const CLIPPED_MAX: usize = 1024;
/// Instances of a draw that are looked at where they differ.
pub(super) const INSTANCES_MAX: u32 = 8;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct RangeSamples {
    shape: Shape,
    weighting: Weighting,
    /// How many primitives each sample stands for. Any beginning of the samples is spread over
    /// the range as all of them are.
    weights: Vec<f32>,
    /// By what to multiply the sum over the first half of them.
    from_half: f64,
    /// The samples, if they are triangles in space.
    facets: Facets,
    /// Otherwise their vertices, three per sample.
    vertices: Vec<Vertex>,
}

/// How samples are chosen.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Weighting {
    /// By their size in space, which tells something about their size on the screen.
    Size,
    /// All alike: the shader may make anything of them, or the app may deceive.
    Equal,
}

impl Weighting {
    pub(super) fn of(scene: &Scene<'_>) -> Self {
        let by_size = scene.view.quick.trusted && scene.position.matrix().is_some();
        if by_size { Self::Size } else { Self::Equal }
    }
}

/// A primitive that was chosen.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Sample {
    number: u32,
    weight: f32,
    picks: f32,
}

/// Memory to be used again.
#[derive(Clone, Default, Debug)]
pub(super) struct Memory {
    candidates: Vec<Candidate>,
    picked: Vec<Sample>,
    vertices: Vec<Vertex>,
    clip: Vec<[f32; 4]>,
}

impl Memory {
    /// Room for everything but candidates, which only large ranges have.
    pub(super) fn new() -> Self {
        Self {
            candidates: Vec::new(),
            picked: Vec::with_capacity(RANGE_SAMPLES_MAX),
            vertices: Vec::with_capacity(3 * CLIPPED_MAX),
            clip: vec![[0.0; 4]; 3 * RANGE_SAMPLES_MAX],
        }
    }
}

impl RangeSamples {
    /// No samples yet; takes memory when they come.
    pub(super) const EMPTY: fn() -> Self = || Self {
        shape: Shape::Triangle,
        weighting: Weighting::Equal,
        vertices: Vec::new(),
        weights: Vec::new(),
        from_half: 1.0,
        facets: Facets::default(),
    };

    /// Whether samples of this range would be chosen in the same way now.
    pub(super) fn fits(&self, weighting: Weighting) -> bool {
        self.weighting == weighting
    }

    /// Chooses samples of a draw.
    pub(super) fn read(&mut self, draw: &Draw<'_>, weighting: Weighting, seed: u64, memory: &mut Memory) {
        (self.shape, self.weighting) = (draw.mode.shape(), weighting);
        self.weights.clear();
        self.vertices.clear();
        self.facets.clear();
        memory.choose(draw, weighting, seed);
        let picked = &memory.picked;
        self.weights.reserve_exact(picked.len());
        // Every second one first, then the others.
        let order = picked.iter().step_by(2).chain(picked.iter().skip(1).step_by(2));
        self.weights.extend(order.clone().map(|sample| sample.weight));
        let picks =
            |samples: usize| order.clone().take(samples).map(|sample| f64::from(sample.picks)).sum::<f64>();
        self.from_half = picks(picked.len()) / picks(picked.len().div_ceil(2)).max(1.0);
        let is_spatial = weighting == Weighting::Size && self.shape == Shape::Triangle;
        if is_spatial && let Some(corners) = Corners::of(draw) {
            self.facets.reserve(picked.len());
            order.for_each(|sample| self.facets.push(&corners.triangle(sample.number), sample.weight));
        } else {
            self.vertices.reserve_exact(3 * picked.len());
            self.vertices.extend(order.flat_map(|sample| draw.primitive(sample.number)));
        }
    }

    /// Fragments of the whole range, over all instances.
    pub(super) fn fragments(&self, scene: &Scene<'_>, instances: u32, memory: &mut Memory) -> f64 {
        let quick = || {
            let columns = scene.position.matrix().filter(|_| !self.facets.is_empty())?;
            self.facets.fragments(&columns, scene.view)
        };
        if let Some(fragments) = quick() {
            return fragments * f64::from(instances);
        }
        let looked_at = if scene.position.instances_differ() { instances.clamp(1, INSTANCES_MAX) } else { 1 };
        let mut sum = 0.0;
        for nth in 0..looked_at {
            let instance = u64::from(nth) * u64::from(instances) / u64::from(looked_at);
            sum += self.one_by_one(u32::try_from(instance).unwrap_or(u32::MAX), scene, memory);
        }
        sum * (f64::from(instances) / f64::from(looked_at))
    }

    /// Fragments of one instance, each sample clipped by itself. There may be time for some only.
    fn one_by_one(&self, instance: u32, scene: &Scene<'_>, memory: &mut Memory) -> f64 {
        let all = self.weights.len();
        let some = if all > CLIPPED_MAX { all.div_ceil(2) } else { all };
        let vertices = if self.facets.is_empty() {
            &self.vertices[..3 * some]
        } else {
            self.facets.vertices(some, &mut memory.vertices);
            &memory.vertices
        };
        let clip = &mut memory.clip[..vertices.len()];
        scene.position.positions(instance, vertices, clip);
        let (triples, _) = clip.as_chunks::<3>();
        let of = |(clip, weight): (&[[f32; 4]; 3], &f32)| {
            primitive(scene.view, self.shape, clip) * f64::from(*weight)
        };
        let sum: f64 = triples.iter().zip(&self.weights).map(of).sum();
        if some == all { sum } else { sum * self.from_half }
    }
}

impl Memory {
    fn choose(&mut self, draw: &Draw<'_>, weighting: Weighting, seed: u64) {
        let count = draw.primitives();
        self.picked.clear();
        if count as usize <= RANGE_SAMPLES_MAX {
            self.picked.extend((0..count).map(|number| Sample { number, weight: 1.0, picks: 1.0 }));
            return;
        }
        let block = count.div_ceil(EXAMINED_MAX);
        let size = |nth: u32| block.min(count - nth * block);
        let start = u32::try_from(mix(seed) >> 32).unwrap_or(0);
        // Multiples of the golden ratio fall everywhere within blocks, and never into step with a
        // mesh.
        let number = |nth: u32| {
            let turn = nth.wrapping_mul(0x9e37_79b9).wrapping_add(start);
            let within = (u64::from(turn) * u64::from(size(nth))) >> 32;
            nth * block + u32::try_from(within).unwrap_or(0)
        };
        let blocks = count.div_ceil(block);
        self.candidates.clear();
        let by_size = weighting == Weighting::Size && draw.mode.shape() == Shape::Triangle;
        if by_size && let Some(corners) = Corners::of(draw) {
            let candidate =
                |nth| Candidate::triangle(normal(&corners.triangle(number(nth)))).times(size(nth));
            self.candidates.extend((0..blocks).map(candidate));
        } else {
            self.candidates.extend((0..blocks).map(|nth| Candidate::EQUAL.times(size(nth))));
        }
        #[expect(clippy::cast_possible_truncation, reason = "weights need no more than single precision")]
        pick(&self.candidates, RANGE_SAMPLES_MAX, seed, |pick| {
            let nth = u32::try_from(pick.number).unwrap_or(0);
            let weight = pick.weight as f32 * size(nth) as f32;
            self.picked.push(Sample { number: number(nth), weight, picks: pick.picks as f32 });
        });
    }
}

/// Corners of triangles in space, read as fast as their layout allows.
enum Corners<'a> {
    /// `glDrawArrays(GL_TRIANGLES)` of three floats, the commonest layout: bytes from the first
    /// vertex on, and the stride.
    Tight(&'a [u8], usize),
    Any(&'a Draw<'a>),
}

impl<'a> Corners<'a> {
    /// None if vertices have a `w` of their own.
    fn of(draw: &'a Draw<'a>) -> Option<Self> {
        if draw.positions.components > 3 {
            return None;
        }
        let Elements::Arrays { first } = draw.elements else { return Some(Self::Any(draw)) };
        Some(match draw.positions.floats(first) {
            Some((bytes, stride)) if draw.mode == Mode::Triangles => Self::Tight(bytes, stride),
            _ => Self::Any(draw),
        })
    }

    #[inline]
    fn triangle(&self, number: u32) -> [[f32; 3]; 3] {
        match self {
            Self::Tight(bytes, stride) => {
                let start = (number as usize).saturating_mul(3 * stride);
                [0, 1, 2].map(|nth| Attribute::three(bytes, start.saturating_add(nth * stride)))
            }
            Self::Any(draw) => draw.primitive(number).map(|Vertex { position: [x, y, z, _], .. }| [x, y, z]),
        }
    }
}
