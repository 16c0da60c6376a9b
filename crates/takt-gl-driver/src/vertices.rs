//! Vertices whose attributes lie one behind the other, each with room for four floats per vertex.

use std::ptr;

use takt_gl_api::entry::{Ptr, real};
use takt_gl_api::gl;

use crate::Gl;

/// Floats of an attribute at most.
const ATTRIBUTE_FLOATS: u32 = 4;

/// Bytes from one vertex to the next, within a part.
const STRIDE: i32 = 16;

/// Vertices on the GPU: one part per attribute, each with four floats per vertex.
#[derive(Debug)]
pub struct Vertices {
    name: u32,
    capacity: u32,
    attributes: usize,
}

impl Vertices {
    /// A buffer whose every attribute has these floats, four per vertex.
    pub fn new(gl: &Gl, attributes: usize, data: &[f32]) -> Self {
        let capacity = u32::try_from(data.len() / 4).expect("few vertices");
        let name = gl.new_buffer();
        gl.fill_buffer(name, &data.repeat(attributes));
        Self { name, capacity, attributes }
    }

    /// Gives its memory back.
    pub fn delete(self, gl: &Gl) {
        gl.delete_buffer(self.name);
    }

    const fn part_bytes(&self) -> usize {
        self.capacity as usize * 4 * size_of::<f32>()
    }
}

impl Gl {
    /// Draws `count` vertices from a buffer; attribute number n has `layout[n]` floats.
    pub fn draw(&self, mode: u32, count: u32, buffer: &Vertices, layout: &[u32]) {
        self.draw_from(mode, count, buffer, (0_u32..).zip(layout.iter().copied()));
    }

    /// The same for attributes at these locations, with so many floats.
    pub fn draw_at(&self, mode: u32, count: u32, buffer: &Vertices, inputs: &[(u32, u32)]) {
        self.draw_from(mode, count, buffer, inputs.iter().copied());
    }

    /// The n-th attribute begins at the n-th of equal parts of the buffer, each with room for four
    /// floats per vertex.
    fn draw_from(
        &self,
        mode: u32,
        count: u32,
        buffer: &Vertices,
        inputs: impl Iterator<Item = (u32, u32)> + Clone,
    ) {
        assert!(count <= buffer.capacity && inputs.clone().count() <= buffer.attributes, "a larger buffer");
        self.bind_buffer(gl::ARRAY_BUFFER, buffer.name);
        for (part, (location, floats)) in inputs.clone().enumerate() {
            assert!((1..=ATTRIBUTE_FLOATS).contains(&floats), "one to four floats");
            let at: Ptr = ptr::without_provenance_mut(part * buffer.part_bytes());
            // SAFETY: an offset into the bound buffer, which holds enough by the assertions.
            unsafe { real::glVertexAttribPointer(location, floats.cast_signed(), gl::FLOAT, 0, STRIDE, at) };
            self.enable_attribute(location);
        }
        // SAFETY: all vertices are in the bound buffer.
        unsafe { real::glDrawArrays(mode, 0, count.cast_signed()) };
        inputs.for_each(|(location, _)| self.disable_attribute(location));
    }
}
