//! A draw of a chosen length.

use crate::Problem;
use takt_gl_api::gl::TRIANGLE_STRIP;
use takt_gl_driver::{Gl, Vertices};

const VERTEX: &str = "attribute vec2 place; varying vec2 at;
void main() { at = place; gl_Position = vec4(place, 0.0, 1.0); }";

fn fragment(loops: u32) -> String {
    format!(
        "precision mediump float; varying vec2 at;
void main() {{
    float a = at.x;
    for (int i = 0; i < {loops}; i++) {{ a = sin(a * 0.9 + at.y) + 0.7; }}
    gl_FragColor = vec4(a);
}}"
    )
}

/// Fills the viewport by a shader that loops.
#[derive(Debug)]
pub(crate) struct Load {
    program: u32,
    corners: Vertices,
}

impl Load {
    /// The draw, ready to be made: its program is in use.
    pub(crate) fn new(gl: &Gl, loops: u32) -> Result<Self, Problem> {
        let program = gl.program(VERTEX, &fragment(loops), &["place"]);
        let program = program.map_err(|reason| Problem::Refused { what: "a long shader", reason })?;
        gl.use_program(program);
        let corners = [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]];
        let corners: Vec<f32> = corners.iter().flat_map(|[x, y]| [*x, *y, 0.0, 1.0]).collect();
        Ok(Self { program, corners: Vertices::new(gl, 1, &corners) })
    }

    pub(crate) fn draw(&self, gl: &Gl) {
        gl.draw(TRIANGLE_STRIP, 4, &self.corners, &[4]);
    }

    pub(crate) fn delete(self, gl: &Gl) {
        gl.delete_program(self.program);
        self.corners.delete(gl);
    }
}
