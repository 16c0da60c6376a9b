//! Vertex arrays: where the attributes of vertices come from.

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
        }
    }
}

impl Array {
    /// Bytes up to the end of that vertex; none if they cannot be counted.
    pub fn bytes(&self, vertex: usize) -> Option<usize> {
        let size = self.format?.vertex_size(self.components);
        let stride = if self.stride == 0 { size } else { self.stride };
        vertex.checked_mul(stride)?.checked_add(size)
    }
}

/// A vertex array object.
#[derive(Clone, Debug)]
pub struct VertexArray {
    /// By location.
    pub attributes: Vec<Array>,
    /// `GL_ELEMENT_ARRAY_BUFFER`.
    pub elements: Option<Arc<Buffer>>,
}

impl Default for VertexArray {
    fn default() -> Self {
        Self { attributes: vec![Array::default(); ATTRIBUTES_MAX], elements: None }
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
        let place = usize::try_from(location).ok().and_then(|at| self.constants.get_mut(at));
        if let Some(place) = place {
            *place = value;
        }
    }

    /// A buffer was deleted: the bound vertex array lets go of it, others keep it alive.
    pub fn forget(&mut self, buffer: &Arc<Buffer>) {
        let is_it = |held: &Option<Arc<Buffer>>| held.as_ref().is_some_and(|held| Arc::ptr_eq(held, buffer));
        let array = self.current();
        if is_it(&array.elements) {
            array.elements = None;
        }
        for attribute in array.attributes.iter_mut().filter(|attribute| is_it(&attribute.buffer)) {
            // Without a buffer the offset would be taken for an address in client memory.
            *attribute = Array { enabled: attribute.enabled, format: None, ..Array::default() };
        }
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

    #[test]
    fn a_deleted_buffer_stays_alive_in_arrays_that_are_not_bound() {
        let mut vertices = Vertices::default();
        let buffer = Arc::new(Buffer::new());
        vertices.bind(1);
        vertices.attribute(2).unwrap().buffer = Some(buffer.clone());
        vertices.bind(2);
        vertices.current().elements = Some(buffer.clone());
        vertices.forget(&buffer);
        assert!(vertices.current().elements.is_none());
        vertices.bind(1);
        assert!(vertices.attribute(2).unwrap().buffer.is_some());
    }
}
