//! Meshes on the GPU, and vertices from the program's own memory.

use std::ptr;

use takt_gl_api::entry::{Ptr, real};
use takt_gl_api::gl;

use crate::{Gl, length};

/// Vertices and indices of triangles in buffers of the GPU; attributes of floats lie side by side.
#[derive(Debug)]
pub struct Mesh {
    vertices: u32,
    indices: u32,
    /// Floats of each attribute; their sum is one vertex.
    layout: Vec<u32>,
    vertex_count: usize,
    index_count: usize,
}

impl Mesh {
    /// Uploads vertices, whose attributes have `layout` floats each, and indices of triangles.
    pub fn new(gl: &Gl, layout: &[u32], vertices: &[f32], indices: &[u16]) -> Self {
        let vertex_count = vertices.len() / layout.iter().sum::<u32>() as usize;
        assert_eq!(vertices.len() % layout.iter().sum::<u32>() as usize, 0, "whole vertices");
        assert!(indices.iter().all(|&index| usize::from(index) < vertex_count), "indices within the mesh");
        let mesh = Self {
            vertices: gl.new_buffer(),
            indices: gl.new_buffer(),
            layout: layout.to_vec(),
            vertex_count,
            index_count: indices.len(),
        };
        gl.fill(gl::ARRAY_BUFFER, mesh.vertices, vertices);
        gl.fill(gl::ELEMENT_ARRAY_BUFFER, mesh.indices, indices);
        gl.bind_buffer(gl::ARRAY_BUFFER, 0);
        gl.bind_buffer(gl::ELEMENT_ARRAY_BUFFER, 0);
        mesh
    }

    /// How many indices it has.
    pub const fn index_count(&self) -> usize {
        self.index_count
    }

    fn bound(&self, gl: &Gl, draw: impl FnOnce()) {
        gl.bind_buffer(gl::ARRAY_BUFFER, self.vertices);
        let stride = self.layout.iter().sum::<u32>().cast_signed() * 4;
        let mut offset = 0_usize;
        for (index, &floats) in (0..).zip(&self.layout) {
            let at: Ptr = ptr::without_provenance_mut(offset);
            // SAFETY: an offset into the bound buffer, whose vertices have this layout.
            unsafe { real::glVertexAttribPointer(index, floats.cast_signed(), gl::FLOAT, 0, stride, at) };
            gl.enable_attribute(index);
            offset += floats as usize * size_of::<f32>();
        }
        draw();
        (0..).zip(&self.layout).for_each(|(index, _)| gl.disable_attribute(index));
        gl.bind_buffer(gl::ARRAY_BUFFER, 0);
    }
}

/// An attribute of vertices in the program's memory.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a> {
    /// Where the program has it.
    pub location: u32,
    /// Floats per vertex.
    pub floats: u32,
    /// The floats of all vertices.
    pub data: &'a [f32],
}

impl Gl {
    /// Draws the triangles of a mesh with the program in use.
    pub fn draw_mesh(&self, mesh: &Mesh) {
        mesh.bound(self, || {
            self.bind_buffer(gl::ELEMENT_ARRAY_BUFFER, mesh.indices);
            let count = length(mesh.index_count);
            // SAFETY: all indices are in the bound buffer, and within the vertices, as `Mesh::new` checked.
            unsafe { real::glDrawElements(gl::TRIANGLES, count, gl::UNSIGNED_SHORT, ptr::null_mut()) };
            self.bind_buffer(gl::ELEMENT_ARRAY_BUFFER, 0);
        });
    }

    /// Draws the vertices of a mesh in their order, without its indices.
    pub fn draw_vertices(&self, mode: u32, mesh: &Mesh) {
        // SAFETY: all vertices are in the bound buffer.
        mesh.bound(self, || unsafe { real::glDrawArrays(mode, 0, length(mesh.vertex_count)) });
    }

    /// Draws some vertices of a mesh in their order, without its indices.
    pub fn draw_range(&self, mode: u32, mesh: &Mesh, first: usize, count: usize) {
        assert!(first + count <= mesh.vertex_count, "a mesh of so many vertices");
        // SAFETY: all vertices are in the bound buffer.
        mesh.bound(self, || unsafe { real::glDrawArrays(mode, length(first), length(count)) });
    }

    /// Draws `count` vertices from the program's own memory.
    pub fn draw_arrays(&self, mode: u32, count: usize, arrays: &[Array<'_>]) {
        self.bind_buffer(gl::ARRAY_BUFFER, 0);
        for Array { location, floats, data } in arrays {
            assert!(data.len() >= count * *floats as usize, "an array is too short for {count} vertices");
            let (floats, data) = (floats.cast_signed(), data.as_ptr().cast_mut().cast());
            // SAFETY: GL keeps the pointer until the array is disabled, below, and the slice
            // outlives this call; it is long enough by the assertion.
            unsafe { real::glVertexAttribPointer(*location, floats, gl::FLOAT, 0, 0, data) };
            self.enable_attribute(*location);
        }
        // SAFETY: GL has read all arrays when the call returns.
        unsafe { real::glDrawArrays(mode, 0, length(count)) };
        arrays.iter().for_each(|array| self.disable_attribute(array.location));
    }
}
