//! How processes share the GPU: this command is both of them.

use std::io;
use std::process::Command;

use schemars::JsonSchema;
use serde::Serialize;
use takt_calibrate::sharing::analysis::Spread;
use takt_calibrate::sharing::{self, Finding};
use takt_calibrate::{Bench, Place, Problem};

use crate::Answer;

/// Measures, with this very program as the second process.
pub(super) fn measure(bench: &mut Bench, quick: bool) -> Result<Finding, Problem> {
    let program = std::env::current_exe();
    let program = program.map_err(|error| Problem::Peer(format!("cannot be found: {error}")))?;
    sharing::measure(bench, quick, |place, loops| {
        let mut command = Command::new(program);
        command.args(["profile", "--device", &place.to_string(), "--peer", &loops.to_string()]);
        command
    })
}

/// Is the second process.
pub(super) fn serve(place: Place, loops: u32) -> anyhow::Result<Answer> {
    sharing::serve(place, loops, &mut io::stdin().lock(), &mut io::stdout().lock())?;
    Ok(Answer::Yes)
}

/// How processes share the GPU.
#[derive(Serialize, JsonSchema, Debug)]
pub(crate) struct SharingFound {
    /// side-by-side, in-order or time-shared.
    execution: &'static str,
    /// How long one process keeps the GPU while another has work, in microseconds; none if processes
    /// do not take turns.
    slice_us: Option<SpreadFound>,
    /// What a change of processes costs, in microseconds; none if there are no changes.
    switch_us: Option<SpreadFound>,
    /// What the way to the GPU and back adds to a draw, in microseconds.
    delay_us: f64,
    /// Turns that were seen.
    turns: usize,
    /// Draws that each process completed beside the other.
    draws: [usize; 2],
    /// What a draw of each takes alone, in microseconds.
    draw_us: [f64; 2],
    /// What both did together, as a share of what one does alone.
    work: f64,
}

/// A median and its quartiles.
#[derive(Serialize, JsonSchema, Debug)]
pub(crate) struct SpreadFound {
    /// The median, which is kept.
    median: f64,
    /// The lower quartile.
    lower: f64,
    /// The upper quartile.
    upper: f64,
}

impl From<Spread> for SpreadFound {
    fn from(Spread { lower, median, upper }: Spread) -> Self {
        Self { median, lower, upper }
    }
}

impl From<&Finding> for SharingFound {
    fn from(finding: &Finding) -> Self {
        let verdict = &finding.verdict;
        Self {
            execution: verdict.execution.name(),
            slice_us: verdict.slice_us.map(SpreadFound::from),
            switch_us: verdict.switch_us.map(SpreadFound::from),
            delay_us: finding.delay_us,
            turns: verdict.turns,
            draws: verdict.draws,
            draw_us: finding.draw_us,
            work: verdict.work,
        }
    }
}
