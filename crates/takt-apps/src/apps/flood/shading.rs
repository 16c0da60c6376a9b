//! Floods of draws: long fragment shaders, many small draws, and draws to a texture.

use takt_gl_api::gl::{FRAMEBUFFER, TEXTURE_2D, TRIANGLES};
use takt_gl_driver::{Gl, Mesh};

use super::{Load, viewport};
use crate::gfx;

const VERTEX: &str = "\
attribute vec2 position;
varying vec2 at;
void main() {
    at = position;
    gl_Position = vec4(position, 0.0, 1.0);
}
";

/// Each step needs the one before, so no driver can shorten the loop; GLSL ES 1.00 wants the number
/// of steps in the source.
fn fragment(iterations: u32) -> String {
    format!(
        "\
#ifdef GL_FRAGMENT_PRECISION_HIGH
precision highp float;
#else
precision mediump float;
#endif
uniform float time;
varying vec2 at;
void main() {{
    vec2 p = at * 2.0;
    float a = time;
    for (int i = 0; i < {iterations}; i++) {{
        a = sin(a * 0.9 + p.x) + 0.7 * sin(a - p.y * 1.3);
    }}
    gl_FragColor = vec4(0.5 + 0.5 * sin(a + vec3(0.0, 1.2, 2.4)), 1.0);
}}
"
    )
}

/// One draw with a long fragment shader, or with many triangles.
pub(super) struct Fragments {
    program: u32,
    time: i32,
    mesh: Mesh,
}

impl Fragments {
    pub(super) fn new(gl: &Gl, primitives: u32) -> Self {
        Self { program: 0, time: 0, mesh: Mesh::new(gl, &[2], &triangles(primitives), &[]) }
    }
}

impl Load for Fragments {
    fn prepare(&mut self, gl: &Gl, loops: u32) -> anyhow::Result<()> {
        gl.delete_program(self.program);
        self.program = gfx::program(gl, VERTEX, &fragment(loops), &["position"])?;
        self.time = gl.uniform(self.program, "time");
        Ok(())
    }

    fn once(&self, gl: &Gl, time: f32) {
        gl.use_program(self.program);
        gl.set_float(self.time, time);
        gl.draw_vertices(TRIANGLES, &self.mesh);
    }
}

/// Loops of the shader of each of many draws.
const MANY_LOOPS: u32 = 4;

/// Many draws, each of them short.
pub(super) struct ManyDraws {
    draw: Fragments,
    count: u32,
}

impl ManyDraws {
    pub(super) fn new(gl: &Gl) -> anyhow::Result<Self> {
        let mut draw = Fragments::new(gl, 1);
        draw.prepare(gl, MANY_LOOPS)?;
        Ok(Self { draw, count: 1 })
    }
}

impl Load for ManyDraws {
    fn prepare(&mut self, _gl: &Gl, loops: u32) -> anyhow::Result<()> {
        self.count = loops;
        Ok(())
    }

    fn once(&self, gl: &Gl, time: f32) {
        (0..self.count).for_each(|draw| self.draw.once(gl, time + draw as f32 * 0.01));
    }
}

const SHOWN: &str = "\
precision mediump float;
uniform sampler2D picture;
varying vec2 at;
void main() {
    gl_FragColor = texture2D(picture, at * 0.5 + 0.5);
}
";

/// A long draw to a texture, which a short one shows.
pub(super) struct ToTexture {
    draw: Fragments,
    shown: u32,
    texture: u32,
    target: u32,
    size: (u32, u32),
}

impl ToTexture {
    pub(super) fn new(gl: &Gl, size: (u32, u32)) -> anyhow::Result<Self> {
        let shown = gfx::program(gl, VERTEX, SHOWN, &["position"])?;
        let (texture, target) = (gl.new_texture(), gl.new_framebuffer());
        gl.bind_texture(TEXTURE_2D, texture);
        gl.upload(size.0, size.1, None);
        gl.linear_lookup(false);
        gl.bind_framebuffer(FRAMEBUFFER, target);
        let complete = gl.render_to_texture(texture);
        gl.bind_framebuffer(FRAMEBUFFER, 0);
        anyhow::ensure!(complete, "the driver cannot draw to a texture of {} x {}", size.0, size.1);
        Ok(Self { draw: Fragments::new(gl, 1), shown, texture, target, size })
    }
}

impl Load for ToTexture {
    fn prepare(&mut self, gl: &Gl, loops: u32) -> anyhow::Result<()> {
        self.draw.prepare(gl, loops)
    }

    fn once(&self, gl: &Gl, time: f32) {
        gl.bind_framebuffer(FRAMEBUFFER, self.target);
        viewport(gl, self.size);
        self.draw.once(gl, time);
        gl.bind_framebuffer(FRAMEBUFFER, 0);
        gl.bind_texture(TEXTURE_2D, self.texture);
        gl.use_program(self.shown);
        gl.draw_vertices(TRIANGLES, &self.draw.mesh);
    }
}

/// Triangles that cover the surface: a large one, or pairs side by side.
fn triangles(count: u32) -> Vec<f32> {
    if count < 2 {
        return vec![-1.0, -1.0, 3.0, -1.0, -1.0, 3.0];
    }
    let cells = count.div_ceil(2);
    let columns = (1..=cells).find(|columns| columns * columns >= cells).unwrap_or(1);
    let rows = cells.div_ceil(columns);
    let mut vertices = Vec::new();
    for cell in 0..cells {
        // The last row may have fewer cells, which are wider then.
        let row = cell / columns;
        let in_row = columns.min(cells - row * columns);
        let edge = |at: u32, of: u32| at as f32 / of as f32 * 2.0 - 1.0;
        let column = cell % columns;
        let (left, right) = (edge(column, in_row), edge(column + 1, in_row));
        let (low, high) = (edge(row, rows), edge(row + 1, rows));
        vertices.extend([left, low, right, low, left, high, left, high, right, low, right, high]);
    }
    vertices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triangles_cover_the_surface_once() {
        for count in [1, 2, 3, 7, 100, 999] {
            let vertices = triangles(count);
            let area: f32 = vertices
                .as_chunks::<6>()
                .0
                .iter()
                .map(|t| ((t[2] - t[0]) * (t[5] - t[1]) - (t[4] - t[0]) * (t[3] - t[1])) / 2.0)
                .sum();
            let wanted = if count == 1 { 8.0 } else { 4.0 };
            assert!((area - wanted).abs() < 1e-3, "{count}: {area}");
            assert!(vertices.len() / 6 >= usize::try_from(count).unwrap());
        }
    }
}
