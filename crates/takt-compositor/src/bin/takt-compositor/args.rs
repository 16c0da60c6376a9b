//! What can be typed. The doc comments are the manual.

use std::path::{Path, PathBuf};

use clap::Parser;
use takt_compositor::sys::DeviceChoice;

/// A cockpit: Wayland clients of several domains, and their pictures on displays of one scheduled GPU.
///
/// It listens on one socket for each domain, and on admin.sock for takt cockpit. SIGTERM and SIGINT end it,
/// and with it the programs that it started.
#[derive(Parser, Debug)]
#[command(name = "takt-compositor", version, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 done, 2 bad input, or it cannot run.")]
pub(crate) struct Args {
    /// Configuration file (TOML; see docs/cockpit.md).
    #[arg(value_name = "FILE", required_unless_present = "man")]
    file: Option<PathBuf>,
    /// Write a manual page into that folder.
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) man: Option<PathBuf>,
    /// Only read and check the configuration.
    #[arg(long)]
    pub(crate) check: bool,
    /// The daemon's socket [default: as for takt run].
    #[arg(long, value_name = "DAEMON", env = "TAKT_SOCKET")]
    pub(crate) socket: Option<PathBuf>,
    /// Folder of the sockets [default: takt-cockpit in $XDG_RUNTIME_DIR, for root without one
    /// /run/takt-cockpit, else takt-cockpit-UID among temporary files].
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Which device draws: a GPU (hardware), a processor (software), or a GPU if there is one.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) device: DeviceChoice,
    /// The daemon's configuration, whose [[domain]] sections say which processes belong to the domains of
    /// the same names. Processes of a domain without a section belong to the cockpit's own user or root.
    #[arg(long, value_name = "FILE")]
    pub(crate) rights: Option<PathBuf>,
    /// The takt command that puts Takt under the programs of [[client]] sections [default: the one beside
    /// this program, else in $PATH; without one, they run unscheduled].
    #[arg(long, value_name = "FILE")]
    pub(crate) takt: Option<PathBuf>,
    /// Where records go [default: standard error].
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Folder of an audit of the records, in files of its own (docs/audit.md); `takt audit verify` and `takt
    /// audit scan` read it.
    #[arg(long, value_name = "DIR")]
    pub(crate) audit: Option<PathBuf>,
    /// Records are JSON objects, one per line.
    #[arg(long)]
    pub(crate) log_json: bool,
}

impl Args {
    /// The configuration file.
    pub(crate) fn file(&self) -> &Path {
        self.file.as_deref().unwrap_or_else(|| Path::new(""))
    }
}
