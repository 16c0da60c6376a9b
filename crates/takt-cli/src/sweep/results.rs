//! Where the results of a study go.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use takt_report::lines::{self, Page};
use takt_sim::study::table::{Cell, Table as Results};
use takt_sim::study::{Shard, Study};

use super::charts;
use crate::output;
use crate::table::Table;

/// What was done and what came out, as `--json` prints it.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct SweepOutcome {
    /// Name of the study.
    study: String,
    /// Hash over the study file and the files it names.
    fingerprint: String,
    /// Jobs of the whole study.
    jobs: u64,
    /// Which part was computed, such as 2/8; 1/1 is all of it.
    shard: String,
    /// Jobs that were finished before, by an interrupted run or by others.
    reused: u64,
    /// Files that were written.
    pub(super) files: Vec<PathBuf>,
    /// Names of the columns of results; none for a part.
    columns: Vec<String>,
    /// Results, one row per job: numbers, texts or null.
    rows: Vec<Vec<Value>>,
}

/// Rows that are printed; the rest is in the files.
const ROWS_SHOWN: usize = 40;

impl SweepOutcome {
    pub(super) fn new(study: &Study, shard: Shard, reused: u64) -> Self {
        Self {
            study: study.name.clone(),
            fingerprint: format!("{:016x}", study.fingerprint),
            jobs: study.jobs(),
            shard: shard.to_string(),
            reused,
            files: Vec::new(),
            columns: Vec::new(),
            rows: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, table: Results) {
        self.columns = table.columns.into_iter().map(|column| column.name).collect();
        self.rows = table.rows.into_iter().map(|row| row.into_iter().map(value).collect()).collect();
    }

    pub(super) fn describe(&self, out: &Path) -> String {
        let whole = self.shard == Shard::WHOLE.to_string();
        let part = if whole { String::new() } else { format!(", part {}", self.shard) };
        let mut text = format!("{}{part}: {} jobs in all", self.study, self.jobs);
        if self.reused > 0 {
            text += &format!(", {} of them were finished before", self.reused);
        }
        text.push('\n');
        if !whole {
            let next = "put the parts together with takt sweep FILE --merge once all are finished";
            return text + &format!("journal in {}; {next}\n", out.display());
        }
        let mut table = Table::with(self.columns.iter().map(String::as_str));
        for row in self.rows.iter().take(ROWS_SHOWN) {
            table.row(row.iter().map(shown).collect());
        }
        text += &table.render();
        if self.rows.len() > ROWS_SHOWN {
            text += &format!("… and {} more rows\n", self.rows.len() - ROWS_SHOWN);
        }
        let files: Vec<String> = self.files.iter().map(|file| file.display().to_string()).collect();
        text + &format!("written: {}\n", files.join(", "))
    }
}

fn value(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Int(value) => value.into(),
        // Infinities have no JSON form but null.
        Cell::Float(value) => value.into(),
        Cell::Text(text) => text.into(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

/// Writes tables, pictures and a page; returns their paths.
pub(super) fn write(study: &Study, table: &Results, out: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = vec![out.join("results.csv")];
    output::file(&files[0], &table.to_csv())?;
    let charts: Vec<_> = study.plots.iter().map(|plot| charts::panels(study, plot, table)).collect();
    for (number, panels) in (1..).zip(&charts) {
        let path = out.join(format!("plot-{number}.svg"));
        output::file(&path, &lines::picture(panels))?;
        files.push(path);
    }
    let text = |cell: &Cell| cell.to_string();
    let page = Page {
        name: study.name.clone(),
        description: study.description.clone(),
        facts: facts(study),
        charts,
        columns: table.columns.iter().map(|column| column.name.clone()).collect(),
        rows: table.rows.iter().map(|row| row.iter().map(text).collect()).collect(),
    };
    let path = out.join("index.html");
    output::file(&path, &lines::page(&page))?;
    files.push(path);
    Ok(files)
}

fn facts(study: &Study) -> Vec<(String, String)> {
    let fact = |what: &str, is: String| (what.to_owned(), is);
    let last = study.seed + study.repetitions - 1;
    vec![
        fact("Jobs", study.jobs().to_string()),
        fact(
            "Seeds",
            if study.repetitions == 1 { last.to_string() } else { format!("{} to {last}", study.seed) },
        ),
        fact("Fingerprint", format!("{:016x}", study.fingerprint)),
        fact("Program", format!("takt {}", env!("CARGO_PKG_VERSION"))),
    ]
}
