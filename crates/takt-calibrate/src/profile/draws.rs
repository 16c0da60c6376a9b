//! What every group and every draw costs.

use std::time::Instant;

use super::Lab;
use super::pictures::Pictures;
use crate::Problem;
use crate::fit;

/// Draws of a group.
const DRAWS: [u32; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// Groups of more and more draws without fragments: what they have in common is the group's,
/// what grows is the draws'.
pub(super) fn draws(lab: &mut Lab<'_>) -> Result<(), Problem> {
    let pictures = Pictures::new(lab.bench)?;
    let bench = &*lab.bench;
    pictures.use_plain(&bench.gl);
    // By what measures groups of programs as well: a timer does not see what a fence adds to them.
    let points = DRAWS.map(|count| {
        let mut work = || (0..count).for_each(|_| pictures.draw_nothing(&bench.gl));
        [f64::from(count), bench.time(lab.effort, &mut work).ns]
    });
    let ([flush_ns, draw_ns], quality) = fit::line(&points);
    pictures.delete(&bench.gl);
    (lab.profile.flush_ns, lab.profile.draw_ns) = (flush_ns, draw_ns);
    lab.note("flush_ns", flush_ns, Some(quality.clone()), None);
    lab.note("draw_ns", draw_ns, Some(quality), None);
    Ok(())
}

/// Groups whose way to the driver is measured.
const GROUPS: usize = 400;

/// How long it takes to hand a small group over to the driver.
pub(super) fn dispatch(lab: &mut Lab<'_>) -> Result<(), Problem> {
    let pictures = Pictures::new(lab.bench)?;
    let gl = &lab.bench.gl;
    pictures.use_plain(gl);
    let once = || {
        pictures.draw_nothing(gl);
        let start = Instant::now();
        gl.flush();
        let ns = start.elapsed().as_nanos() as f64;
        gl.finish();
        ns
    };
    once();
    let mut times: Vec<f64> = std::iter::repeat_with(once).take(GROUPS).collect();
    times.sort_by(f64::total_cmp);
    let (lower, upper) = (times[GROUPS / 100], times[GROUPS - GROUPS / 100]);
    pictures.delete(gl);
    lab.profile.dispatch_ns = [upper, lower];
    lab.note("dispatch_upper_ns", upper, None, Some("99th percentile of 400 glFlush calls"));
    lab.note("dispatch_lower_ns", lower, None, Some("1st percentile of them"));
    Ok(())
}
