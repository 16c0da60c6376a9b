//! Arguments of `takt audit`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use takt_audit::{Event, Head};

/// What to do with an audit.
#[derive(Subcommand, Debug)]
pub(crate) enum AuditCommand {
    /// Check that no record was removed, changed or moved (exit 1: one was).
    Verify(VerifyArgs),
    /// Show records, in the order in which they were made.
    Show(ShowArgs),
    /// Find what the rules of the daemon raise alarms for (exit 1: there are alarms).
    Scan(ScanArgs),
}

/// Checks the chain of hashes. Records that are missing at the end are noticed by the file with the
/// head beside the files, and by heads that were noted elsewhere: in the daemon's log (audit-head), in
/// DLT messages, or from an earlier check.
#[derive(ClapArgs, Debug)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) files: AuditFiles,
    /// A head that was noted elsewhere, of the chain main if it names none; may be repeated.
    #[arg(long, value_name = "[CHAIN:]NUMBER:HASH", value_parser = noted)]
    pub(crate) head: Vec<(String, Head)>,
    /// Write the outcome as JSON; - is standard output, without the words.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
}

/// Shows records. It says on standard error if the files are not intact.
#[derive(ClapArgs, Debug)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) files: AuditFiles,
    /// Only records of this kind; may be repeated.
    #[arg(long, value_name = "KIND", value_parser = event)]
    pub(crate) event: Vec<Event>,
    /// Only records about this user.
    #[arg(long, value_name = "UID")]
    pub(crate) user: Option<u32>,
    /// Only records about this domain.
    #[arg(long)]
    pub(crate) domain: Option<String>,
    /// Only records about this app.
    #[arg(long)]
    pub(crate) app: Option<String>,
    /// Only records that this rule decided.
    #[arg(long)]
    pub(crate) rule: Option<String>,
    /// Only records since this time, as records write it; the rest of it may be missing.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only records before this time.
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only the last N of them.
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Write them as JSON; - is standard output, without the table.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
}

/// Runs the daemon's rules over records, by the same code. Alarms that the daemon raised itself are
/// marked.
#[derive(ClapArgs, Debug)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub(crate) files: AuditFiles,
    /// The daemon's configuration, for its rules. Default: the rules that Takt brings along.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Write the alarms as JSON; - is standard output, without the table.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
}

/// The files of an audit.
#[derive(ClapArgs, Debug)]
pub(crate) struct AuditFiles {
    /// Files of an audit, or folders of such files.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) paths: Vec<PathBuf>,
}

fn noted(text: &str) -> Result<(String, Head), String> {
    let (chain, head) = match text.matches(':').count() {
        2 => text.split_once(':').unwrap_or(("main", text)),
        _ => ("main", text),
    };
    Ok((chain.to_owned(), head.parse()?))
}

fn event(text: &str) -> Result<Event, String> {
    let names = || Event::ALL.map(Event::name).join(", ");
    Event::named(text).ok_or_else(|| format!("there is no such kind; there are {}", names()))
}
