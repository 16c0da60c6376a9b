//! A daemon as a process of its own: `takt serve --background`, and the one that `takt run` starts
//! when a program asks to be scheduled and no daemon runs.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use takt_daemon::control::socket_path;
use takt_ipc::socket::Connection;

use crate::args::ServeArgs;
use crate::serve::first_start;
use crate::{Answer, output};

/// How long a daemon may take to answer: milliseconds on an idle machine, and as long as a GPU is measured at its first
/// start there.
const PATIENCE: Duration = Duration::from_secs(10 + first_start::PATIENCE.as_secs());
/// How often to look whether it does.
const LOOK: Duration = Duration::from_millis(5);
/// A log that is longer than this is started anew.
const LOG_BYTES_MAX: u64 = 1 << 20;
/// A daemon that `takt run` started ends after this long without a client.
pub(crate) const IDLE_S: u32 = 10;

/// Starts a daemon and returns when it answers.
pub(crate) fn serve(args: &ServeArgs) -> anyhow::Result<Answer> {
    // Mistakes are told here and not in a log.
    crate::serve::settings(args)?;
    let socket = absolute(&args.own_path())?;
    if who_answers(&socket).is_some() {
        bail!("a daemon serves {} already; stop it, or give this one another --socket", socket.display());
    }
    let log = match &args.log {
        Some(log) => absolute(log)?,
        None => socket_path::beside(&socket, ".log"),
    };
    if let Some(folder) = socket.parent() {
        socket_path::make(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let mut command = command(args, &socket)?;
    takt_os::descriptors::close_on_exec().context("cannot close inherited descriptors")?;
    command.stderr(open_log(&log).with_context(|| format!("cannot write {}", log.display()))?);
    let mut daemon = command.spawn().context("cannot start the daemon")?;
    wait(&mut daemon, &socket, &log)?;
    output::print(&format!("process {}, socket {}, log {}\n", daemon.id(), socket.display(), log.display()))?;
    Ok(Answer::Yes)
}

/// The command that serves at `socket` in the foreground of its own process group.
fn command(args: &ServeArgs, socket: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot find takt itself")?);
    command.arg("serve").arg("--socket").arg(socket);
    if let Some(key) = &args.sealed_by {
        command.arg("--sealed-by").arg(absolute(key)?);
    }
    if let Some(config) = &args.config {
        command.arg("--config").arg(absolute(config)?);
    }
    if let Some(policy) = &args.policy {
        command.args(["--policy", policy]);
    }
    if let Some(idle_s) = args.idle_s {
        command.arg("--idle-s").arg(idle_s.to_string());
    }
    if args.no_measure {
        command.arg("--no-measure");
    }
    if args.log_json {
        command.arg("--log-json");
    }
    if let Some(record) = &args.record {
        command.arg("--record").arg(absolute(record)?);
    }
    if let Some(metrics) = &args.metrics {
        command.arg("--metrics").arg(metrics.to_string());
    }
    // The daemon ignores the keys of this terminal and keeps no folder in use.
    command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0).current_dir("/");
    // It does not report to the service manager of this process.
    for name in
        ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]
    {
        command.env_remove(name);
    }
    Ok(command)
}

/// Starts a daemon for all programs of this user if none answers at `socket`. It ends after the last of
/// them.
pub(crate) fn ensure(socket: &Path) -> anyhow::Result<()> {
    if who_answers(socket).is_some() {
        return Ok(());
    }
    // This process becomes the program, which expects no children: another process starts the daemon
    // and ends.
    let mut command = Command::new(std::env::current_exe().context("cannot find takt itself")?);
    command.args(["serve", "--background", "--idle-s", &IDLE_S.to_string()]);
    command.arg("--socket").arg(socket).stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.stderr(Stdio::piped()).output().context("cannot start a daemon")?;
    if output.status.success() {
        let shown = socket.display();
        output::warn(&format!(
            "takt: started a daemon at {shown}; it ends {IDLE_S} s after its last program"
        ));
    } else if who_answers(socket).is_none() {
        bail!("cannot start a daemon: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Waits until the daemon answers.
fn wait(daemon: &mut Child, socket: &Path, log: &Path) -> anyhow::Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        match who_answers(socket) {
            Some(pid) if pid == daemon.id() => return Ok(()),
            Some(pid) => bail!("process {pid} was faster to serve {}", socket.display()),
            None => {}
        }
        if let Some(status) = daemon.try_wait()? {
            let said = std::fs::read_to_string(log).unwrap_or_default();
            bail!("the daemon ended at once ({status}): {}", said.lines().last().unwrap_or_default());
        }
        if Instant::now() > until {
            bail!("the daemon does not answer; {} may say why", log.display());
        }
        std::thread::sleep(LOOK);
    }
}

/// The process that serves there, if any does.
fn who_answers(socket: &Path) -> Option<u32> {
    Connection::connect(socket, PATIENCE).ok()?.peer().ok().map(|peer| peer.pid)
}

fn open_log(path: &Path) -> std::io::Result<File> {
    let long = path.metadata().is_ok_and(|file| file.len() > LOG_BYTES_MAX);
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    if long {
        log.set_len(0)?;
    }
    Ok(log)
}

fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))
}
