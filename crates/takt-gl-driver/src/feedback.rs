//! Transform feedback of GL ES 3.0: what a vertex shader computes.

use takt_gl_api::entry::real;
use takt_gl_api::gl;

use crate::library::{Missing, load};
use crate::mesh::Array;
use crate::{Gl, gl::c_name, numbers};

/// A driver that records the output of vertex shaders.
#[derive(Clone, Copy, Debug)]
pub struct Feedback(());

numbers! { Feedback needs NEEDED { glTransformFeedbackVaryings, glMapBufferRange, glUnmapBuffer }
    bind_buffer_base = glBindBufferBase(target: u32, index: u32, buffer: u32);
    begin = glBeginTransformFeedback(mode: u32);
    end = glEndTransformFeedback();
}

impl Feedback {
    /// Finds the functions; a context of GL ES 3.0 must be current on this thread.
    ///
    /// # Errors
    ///
    /// If one is missing.
    pub fn load() -> Result<Self, Missing> {
        load(NEEDED)?;
        Ok(Self(()))
    }

    /// A program that records one of its outputs; the driver's words if it refuses.
    ///
    /// # Errors
    ///
    /// If the driver refuses it.
    pub fn program(&self, gl: &Gl, vertex: &str, fragment: &str, output: &str) -> Result<u32, String> {
        gl.link(vertex, fragment, |program| {
            let name = c_name(output);
            let mut pointer = name.as_ptr();
            let (names, mode) = ((&raw mut pointer).cast(), gl::INTERLEAVED_ATTRIBS);
            // SAFETY: one name that ends with a zero byte; GL copies it.
            unsafe { real::glTransformFeedbackVaryings(program, 1, names, mode) };
        })
    }

    /// Runs the program in use for points, and returns four recorded floats for each.
    pub fn run(&self, gl: &Gl, points: usize, arrays: &[Array<'_>]) -> Option<Vec<[f32; 4]>> {
        self.record(gl, gl::POINTS, points, || gl.draw_arrays(gl::POINTS, points, arrays))
    }

    /// Records what draws of the program in use compute, four floats for each vertex.
    pub fn record(&self, gl: &Gl, mode: u32, vertices: usize, draw: impl FnOnce()) -> Option<Vec<[f32; 4]>> {
        let output = gl.new_buffer();
        gl.fill(gl::TRANSFORM_FEEDBACK_BUFFER, output, &vec![[0.0_f32; 4]; vertices]);
        self.bind_buffer_base(gl::TRANSFORM_FEEDBACK_BUFFER, 0, output);
        self.begin(mode);
        draw();
        self.end();
        gl.finish();
        let recorded = copy(vertices);
        gl.delete_buffer(output);
        recorded
    }
}

/// What the bound buffer recorded.
fn copy(points: usize) -> Option<Vec<[f32; 4]>> {
    let bytes = isize::try_from(points * size_of::<[f32; 4]>()).ok()?;
    // SAFETY: the range lies within the buffer, or GL returns null.
    let mapped = unsafe { real::glMapBufferRange(gl::TRANSFORM_FEEDBACK_BUFFER, 0, bytes, gl::MAP_READ_BIT) };
    if mapped.is_null() {
        return None;
    }
    // SAFETY: GL maps so many readable bytes, aligned for any basic type, until they are unmapped
    // below; the slice ends before that.
    let copy = unsafe { std::slice::from_raw_parts(mapped.cast::<[f32; 4]>(), points) }.to_vec();
    // SAFETY: the buffer is bound and mapped.
    unsafe { real::glUnmapBuffer(gl::TRANSFORM_FEEDBACK_BUFFER) };
    Some(copy)
}
