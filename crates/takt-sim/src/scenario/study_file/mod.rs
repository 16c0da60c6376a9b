//! Study files: text in, [`Study`] or a list of errors out.
//!
//! They are read as scenarios are: every error has a place, the offending value and a remedy. Each
//! choice of each axis is tried once when the study is read, so that a mistyped key shows at once
//! and not after hours. `docs/studies.md` describes the format to people.

mod axes;
mod measures;
mod plots;
mod question;
mod raw;

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::decimal::{FILE_BYTES_MAX, Quantity, SEED};
use super::diagnostic::{Diagnostic, Report, Sources, Spot};
use super::lower::Lower;
use super::overrides::{self, Override};
use super::reader::{Read, Reader, Text};
use super::recording::Recordings;
use super::{Scenario, tree};
use crate::study::{Axis, JOBS_MAX, Schedulability, Simulate, Source, Study, StudyWork, fnv1a};
use axes::Tried;
pub(crate) use question::question;
use raw::{RawSimulate, RawStudy};

/// Loads the text of a file, given its path.
pub type Open<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// What the text as a whole is called.
const WHOLE: &str = "study";

const REPETITIONS: Quantity = Quantity::new("", 0, 1, (JOBS_MAX as i128, "JOBS_MAX"));

/// Reads a study from `text`.
///
/// `file_name` is its path: files that it names are relative to it, and `open` loads them.
///
/// # Errors
///
/// Everything that is wrong, in order of appearance.
pub fn parse(file_name: &str, text: &str, open: Open<'_>) -> Result<Study, Vec<Diagnostic>> {
    let mut sources = Sources::default();
    if text.len() > FILE_BYTES_MAX {
        sources.add(file_name.to_owned(), "", 0);
        let mut report = Report::about(WHOLE, &sources);
        let remedy = format!("use at most {FILE_BYTES_MAX} (FILE_BYTES_MAX)");
        report.address(0, format!("the study has {} bytes", text.len()), remedy);
        return Err(report.finish());
    }
    sources.add(file_name.to_owned(), text, 0);
    let tree = tree(WHOLE, text, &sources)?;
    let mut report = Report::about(WHOLE, &sources);
    let raw = RawStudy::read(&mut Reader::new(&mut report), &tree);
    let no_recordings = |_: &str| Err("a study has none itself".to_owned());
    let lower = Lower { report: &mut report, recordings: Recordings::new(&no_recordings) };
    let mut judge = Judge { lower, file: File { name: file_name, text, open } };
    let study = raw.and_then(|raw| judge.study(&raw));
    match study {
        Some(Ok(study)) if report.is_empty() => Ok(study),
        // The scenario itself is at fault.
        Some(Err(found)) if report.is_empty() => Err(found),
        _ => Err(report.finish()),
    }
}

/// The JSON schema of study files, as kept in `docs/schema/study.schema.json`.
pub fn json_schema() -> String {
    super::schema::schema_of::<RawStudy>("Takt study")
}

/// The study's own file, and the way to others.
struct File<'a> {
    name: &'a str,
    text: &'a str,
    open: Open<'a>,
}

/// Judges raw values; `None` means "already reported".
struct Judge<'r, 'a> {
    lower: Lower<'r, 'a>,
    file: File<'a>,
}

impl Judge<'_, '_> {
    fn study(&mut self, raw: &RawStudy) -> Option<Result<Study, Vec<Diagnostic>>> {
        let name = self.lower.name(&raw.name);
        let description = self.lower.description(raw.description.as_ref());
        let repetitions = self.lower.whole_or(raw.repetitions.as_ref(), &REPETITIONS, 1u64);
        let seed = self.lower.whole_or(raw.seed.as_ref(), &SEED, 1u64);
        let tried = self.axes(raw);
        let (name, description, repetitions) = (name?, description?, repetitions?);
        let (seed, tried) = (self.seed(seed?, repetitions, raw)?, tried?);
        self.bounded(&tried, repetitions, raw)?;
        // Trying choices would find the same mistakes again.
        if !self.lower.report.is_empty() {
            return None;
        }
        let (work, texts) = match (&raw.simulate, &raw.sets, &raw.test) {
            (Some(simulate), None, None) => match self.simulate(simulate, &tried)? {
                Ok(work) => work,
                Err(found) => return Some(Err(found)),
            },
            (None, Some(_), Some(_)) => self.schedulability(&tried)?,
            _ => {
                let remedy = "add a [simulate] table, or a [sets] and a [test] table";
                let problem = "it must ask about a scenario or about task sets";
                self.lower.report.table(&raw.at, problem, remedy);
                return None;
            }
        };
        let texts: Vec<&str> = [self.file.text].into_iter().chain(texts.iter().map(String::as_str)).collect();
        let axes = tried.into_iter().map(|tried| tried.axis).collect();
        let fingerprint = fnv1a(&texts);
        let mut study =
            Study { name, description, seed, repetitions, axes, plots: Vec::new(), work, fingerprint };
        self.unique_columns(&study, raw)?;
        study.plots = self.plots(raw, &study)?;
        Some(Ok(study))
    }

