//! `takt import`: scenarios from the configuration of other schedulers.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use takt_sim::scenario::Diagnostic;
use takt_sim::timegraph;

use crate::args::{ImportFrom, TimegraphArgs};
use crate::{Answer, output};

pub(crate) fn run(from: &ImportFrom) -> anyhow::Result<Answer> {
    match from {
        ImportFrom::Timegraph(args) => timegraph(args),
    }
}

fn timegraph(args: &TimegraphArgs) -> anyhow::Result<Answer> {
    let file = args.file.display().to_string();
    let bytes = bytes(&args.file)?;
    let spec = timegraph::text(&file, &bytes)
        .map_err(|problem| vec![problem])
        .and_then(|text| timegraph::parse(&file, text))
        .map_err(|problems| all(&problems))?;
    let limit = args.limit.as_deref().map(limit).transpose()?;
    let name = args.file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let scenario = timegraph::to_toml(&name, &spec, limit);
    match &args.output {
        None => output::print(&scenario)?,
        Some(path) => {
            output::file(path, &scenario)?;
            let (path, apps) = (path.display(), spec.entries.len());
            output::warn(&format!("{path}: {apps} apps; replace their workloads, then run takt sim {path}"));
        }
    }
    Ok(Answer::Yes)
}

/// The admission limit in permille: a number of percent, or the file that has it.
fn limit(given: &str) -> anyhow::Result<u32> {
    let is_number = given.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+');
    let read = if is_number {
        timegraph::parse_limit("--limit", given)
    } else {
        let bytes = bytes(Path::new(given))?;
        timegraph::text(given, &bytes).and_then(|text| timegraph::parse_limit(given, text))
    };
    read.map_err(|problem| all(&[problem]))
}

/// A file, unless it is absurdly large.
fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let limit = timegraph::SPEC_BYTES_MAX as u64;
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.len() as u64 > limit {
        bail!("cannot read {}: the file has more than {limit} bytes", path.display());
    }
    Ok(bytes)
}

fn all(problems: &[Diagnostic]) -> anyhow::Error {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    anyhow!("{}", lines.join("\nerror: "))
}
