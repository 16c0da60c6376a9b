//! The `takt` command: arguments in, one of the libraries, tables, plots or JSON out.

#![forbid(unsafe_code)]

mod analyze;
mod args;
mod audit;
mod background;
mod bench;
mod capture;
mod check;
mod cockpit;
mod demo;
mod doctor;
mod domains;
mod hook;
mod import;
mod live;
mod load;
mod man;
mod output;
mod policies;
mod profile;
mod prove;
mod replay;
mod report;
mod run;
mod serve;
mod set;
mod signals;
mod sim;
mod sweep;
mod table;
mod task_file;
mod temporary;
mod top;
mod train;
mod version;
mod watch;
mod web;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{CommandFactory, Parser};

use crate::args::{Args, Command};

/// How a command ended, if nothing went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    /// Done, or "yes".
    Yes,
    /// The answer to the question asked is "no".
    No,
    /// Another command speaks by its own exit code.
    Exit(u8),
}

/// The input was bad or the work could not be done.
const EXIT_BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    match answer(Args::parse().command) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::FAILURE,
        Ok(Answer::Exit(code)) => ExitCode::from(code),
        // The reader of our output closed it: that is no error.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            ExitCode::from(EXIT_BAD_INPUT)
        }
    }
}

fn answer(command: Command) -> anyhow::Result<Answer> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::List(args) => live::list(&args),
        Command::Domains(args) => domains::run(&args),
        Command::Cockpit(command) => cockpit::run(&command),
        Command::Top(args) => top::run(&args),
        Command::Web(args) => web::run(&args),
        Command::Set(args) => set::run(&args),
        Command::Why(args) => live::why(&args),
        Command::Trace(args) => capture::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Audit(command) => audit::run(&command),
        Command::Doctor(args) => doctor::run(&args),
        Command::Profile(args) => profile::run(&args),
        Command::Train(args) => train::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Policies(args) => policies::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Analyze(args) => analyze::run(&args),
        Command::Prove(args) => prove::run(&args),
        Command::Sweep(args) => sweep::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Record { file, app } => record(&file, &app),
        Command::Import(from) => import::run(&from),
        Command::Schema { of } => output::print(&args::schema(of)).map(|()| Answer::Yes),
        Command::Completions { shell } => completions(shell),
        Command::Man { folder } => man::run(&folder),
    }
}

fn record(file: &Path, app: &str) -> anyhow::Result<Answer> {
    let limit = takt_sim::scenario::RECORDING_BYTES_MAX as u64;
    let table = load::read(file, limit).with_context(|| format!("cannot read {}", file.display()))?;
    match takt_sim::scenario::from_trace(&table, app) {
        Ok(recording) => output::print(&recording).map(|()| Answer::Yes),
        Err(problem) => bail!("{}: {problem}", file.display()),
    }
}

fn completions(shell: clap_complete::Shell) -> anyhow::Result<Answer> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "takt", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Answer::Yes)
}
