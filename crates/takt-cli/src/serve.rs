//! `takt serve`: the daemon.

pub(crate) mod first_start;
mod shared;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use takt_core::Span;
use takt_daemon::control::config::Settings;
use takt_daemon::control::config_watch::ConfigWatch;
use takt_daemon::control::seal::{self, Provenance};
use takt_daemon::control::server::Server;
use takt_daemon::control::statement::GpuModel;
use takt_daemon::observe::journal::{Entry, Format, Journal};
use takt_daemon::observe::notify::Manager;
use takt_os::clock;

use crate::args::ServeArgs;
use crate::{Answer, background, live, load, output, signals, version};

/// A scheduling loop that has not turned for this long hangs.
const HUNG: Span = Span::from_ms(2_000);
/// Longest configuration file.
pub(crate) const CONFIG_BYTES_MAX: u64 = 1 << 20;

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<Answer> {
    match args {
        ServeArgs { stop: true, .. } => live::stop(&args.own_path()),
        ServeArgs { background: true, .. } => background::serve(args),
        _ => foreground(args),
    }
}

fn foreground(args: &ServeArgs) -> anyhow::Result<Answer> {
    // Before the file is read, so that a change while we start is noticed.
    let mut watch = args.config.clone().map(ConfigWatch::new);
    // A mistake in the file is told at once, and figures are read after they were measured.
    settings(args)?;
    let unmeasured = if args.no_measure { None } else { first_start::measure().err() };
    let (settings, provenance) = settings(args)?;
    let (stop, reload) = (signals::flag(&[SIGINT, SIGTERM])?, signals::flag(&[SIGHUP])?);
    let mut server = started(args, settings)?;
    if let Some(why) = unmeasured {
        output::warn(&format!("takt: {why}"));
        server.set_gpu_model(GpuModel::Unmeasured(why));
    }
    if let Some(provenance) = provenance {
        server = server.with_provenance(provenance);
    }
    let mut manager = Manager::from_env();
    manager.ready("serving");
    let mut idle = Idle::new(args.idle_s);
    let reason = loop {
        if let Err(error) = server.turn() {
            manager.stopping();
            server.tell(&Entry::Stopping { reason: &error.to_string() });
            return Err(error.into());
        }
        if server.is_stopping() {
            break "a tool stopped it";
        } else if stop.load(Ordering::Relaxed) {
            break "a signal stopped it";
        } else if idle.is_over(server.is_idle()) {
            break "no client for --idle-s seconds";
        }
        if reload.swap(false, Ordering::Relaxed) || watch.as_mut().is_some_and(ConfigWatch::has_changed) {
            manager.reloading(clock::now());
            renew(&mut server, args);
            manager.ready("serving");
        }
        manager.pulse(|| server.silent_for().is_ok_and(|silent| silent < HUNG));
    };
    manager.stopping();
    server.tell(&Entry::Stopping { reason });
    let path = args.record.as_deref();
    server.finish().with_context(|| path.map(output::cannot_write).unwrap_or_default())?;
    Ok(Answer::Yes)
}

/// A server with all that the arguments attach to it.
fn started(args: &ServeArgs, settings: Settings) -> anyhow::Result<Server> {
    let (journal, path) = (journal(args)?, args.own_path());
    let given = settings.gpu_is_given;
    let mut server = Server::start(path.clone(), settings)
        .with_context(|| format!("cannot serve {}", path.display()))?
        .with_journal(journal);
    if !given && let Some(measured) = shared::measured(&takt_calibrate::store::all()) {
        server.set_gpu_model(GpuModel::Measured(measured.names));
    }
    if let Some(path) = &args.record {
        let recording = server.record_to(output::create(path)?, version::build());
        recording.with_context(|| output::cannot_write(path))?;
    }
    if let Some(address) = &args.metrics {
        let serving = server.serve_metrics(address.clone());
        serving.with_context(|| format!("cannot serve metrics at {address}"))?;
    }
    Ok(server)
}

/// Reads the configuration again; the old one holds if it is wrong.
fn renew(server: &mut Server, args: &ServeArgs) {
    match settings(args) {
        Ok((settings, Some(provenance))) => server.renew_from(settings, provenance),
        Ok((settings, None)) => drop(server.apply(settings)),
        Err(error) => server.tell(&Entry::Unreadable { reason: &format!("{error:#}") }),
    }
}

fn journal(args: &ServeArgs) -> anyhow::Result<Journal> {
    let out: Box<dyn std::io::Write + Send> = match &args.log {
        Some(path) => {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            Box::new(file.with_context(|| format!("cannot write {}", path.display()))?)
        }
        None => Box::new(std::io::stderr()),
    };
    let format = if args.log_json { Format::Json } else { Format::Text };
    Journal::new(out, format).context("cannot start the thread that writes the log")
}

/// A configuration file, and where it came from. With a key, it must be sealed by it.
pub(crate) fn from_file(file: &Path, key: Option<&Path>) -> anyhow::Result<(Settings, Provenance)> {
    let text =
        load::read(file, CONFIG_BYTES_MAX).with_context(|| format!("cannot read {}", file.display()))?;
    if let Some(key) = key {
        seal::check(file, &text, key).with_context(|| format!("{} is not sealed", file.display()))?;
    }
    let checked = Settings::parse(&text).and_then(|settings| match key {
        Some(_) => settings.check_sealed().map(|()| settings),
        None => Ok(settings),
    });
    let provenance =
        Provenance { file: file.to_owned(), sha256: seal::sha256(text.as_bytes()), sealed: key.is_some() };
    match checked {
        Ok(settings) => Ok((settings, provenance)),
        Err(mistake) => bail!("{}: {mistake}", file.display()),
    }
}

/// The configuration as the arguments have it, and where it came from.
pub(crate) fn settings(args: &ServeArgs) -> anyhow::Result<(Settings, Option<Provenance>)> {
    let (mut settings, provenance) = match &args.config {
        Some(file) => {
            from_file(file, args.sealed_by.as_deref()).map(|(settings, from)| (settings, Some(from)))?
        }
        None => (Settings::default(), None),
    };
    if !settings.gpu_is_given
        && let Some(measured) = shared::measured(&takt_calibrate::store::all())
    {
        settings.core.gpu = measured.gpu;
    }
    if let Some(policy) = &args.policy {
        debug_assert!(takt_policies::NAMES.contains(&policy.as_str()), "checked with the arguments");
        settings.policy.clone_from(policy);
    }
    Ok((settings, provenance))
}

/// How long the daemon has had no client.
struct Idle {
    most: Option<Duration>,
    since: Instant,
}

impl Idle {
    fn new(seconds: Option<u32>) -> Self {
        Self { most: seconds.map(|seconds| Duration::from_secs(seconds.into())), since: Instant::now() }
    }

    fn is_over(&mut self, idle: bool) -> bool {
        if !idle {
            self.since = Instant::now();
        }
        self.most.is_some_and(|most| self.since.elapsed() > most)
    }
}
