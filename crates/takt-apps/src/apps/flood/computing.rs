//! Floods without fragments: long vertex shaders, compute shaders, and transform feedback.

use anyhow::{Context as _, anyhow};
use takt_gl_api::gl::{POINTS, RASTERIZER_DISCARD, TRANSFORM_FEEDBACK_BUFFER};
use takt_gl_driver::{Compute, Feedback, Gl};

use super::Load;

/// Vertices of a draw, and invocations of a dispatch.
const ITEMS: u32 = 65_536;
/// Invocations of a workgroup.
const GROUP: u32 = 64;

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
    program: u32,
    time: i32,
}

impl Vertices {
    pub(super) fn new() -> Self {
        Self { program: 0, time: 0 }
    }
}

impl Load for Vertices {
    fn prepare(&mut self, gl: &Gl, loops: u32) -> anyhow::Result<()> {
        gl.delete_program(self.program);
        let made = gl.program(&vertex(loops), FRAGMENT, &[]);
        self.program = made.map_err(|log| anyhow!("this needs GL ES 3.0: {log}"))?;
        self.time = gl.uniform(self.program, "time");
        Ok(())
    }

    fn once(&self, gl: &Gl, time: f32) {
        gl.use_program(self.program);
        gl.set_float(self.time, time);
        gl.draw_arrays(POINTS, ITEMS as usize, &[]);
    }
}

/// The same, recorded and not seen.
pub(super) struct Recorded {
    feedback: Feedback,
    program: u32,
    time: i32,
}

impl Recorded {
    pub(super) fn new(gl: &Gl) -> anyhow::Result<Self> {
        let feedback = Feedback::load().context("transform feedback needs GL ES 3.0")?;
        let buffer = gl.new_buffer();
        gl.fill_buffer(buffer, &vec![0.0; ITEMS as usize * 4]);
        feedback.bind_buffer_base(TRANSFORM_FEEDBACK_BUFFER, 0, buffer);
        Ok(Self { feedback, program: 0, time: 0 })
    }
}

impl Load for Recorded {
    fn prepare(&mut self, gl: &Gl, loops: u32) -> anyhow::Result<()> {
        gl.delete_program(self.program);
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
        gl.draw_arrays(POINTS, ITEMS as usize, &[]);
        self.feedback.end();
        gl.disable(RASTERIZER_DISCARD);
    }
}

/// Dispatches of a long compute shader.
pub(super) struct Dispatches {
    compute: Compute,
    program: u32,
    time: i32,
}

impl Dispatches {
    pub(super) fn new(gl: &Gl) -> anyhow::Result<Self> {
        let compute = Compute::load().context("compute shaders need GL ES 3.1")?;
        compute.storage(gl, 0, ITEMS as usize);
        Ok(Self { compute, program: 0, time: 0 })
    }
}

impl Load for Dispatches {
    fn prepare(&mut self, gl: &Gl, loops: u32) -> anyhow::Result<()> {
        gl.delete_program(self.program);
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
        self.compute.dispatch(ITEMS / GROUP, 1, 1);
    }
}
