//! Vertex arrays: where the attributes of vertices come from.
//!
//! Since GL ES 3.1 attributes have formats and read through binding points, which have buffers;
//! `glVertexAttribPointer` sets an attribute and the point of its own number at once. What draws
//! need of both is kept with the attribute.

use std::collections::BTreeMap;
use std::sync::Arc;

use takt_predict::fragments::Format;

use super::buffer::Buffer;
use crate::gl;

/// Attributes beyond this number are not looked at; drivers have 16 to 32.
pub const ATTRIBUTES_MAX: usize = 32;

/// Where an attribute's values lie.
#[derive(Clone, Debug)]
pub struct Array {
    /// Whether vertices have values of their own.
    pub enabled: bool,
    /// Components per vertex.
    pub components: u8,
    /// How they are stored; none for formats that positions never have.
    pub format: Option<Format>,
    /// Bytes from one vertex to the next; 0 if they lie side by side.
    pub stride: usize,
    /// Address in client memory, or offset in the buffer.
    pub pointer: usize,
    /// The buffer; client memory without one.
    pub buffer: Option<Arc<Buffer>>,
    /// Instances that share a value; 0 if each vertex has its own.
    pub divisor: u32,
    /// What it is bound to.
    pub(super) binding: usize,
    /// Its format, whether or not there is something to read, and where it begins within a vertex.
    pub(super) told: (Option<Format>, usize),
}

/// A binding point.
#[derive(Clone, Default, Debug)]
struct Binding {
    memory: Memory,
    offset: usize,
    stride: usize,
    divisor: u32,
}

/// Where a binding point reads from.
#[derive(Clone, Default, Debug)]
enum Memory {
    #[default]
    Client,
    Buffer(Arc<Buffer>),
    Nothing,
}

impl Default for Array {
    fn default() -> Self {
        Self {
            enabled: false,
            components: 4,
            format: Some(Format::F32),
            stride: 0,
            pointer: 0,
            buffer: None,
            divisor: 0,
            binding: 0,
            told: (Some(Format::F32), 0),
        }
    }
}

impl Array {
    /// Bytes up to the end of that vertex; none if they cannot be counted.
    pub fn bytes(&self, vertex: usize) -> Option<usize> {
        let size = self.format?.vertex_size(self.components);
        vertex.checked_mul(self.step()?)?.checked_add(size)
    }

    /// Where vertex `base` lies; none if that is nowhere. Values of instances lie where they lie.
    pub fn from(&self, base: i32) -> Option<usize> {
        if base == 0 || self.divisor > 0 {
            return Some(self.pointer);
        }
        let skipped = isize::try_from(self.step()?).ok()?.checked_mul(isize::try_from(base).ok()?)?;
        self.pointer.checked_add_signed(skipped)
    }

    /// Bytes from one vertex to the next.
    fn step(&self) -> Option<usize> {
        if self.stride == 0 { Some(self.format?.vertex_size(self.components)) } else { Some(self.stride) }
    }
}

/// A vertex array object.
#[derive(Clone, Debug)]
pub struct VertexArray {
    /// By location.
    pub attributes: Vec<Array>,
    /// `GL_ELEMENT_ARRAY_BUFFER`.
    pub elements: Option<Arc<Buffer>>,
    bindings: Vec<Binding>,
}

impl Default for VertexArray {
    fn default() -> Self {
        let attribute = |binding| Array { binding, ..Array::default() };
        Self {
            attributes: (0..ATTRIBUTES_MAX).map(attribute).collect(),
            elements: None,
            bindings: vec![Binding::default(); ATTRIBUTES_MAX],
        }
    }
}

/// What `glVertexAttribPointer` says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Layout {
    /// Components per vertex.
    pub components: u8,
    /// How they are stored.
    pub format: Option<Format>,
    /// From one vertex to the next; 0 if they lie side by side.
    pub stride: usize,
    /// Address or offset.
    pub pointer: usize,
}

impl VertexArray {
    /// `glVertexAttribPointer`.
    pub fn point(&mut self, at: usize, layout: &Layout, buffer: Option<Arc<Buffer>>) {
        let Some((array, binding)) = self.attributes.get_mut(at).zip(self.bindings.get_mut(at)) else {
            return;
        };
        let side_by_side = layout.format.map_or(0, |format| format.vertex_size(layout.components));
        binding.memory = buffer.map_or(Memory::Client, Memory::Buffer);
        binding.offset = layout.pointer;
        binding.stride = if layout.stride == 0 { side_by_side } else { layout.stride };
        (array.components, array.told, array.binding) = (layout.components, (layout.format, 0), at);
        self.derive(at);
    }

    /// `glVertexAttribFormat`.
    pub fn shape(&mut self, at: usize, components: u8, format: Option<Format>, relative: usize) {
        if let Some(array) = self.attributes.get_mut(at) {
            (array.components, array.told) = (components, (format, relative));
        }
        self.derive(at);
    }

