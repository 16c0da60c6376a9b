//! Floods without fragments: long vertex shaders, compute shaders, and transform feedback.

use anyhow::{Context as _, anyhow};
use takt_gl_api::gl::{POINTS, RASTERIZER_DISCARD, TRANSFORM_FEEDBACK_BUFFER};
use takt_gl_driver::{Compute, Feedback, Gl};

use super::Load;

/// Vertices of a draw, and invocations of a dispatch, at least.
const ITEMS: u32 = 65_536;
/// Invocations of a workgroup.
const GROUP: u32 = 64;

/// How work is spread over items.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spread {
    /// More work is more items, as in most programs: an item loops no more often than this.
    Wide,
    /// More work is longer items, however long they get: a GPU runs all of them at once, so that no part
    /// of the work takes less time than all of it.
    Narrow,
}

impl Spread {
    /// How many times `ITEMS` items there are, and how often each of them loops, for so many loops.
    fn over(self, loops: u32) -> (u32, u32) {
        let layers = match self {
            Self::Wide => loops.div_ceil(LOOPS_EACH).max(1),
            Self::Narrow => 1,
        };
        (layers, loops.div_ceil(layers))
    }
}

/// An item of wide work loops this often at most: about a tenth of a millisecond on a large GPU.
const LOOPS_EACH: u32 = 4096;

/// What each item does, as part of a shader: each step needs the one before, so no driver can shorten it.
fn spin(loops: u32) -> String {
    format!("for (int i = 0; i < {loops}; i++) {{ a = sin(a * 0.9 + x) + 0.7 * sin(a - x * 1.3); }}")
}

fn vertex(loops: u32) -> String {
    let spin = spin(loops);
    format!(
        "\
#version 300 es
uniform float time;
out vec4 made;
void main() {{
    float x = float(gl_VertexID) * 0.001;
    float a = time;
    {spin}
    made = vec4(a, x, a * x, 1.0);
    gl_PointSize = 1.0;
    gl_Position = vec4(fract(x) * 2.0 - 1.0, a * 0.5, 0.0, 1.0);
}}
"
    )
}

const FRAGMENT: &str = "\
#version 300 es
precision mediump float;
in vec4 made;
out vec4 colour;
void main() {
    colour = 0.5 + 0.5 * made;
}
";

/// Points with a long vertex shader.
pub(super) struct Vertices {
    spread: Spread,
    layers: u32,
    program: u32,
    time: i32,
}

impl Vertices {
    pub(super) fn new(spread: Spread) -> Self {
        Self { spread, layers: 1, program: 0, time: 0 }
    }
}

impl Load for Vertices {
    fn prepare(&mut self, gl: &Gl, loops: u32) -> anyhow::Result<()> {
        gl.delete_program(self.program);
        let (layers, loops) = self.spread.over(loops);
        self.layers = layers;
        let made = gl.program(&vertex(loops), FRAGMENT, &[]);
        self.program = made.map_err(|log| anyhow!("this needs GL ES 3.0: {log}"))?;
        self.time = gl.uniform(self.program, "time");
        Ok(())
    }

    fn once(&self, gl: &Gl, time: f32) {
        gl.use_program(self.program);
        gl.set_float(self.time, time);
        gl.draw_arrays(POINTS, (ITEMS * self.layers) as usize, &[]);
    }
}

/// The same, recorded and not seen.
pub(super) struct Recorded {
    feedback: Feedback,
    spread: Spread,
    /// What `buffer` has room for.
    layers: u32,
    buffer: u32,
    program: u32,
    time: i32,
}

impl Recorded {
    pub(super) fn new(gl: &Gl, spread: Spread) -> anyhow::Result<Self> {
        let feedback = Feedback::load().context("transform feedback needs GL ES 3.0")?;
        Ok(Self { feedback, spread, layers: 0, buffer: gl.new_buffer(), program: 0, time: 0 })
    }

    fn make_room(&mut self, gl: &Gl, layers: u32) {
        if self.layers != layers {
            gl.fill_buffer(self.buffer, &vec![0.0; (ITEMS * layers) as usize * 4]);
            self.feedback.bind_buffer_base(TRANSFORM_FEEDBACK_BUFFER, 0, self.buffer);
            self.layers = layers;
        }
    }
}

impl Load for Recorded {
    fn prepare(&mut self, gl: &Gl, loops: u32) -> anyhow::Result<()> {
        gl.delete_program(self.program);
        let (layers, loops) = self.spread.over(loops);
        self.make_room(gl, layers);
        let made = self.feedback.program(gl, &vertex(loops), FRAGMENT, "made");
        self.program = made.map_err(|log| anyhow!("this needs GL ES 3.0: {log}"))?;
        self.time = gl.uniform(self.program, "time");
        Ok(())
    }

    fn once(&self, gl: &Gl, time: f32) {
        gl.use_program(self.program);
        gl.set_float(self.time, time);
        gl.enable(RASTERIZER_DISCARD);
        self.feedback.begin(POINTS);
        gl.draw_arrays(POINTS, (ITEMS * self.layers) as usize, &[]);
        self.feedback.end();
        gl.disable(RASTERIZER_DISCARD);
    }
}

/// Dispatches of a long compute shader.
pub(super) struct Dispatches {
    compute: Compute,
    spread: Spread,
    layers: u32,
    program: u32,
    time: i32,
}

impl Dispatches {
    pub(super) fn new(gl: &Gl, spread: Spread) -> anyhow::Result<Self> {
        let compute = Compute::load().context("compute shaders need GL ES 3.1")?;
        compute.storage(gl, 0, ITEMS as usize);
        Ok(Self { compute, spread, layers: 1, program: 0, time: 0 })
    }
}

impl Load for Dispatches {
    fn prepare(&mut self, gl: &Gl, loops: u32) -> anyhow::Result<()> {
        gl.delete_program(self.program);
        let (layers, loops) = self.spread.over(loops);
        self.layers = layers;
        let spin = spin(loops);
        let source = format!(
            "\
#version 310 es
layout(local_size_x = {GROUP}) in;
layout(std430, binding = 0) buffer Made {{ float made[]; }};
uniform highp float time;
void main() {{
    highp float x = float(gl_GlobalInvocationID.x) * 0.001;
    highp float a = time;
    {spin}
    made[gl_GlobalInvocationID.x] = a;
}}
"
        );
        let made = self.compute.program(gl, &source);
        self.program = made.map_err(|log| anyhow!("this needs GL ES 3.1: {log}"))?;
        self.time = gl.uniform(self.program, "time");
        Ok(())
    }

    fn once(&self, gl: &Gl, time: f32) {
        gl.use_program(self.program);
        gl.set_float(self.time, time);
        self.compute.dispatch(ITEMS / GROUP, self.layers, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_work_has_more_items_and_narrow_work_longer_ones() {
        for (loops, layers, each) in [(1, 1, 1), (4096, 1, 4096), (4097, 2, 2049), (1_000_000, 245, 4082)] {
            assert_eq!(Spread::Wide.over(loops), (layers, each));
            assert_eq!(Spread::Narrow.over(loops), (1, loops));
        }
    }
}
