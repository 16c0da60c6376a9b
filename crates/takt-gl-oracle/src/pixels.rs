//! Fragments that a driver draws, counted by adding one to a pixel for each.

use takt_gl_api::gl;
use takt_gl_driver::Array;

use crate::driver::{Driver, RunError};

/// Where and how triangles are drawn.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Canvas {
    /// Width and height of the target.
    pub size: [u16; 2],
    /// `glViewport`: lower left corner, width and height.
    pub viewport: [i32; 4],
    /// `glScissor`, if the test is enabled.
    pub scissor: Option<[i32; 4]>,
    /// Whether back faces are culled.
    pub cull_back: bool,
    /// Whether there is a depth test, by `GL_LEQUAL`.
    pub depth_test: bool,
}

/// Colour of one fragment: one step of eight bits, which blending adds up exactly.
const FRAGMENT: &str = "precision highp float; void main() { gl_FragColor = vec4(1.0 / 255.0); }";
const VERTEX: &str = "attribute vec4 p; void main() { gl_Position = p; }";

impl Driver {
    /// How many fragments each pixel gets from triangles in clip coordinates, row by row from
    /// below; no more than 255 are told apart.
    ///
    /// # Errors
    ///
    /// If the driver reports an error.
    pub fn fragments(&self, canvas: &Canvas, triangles: &[[[f32; 4]; 3]]) -> Result<Vec<u8>, RunError> {
        let gl = &self.gl;
        let [width, height] = canvas.size.map(i32::from);
        let program = gl.program(VERTEX, FRAGMENT, &["p"]).map_err(RunError::Refused)?;
        let framebuffer = gl.new_framebuffer();
        gl.bind_framebuffer(gl::FRAMEBUFFER, framebuffer);
        let attachments = [(gl::COLOR_ATTACHMENT0, gl::RGBA8), (gl::DEPTH_ATTACHMENT, gl::DEPTH_COMPONENT24)];
        let buffers = attachments.map(|(point, format)| {
            let buffer = gl.new_renderbuffer();
            gl.bind_renderbuffer(gl::RENDERBUFFER, buffer);
            gl.renderbuffer_storage(gl::RENDERBUFFER, format, width, height);
            gl.attach_renderbuffer(gl::FRAMEBUFFER, point, gl::RENDERBUFFER, buffer);
            buffer
        });
        gl.disable(gl::RASTERIZER_DISCARD);
        gl.disable(gl::DITHER);
        gl.disable(gl::SCISSOR_TEST);
        gl.clear(gl::COLOR_BUFFER_BIT | gl::DEPTH_BUFFER_BIT);
        gl.enable(gl::BLEND);
        gl.blend_func(gl::ONE, gl::ONE);
        gl.depth_func(gl::LEQUAL);
        let [x, y, w, h] = canvas.viewport;
        gl.viewport(x, y, w, h);
        if let Some([x, y, w, h]) = canvas.scissor {
            gl.scissor(x, y, w, h);
        }
        let states = [
            (gl::SCISSOR_TEST, canvas.scissor.is_some()),
            (gl::CULL_FACE, canvas.cull_back),
            (gl::DEPTH_TEST, canvas.depth_test),
        ];
        for (state, on) in states {
            if on { gl.enable(state) } else { gl.disable(state) }
        }
        gl.use_program(program);
        let data = triangles.as_flattened().as_flattened();
        gl.draw_arrays(gl::TRIANGLES, 3 * triangles.len(), &[Array { location: 0, floats: 4, data }]);
        let [columns, rows] = canvas.size.map(u32::from);
        let mut pixels = vec![0; columns as usize * rows as usize * 4];
        gl.read_pixels(columns, rows, &mut pixels);
        let error = gl.error();
        states.iter().for_each(|(state, _)| gl.disable(*state));
        gl.enable(gl::RASTERIZER_DISCARD);
        buffers.into_iter().for_each(|buffer| gl.delete_renderbuffer(buffer));
        gl.delete_framebuffer(framebuffer);
        gl.delete_program(program);
        if error == 0 { Ok(pixels.into_iter().step_by(4).collect()) } else { Err(RunError::Gl(error)) }
    }
}
