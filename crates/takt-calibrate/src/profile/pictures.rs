//! Small programs and shapes that experiments draw.

use crate::Problem;
use crate::bench::Bench;
use takt_gl_api::gl::{TEXTURE_2D, TRIANGLE_STRIP, TRIANGLES};
use takt_gl_driver::{Gl, Vertices};

const VERTEX: &str = "attribute vec4 place; varying vec2 at;
void main() { at = place.xy * 0.5 + 0.5; gl_Position = place; }";
const PLAIN: &str = "precision mediump float; varying vec2 at;
void main() { gl_FragColor = vec4(at, 0.5, 0.5); }";
const TEXTURED: &str = "precision mediump float; varying vec2 at; uniform sampler2D picture;
void main() { gl_FragColor = texture2D(picture, at); }";

/// A rectangle that fills the viewport, and a triangle without fragments.
pub(super) struct Pictures {
    plain: u32,
    textured: u32,
    rectangle: Vertices,
    nothing: Vertices,
}

impl Pictures {
    pub(super) fn new(bench: &Bench) -> Result<Self, Problem> {
        let program = |fragment| {
            bench
                .gl
                .program(VERTEX, fragment, &["place"])
                .map_err(|reason| Problem::Refused { what: "a simple shader", reason })
        };
        let corners = [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]];
        let corners: Vec<f32> = corners.iter().flat_map(|[x, y]| [*x, *y, 0.0, 1.0]).collect();
        Ok(Self {
            plain: program(PLAIN)?,
            textured: program(TEXTURED)?,
            rectangle: Vertices::new(&bench.gl, 1, &corners),
            nothing: Vertices::new(&bench.gl, 1, &[0.0, 0.0, 0.0, 1.0].repeat(3)),
        })
    }

    /// Prepares triangles without fragments; see [`Self::draw_nothing`].
    pub(super) fn use_plain(&self, gl: &Gl) {
        gl.use_program(self.plain);
    }

    pub(super) fn draw_nothing(&self, gl: &Gl) {
        gl.draw(TRIANGLES, 3, &self.nothing, &[4]);
    }

    /// Fills the viewport with a gradient, if the plain program is in use.
    pub(super) fn fill(&self, gl: &Gl) {
        gl.draw(TRIANGLE_STRIP, 4, &self.rectangle, &[4]);
    }

    /// One pixel that depends on a texture, so that the driver must have it ready.
    pub(super) fn touch(&self, gl: &Gl, texture: u32) {
        gl.bind_texture(TEXTURE_2D, texture);
        gl.use_program(self.textured);
        gl.viewport(0, 0, 1, 1);
        self.fill(gl);
    }

    pub(super) fn delete(self, gl: &Gl) {
        gl.delete_program(self.plain);
        gl.delete_program(self.textured);
        self.rectangle.delete(gl);
        self.nothing.delete(gl);
    }
}
