//! Programs that `takt run` has seen, measured one by one.

use std::path::Path;

use anyhow::Context;
use schemars::JsonSchema;
use serde::Serialize;
use takt_calibrate::Bench;
use takt_calibrate::programs::measure;
use takt_calibrate::store::Shelf;
use takt_predict::profile::Profile;
use takt_predict::programs::ProgramRates;

use super::number;
use crate::output;
use crate::table::Table;

/// A program, and what it costs.
#[derive(Serialize, JsonSchema, Debug)]
pub(crate) struct ProgramFound {
    /// Its name: a hash of its sources.
    program: String,
    /// Nanoseconds per vertex; none if it could not be measured.
    vertex_ns: Option<f64>,
    /// Nanoseconds per fragment.
    fragment_ns: Option<f64>,
    /// Why it could not be measured.
    problem: Option<String>,
}

/// Measures all programs that were noted for this GPU and keeps their rates, in place of those that
/// were kept before; none if no program was noted.
pub(super) fn run(
    store: &Path,
    bench: &mut Bench,
    profile: &Profile,
    quick: bool,
) -> anyhow::Result<Option<Vec<ProgramFound>>> {
    let shelf = Shelf::new(store, &bench.gpu(), &bench.driver());
    let (noted, bad) = shelf.noted().with_context(|| format!("cannot read {}", store.display()))?;
    for damaged in &bad {
        output::warn(&format!("takt: {damaged}; it is removed, and noted again when it is seen"));
    }
    if let Err(damaged) = shelf.rates() {
        output::warn(&format!("takt: {damaged}; it is replaced"));
    }
    if noted.is_empty() {
        return Ok(None);
    }
    let bar = output::progress(noted.len() as u64, "programs");
    let measured = measure(bench, profile, &noted, quick, &mut |done| bar.set_position(done as u64))?;
    bar.finish_and_clear();
    let mut kept = ProgramRates::default();
    let mut found = Vec::new();
    for (sources, measured) in noted.iter().zip(measured) {
        let program = format!("{:016x}", sources.id().0);
        let rates = measured.as_ref().ok().copied();
        if let Some(rates) = rates {
            kept.insert(sources.id(), rates);
        }
        let problem = measured.err().map(|problem| problem.to_string());
        if let Some(problem) = &problem {
            output::warn(&format!("takt: program {program} is left out: {}", problem.trim()));
        }
        let (vertex_ns, fragment_ns) = (rates.map(|r| r.vertex_ns), rates.map(|r| r.fragment_ns));
        found.push(ProgramFound { program, vertex_ns, fragment_ns, problem });
    }
    let path = shelf.rates_path();
    shelf.keep_rates(&kept).with_context(|| output::cannot_write(&path))?;
    Ok(Some(found))
}

/// Rates for people to read.
pub(super) fn table(programs: &[ProgramFound]) -> String {
    let mut table = Table::new("<program, ns/vertex, ns/fragment, <");
    let cell = |ns: Option<f64>| ns.map_or_else(|| "-".to_owned(), number);
    for ProgramFound { program, vertex_ns, fragment_ns, problem } in programs {
        // Drivers complain in many lines; the first one says what it is about.
        let why = problem.as_deref().and_then(|why| why.lines().next()).unwrap_or("");
        table.row(vec![program.clone(), cell(*vertex_ns), cell(*fragment_ns), why.to_owned()]);
    }
    table.render()
}
