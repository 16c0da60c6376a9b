//! Recorded command groups, as CSV.
//!
//! ```csv
//! delay_us,kind,cost_us,predicted_us
//! 120,draw,750,760
//! 0,swap,385.5,
//! ```
//!
//! Times are microseconds with up to three decimals; a prediction may be `inf`. The last row must
//! be a swap, because a recording is replayed over and over. A fifth column `make_us`, if there is
//! one, has the time that an app needs after the dispatch until its commands are on their way.

use std::collections::BTreeMap;
use std::sync::Arc;

use takt_core::{GroupKind, Span};

use super::decimal::{Decimal, RECORDING_BYTES_MAX, SPAN_US};
use super::diagnostic::{Report, small};
use super::reader::Text;
use crate::model::RecordedGroup;

/// The first line of a recording.
pub const HEADER: &str = "delay_us,kind,cost_us,predicted_us";

/// The first line of one that also has the time to make groups after their dispatch.
pub(super) const HEADER_MADE: &str = "delay_us,kind,cost_us,predicted_us,make_us";

/// Makes a recording of what one app did in a run, from the rows that `takt sim --trace FILE.csv`
/// wrote: groups in order of submission, with the time that passed since the one before in the
/// same frame. Frames that were not executed to their end are left out. A frame that ended without a
/// group gets a swap that takes no time, at once; the last one is left out, since it may not have
/// ended.
///
/// # Errors
///
/// Says which line is not what that table has, or that the app is not in it.
pub fn from_trace(table: &str, app: &str) -> Result<String, String> {
    let header = table.lines().next().unwrap_or("");
    if header.trim() != takt_trace::export::csv::HEADER {
        return Err(format!("line 1: the first line must be {}", takt_trace::export::csv::HEADER));
    }
    let mut rows = Vec::new();
    for (line, row) in (2..).zip(table.lines().skip(1)) {
        let cells: Vec<&str> = row.split(',').collect();
        let [name, _, frame, group, kind, submitted, _, _, _, predicted, _, cost] = cells[..] else {
            return Err(format!("line {line}: a row has 12 cells, not {}", cells.len()));
        };
        let number =
            |text: &str| text.parse::<u64>().map_err(|error| format!("line {line}: '{text}': {error}"));
        let time =
            |text: &str| text.parse::<f64>().map_err(|error| format!("line {line}: '{text}': {error}"));
        if name == app {
            rows.push((number(group)?, number(frame)?, kind, time(submitted)?, predicted, cost));
        }
    }
    rows.sort_by_key(|(group, ..)| *group);
    rows.retain(|row| row.2 != "exit");
    // The last frame is whole if its swap is there, and others if a later one has begun.
    let last = rows.last().map(|row| row.1);
    let swapped = rows.last().is_some_and(|row| row.2 == "swap");
    rows.retain(|row| swapped || Some(row.1) != last);
    if rows.is_empty() {
        return Err(format!("no whole frame of '{app}' is in the table"));
    }
    let mut out = format!("{HEADER}\n");
    let mut before: Option<(u64, f64)> = None;
    for (at, (_, frame, kind, submitted, predicted, cost)) in rows.iter().enumerate() {
        let same_frame = before.filter(|(other, _)| other == frame);
        let delay = same_frame.map_or(0.0, |(_, earlier)| (submitted - earlier).max(0.0));
        before = Some((*frame, *submitted));
        out += &format!("{delay:.3},{kind},{cost},{predicted}\n");
        let ends = rows.get(at + 1).is_none_or(|next| next.1 != *frame);
        if ends && *kind != "swap" {
            out += "0.000,swap,0.000,0.000\n";
        }
    }
    Ok(out)
}

/// Loads and keeps recordings.
pub(super) struct Recordings<'r> {
    resolve: &'r dyn Fn(&str) -> Result<String, String>,
    loaded: BTreeMap<String, Option<Arc<[RecordedGroup]>>>,
}

