//! `takt report`: how good predictions were.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use schemars::JsonSchema;
use serde::Serialize;
use takt_report::compare::{Comparison, Figures, Row, figures, plot, render};

use crate::Answer;
use crate::args::{ReportArgs, SplitBy};
use crate::load;
use crate::output;
use crate::table::{Table, percent};

/// Largest compare file that is read.
const FILE_BYTES_MAX: u64 = 512 << 20;

/// The figures of one file, as `--json` prints them.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct FileFigures {
    /// Name of the file.
    file: String,
    /// All rows first, then the parts.
    figures: Vec<Figures>,
}

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<Answer> {
    let by: Option<fn(&Row) -> &str> = match args.by {
        SplitBy::App => Some(|row| row.app.as_str()),
        SplitBy::Kind => Some(|row| row.kind.as_str()),
        SplitBy::None => None,
    };
    let mut all = Vec::new();
    for (path, page) in args.files.iter().zip(page_names(&args.files)) {
        let comparison = read(path)?;
        if let Some(folder) = &args.out {
            output::file(&folder.join(&page), &render(&path.display().to_string(), &comparison, by))?;
        }
        if let Some(folder) = &args.plots {
            output::file(&folder.join(page).with_extension("svg"), &plot(&comparison))?;
        }
        let file = path.display().to_string();
        all.push(FileFigures { file, figures: figures(&comparison, by) });
    }
    output::json(args.json.as_deref(), &all)?;
    if !output::is_stdout(args.json.as_deref()) {
        for file in &all {
            output::print(&describe(file))?;
        }
    }
    Ok(Answer::Yes)
}

/// A page is named after its file, and numbered where several files have one name.
fn page_names(files: &[PathBuf]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for path in files {
        let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
        let numbered = (1_u32..).map(|number| match number {
            1 => format!("{name}.html"),
            _ => format!("{name}-{number}.html"),
        });
        names.extend(numbered.into_iter().find(|page| !names.contains(page)));
    }
    names
}

fn read(path: &Path) -> anyhow::Result<Comparison> {
    let text = load::read(path, FILE_BYTES_MAX).with_context(|| format!("cannot read {}", path.display()))?;
    match Comparison::parse(&text) {
        Ok(comparison) => Ok(comparison),
        Err(error) => bail!("{}:{error}", path.display()),
    }
}

fn describe(file: &FileFigures) -> String {
    let mut table = Table::new(
        "<rows, <model, predicted, mean us, MAE us, MAPE, bias us, p50 us, p95 us, p99 us, max us, under, above upper",
    );
    let us = |value: f64| format!("{value:.1}");
    for part in &file.figures {
        for model in &part.models {
            table.row(vec![
                part.of.clone(),
                model.model.clone(),
                model.predicted.to_string(),
                us(part.measured_mean_us),
                us(model.mae_us),
                percent(model.mape),
                us(model.bias_us),
                us(model.p50_us),
                us(model.p95_us),
                us(model.p99_us),
                us(model.max_us),
                percent(model.under_predicted),
                model.upper_exceeded.map_or_else(|| "-".to_owned(), percent),
            ]);
        }
    }
    format!("{}\n\n{}\n", file.file, table.render())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_page_overwrites_another() {
        let files = ["a/x.csv", "b/x.csv", "x-2.csv", "c/x.txt", "y"].map(PathBuf::from);
        assert_eq!(page_names(&files), ["x.html", "x-2.html", "x-2-2.html", "x-3.html", "y.html"]);
    }
}