    /// Results have no room for larger seeds.
    fn seed(&mut self, seed: u64, repetitions: u64, raw: &RawStudy) -> Option<u64> {
        let last = seed.checked_add(repetitions);
        if last.is_none_or(|last| i64::try_from(last).is_err()) {
            let at = raw.seed.as_ref().map_or_else(|| raw.at.clone(), |seed| seed.0.at.clone());
            self.lower.report.value(&at, "the last seed would not fit into 63 bits", "use a smaller seed");
            return None;
        }
        Some(seed)
    }

    fn bounded(&mut self, tried: &[Tried], repetitions: u64, raw: &RawStudy) -> Option<()> {
        let times = |jobs: u64, tried: &Tried| jobs.checked_mul(tried.axis.choices.len() as u64);
        match tried.iter().try_fold(repetitions, times) {
            Some(1..=JOBS_MAX) => Some(()),
            jobs => {
                let jobs = jobs.map_or_else(|| "far too many".to_owned(), |jobs| jobs.to_string());
                let problem = format_args!("all combinations make {jobs} jobs");
                let remedy = format!("use at most {JOBS_MAX} (JOBS_MAX): fewer values or repetitions");
                self.lower.report.table(&raw.at, problem, remedy);
                None
            }
        }
    }

    fn unique_columns(&mut self, study: &Study, raw: &RawStudy) -> Option<()> {
        let columns = study.columns();
        for (index, column) in columns.iter().enumerate() {
            if columns.iter().take(index).any(|other| other.name == column.name) {
                let problem = format_args!("there are two columns called {}", column.name);
                let remedy = "give each axis a name of its own, and each measure once";
                self.lower.report.table(&raw.at, problem, remedy);
                return None;
            }
        }
        Some(())
    }

    /// The work of a study of a scenario, and the texts it depends on.
    #[expect(clippy::type_complexity, reason = "reported here, or found in the scenario")]
    fn simulate(
        &mut self,
        raw: &RawSimulate,
        tried: &[Tried],
    ) -> Option<Result<(StudyWork, Vec<String>), Vec<Diagnostic>>> {
        let path = beside(self.file.name, raw.scenario.value.as_deref()?);
        let sets = self.override_list(raw.set.as_deref())?;
        let text = match (self.file.open)(&path) {
            Ok(text) => text,
            Err(error) => {
                let problem = format_args!("cannot load the scenario: {error}");
                let remedy = "give the path of a scenario file, relative to this study";
                self.lower.report.value(&raw.scenario.at, problem, remedy);
                return None;
            }
        };
        let recordings = RefCell::new(BTreeMap::new());
        let open = self.file.open;
        let resolve = |recording: &str| {
            if let Some(text) = recordings.borrow().get(recording) {
                return Ok(String::clone(text));
            }
            let text = open(&beside(&path, recording))?;
            recordings.borrow_mut().insert(recording.to_owned(), text.clone());
            Ok(text)
        };
        let scenario = |changes: &[Override]| {
            let all: Vec<Override> = sets.iter().chain(changes).cloned().collect();
            super::parse(&path, &text, &all, &resolve)
        };
        if let Err(found) = scenario(&[]) {
            return Some(Err(found));
        }
        let first: Scenario = self.try_all(tried, scenario)?;
        let measures = self.measures(raw, first)?;
        let recordings = recordings.into_inner();
        let mut texts = vec![text.clone()];
        texts.extend(recordings.iter().flat_map(|(name, text)| [name.clone(), text.clone()]));
        let source = Source { file_name: path, text, recordings };
        Some(Ok((StudyWork::Simulate(Simulate { source, sets, measures }), texts)))
    }

    fn schedulability(&mut self, tried: &[Tried]) -> Option<(StudyWork, Vec<String>)> {
        let (file_name, text) = (self.file.name.to_owned(), self.file.text.to_owned());
        self.try_all(tried, |changes| question(&file_name, &text, changes))?;
        Some((StudyWork::Schedulability(Schedulability { file_name, text }), Vec::new()))
    }

    fn override_list(&mut self, raw: Option<&[Text]>) -> Option<Vec<Override>> {
        let read: Vec<Option<Override>> =
            raw.unwrap_or_default().iter().map(|text| self.one_override(text)).collect();
        read.into_iter().collect()
    }

    fn one_override(&mut self, raw: &Text) -> Option<Override> {
        match raw.value.as_deref()?.parse() {
            Ok(set) => Some(set),
            Err(_not_one) => {
                self.lower.report.value(
                    &raw.at,
                    "is not of the form key=value",
                    "write scheduler.mpcg=3, say",
                );
                None
            }
        }
    }
}

/// A path that is written relative to a file.
fn beside(file: &str, path: &str) -> String {
    match file.rsplit_once('/') {
        Some((folder, _)) if !path.starts_with('/') => format!("{folder}/{path}"),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests;
