//! `takt demo`: the same apps with and without Takt, first simulated, then for real.

mod live;
mod simulated;

use std::time::Instant;

use clap::{Args, ValueEnum};
use std::path::PathBuf;

use crate::Answer;
use crate::output;
use live::Experiment;
use live::cast::Cast;

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Seconds of each run [default: 60 simulated, 10 live].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=3600))]
    seconds: Option<u32>,
    /// Where reports, traces and the logs of apps go.
    #[arg(long, value_name = "DIR", default_value = "out/demo")]
    out: PathBuf,
    /// Only simulate.
    #[arg(long)]
    no_live: bool,
    /// Only run real programs, as an experiment: without and with Takt in turn, several times.
    #[arg(long, value_enum, value_name = "NAME", conflicts_with = "no_live")]
    experiment: Option<ExperimentName>,
    /// How often the experiment goes through both.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "experiment",
          value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Configuration of the daemon that schedules the real programs (TOML; see docs/daemon.md).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write all figures as JSON; - is standard output, without the tables.
    #[arg(long, value_name = "F")]
    json: Option<PathBuf>,
}

/// Experiments with real programs.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum ExperimentName {
    /// An app of 11 ms per frame at 30 frames per second, beside five floods of 50 ms draws.
    Floods,
    /// An instrument beside one program that draws for 50 ms at a time. Exit code 1 if Takt did not keep it on time.
    Pair,
}

/// Seconds of a run, unless told otherwise.
const SIMULATED_S: u32 = 60;
const LIVE_S: u32 = 10;

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<Answer> {
    let began = Instant::now();
    let quiet = output::is_stdout(args.json.as_deref());
    let say = |text: &str| if quiet { Ok(()) } else { output::print(text) };
    let simulated = match args.experiment {
        Some(_) => None,
        None => {
            let told = simulated::run(args.seconds.unwrap_or(SIMULATED_S), &args.out)?;
            say(&told.text)?;
            Some(told.figures)
        }
    };
    let mut live = None;
    if !args.no_live {
        let (cast, rounds) = match args.experiment {
            Some(ExperimentName::Floods) => (Cast::Floods, args.rounds),
            Some(ExperimentName::Pair) => (Cast::Pair, args.rounds),
            None => (Cast::Car, 1),
        };
        let seconds = args.seconds.unwrap_or(LIVE_S);
        let experiment = Experiment { cast, rounds, seconds, config: args.config.clone() };
        match experiment.run(&args.out) {
            Ok(told) => {
                say(&told.text)?;
                live = Some(told.figures);
            }
            // Without real programs the simulation still says what Takt does; an experiment says nothing.
            Err(error) if args.experiment.is_none() => output::warn(&format!(
                "\nThe second part, with real programs, is left out: {error:#}.\n\
                 The simulation above needs neither EGL nor a GPU; `takt doctor` tells what programs need."
            )),
            Err(error) => return Err(error),
        }
    }
    output::json(args.json.as_deref(), &serde_json::json!({ "simulated": simulated, "live": live }))?;
    say(&format!("\nAll of this took {:.0} s.\n", began.elapsed().as_secs_f64()))?;
    let failed = args.experiment == Some(ExperimentName::Pair) && live.is_some_and(|live| !live.is_kept());
    Ok(if failed { Answer::No } else { Answer::Yes })
}

/// What one part of the demonstration has to say.
struct Told<T> {
    text: String,
    figures: T,
}
