//! How processes share the GPU: whether they take turns, how long a turn is, what a change costs.
//!
//! Two processes keep short draws waiting at the GPU, first each alone, then both together, and
//! note when each draw ended. [`analysis`] says what that means; all else here only measures.

pub mod analysis;
mod peer;
mod stream;

use std::fmt;
use std::process::Command;
use std::time::{Duration, Instant};

use takt_predict::profile::{Execution, Sharing};

use crate::Problem;
use crate::bench::{Bench, Load, Place};
use analysis::{Spread, Unclear, Verdict, pace_ns, verdict};
use peer::Peer;
pub use peer::serve;
use stream::DrawPlan;

/// All of it ends within this time, whatever the second process does.
const TOTAL: Duration = Duration::from_secs(9);
/// What is left of it for queues to run empty, and for answers.
const SPARE: Duration = Duration::from_secs(1);
/// DrawPlan that this process and the second one keep waiting. They differ, so that a GPU that works
/// in order shares itself by them, and one that takes turns does not.
const DEPTHS: [usize; 2] = [96, 24];

/// How long both draw, alone and together.
struct Lengths {
    alone: Duration,
    together: Duration,
}

const THOROUGH: Lengths =
    Lengths { alone: Duration::from_millis(500), together: Duration::from_millis(2000) };
const QUICK: Lengths = Lengths { alone: Duration::from_millis(200), together: Duration::from_millis(500) };

/// What was found.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// How the GPU is shared, with counts and quartiles.
    pub verdict: Verdict,
    /// What a draw of each process takes alone, in microseconds.
    pub draw_us: [f64; 2],
    /// What the way to the GPU and back adds to a draw, in microseconds.
    pub delay_us: f64,
    /// Whether the renderer works on the CPU.
    pub software: bool,
}

impl Finding {
    /// What profiles keep of it.
    pub fn sharing(&self) -> Sharing {
        Sharing { execution: self.verdict.execution, delay_us: self.delay_us }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { execution, slice_us, switch_us, turns, draws, work } = &self.verdict;
        let spread = |spread: &Option<Spread>| match spread {
            Some(Spread { lower, median, upper }) => {
                format!("{median:.0} µs (quartiles {lower:.0} to {upper:.0})")
            }
            None => "nothing".to_owned(),
        };
        let (slice, switch) = (spread(slice_us), spread(switch_us));
        match execution {
            Execution::SideBySide => {
                let by = if self.software { "time-shared by the operating system, " } else { "" };
                write!(f, "processes run side by side: {by}no slice found; ")?;
                write!(f, "two did {work:.2} times the work of one")?;
            }
            Execution::InOrder { .. } => {
                write!(f, "in order of submission; a change of processes costs {switch}; {turns} changes")?;
            }
            Execution::TimeShared { .. } => {
                write!(f, "time-shared; a process keeps the GPU for {slice}, a change costs {switch}; ")?;
                write!(f, "{turns} turns")?;
            }
        }
        let [first, second] = self.draw_us;
        write!(f, ", {} draws of {first:.0} µs and {} of {second:.0} µs", draws[0], draws[1])
    }
}

/// Measures how this process and another share the GPU. `second` makes the command that calls
/// [`serve`] with this place and this number.
///
/// # Errors
///
/// If the second process fails, or what was seen says nothing.
pub fn measure(
    bench: &mut Bench,
    quick: bool,
    second: impl FnOnce(Place, u32) -> Command,
) -> Result<Finding, Problem> {
    let found = beside_another(bench, quick, second);
    if found.is_err() {
        bench.recover();
    }
    found
}

fn beside_another(
    bench: &mut Bench,
    quick: bool,
    second: impl FnOnce(Place, u32) -> Command,
) -> Result<Finding, Problem> {
    let until = Instant::now() + TOTAL;
    let lengths = if quick { QUICK } else { THOROUGH };
    let place = bench.place().parse().map_err(Problem::Unclear)?;
    let (load, loops) = chosen(bench)?;
    let mut peer = Peer::start(second(place, loops), until)?;
    peer.ready()?;
    let needed = 2 * lengths.alone + lengths.together + SPARE;
    if Instant::now() + needed > until {
        return Err(Problem::Peer(format!("was not ready in time for {needed:.1?} of measuring")));
    }
    let found = beside(bench, &load, &mut peer, &lengths);
    load.delete(&bench.gl);
    found
}

/// Both alone, then together.
fn beside(bench: &Bench, load: &Load, peer: &mut Peer, lengths: &Lengths) -> Result<Finding, Problem> {
    let unclear = |unclear: Unclear| Problem::Unclear(unclear.to_string());
    let plan = DrawPlan::soon(lengths.alone, DEPTHS[0]);
    let own_ns = pace_ns(&stream::run(bench, load, plan)?, plan.steady()).map_err(unclear)?;
    let delay_us = delay_us(bench, load, own_ns);
    let plan = DrawPlan::soon(lengths.alone, DEPTHS[1]);
    peer.ask(plan)?;
    let peer_ns = pace_ns(&peer.draws()?, plan.steady()).map_err(unclear)?;
    let plan = DrawPlan::soon(lengths.together, DEPTHS[1]);
    peer.ask(plan)?;
    let own = stream::run(bench, load, DrawPlan { depth: DEPTHS[0], ..plan })?;
    let others = peer.draws()?;
    bench.check("how processes share the GPU")?;
    let software = bench.is_software();
    let verdict = verdict([own_ns, peer_ns], [&own, &others], plan.steady(), software).map_err(unclear)?;
    Ok(Finding { verdict, draw_us: [own_ns, peer_ns].map(|ns| ns / 1000.0), delay_us, software })
}

