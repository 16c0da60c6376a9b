//! Values that the position slice is evaluated with.

use super::interface::{Interface, Uniform};
use super::op::truth;
use super::types::{Base, Scalar};

/// The uniforms of a program, as 32-bit words in the order of declaration.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct UniformValues {
    pub(super) words: Vec<u32>,
}

/// Data for a uniform, as GL calls hand it over; matrices by columns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum UniformData<'a> {
    /// From `glUniform*f*`.
    Floats(&'a [f32]),
    /// From `glUniform*i*`.
    Ints(&'a [i32]),
    /// From `glUniform*ui*`.
    Uints(&'a [u32]),
}

impl UniformValues {
    /// All zero, as after linking.
    #[must_use]
    pub fn new(interface: &Interface) -> Self {
        Self { words: vec![0; interface.uniform_words as usize] }
    }

    /// Words of this range; none if there are fewer.
    pub(crate) fn words(&self, range: &std::ops::Range<u32>) -> &[u32] {
        self.words.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// Sets a uniform from its component `start` on; data beyond its end is ignored.
    pub fn set(&mut self, uniform: &Uniform, start: usize, data: UniformData<'_>) -> Written {
        let Base::Number { scalar, .. } = uniform.ty.base else {
            return Written::default();
        };
        let first = uniform.first as usize;
        let words = self.words.get_mut(first..first + uniform.words as usize);
        let words = words.and_then(|words| words.get_mut(start..)).unwrap_or_default();
        match (scalar, data) {
            (Scalar::Float, UniformData::Floats(data)) => fill(words, data, |value| value.to_bits()),
            (Scalar::Int, UniformData::Ints(data)) => fill(words, data, |value| value.cast_unsigned()),
            (Scalar::Uint, UniformData::Uints(data)) => fill(words, data, |value| *value),
            (Scalar::Bool, UniformData::Floats(data)) => fill(words, data, |value| truth(*value != 0.0)),
            (Scalar::Bool, UniformData::Ints(data)) => fill(words, data, |value| truth(*value != 0)),
            (Scalar::Bool, UniformData::Uints(data)) => fill(words, data, |value| truth(*value != 0)),
            _ => Written::default(),
        }
    }
}

/// What setting a uniform did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Written {
    /// Words that were set: none if the data is of the wrong type.
    pub words: usize,
    /// Whether one of them had another value before.
    pub changed: bool,
}

fn fill<T>(words: &mut [u32], data: &[T], word: impl Fn(&T) -> u32) -> Written {
    let mut changed = false;
    for (place, value) in words.iter_mut().zip(data) {
        let new = word(value);
        changed |= *place != new;
        *place = new;
    }
    Written { words: words.len().min(data.len()), changed }
}

/// Where the vertices' values of one attribute lie.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AttributeArray<'a> {
    /// The values.
    pub data: AttributeData<'a>,
    /// From one vertex to the next, in elements of the data; 0 gives all vertices the same value.
    pub stride: usize,
    /// Components that are there; the others are 0, 0, 0, 1.
    pub components: usize,
}

/// Values of an attribute.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum AttributeData<'a> {
    /// For attributes of type `float`, `vec2`, …
    Floats(&'a [f32]),
    /// For attributes of type `int`, `uvec2`, …; unsigned ones by their bits.
    Ints(&'a [i32]),
}

impl AttributeArray<'_> {
    fn len(&self) -> usize {
        match self.data {
            AttributeData::Floats(data) => data.len(),
            AttributeData::Ints(data) => data.len(),
        }
    }

    /// Whether there is data for that many vertices.
    pub(super) fn covers(&self, vertices: usize) -> bool {
        let last = vertices.saturating_sub(1).saturating_mul(self.stride);
        vertices == 0 || last.saturating_add(self.components) <= self.len()
    }

    /// One component of consecutive vertices; lanes beyond the last vertex repeat it.
    pub(super) fn gather(&self, first: usize, vertices: usize, component: usize, lanes: &mut [u32]) {
        if component >= self.components {
            let missing = match (self.data, component) {
                (AttributeData::Floats(_), 3) => 1.0_f32.to_bits(),
                (AttributeData::Ints(_), 3) => 1,
                _ => 0,
            };
            lanes.fill(missing);
            return;
        }
        let at = |lane: usize| (first + lane.min(vertices - 1)) * self.stride + component;
        match self.data {
            AttributeData::Floats(data) => {
                for (lane, value) in lanes.iter_mut().enumerate() {
                    *value = data.get(at(lane)).map_or(0, |value| value.to_bits());
                }
            }
            AttributeData::Ints(data) => {
                for (lane, value) in lanes.iter_mut().enumerate() {
                    *value = data.get(at(lane)).map_or(0, |value| value.cast_unsigned());
                }
            }
        }
    }
}
