//! A load of chosen length.

use std::process::ExitCode;

use clap::Parser;
use clap::builder::RangedU64ValueParser as Range;
use serde_json::Value;

use crate::gfx;
use crate::load;
use crate::options::{Options, Size};
use crate::run::{self, App, Defaults, Frame};
use crate::sys::gl::{Gl, Mesh, TRIANGLES};

/// A flood of draws, each as long as you like: what a broken or hostile app does to a GPU
///
/// Each draw covers the surface with a shader that loops. How often it must loop for --draw-ms is
/// found at start by timing draws with glFinish, so start it alone, or fix --iterations to have the
/// same work, and the same pixels, in every run. Without --primitives a draw is one triangle with a
/// long shader, which only the scissor can cut; with it, a draw has many small triangles, which
/// can also be cut into ranges.
#[derive(Debug, Parser)]
#[command(name = "takt-flood", version)]
struct Args {
    /// Length of a draw on the GPU, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 50.0, value_parser = load::length_ms)]
    draw_ms: f64,
    /// Loops of the shader; skips the calibration
    #[arg(long, value_name = "N", value_parser = Range::<u32>::new().range(1..=u64::from(load::LOOPS_MAX)))]
    iterations: Option<u32>,
    /// Draws per frame, each flushed to the driver on its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = Range::<u32>::new().range(1..=10_000))]
    draws: u32,
    /// Triangles per draw, side by side, instead of one large triangle
    #[arg(long, value_name = "N", conflicts_with = "long_shader", value_parser = primitives())]
    primitives: Option<u32>,
    /// One triangle with a long shader per draw; this is the default
    #[arg(long)]
    long_shader: bool,
    #[command(flatten)]
    options: Options,
}

fn primitives() -> Range<u32> {
    Range::new().range(2..=1_000_000)
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let args = Args::parse();
    let defaults = Defaults { name: "flood", size: Size(800, 480), fps: 0.0 };
    run::run(&defaults, &args.options, &|gl, size| Ok(Box::new(Flood::new(gl, &args, size)?)))
}

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

struct Flood {
    program: u32,
    time: i32,
    mesh: Mesh,
    draws: u32,
    primitives: u32,
    iterations: u32,
    /// What the calibration measured for the chosen number of loops.
    measured_ms: Option<f64>,
}

impl Flood {
    fn new(gl: &Gl, args: &Args, size: (u32, u32)) -> anyhow::Result<Self> {
        let primitives = args.primitives.unwrap_or(1);
        let mesh = gl.mesh(&[2], &triangles(primitives), &[]);
        let iterations = args.iterations.unwrap_or(1);
        let mut flood =
            Self { program: 0, time: 0, mesh, draws: args.draws, primitives, iterations, measured_ms: None };
        flood.compile(gl, iterations)?;
        if args.iterations.is_none() {
            flood.calibrate(gl, args.draw_ms, size)?;
        }
        Ok(flood)
    }

    fn compile(&mut self, gl: &Gl, iterations: u32) -> anyhow::Result<()> {
        gl.delete_program(self.program);
        self.program = gfx::program(gl, VERTEX, &fragment(iterations), &["position"])?;
        self.time = gl.uniform(self.program, "time");
        self.iterations = iterations;
        Ok(())
    }

    fn calibrate(&mut self, gl: &Gl, wanted_ms: f64, size: (u32, u32)) -> anyhow::Result<()> {
        viewport(gl, size);
        let found = load::find(wanted_ms, load::LOOPS_MAX, |loops| {
            self.compile(gl, loops)?;
            Ok(self.measure(gl))
        })?;
        self.compile(gl, found.loops)?;
        // Drivers compile at the first draw; that must not count as the first frame.
        self.measure(gl);
        self.measured_ms = Some(found.ms);
        Ok(())
    }

    fn measure(&self, gl: &Gl) -> f64 {
        load::shortest_ms(gl, || self.draw_once(gl, 0.0))
    }

    fn draw_once(&self, gl: &Gl, time: f32) {
        gl.use_program(self.program);
        gl.set_float(self.time, time);
        gl.draw_vertices(TRIANGLES, &self.mesh);
    }
}

fn viewport(gl: &Gl, (width, height): (u32, u32)) {
    gl.viewport(0, 0, i32::try_from(width).unwrap_or(0), i32::try_from(height).unwrap_or(0));
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

impl App for Flood {
    fn draw(&mut self, gl: &Gl, frame: &Frame) {
        viewport(gl, frame.size);
        for draw in 0..self.draws {
            if draw > 0 {
                gl.flush();
            }
            #[expect(clippy::cast_possible_truncation, reason = "pictures need no more")]
            self.draw_once(gl, frame.time.rem_euclid(1000.0) as f32);
        }
    }

    fn facts(&self) -> Vec<(&'static str, Value)> {
        let mut facts = vec![
            ("draws", self.draws.into()),
            ("primitives", self.primitives.into()),
            ("iterations", self.iterations.into()),
        ];
        facts.extend(self.measured_ms.map(|ms| ("calibrated_ms", ms.into())));
        facts
    }
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
