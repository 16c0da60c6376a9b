//! `takt serve`: the daemon in the foreground.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use signal_hook::consts::{SIGINT, SIGTERM};
use takt_core::policy;
use takt_daemon::config::Settings;
use takt_daemon::server::Server;

use crate::Answer;
use crate::args::ServeArgs;
use crate::{load, output};

/// Longest configuration file.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<Answer> {
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
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot catch signals")?;
    }
    let path = args.socket.path();
    let mut server =
        Server::start(path.clone(), settings).with_context(|| format!("cannot serve {}", path.display()))?;
    if !server.denied().is_empty() {
        let denied: Vec<String> =
            server.denied().iter().map(|right| format!("no {} ({})", right.what, right.why)).collect();
        output::warn(&format!("takt: grants may be late on a busy machine: {}", denied.join("; ")));
    }
    output::warn(&format!("takt: serving {}; stop with Ctrl-C", path.display()));
    server.run(|| stop.load(Ordering::Relaxed))?;
    Ok(Answer::Yes)
}
