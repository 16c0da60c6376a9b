//! Compute shaders of GL ES 3.1, and copies between framebuffers of GL ES 3.0.

use takt_gl_api::entry::{Id, real};
use takt_gl_api::gl;

use crate::library::{Missing, load};
use crate::{Gl, numbers};

/// A driver with compute shaders.
#[derive(Clone, Copy, Debug)]
pub struct Compute(());

numbers! { Compute needs COMPUTE {}
    bind_buffer_base = glBindBufferBase(target: u32, index: u32, buffer: u32);
    dispatch = glDispatchCompute(x: u32, y: u32, z: u32);
    memory_barrier = glMemoryBarrier(barriers: u32);
}

impl Compute {
    /// Finds the functions; a context of GL ES 3.1 must be current on this thread.
    ///
    /// # Errors
    ///
    /// If one is missing.
    pub fn load() -> Result<Self, Missing> {
        load(COMPUTE)?;
        Ok(Self(()))
    }

    /// A program of a compute shader; the driver's words if it refuses.
    ///
    /// # Errors
    ///
    /// If the driver refuses it.
    pub fn program(&self, gl: &Gl, source: &str) -> Result<u32, String> {
        gl.link_stages(&[(gl::COMPUTE_SHADER, source)], |_program| {})
    }

    /// A buffer of so many words at a point that shaders write to.
    pub fn storage(&self, gl: &Gl, point: u32, words: usize) -> u32 {
        let buffer = gl.new_buffer();
        gl.fill(gl::SHADER_STORAGE_BUFFER, buffer, &vec![0_u32; words]);
        self.bind_buffer_base(gl::SHADER_STORAGE_BUFFER, point, buffer);
        buffer
    }
}

/// A driver that copies between framebuffers.
#[derive(Clone, Copy, Debug)]
pub struct Blit(());

impl Blit {
    /// Finds the function; a context of GL ES 3.0 must be current on this thread.
    ///
    /// # Errors
    ///
    /// If it is missing.
    pub fn load() -> Result<Self, Missing> {
        load(&[Id::glBlitFramebuffer])?;
        Ok(Self(()))
    }

    /// Copies colours of a square from the framebuffer that is read to the one that is drawn to.
    pub fn square(&self, side: u32) {
        let side = side.cast_signed();
        let (colour, nearest) = (gl::COLOR_BUFFER_BIT, gl::NEAREST);
        // SAFETY: plain numbers, which GL checks; that the function is there was checked when this was made.
        unsafe { real::glBlitFramebuffer(0, 0, side, side, 0, 0, side, side, colour, nearest) };
    }
}
