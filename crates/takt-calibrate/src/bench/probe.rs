//! Finds out which clock is right: some drivers' timer queries tell the truth, others' do not.

use takt_gl::measure::{TimeSource, TimerProblem};

use super::{Bench, Load, Sample};
use crate::Problem;

/// A draw is long enough to compare clocks from here on.
const LONG_NS: f64 = 3e6;
/// Loops after which no longer draw is tried.
const LOOPS_MAX: u32 = 1 << 16;
const TRIES: usize = 3;

/// Compares timer queries with fences for one long draw.
pub(super) fn probe(bench: &mut Bench) -> Result<TimeSource, Problem> {
    let Some(timer) = &bench.timer else { return Ok(TimeSource::Fences(TimerProblem::NoTimer)) };
    let gl = &bench.gl;
    let mut loops = 64;
    let ratio = loop {
        let load = Load::new(gl, loops)?;
        let mut draw = || load.draw(gl);
        bench.by_fence(&mut draw);
        let fence_ns = median(|| bench.by_fence(&mut draw));
        let timer_ns = median(|| timer.measure(&mut draw) as f64);
        load.delete(gl);
        if fence_ns >= LONG_NS || loops >= LOOPS_MAX {
            break timer_ns / fence_ns;
        }
        loops *= 4;
    };
    bench.check("whether timer queries are right")?;
    Ok(TimeSource::by_ratio(ratio))
}

fn median(once: impl FnMut() -> f64) -> f64 {
    let mut times: Vec<f64> = std::iter::repeat_with(once).take(TRIES).collect();
    Sample::of(&mut times).ns
}