impl<'r> Recordings<'r> {
    pub(super) fn new(resolve: &'r dyn Fn(&str) -> Result<String, String>) -> Self {
        Self { resolve, loaded: BTreeMap::new() }
    }

    /// The recording in the file that `name` names.
    pub(super) fn file(&mut self, report: &mut Report<'_>, name: &Text) -> Option<Arc<[RecordedGroup]>> {
        let path = name.value.as_deref()?;
        if let Some(known) = self.loaded.get(path) {
            return known.clone();
        }
        let groups = match (self.resolve)(path) {
            Ok(text) => parse(report, (path, 1), &text),
            Err(error) => {
                report.value(
                    &name.at,
                    format_args!("cannot load the recording: {error}"),
                    "give the path of a CSV file, relative to the scenario",
                );
                None
            }
        };
        self.loaded.insert(path.to_owned(), groups.clone());
        groups
    }

    /// The recording that stands in the scenario itself.
    pub(super) fn inline(&mut self, report: &mut Report<'_>, text: &Text) -> Option<Arc<[RecordedGroup]>> {
        let (file, line, _) = report.sources.locate(text.at.span.start);
        let file = file.to_owned();
        // The line break after the opening quotes is not part of the text.
        let opening = report.sources.snippet(&text.at.span);
        let below = opening == "\"\"\"…" || opening == "'''…";
        parse(report, (&file, line + u32::from(below)), text.value.as_deref()?)
    }
}

/// Where a field of a row is.
#[derive(Clone, Copy)]
struct FieldAt<'t> {
    file: &'t str,
    line: u32,
    column: u32,
    name: &'static str,
    text: &'t str,
}

/// Reads a recording whose first line is line `first_line` of `file`.
fn parse(
    report: &mut Report<'_>,
    (file, first_line): (&str, u32),
    text: &str,
) -> Option<Arc<[RecordedGroup]>> {
    let place = (file, first_line, 1);
    if text.len() > RECORDING_BYTES_MAX {
        let message = format!("the recording has {} bytes", text.len());
        let remedy = format!("use at most {RECORDING_BYTES_MAX} (RECORDING_BYTES_MAX)");
        report.elsewhere(place, message, remedy);
        return None;
    }
    let mut rows =
        (first_line..).zip(text.lines()).filter(|(_, row)| !row.trim().is_empty() && !row.starts_with('#'));
    let header = rows.next();
    let made = header.is_some_and(|(_, row)| row.trim() == HEADER_MADE);
    if !made && header.is_none_or(|(_, row)| row.trim() != HEADER) {
        let (line, row) = header.unwrap_or((first_line, ""));
        let shown: String = row.chars().take(HEADER.len()).collect();
        let message = format!("\"{shown}\" is not the header of a recording");
        report.elsewhere((file, line, 1), message, format!("begin with {HEADER}"));
        return None;
    }
    let mut last = header;
    let mut groups = Vec::new();
    let mut whole = true;
    for (line, row) in rows {
        last = Some((line, row));
        match group(report, (file, line), row, made) {
            Some(group) => groups.push(group),
            None => whole = false,
        }
    }
    if whole && groups.last().is_none_or(|group| !group.kind.ends_frame()) {
        let line = last.map_or(first_line, |(line, _)| line);
        let message = "the recording does not end with a swap".to_owned();
        report.elsewhere((file, line, 1), message, "add the row of the frame's swap");
        return None;
    }
    whole.then(|| groups.into())
}

