//! `takt-web`, which `takt web` starts.

#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use takt_web::{Args, Console};

/// The input was bad or the work could not be done.
const EXIT_BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed, too, nothing more can be done.
            let _gone = writeln!(std::io::stderr().lock(), "error: {error:#}");
            ExitCode::from(EXIT_BAD_INPUT)
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    let console = Console::start(args.settings()?)?;
    let mut out = std::io::stdout().lock();
    // A reader that went away does not matter: the console serves on.
    let _gone = out.write_all(console.links().as_bytes()).and_then(|()| out.flush());
    drop(out);
    console.serve_until_signalled()
}
