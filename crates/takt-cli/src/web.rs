//! `takt web`: becomes the console, which is a program of its own.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use crate::Answer;
use crate::args::WebArgs;

/// The program, which lies beside this one.
const PROGRAM: &str = "takt-web";

pub(crate) fn run(args: &WebArgs) -> anyhow::Result<Answer> {
    let program = program();
    // It returns only if the program cannot be started.
    let error = Command::new(&program).args(&args.options).exec();
    Err(error)
        .with_context(|| format!("cannot start {}, which takt web needs beside takt", program.display()))
}

fn program() -> PathBuf {
    let beside = std::env::current_exe().map(|own| own.with_file_name(PROGRAM));
    // Otherwise it is looked for where all programs are.
    beside.ok().filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from(PROGRAM))
}
