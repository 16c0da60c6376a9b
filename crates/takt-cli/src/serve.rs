//! `takt serve`: the daemon.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use signal_hook::consts::{SIGINT, SIGTERM};
use takt_core::policy;
use takt_daemon::config::Settings;
use takt_daemon::server::Server;

use crate::args::ServeArgs;
use crate::{Answer, background, live, load, output};

/// Longest configuration file.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<Answer> {
    match args {
        ServeArgs { stop: true, .. } => live::stop(&args.socket.path()),
        ServeArgs { background: true, .. } => background::serve(args),
        _ => foreground(args),
    }
}

fn foreground(args: &ServeArgs) -> anyhow::Result<Answer> {
    let settings = settings(args)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot catch signals")?;
    }
    let path = args.own_path();
    let mut server =
        Server::start(path.clone(), settings).with_context(|| format!("cannot serve {}", path.display()))?;
    if !server.denied().is_empty() {
        let denied: Vec<String> =
            server.denied().iter().map(|right| format!("no {} ({})", right.what, right.why)).collect();
        output::warn(&format!("takt: grants may be late on a busy machine: {}", denied.join("; ")));
    }
    output::warn(&format!("takt: serving {}; stop with Ctrl-C", path.display()));
    let mut idle = Idle::new(args.idle_s);
    while !server.is_stopping() && !stop.load(Ordering::Relaxed) && !idle.is_over(server.is_idle()) {
        server.turn()?;
    }
    Ok(Answer::Yes)
}

/// The configuration as the arguments have it.
pub(crate) fn settings(args: &ServeArgs) -> anyhow::Result<Settings> {
    let mut settings = match &args.config {
        Some(file) => {
            let text = load::read(file, CONFIG_BYTES_MAX)
                .with_context(|| format!("cannot read {}", file.display()))?;
            match Settings::parse(&text) {
                Ok(settings) => settings,
                Err(mistake) => bail!("{}: {mistake}", file.display()),
            }
        }
        None => Settings::default(),
    };
    if let Some(policy) = &args.policy {
        debug_assert!(policy::NAMES.contains(&policy.as_str()), "checked with the arguments");
        settings.policy.clone_from(policy);
    }
    Ok(settings)
}

/// For how long nobody has been there.
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
