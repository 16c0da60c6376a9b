//! `takt run`: a program with Takt underneath.
//!
//! The program takes the place of this process, so signals, exit code, process id and terminal
//! are its own. Nothing is installed: only its environment differs.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;

use crate::Answer;
use crate::args::RunArgs;
use crate::hook::Hooking;

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<Answer> {
    let hooking = Hooking::prepare(args.hook)?;
    if args.verbose {
        crate::output::warn(&format!("takt: {hooking}"));
    }
    let (program, arguments) = args.command.split_first().context("no command was given")?;
    let mut command = Command::new(program);
    command.args(arguments);
    command.envs(hooking.variables.iter().map(|(name, value)| (name, value)));
    // Comes back only if it failed.
    let error = command.exec();
    let shown = program.display();
    match error.kind() {
        ErrorKind::NotFound => Ok(Answer::Exit(NOT_FOUND)).inspect(|_| {
            crate::output::warn(&format!("takt: cannot find the command '{shown}'"));
        }),
        _ => Ok(Answer::Exit(NOT_EXECUTABLE)).inspect(|_| {
            crate::output::warn(&format!("takt: cannot run '{shown}': {error}"));
        }),
    }
}

/// As shells and env(1) have it.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;
