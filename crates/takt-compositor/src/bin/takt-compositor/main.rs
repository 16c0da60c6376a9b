//! `takt-compositor`: reads a configuration, and is its cockpit until a signal ends it.

#![forbid(unsafe_code)]

mod args;
mod files;

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use clap::{CommandFactory, Parser};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use signal_hook::consts::{SIGINT, SIGTERM};
use takt_cockpit::config::Cockpit as Config;
use takt_compositor::admin::Admin;
use takt_compositor::programs::{self, Programs, Surroundings};
use takt_compositor::records::{Format, Journal, Line, Writer};
use takt_compositor::{Cockpit, Controls, Options};
use takt_daemon::observe::notify::Manager;
use takt_os::descriptors;

use args::Args;

/// The input was bad or the work could not be done, as for `takt`.
const EXIT_BAD_INPUT: u8 = 2;
/// How often to look whether all threads are well.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
/// A display that has not turned for this long hangs.
const HUNG: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.man {
        Some(folder) => man(folder),
        None if args.check => check(&args),
        None => serve(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed, too, nothing more can be done.
            writeln!(std::io::stderr(), "error: {error:#}").unwrap_or_default();
            ExitCode::from(EXIT_BAD_INPUT)
        }
    }
}

/// Writes the manual page, from the same words as `--help`.
fn man(folder: &Path) -> anyhow::Result<()> {
    // One line per paragraph, as troff wants it: it fills lines itself.
    let command = Args::command().max_term_width(0);
    clap_mangen::generate_to(command, folder).with_context(|| format!("cannot write {}", folder.display()))
}

fn check(args: &Args) -> anyhow::Result<()> {
    let config = files::config(args.file())?;
    let given = files::domains(args.rights.as_deref())?;
    Programs::check(&config, &given).map_err(|reason| anyhow!("{}: {reason}", args.file().display()))?;
    let Config { outputs, domains, rules, inputs, clients } = &config;
    let counts = [
        ("outputs", outputs.len()),
        ("domains", domains.len()),
        ("windows", rules.len()),
        ("inputs", inputs.len()),
        ("clients", clients.len()),
    ];
    let counts: Vec<String> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
    writeln!(std::io::stdout(), "{}: {}", args.file().display(), counts.join(", "))?;
    Ok(())
}

fn serve(args: &Args) -> anyhow::Result<()> {
    // Programs that it starts inherit nothing of what it inherited.
    descriptors::close_on_exec().context("cannot look after open files")?;
    let config = files::config(args.file())?;
    let domains = files::domains(args.rights.as_deref())?;
    Programs::check(&config, &domains).map_err(|reason| anyhow!("{}: {reason}", args.file().display()))?;
    // Before anything starts, so that no signal in between is lost.
    let signals = signals()?;
    let (journal, writer) = journal(args)?;
    let options = Options {
        daemon: args.socket.clone().unwrap_or_else(takt_ipc::find::default_path),
        device: args.device,
        folder: Some(args.folder.clone().unwrap_or_else(takt_ipc::find::cockpit_folder)),
        domains,
        recorder: journal.recorder(Arc::new(config.clone())),
    };
    let served = run(args, config, options, (&signals, &journal));
    // All records are written when the last journal is gone.
    drop(journal);
    drop(writer);
    served
}

fn run(
    args: &Args,
    config: Config,
    options: Options,
    (signals, journal): (&UnixStream, &Journal),
) -> anyhow::Result<()> {
    let folder = options.folder.clone().context("a program has a folder")?;
    files::prepare(&folder, args.rights.is_some())?;
    let started = format!("sockets in {}, daemon at {}", folder.display(), options.daemon.display());
    let surroundings = surroundings(args, &config, &options, &folder);
    let cockpit = Cockpit::start(config, options)?;
    let controls = cockpit.controls().clone();
    let admin = Admin::start(&folder, controls.clone())
        .with_context(|| format!("cannot listen in {}", folder.display()))?;
    journal.tell(Line::new("started", started));
    let programs = Programs::start(controls.clone(), surroundings, journal.clone())
        .context("cannot start the programs of [[client]] sections")?;
    let mut manager = Manager::from_env();
    manager.ready("serving");
    wait(signals, &mut manager, &controls);
    manager.stopping();
    journal.tell(Line::new("stopping", "a signal ends it"));
    // Programs end before what they show, so that they end by themselves.
    drop(programs);
    drop(admin);
    drop(cockpit);
    Ok(())
}

/// What programs need that it starts.
fn surroundings(args: &Args, config: &Config, options: &Options, folder: &Path) -> Surroundings {
    Surroundings {
        folder: folder.to_owned(),
        daemon: options.daemon.clone(),
        takt: args.takt.clone().or_else(programs::takt),
        displays: config.outputs.iter().map(|output| output.name.clone()).collect(),
    }
}

/// Becomes readable when a signal wants the end.
fn signals() -> anyhow::Result<UnixStream> {
    let (signals, tell) = UnixStream::pair().context("cannot catch signals")?;
    for signal in [SIGINT, SIGTERM] {
        let tell = tell.try_clone().context("cannot catch signals")?;
        signal_hook::low_level::pipe::register(signal, tell).context("cannot catch signals")?;
    }
    Ok(signals)
}

/// Waits for a signal, and tells the service manager meanwhile that all is well.
fn wait(signals: &UnixStream, manager: &mut Manager, controls: &Controls) {
    let mut turned = Instant::now();
    let mut before = Vec::new();
    loop {
        let mut fds = [PollFd::new(signals, PollFlags::IN)];
        // An interrupted sleep is a short one: the next look finds what interrupted it.
        if poll(&mut fds, Some(&LOOK)).is_ok_and(|ready| ready > 0) {
            return;
        }
        manager.pulse(|| {
            let Ok(status) = controls.status() else {
                return false;
            };
            let now: Vec<u64> = status.outputs.iter().map(|output| output.refreshes).collect();
            if before.len() != now.len() || before.iter().zip(&now).all(|(before, now)| before != now) {
                turned = Instant::now();
            }
            before = now;
            turned.elapsed() < HUNG
        });
    }
}

fn journal(args: &Args) -> anyhow::Result<(Journal, Writer)> {
    let out: Box<dyn Write + Send> = match &args.log {
        Some(path) => {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            Box::new(file.with_context(|| format!("cannot write {}", path.display()))?)
        }
        None => Box::new(std::io::stderr()),
    };
    let format = if args.log_json { Format::Json } else { Format::Text };
    let ledger = args.audit.as_deref().map(files::ledger).transpose()?;
    Journal::new(out, format, ledger).context("cannot start the thread that writes records")
}
