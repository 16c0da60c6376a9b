//! Loads of a chosen length: how often a shader must loop for it.

use anyhow::bail;
use takt_gl_driver::Gl;

use crate::sys::clock::now_ns;

/// More loops than this take seconds even on large GPUs.
pub(crate) const LOOPS_MAX: u32 = 1 << 24;

/// What was found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Found {
    /// So many loops.
    pub(crate) loops: u32,
    /// Take so long.
    pub(crate) ms: f64,
}

/// Tries.
const ROUNDS_MAX: usize = 12;
/// Draws per try.
const DRAWS: usize = 3;
/// The search ends at this error.
const CLOSE_ENOUGH: f64 = 0.02;
/// It has failed above this one.
const TOO_FAR: f64 = 0.5;
/// The largest step while the length is still far off, where start-up costs dominate.
const STEP_MAX: f64 = 8.0;

/// Finds the number of loops for a length by trying: first in large steps, then by proportion.
/// `measure` says how long so many loops take, in milliseconds.
pub(crate) fn find(
    wanted_ms: f64,
    loops_max: u32,
    mut measure: impl FnMut(u32) -> anyhow::Result<f64>,
) -> anyhow::Result<Found> {
    let (mut loops, mut best) = (1, None::<(f64, Found)>);
    for _ in 0..ROUNDS_MAX {
        let ms = measure(loops)?;
        let error = (ms / wanted_ms - 1.0).abs();
        if best.is_none_or(|best| error < best.0) {
            best = Some((error, Found { loops, ms }));
        }
        let next = next_guess(loops, ms, wanted_ms).min(loops_max);
        if error < CLOSE_ENOUGH || next == loops {
            break;
        }
        loops = next;
    }
    match best {
        Some((error, found)) if error <= TOO_FAR => Ok(found),
        Some((_, Found { loops, ms })) => {
            bail!("cannot make draws of {wanted_ms} ms: {loops} loops take {ms:.3} ms; choose another --size")
        }
        None => bail!("cannot make draws of {wanted_ms} ms"),
    }
}

/// The shortest of some draws, in milliseconds: others may have taken the GPU during the rest.
pub(crate) fn shortest_ms(gl: &Gl, mut draw: impl FnMut()) -> f64 {
    // Drivers compile at the first one.
    draw();
    gl.finish();
    let mut shortest_ns = u64::MAX;
    for _ in 0..DRAWS {
        let start = now_ns();
        draw();
        gl.finish();
        shortest_ns = shortest_ns.min(now_ns() - start);
    }
    shortest_ns as f64 / 1e6
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn next_guess(loops: u32, found_ms: f64, wanted_ms: f64) -> u32 {
    let factor = (wanted_ms / found_ms.max(1e-6)).clamp(1.0 / STEP_MAX, STEP_MAX);
    (f64::from(loops) * factor).round().clamp(1.0, f64::from(LOOPS_MAX)) as u32
}

/// A length in milliseconds, as people type it.
pub(crate) fn length_ms(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|length| (0.01..=60_000.0).contains(length));
    number.ok_or_else(|| "a number of milliseconds from 0.01 to 60000 is wanted".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_a_line(loops: u32) -> anyhow::Result<f64> {
        Ok(0.4 + f64::from(loops) * 0.003)
    }

    #[test]
    fn the_search_converges_on_a_line_with_an_offset() {
        let found = find(50.0, LOOPS_MAX, on_a_line).unwrap();
        assert!((found.ms / 50.0 - 1.0).abs() < CLOSE_ENOUGH, "{found:?}");
        assert!((f64::from(found.loops) - 49.6 / 0.003).abs() < 400.0, "{found:?}");
    }

    #[test]
    fn lengths_that_cannot_be_are_errors() {
        let short = find(0.1, LOOPS_MAX, on_a_line).unwrap_err().to_string();
        assert!(short.contains("1 loops take 0.403 ms"), "{short}");
        assert!(find(50.0, 1000, on_a_line).is_err(), "there are not enough loops");
        assert!(find(50.0, LOOPS_MAX, |_| bail!("no compiler")).is_err());
    }
}
