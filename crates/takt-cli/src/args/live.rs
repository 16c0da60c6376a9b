//! Arguments of the commands that look at a running daemon, or at its log.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::SocketArgs;

/// Lists the domains of the daemon in the order in which it tries them, with their limits and what their
/// apps use of them. Without the right to see others, it lists your own domain.
#[derive(ClapArgs, Debug)]
pub(crate) struct DomainsArgs {
    /// Write the domains as JSON; - is standard output, without the table.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
}

/// Captures what the daemon does, from now on until Ctrl-C, or for some seconds. The ending of the
/// name tells the format: *.pftrace or *.perfetto-trace for the Perfetto UI, *.csv one row per
/// command group, *.jsonl one line per event. To capture from the very start of a daemon, so that
/// it can be replayed, use `takt serve --record`.
#[derive(ClapArgs, Debug)]
pub(crate) struct TraceArgs {
    /// The file to write.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Stop after this many seconds.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: Option<u64>,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
}

/// Replays the log of a daemon, as `takt serve --record` writes it: the same core gets the same events
/// at the same times. It must decide the same, and break no rule that holds in simulations.
#[derive(ClapArgs, Debug)]
pub(crate) struct ReplayArgs {
    /// The log (JSON lines; see docs/live.md).
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write what happened in another format as well: *.pftrace, *.perfetto-trace or *.csv.
    #[arg(long, value_name = "F")]
    pub(crate) trace: Option<PathBuf>,
    /// Print the figures of each app as well, as `takt sim` does.
    #[arg(long)]
    pub(crate) figures: bool,
    /// Seconds after the first app joined that --figures ignores.
    #[arg(long, value_name = "S", default_value_t = 0, requires = "figures")]
    #[arg(value_parser = clap::value_parser!(u64).range(..=86_400))]
    pub(crate) warm_up: u64,
    /// Write the outcome as JSON; - is standard output, without the words.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
}

/// Shows the scheduled apps, their figures, and what the GPU did a moment ago. Keys: q quits, p pauses,
/// s sorts by the next column, + and - change the span of the timeline, arrows scroll. It waits for a
/// daemon if none runs.
#[derive(ClapArgs, Debug)]
pub(crate) struct TopArgs {
    /// Show one picture and end; also if the output is no terminal.
    #[arg(long)]
    pub(crate) once: bool,
    /// Write one picture as JSON and end; - is standard output.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
    /// Milliseconds that the timeline shows.
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(5..=2_000))]
    pub(crate) span_ms: u64,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
}

/// Serves a page for browsers that shows what the daemon does, and steers it, on this machine only.
///
/// It prints the links to open, with the tokens that the page wants. It is a program of its own, takt-web, with these
/// options: --listen ADDRESS, --read-only, --tokens FILE, --origin URL, --socket PATH. `takt web --help` explains them;
/// docs/web.md is the manual.
#[derive(ClapArgs, Debug)]
#[command(disable_help_flag = true, override_usage = "takt web [OPTIONS]")]
pub(crate) struct WebArgs {
    /// Options of takt-web.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION", hide = true)]
    pub(crate) options: Vec<OsString>,
}
