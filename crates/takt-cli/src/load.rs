//! Reads scenario files and runs them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};
use takt_core::{Span, Time};
use takt_sim::{Scenario, World, meta, scenario};
use takt_trace::{Log, Metrics, Observer, Summary};

use crate::args::ScenarioArgs;
use crate::output;

/// The scenario that the arguments name.
pub(crate) fn load(args: &ScenarioArgs) -> anyhow::Result<Scenario> {
    let path = &args.file;
    let text = read(path, scenario::FILE_BYTES_MAX as u64)
        .with_context(|| format!("cannot read {}", path.display()))?;
    parse(&path.display().to_string(), &text, &args.sets, path.parent())
}

/// A scenario from its text. Recordings are relative to `folder`.
pub(crate) fn parse(
    name: &str,
    text: &str,
    sets: &[scenario::Override],
    folder: Option<&Path>,
) -> anyhow::Result<Scenario> {
    let resolve = |relative: &str| {
        let path = folder.unwrap_or_else(|| Path::new("")).join(relative);
        read(&path, scenario::RECORDING_BYTES_MAX as u64).map_err(|error| error.to_string())
    };
    match scenario::parse(name, text, sets, &resolve) {
        Ok(scenario) => Ok(scenario),
        Err(diagnostics) => {
            let lines: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
            bail!("{}", lines.join("\nerror: "))
        }
    }
}

/// A text file, unless it is absurdly large. Devices and pipes do not tell their size, so the
/// reading itself is bounded.
pub(crate) fn read(path: &Path, bytes_max: u64) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let what = format!("the file has more than {bytes_max} bytes; is it the right one?");
        return Err(std::io::Error::other(what));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
        let byte = error.as_bytes()[at];
        let what =
            format!("line {line}: byte {byte:#04x} is not UTF-8; save the file as plain text in UTF-8");
        std::io::Error::new(std::io::ErrorKind::InvalidData, what)
    })?;
    // Spreadsheets like to put a mark at the beginning.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Runs the scenario with a progress bar; `also` sees every record.
pub(crate) fn simulate(scenario: &Scenario, also: &mut dyn Observer) -> Summary {
    let mut metrics = Metrics::new(meta(scenario), scenario.warm_up);
    let mut world = World::new(scenario, (&mut metrics, also));
    let seconds = scenario.duration.as_ns().div_ceil(1_000_000_000);
    let bar = output::progress(seconds, &format!("{} ({})", scenario.name, scenario.policy));
    let end = Time::ZERO + scenario.duration;
    for second in 1..=seconds {
        world.run_until(Time::from_ms(second * 1000).min(end));
        bar.set_position(second);
    }
    bar.finish_and_clear();
    let facts = world.outcome().facts(scenario);
    metrics.finish(facts)
}

/// The records of a part of the run.
pub(crate) fn timeline(scenario: &Scenario, start: Time, length: Span) -> Log {
    let mut log = Log::window(start, length);
    let mut world = World::new(scenario, &mut log);
    world.run_until((start + length).min(Time::ZERO + scenario.duration));
    log
}
