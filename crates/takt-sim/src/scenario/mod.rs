//! Scenario files: text in, [`Scenario`] or a list of errors out.
//!
//! ```text
//! text ──toml──▶ tree ──overrides──▶ tree ──reader──▶ raw ──lower, checks──▶ model
//! ```
//!
//! `raw` says which keys there are, `decimal` what numbers may be, `lower` what makes sense.
//! Every error has a place, the offending value and a remedy, and all errors of a file come at
//! once. Nothing here opens a file, and no input makes it panic.
//! `docs/scenarios.md` describes the format to people, [`json_schema`] to editors; [`to_toml`]
//! goes the other way.

mod checks;
mod decimal;
mod diagnostic;
mod lower;
mod lower_app;
mod lower_clock;
mod lower_display;
mod lower_gaps;
mod lower_service;
mod lower_work;
mod overrides;
mod raw;
mod reader;
mod recording;
mod references;
mod schema;
pub mod study_file;
mod write;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use decimal::{
    DESCRIPTION_CHARS_MAX, DURATION_NS_MAX, FACTOR_PERMILLE_MAX, FILE_BYTES_MAX, GPU_QUEUE_MAX,
    GROUPS_PER_FRAME_MAX, HISTORY_RECORDS_MAX, ITEMS_MAX, NAME_CHARS_MAX, PERIOD_NS_MAX, PHASE_PERIODS_MAX,
    RECORDING_BYTES_MAX, SPAN_NS_MAX, SPEED_PERMILLE_MAX,
};
pub use diagnostic::{DIAGNOSTICS_MAX, Diagnostic};
pub use overrides::{NotAnOverride, Override};
pub use recording::{HEADER as RECORDING_HEADER, from_trace};
pub use schema::json_schema;
pub use write::to_toml;

use crate::model::Scenario;
use diagnostic::{Report, Sources, Spot};
use lower::Lower;
use raw::RawScenario;
use reader::{Read, Reader, Value};
use recording::Recordings;

/// Loads the text of a recording, given its path as the scenario has it.
pub type Resolve<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Reads a scenario from `text` and changes it by `overrides`, in order.
///
/// The text must make sense without the overrides, too. `file_name` is only for messages;
/// `resolve` loads the recordings that the scenario refers to, relative to it.
///
/// # Errors
///
/// Everything that is wrong, in order of appearance.
pub fn parse(
    file_name: &str,
    text: &str,
    overrides: &[Override],
    resolve: Resolve<'_>,
) -> Result<Scenario, Vec<Diagnostic>> {
    let mut sources = Sources::default();
    if text.len() > FILE_BYTES_MAX {
        sources.add(file_name.to_owned(), "", 0);
        let mut report = Report::new(&sources);
        let message = format!("the scenario has {} bytes", text.len());
        let remedy = format!("use at most {FILE_BYTES_MAX} (FILE_BYTES_MAX)");
        report.address(0, message, remedy);
        return Err(report.finish());
    }
    sources.add(file_name.to_owned(), text, 0);
    let sets: Vec<(&Override, usize)> = overrides
        .iter()
        .map(|set| {
            let name = format!("--set {set}");
            (set, sources.add(name, &set.value, set.key.len() + 1))
        })
        .collect();
    let tree = tree("scenario", text, &sources)?;
    let scenario = evaluate(&tree, &[], &sources, resolve)?;
    if sets.is_empty() {
        return Ok(scenario);
    }
    evaluate(&tree, &sets, &sources, resolve).map_err(|found| blame(found, &tree, &sets, &sources, resolve))
}

/// The syntax tree of a file.
fn tree<'i>(whole: &'static str, text: &'i str, sources: &Sources<'_>) -> Result<Value<'i>, Vec<Diagnostic>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let span = table.span();
        return Ok(Spanned::new(span, DeValue::Table(table.into_inner())));
    }
    let mut report = Report::about(whole, sources);
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let mut found = sources.snippet(&span);
        if found.is_empty() {
            found = sources.line_text(span.start);
        }
        let remedy = match error.message() {
            "duplicate key" => "keep only one of them",
            _ => "mend the TOML syntax here (see https://toml.io)",
        };
        report.address(span.start, format!("{found}: {}", error.message()), remedy);
    }
    Err(report.finish())
}

/// What the tree means after some overrides.
fn evaluate<'i>(
    tree: &Value<'i>,
    sets: &[(&'i Override, usize)],
    sources: &Sources<'_>,
    resolve: Resolve<'_>,
) -> Result<Scenario, Vec<Diagnostic>> {
    let mut report = Report::new(sources);
    let mut tree = tree.clone();
    for (set, base) in sets {
        if let Err((problem, remedy)) = overrides::apply(&mut tree, set, *base) {
            report.address(*base, problem, remedy);
        }
    }
    let raw = RawScenario::read(&mut Reader::new(&mut report), &tree);
    let scenario = raw.and_then(|raw| {
        let recordings = Recordings::new(resolve);
        let report = &mut report;
        Lower { report, recordings }.scenario(&raw)
    });
    match scenario {
        Some(scenario) if report.is_empty() => Ok(scenario),
        None if report.is_empty() => {
            // A failure without a complaint is a mistake of ours; say so rather than panic.
            report.table(&Spot::default(), "cannot be understood", "please report this file");
            Err(report.finish())
        }
        _ => Err(report.finish()),
    }
}

/// Tells for each error in the file itself which overrides brought it about: those without which
/// it does not occur.
fn blame<'i>(
    mut found: Vec<Diagnostic>,
    tree: &Value<'i>,
    sets: &[(&'i Override, usize)],
    sources: &Sources<'_>,
    resolve: Resolve<'_>,
) -> Vec<Diagnostic> {
    let without: Vec<Vec<Diagnostic>> = (0..sets.len())
        .map(|left_out| {
            let mut others = sets.to_vec();
            others.remove(left_out);
            evaluate(tree, &others, sources, resolve).err().unwrap_or_default()
        })
        .collect();
    let named_by_place = |diagnostic: &Diagnostic| diagnostic.file.starts_with("--set ");
    for diagnostic in found.iter_mut().filter(|d| !named_by_place(d)) {
        let culprits: Vec<String> = sets
            .iter()
            .zip(&without)
            .filter(|(_, rest)| !rest.contains(diagnostic))
            .map(|((set, _), _)| format!("--set {set}"))
            .collect();
        let culprits = if culprits.is_empty() {
            let all: Vec<String> = sets.iter().map(|(set, _)| format!("--set {set}")).collect();
            all
        } else {
            culprits
        };
        diagnostic.message = format!("{} (because of {})", diagnostic.message, culprits.join(", "));
    }
    found
}

#[cfg(test)]
mod tests;
