//! Fragments that a driver draws, counted by adding one to a pixel for each.

use crate::driver::{
    ARRAY_BUFFER, COLOR_ATTACHMENT0, Driver, FRAMEBUFFER, RASTERIZER_DISCARD, RENDERBUFFER, RGBA8, RunError,
};

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
const BLEND: u32 = 0x0BE2;
const SCISSOR_TEST: u32 = 0x0C11;
const DEPTH_TEST: u32 = 0x0B71;
const CULL_FACE: u32 = 0x0B44;
const DITHER: u32 = 0x0BD0;
const ONE: u32 = 1;
const LEQUAL: u32 = 0x0203;
const DEPTH_ATTACHMENT: u32 = 0x8D00;
const DEPTH_COMPONENT24: u32 = 0x81A6;
const COLOR_AND_DEPTH: u32 = 0x4000 | 0x0100;
const TRIANGLES: u32 = 4;

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
        let program = self.link(VERTEX, FRAGMENT)?;
        let framebuffer = gl.new_framebuffer();
        gl.bind_framebuffer(FRAMEBUFFER, framebuffer);
        let attachments = [(COLOR_ATTACHMENT0, RGBA8), (DEPTH_ATTACHMENT, DEPTH_COMPONENT24)];
        let buffers = attachments.map(|(point, format)| {
            let buffer = gl.new_renderbuffer();
            gl.bind_renderbuffer(RENDERBUFFER, buffer);
            gl.renderbuffer_storage(RENDERBUFFER, format, width, height);
            gl.attach_renderbuffer(FRAMEBUFFER, point, RENDERBUFFER, buffer);
            buffer
        });
        gl.disable(RASTERIZER_DISCARD);
        gl.disable(DITHER);
        gl.disable(SCISSOR_TEST);
        gl.clear(COLOR_AND_DEPTH);
        gl.enable(BLEND);
        gl.blend(ONE, ONE);
        gl.depth(LEQUAL);
        let [x, y, w, h] = canvas.viewport;
        gl.viewport(x, y, w, h);
        if let Some([x, y, w, h]) = canvas.scissor {
            gl.scissor(x, y, w, h);
        }
        let states = [
            (SCISSOR_TEST, canvas.scissor.is_some()),
            (CULL_FACE, canvas.cull_back),
            (DEPTH_TEST, canvas.depth_test),
        ];
        for (state, on) in states {
            if on { gl.enable(state) } else { gl.disable(state) }
        }
        gl.use_program(program);
        self.draw_triangles(program, triangles);
        let pixels = gl.pixels(canvas.size[0], canvas.size[1]);
        let error = gl.error();
        states.iter().for_each(|(state, _)| gl.disable(*state));
        gl.enable(RASTERIZER_DISCARD);
        buffers.into_iter().for_each(|buffer| gl.delete_renderbuffer(buffer));
        gl.delete_framebuffer(framebuffer);
        gl.delete_program(program);
        if error == 0 {
            Ok(pixels.into_iter().map(|[red, ..]| red).collect())
        } else {
            Err(RunError::Gl(error))
        }
    }

    fn draw_triangles(&self, program: u32, triangles: &[[[f32; 4]; 3]]) {
        let gl = &self.gl;
        let Some(index) = gl.attribute(program, "p") else { return };
        let buffer = gl.new_buffer();
        gl.bind_buffer(ARRAY_BUFFER, buffer);
        gl.fill(ARRAY_BUFFER, triangles.as_flattened().as_flattened());
        gl.point_attribute(index, 4);
        gl.enable_attribute(index);
        gl.draw_arrays(TRIANGLES, 0, i32::try_from(3 * triangles.len()).unwrap_or(0));
        gl.disable_attribute(index);
        gl.delete_buffer(buffer);
    }
}
