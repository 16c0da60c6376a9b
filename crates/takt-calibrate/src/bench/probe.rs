//! What measures: some drivers' timer queries tell the truth, others' do not.

use takt_gl::measure::{Doubt, Source};

use super::{Bench, Sample};
use crate::Problem;
use crate::sys::gl::{TRIANGLE_STRIP, Vertices};

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

/// A draw is long enough to compare clocks from here on.
const LONG_NS: f64 = 3e6;
/// Loops after which no longer draw is tried.
const LOOPS_MAX: u32 = 1 << 16;
const TRIES: usize = 3;

/// Compares timer queries with fences for one long draw.
pub(super) fn probe(bench: &mut Bench) -> Result<Source, Problem> {
    let Some(timer) = &bench.timer else { return Ok(Source::Fences(Doubt::NoTimer)) };
    let gl = &bench.gl;
    let corners = [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]];
    let corners: Vec<f32> = corners.iter().flat_map(|[x, y]| [*x, *y, 0.0, 1.0]).collect();
    let vertices = Vertices::new(gl, 1, &corners);
    let mut loops = 64;
    let ratio = loop {
        let program = gl.program(VERTEX, &fragment(loops), &["place"]);
        let program = program.map_err(|reason| Problem::Refused { what: "a long shader", reason })?;
        gl.use_program(program);
        let mut draw = || gl.draw(TRIANGLE_STRIP, 4, &vertices, &[4]);
        bench.by_fence(&mut draw);
        let fence_ns = median(|| bench.by_fence(&mut draw));
        let timer_ns = median(|| timer.measure(&mut draw) as f64);
        gl.delete_program(program);
        if fence_ns >= LONG_NS || loops >= LOOPS_MAX {
            break timer_ns / fence_ns;
        }
        loops *= 4;
    };
    bench.check("whether timer queries are right")?;
    Ok(Source::by_ratio(ratio))
}

fn median(once: impl FnMut() -> f64) -> f64 {
    let mut times: Vec<f64> = std::iter::repeat_with(once).take(TRIES).collect();
    Sample::of(&mut times).ns
}
