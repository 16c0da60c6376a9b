//! A load of chosen length.

use std::process::ExitCode;

use anyhow::bail;
use clap::Parser;
use clap::builder::RangedU64ValueParser as Range;
use serde_json::Value;

use crate::gfx;
use crate::options::{Options, Size};
use crate::run::{self, App, Defaults, Frame};
use crate::sys::clock::now_ns;
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
    #[arg(long, value_name = "MS", default_value_t = 50.0, value_parser = length_ms)]
    draw_ms: f64,
    /// Loops of the shader; skips the calibration
    #[arg(long, value_name = "N", value_parser = Range::<u32>::new().range(1..=ITERATIONS_MAX))]
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

/// More loops than this take seconds even on large GPUs.
const ITERATIONS_MAX: u64 = 1 << 24;

fn primitives() -> Range<u32> {
    Range::new().range(2..=1_000_000)
}

fn length_ms(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|length| (0.01..=60_000.0).contains(length));
    number.ok_or_else(|| "a number of milliseconds from 0.01 to 60000 is wanted".to_owned())
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

    /// Finds the number of loops for a length by trying: first in large steps, then by proportion.
    fn calibrate(&mut self, gl: &Gl, wanted_ms: f64, size: (u32, u32)) -> anyhow::Result<()> {
        viewport(gl, size);
        let mut best: Option<(f64, u32, f64)> = None;
        for _ in 0..ROUNDS_MAX {
            let found_ms = self.measure(gl);
            let error = (found_ms / wanted_ms - 1.0).abs();
            if best.is_none_or(|best| error < best.0) {
                best = Some((error, self.iterations, found_ms));
            }
            let next = next_guess(self.iterations, found_ms, wanted_ms);
            if error < CLOSE_ENOUGH || next == self.iterations {
                break;
            }
            self.compile(gl, next)?;
        }
        let Some((error, iterations, found_ms)) = best else { return Ok(()) };
        if error > TOO_FAR {
            bail!(
                "cannot make draws of {wanted_ms} ms: {iterations} loops take {found_ms:.3} ms; \
                 choose another --size, or --iterations"
            );
        }
        self.compile(gl, iterations)?;
        // Drivers compile at the first draw; that must not count as the first frame.
        self.measure(gl);
        self.measured_ms = Some(found_ms);
        Ok(())
    }

    /// The shortest of some draws: others may have taken the GPU during the rest.
    fn measure(&self, gl: &Gl) -> f64 {
        self.draw_once(gl, 0.0);
        gl.finish();
        let mut shortest_ns = u64::MAX;
        for _ in 0..TRIES {
            let start = now_ns();
            self.draw_once(gl, 0.0);
            gl.finish();
            shortest_ns = shortest_ns.min(now_ns() - start);
        }
        shortest_ns as f64 / 1e6
    }

    fn draw_once(&self, gl: &Gl, time: f32) {
        gl.use_program(self.program);
        gl.set_float(self.time, time);
        gl.draw_vertices(TRIANGLES, &self.mesh);
    }
}

/// Tries of a calibration.
const ROUNDS_MAX: usize = 12;
const TRIES: usize = 3;
/// A calibration ends at this error.
const CLOSE_ENOUGH: f64 = 0.02;
/// A calibration fails above this error.
const TOO_FAR: f64 = 0.5;
/// The largest step while the length is still far off, where start-up costs dominate.
const STEP_MAX: f64 = 8.0;

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn next_guess(iterations: u32, found_ms: f64, wanted_ms: f64) -> u32 {
    let factor = (wanted_ms / found_ms.max(1e-6)).clamp(1.0 / STEP_MAX, STEP_MAX);
    (f64::from(iterations) * factor).round().clamp(1.0, ITERATIONS_MAX as f64) as u32
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

    #[test]
    fn guesses_converge_on_a_line_with_an_offset() {
        let time_ms = |iterations: u32| 0.4 + f64::from(iterations) * 0.003;
        let mut iterations = 1;
        for _ in 0..ROUNDS_MAX {
            iterations = next_guess(iterations, time_ms(iterations), 50.0);
        }
        assert!((time_ms(iterations) / 50.0 - 1.0).abs() < CLOSE_ENOUGH);
        assert_eq!(next_guess(1, 500.0, 1.0), 1, "nothing is shorter than one loop");
    }
}