/// Side of the surface; renderers on the CPU take long enough for few pixels.
const SIDE: u32 = 256;
const SIDE_SOFTWARE: u32 = 32;
/// A draw is at least so long, and so many times what it costs to submit it: then draws wait for
/// the GPU, and not the GPU for draws.
const DRAW_NS: f64 = 40_000.0;
const SUBMITS: f64 = 2.5;
/// It need not be longer than this: slices are.
const DRAW_MAX_NS: f64 = 400_000.0;
/// How long it is measured what submitting costs.
const SUBMITTING: Duration = Duration::from_millis(60);
/// Loops of the first draw that is tried, and of the last.
const LOOPS_MIN: u32 = 8;
const LOOPS_MAX: u32 = 1 << 15;
/// DrawPlan whose mean is taken to choose how long one is.
const SAMPLE: u32 = 32;
/// DrawPlan, one by one, whose way to the GPU and back is measured.
const ROUND_TRIPS: usize = 51;

/// A surface for short draws.
fn prepare(bench: &mut Bench) -> Result<(), Problem> {
    let side = if bench.is_software() { SIDE_SOFTWARE } else { SIDE };
    bench.resize(side, side)
}

/// A draw that is long enough, and its number of loops.
fn chosen(bench: &mut Bench) -> Result<(Load, u32), Problem> {
    prepare(bench)?;
    bench.gl.viewport(0, 0, 1, 1);
    let mut loops = LOOPS_MIN;
    let load = Load::new(&bench.gl, loops)?;
    let submits = stream::run(bench, &load, DrawPlan::soon(SUBMITTING, DEPTHS[1]))?.len();
    load.delete(&bench.gl);
    prepare(bench)?;
    let submit_ns = SUBMITTING.as_nanos() as f64 / submits.max(1) as f64;
    let enough_ns = (SUBMITS * submit_ns).clamp(DRAW_NS, DRAW_MAX_NS);
    loop {
        let load = Load::new(&bench.gl, loops)?;
        if mean_ns(bench, &load) >= enough_ns || loops >= LOOPS_MAX {
            return Ok((load, loops));
        }
        load.delete(&bench.gl);
        loops += loops / 2;
    }
}

/// What one of many draws takes.
fn mean_ns(bench: &Bench, load: &Load) -> f64 {
    let once = || {
        bench.gl.finish();
        let start = Instant::now();
        (0..SAMPLE).for_each(|_| load.draw(&bench.gl));
        bench.gl.finish();
        start.elapsed().as_nanos() as f64 / f64::from(SAMPLE)
    };
    // Drivers compile at the first.
    once();
    once().min(once())
}

/// By how much a single draw takes longer than one of many, in the median.
fn delay_us(bench: &Bench, load: &Load, pace_ns: f64) -> f64 {
    let once = || bench.by_fence(&mut || load.draw(&bench.gl));
    let mut times: Vec<f64> = std::iter::repeat_with(once).take(ROUND_TRIPS).collect();
    times.sort_by(f64::total_cmp);
    (times[ROUND_TRIPS / 2] - pace_ns).max(0.0) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(execution: Execution, software: bool) -> String {
        let spread = |median: f64| Some(Spread { lower: median - 10.0, median, upper: median + 10.0 });
        let verdict = Verdict {
            execution,
            slice_us: execution.slice_us().and_then(spread),
            switch_us: execution.switch_us().and_then(spread),
            turns: 1270,
            draws: [16_000, 15_900],
            work: 0.87,
        };
        Finding { verdict, draw_us: [41.2, 41.4], delay_us: 30.0, software }.to_string()
    }

    #[test]
    fn findings_are_one_line_with_how_sure_they_are() {
        let draws = "16000 draws of 41 µs and 15900 of 41 µs";
        let turns = said(Execution::TimeShared { slice_us: 1040.0, switch_us: 160.0 }, false);
        let slice = "a process keeps the GPU for 1040 µs (quartiles 1030 to 1050)";
        let switch = "a change costs 160 µs (quartiles 150 to 170)";
        assert_eq!(turns, format!("time-shared; {slice}, {switch}; 1270 turns, {draws}"));
        let order = said(Execution::InOrder { switch_us: 20.0 }, false);
        assert!(order.starts_with("in order of submission; a change of processes costs 20 µs"), "{order}");
        let beside = said(Execution::SideBySide, true);
        let by = "processes run side by side: time-shared by the operating system, no slice found";
        assert!(beside.starts_with(by), "{beside}");
        assert!(!said(Execution::SideBySide, false).contains("operating system"));
    }
}