fn group(report: &mut Report<'_>, (file, line): (&str, u32), row: &str, made: bool) -> Option<RecordedGroup> {
    let (wanted, header) = if made { (5, HEADER_MADE) } else { (4, HEADER) };
    let fields: Vec<&str> = row.split(',').take(wanted + 1).collect();
    let (delay, kind, cost, predicted, make) = match fields[..] {
        [delay, kind, cost, predicted] if !made => (delay, kind, cost, predicted, "0"),
        [delay, kind, cost, predicted, make] if made => (delay, kind, cost, predicted, make),
        _ => {
            let message = format!("a row has {wanted} fields, not {}", row.split(',').count());
            report.elsewhere((file, line, 1), message, format!("write {header}"));
            return None;
        }
    };
    let mut offset = 0;
    let mut cell = |name, text: &str| {
        let start = offset;
        offset += text.len() + 1;
        let indent = text.len() - text.trim_start().len();
        let before = row.get(..start + indent).unwrap_or("").chars().count();
        (name, small(before + 1))
    };
    let at = |(name, column), text| FieldAt { file, line, column, name, text };
    let delay_cell = at(cell("delay_us", delay), delay.trim());
    let kind_cell = at(cell("kind", kind), kind.trim());
    let cost_cell = at(cell("cost_us", cost), cost.trim());
    let predicted_cell = at(cell("predicted_us", predicted), predicted.trim());
    let make_cell = at(cell("make_us", make), make.trim());

    let delay = span(report, delay_cell);
    let kind = group_kind(report, kind_cell);
    let cost = span(report, cost_cell);
    let predicted = match predicted_cell.text {
        "" => Some(None),
        "inf" => Some(Some(Span::FOREVER)),
        _ => span(report, predicted_cell).map(Some),
    };
    let make = span(report, make_cell);
    Some(RecordedGroup { delay: delay?, kind: kind?, cost: cost?, predicted: predicted?, make: make? })
}

fn span(report: &mut Report<'_>, cell: FieldAt<'_>) -> Option<Span> {
    let not_a_number = || {
        let remedy = "write microseconds, such as 750 or 385.5";
        Some(("is not a number".to_owned(), remedy.to_owned()))
    };
    let ns = Decimal::parse(cell.text).ok_or_else(not_a_number).and_then(|number| number.count(&SPAN_US));
    match ns {
        Ok(ns) => u64::try_from(ns).ok().map(Span::from_ns),
        Err(misfit) => {
            if let Some((problem, remedy)) = misfit {
                cell.complain(report, &problem, remedy);
            }
            None
        }
    }
}

fn group_kind(report: &mut Report<'_>, cell: FieldAt<'_>) -> Option<GroupKind> {
    match cell.text {
        "draw" => Some(GroupKind::Draw),
        "swap" => Some(GroupKind::Swap),
        "sync" => Some(GroupKind::Sync),
        _ => {
            let remedy = "use draw, swap or sync".to_owned();
            cell.complain(report, "there is no such kind of group", remedy);
            None
        }
    }
}

impl FieldAt<'_> {
    fn complain(self, report: &mut Report<'_>, problem: &str, remedy: String) {
        let Self { file, line, column, name, text } = self;
        let shown: String = text.chars().take(40).collect();
        let message = format!("{name} = {shown}: {problem}");
        report.elsewhere((file, line, column), message, remedy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_end_without_a_group_get_a_swap() {
        let row = |frame: u64, group: u64, kind: &str, at: u64| {
            format!("map,1,{frame},{group},{kind},{at},{at},{at},{at},5.000,6.000,4.000\n")
        };
        let header = takt_trace::export::csv::HEADER;
        let mut table = format!("{header}\n{}{}", row(0, 1, "draw", 10), row(0, 2, "draw", 12));
        table += &(row(1, 3, "draw", 30) + &row(1, 4, "swap", 31) + &row(2, 5, "draw", 50));
        let groups = from_trace(&table, "map").expect("it is a table");
        let whole = "0.000,draw,4.000,5.000\n2.000,draw,4.000,5.000\n0.000,swap,0.000,0.000\n\
             0.000,draw,4.000,5.000\n1.000,swap,4.000,5.000\n";
        assert_eq!(groups, format!("{HEADER}\n{whole}"));
        let begun = format!("{header}\n{}", row(0, 1, "draw", 10));
        assert!(from_trace(&begun, "map").is_err(), "it may not have ended");
    }
}
