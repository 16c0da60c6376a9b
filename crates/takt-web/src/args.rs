//! The command line. The doc comments are the manual.

use std::path::PathBuf;
use std::sync::LazyLock;

use anyhow::Context;
use clap::Parser;
use takt_daemon::observe::exporter::Address;

use crate::access::{Origin, Tokens};
use crate::console::Settings;

/// The commit it was built from, if `TAKT_COMMIT` named it at build time; `make` sets that.
const COMMIT: Option<&str> = option_env!("TAKT_COMMIT");

fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| match COMMIT.filter(|commit| !commit.is_empty()) {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    });
    &VERSION
}

/// Serve a page for browsers that shows what the daemon does, and steers it.
///
/// The page is on this machine only, and wants a token: open one of the links that the command prints.
/// It asks the daemon as the user that runs the command, so it sees and changes what that user may.
#[derive(Parser, Debug)]
#[command(name = "takt web", bin_name = "takt web", version = version(), max_term_width = 100)]
#[command(after_help = "Manual: docs/web.md. Exit codes: 0 ended by a signal, 2 bad input.")]
pub struct Args {
    /// Where to listen: a port of this machine, or unix:PATH. Port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9550")]
    listen: Address,
    /// Change nothing, whatever the user may: there is no link for steering.
    #[arg(long)]
    read_only: bool,
    /// File with the tokens; made with new ones if it is missing. Without it, each start has new ones.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Where a reverse proxy shows the page, such as `https://car.example`; may be given several times. Other
    /// origins than these and this machine are refused.
    #[arg(long = "origin", value_name = "URL")]
    origins: Vec<Origin>,
    /// The daemon's socket [default: the user's own, takt/control in $XDG_RUNTIME_DIR or else
    /// takt-UID/control among temporary files; if no daemon answers there, the machine's, /run/takt/control].
    #[arg(long, value_name = "PATH", env = "TAKT_SOCKET")]
    socket: Option<PathBuf>,
}

impl Args {
    /// What they ask for.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        let tokens = match &self.tokens {
            Some(file) => Tokens::of_file(file)?,
            None => Tokens::random().context("cannot make tokens")?,
        };
        let tokens = if self.read_only { tokens.read_only() } else { tokens };
        let (listen, origins, socket) = (self.listen.clone(), self.origins.clone(), self.socket.clone());
        Ok(Settings { listen, tokens, origins, socket })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