    /// `glVertexAttribBinding`.
    pub fn connect(&mut self, at: usize, binding: usize) {
        if let Some(array) = self.attributes.get_mut(at).filter(|_| binding < ATTRIBUTES_MAX) {
            array.binding = binding;
        }
        self.derive(at);
    }

    /// `glBindVertexBuffer`.
    pub fn bind(&mut self, binding: usize, buffer: Option<Arc<Buffer>>, offset: usize, stride: usize) {
        if let Some(binding) = self.bindings.get_mut(binding) {
            // Without a stride, all vertices would have one value; no program has vertices like that.
            let buffer = buffer.filter(|_| stride > 0);
            let memory = buffer.map_or(Memory::Nothing, Memory::Buffer);
            *binding = Binding { memory, offset, stride, divisor: binding.divisor };
        }
        self.derive_all(binding);
    }

    /// `glVertexBindingDivisor`.
    pub fn divide(&mut self, binding: usize, divisor: u32) {
        if let Some(binding) = self.bindings.get_mut(binding) {
            binding.divisor = divisor;
        }
        self.derive_all(binding);
    }

    fn derive_all(&mut self, binding: usize) {
        for at in 0..self.attributes.len() {
            if self.attributes[at].binding == binding {
                self.derive(at);
            }
        }
    }

    /// Puts together what an attribute reads.
    fn derive(&mut self, at: usize) {
        let Some(array) = self.attributes.get_mut(at) else {
            return;
        };
        let Some(binding) = self.bindings.get(array.binding) else {
            return;
        };
        let (format, relative) = array.told;
        let pointer = binding.offset.checked_add(relative);
        (array.stride, array.divisor, array.pointer) =
            (binding.stride, binding.divisor, pointer.unwrap_or(0));
        array.buffer = match &binding.memory {
            Memory::Buffer(buffer) => Some(buffer.clone()),
            Memory::Client | Memory::Nothing => None,
        };
        // Without a buffer the offset would be taken for an address in client memory.
        array.format = format.filter(|_| pointer.is_some() && !matches!(binding.memory, Memory::Nothing));
    }

    /// A buffer was deleted.
    fn forget(&mut self, buffer: &Arc<Buffer>) {
        self.elements.take_if(|held| Arc::ptr_eq(held, buffer));
        for at in 0..self.bindings.len() {
            if matches!(&self.bindings[at].memory, Memory::Buffer(held) if Arc::ptr_eq(held, buffer)) {
                self.bindings[at].memory = Memory::Nothing;
                self.derive_all(at);
            }
        }
    }
}

/// All vertex state of a context.
#[derive(Debug)]
pub struct Vertices {
    arrays: BTreeMap<u32, VertexArray>,
    bound: u32,
    /// `glVertexAttrib*`: values where no array is enabled.
    pub constants: [[f32; 4]; ATTRIBUTES_MAX],
}

impl Default for Vertices {
    fn default() -> Self {
        let constants = [[0.0, 0.0, 0.0, 1.0]; ATTRIBUTES_MAX];
        Self { arrays: BTreeMap::from([(0, VertexArray::default())]), bound: 0, constants }
    }
}

impl Vertices {
    /// `glBindVertexArray`.
    pub fn bind(&mut self, name: u32) {
        self.arrays.entry(name).or_default();
        self.bound = name;
    }

    /// `glDeleteVertexArrays`: what is bound is unbound.
    pub fn delete(&mut self, names: &[u32]) {
        for name in names.iter().filter(|name| **name != 0) {
            self.arrays.remove(name);
            if self.bound == *name {
                self.bound = 0;
            }
        }
    }

    /// The bound vertex array, to look at.
    pub fn bound(&self) -> &VertexArray {
        static NONE: std::sync::OnceLock<VertexArray> = std::sync::OnceLock::new();
        self.arrays.get(&self.bound).unwrap_or_else(|| NONE.get_or_init(VertexArray::default))
    }

    /// The bound vertex array.
    pub fn current(&mut self) -> &mut VertexArray {
        self.arrays.entry(self.bound).or_default()
    }

    /// An attribute of the bound vertex array.
    pub fn attribute(&mut self, location: u32) -> Option<&mut Array> {
        self.current().attributes.get_mut(usize::try_from(location).ok()?)
    }

    /// Sets a constant value.
    pub fn constant(&mut self, location: u32, value: [f32; 4]) {
        let memory = usize::try_from(location).ok().and_then(|at| self.constants.get_mut(at));
        if let Some(memory) = memory {
            *memory = value;
        }
    }

    /// A buffer was deleted: the bound vertex array drops it, others keep it alive.
    pub fn forget(&mut self, buffer: &Arc<Buffer>) {
        self.current().forget(buffer);
    }

    /// The bound vertex array, unless it is the default one, for which the calls of GL ES 3.1 are
    /// refused.
    pub fn named(&mut self) -> Option<&mut VertexArray> {
        self.arrays.get_mut(&self.bound).filter(|_| self.bound != 0)
    }
}

/// The format of an attribute as `glVertexAttribPointer` names it.
pub fn format(kind: u32, normalized: bool) -> Option<Format> {
    Some(match (kind, normalized) {
        (gl::FLOAT, _) => Format::F32,
        (gl::HALF_FLOAT | gl::HALF_FLOAT_OES, _) => Format::F16,
        (gl::FIXED, _) => Format::Fixed,
        (gl::BYTE, false) => Format::I8,
        (gl::BYTE, true) => Format::I8Normalized,
        (gl::UNSIGNED_BYTE, false) => Format::U8,
        (gl::UNSIGNED_BYTE, true) => Format::U8Normalized,
        (gl::SHORT, false) => Format::I16,
        (gl::SHORT, true) => Format::I16Normalized,
        (gl::UNSIGNED_SHORT, false) => Format::U16,
        (gl::UNSIGNED_SHORT, true) => Format::U16Normalized,
        (gl::INT, false) => Format::I32,
        (gl::INT, true) => Format::I32Normalized,
        (gl::UNSIGNED_INT, false) => Format::U32,
        (gl::UNSIGNED_INT, true) => Format::U32Normalized,
        (gl::INT_2_10_10_10_REV, false) => Format::I2101010,
        (gl::INT_2_10_10_10_REV, true) => Format::I2101010Normalized,
        (gl::UNSIGNED_INT_2_10_10_10_REV, false) => Format::U2101010,
        (gl::UNSIGNED_INT_2_10_10_10_REV, true) => Format::U2101010Normalized,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_keep_their_state_apart() {
        let mut vertices = Vertices::default();
        vertices.attribute(0).unwrap().enabled = true;
        vertices.bind(7);
        assert!(!vertices.attribute(0).unwrap().enabled);
        vertices.delete(&[7, 0]);
        assert!(vertices.attribute(0).unwrap().enabled, "deleting what is bound binds the default");
        assert!(vertices.attribute(u32::MAX).is_none());
    }

    const POINTS: Layout = Layout { components: 2, format: Some(Format::F32), stride: 0, pointer: 8 };

    #[test]
    fn a_deleted_buffer_stays_alive_in_arrays_that_are_not_bound() {
        let mut vertices = Vertices::default();
        let buffer = Arc::new(Buffer::new());
        vertices.bind(1);
        vertices.current().point(2, &POINTS, Some(buffer.clone()));
        vertices.bind(2);
        vertices.current().elements = Some(buffer.clone());
        vertices.current().point(0, &POINTS, Some(buffer.clone()));
        vertices.forget(&buffer);
        assert!(vertices.current().elements.is_none());
        let array = vertices.attribute(0).unwrap();
        assert!(array.buffer.is_none() && array.format.is_none(), "an offset is no address");
        vertices.bind(1);
        assert!(vertices.attribute(2).unwrap().buffer.is_some());
    }

    #[test]
    fn attributes_read_through_binding_points() {
        let mut vertices = Vertices::default();
        assert!(vertices.named().is_none(), "GL refuses");
        vertices.bind(1);
        let buffers = [(); 2].map(|()| Arc::new(Buffer::new()));
        let array = vertices.named().unwrap();
        // Two attributes of one buffer, side by side.
        for (at, relative) in [(0, 0), (1, 12)] {
            array.shape(at, 3, Some(Format::F32), relative);
            array.connect(at, 5);
        }
        array.bind(5, Some(buffers[0].clone()), 100, 24);
        array.divide(5, 7);
        let seen = |array: &VertexArray, at: usize| {
            let Array { pointer, stride, divisor, format, .. } = array.attributes[at];
            let number = array.attributes[at].buffer.as_ref().map(|buffer| buffer.number());
            (pointer, stride, divisor, format.is_some(), number)
        };
        let [first, second] = [0, 1].map(|at| Some(buffers[at].number()));
        assert_eq!(seen(array, 0), (100, 24, 7, true, first));
        assert_eq!(seen(array, 1), (112, 24, 7, true, first));
        // The old call takes an attribute back to the point of its number, which has its own divisor.
        array.point(1, &POINTS, Some(buffers[1].clone()));
        assert_eq!(seen(array, 1), (8, 8, 0, true, second));
        array.bind(5, None, 0, 24);
        assert!(!seen(array, 0).3 && seen(array, 1).3, "only the first reads from there");
        array.bind(5, Some(buffers[0].clone()), 0, 0);
        assert!(!seen(array, 0).3, "one value for all vertices");
        array.bind(5, Some(buffers[0].clone()), usize::MAX, 24);
        array.shape(0, 3, Some(Format::F32), 12);
        assert!(!seen(array, 0).3, "nowhere");
        array.connect(0, usize::MAX);
        array.bind(usize::MAX, None, 0, 0);
        array.divide(usize::MAX, 1);
        array.shape(usize::MAX, 3, None, 0);
        array.point(usize::MAX, &POINTS, None);
    }
}
