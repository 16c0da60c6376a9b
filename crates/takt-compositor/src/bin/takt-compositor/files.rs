//! Files that the program reads, and the folder that it makes.

use std::fs::{DirBuilder, File};
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use takt_cockpit::config::{Cockpit, FILE_BYTES_MAX};
use takt_daemon::control::config::Settings;
use takt_daemon::control::rights::Domains;
use takt_daemon::observe::audit::Ledger;

/// Folders that only the cockpit's user opens, and those into which clients of other users go.
const MODE_OWN: u32 = 0o700;
const MODE_SHARED: u32 = 0o755;

/// The configuration of the cockpit.
pub(crate) fn config(path: &Path) -> anyhow::Result<Cockpit> {
    match Cockpit::parse(&read(path)?) {
        Ok(config) => Ok(config),
        Err(mistake) => bail!("{}: {mistake}", path.display()),
    }
}

/// Who belongs to which domain, as the daemon's configuration says.
pub(crate) fn domains(path: Option<&Path>) -> anyhow::Result<Domains> {
    let Some(path) = path else {
        return Ok(Domains::default());
    };
    match Settings::parse(&read(path)?) {
        Ok(settings) => Ok(settings.domains),
        Err(mistake) => bail!("{}: {mistake}", path.display()),
    }
}

/// An audit in that folder, with the bounds and rules that the daemon has by default.
pub(crate) fn ledger(folder: &Path) -> anyhow::Result<Ledger> {
    let folder =
        std::path::absolute(folder).with_context(|| format!("no such folder: {}", folder.display()))?;
    let folder = folder.to_str().with_context(|| format!("{} is no text", folder.display()))?;
    let quoted = toml_text(folder);
    let settings =
        Settings::parse(&format!("[audit]\nfolder = {quoted}\n")).map_err(|error| anyhow!("{error}"))?;
    Ledger::start(&settings.audit).context("cannot start the thread that writes the audit")
}

/// A text as TOML has it.
fn toml_text(text: &str) -> String {
    let plain = |letter: char| !letter.is_control() && letter != '"' && letter != '\\';
    let one = |letter: char| match plain(letter) {
        true => letter.to_string(),
        false => format!("\\u{:04X}", u32::from(letter)),
    };
    format!("\"{}\"", text.chars().map(one).collect::<String>())
}

/// Devices and pipes do not tell their size, so the reading itself is bounded.
fn read(path: &Path) -> anyhow::Result<String> {
    let cannot = || format!("cannot read {}", path.display());
    let mut text = String::new();
    let file = File::open(path).with_context(cannot)?;
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).with_context(cannot)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        bail!("{} has more than {FILE_BYTES_MAX} bytes; is it the right file?", path.display());
    }
    Ok(text)
}

/// Makes the folder of the sockets, if it is not there. No other user may have made it.
pub(crate) fn prepare(folder: &Path, shared: bool) -> anyhow::Result<()> {
    let mode = if shared { MODE_SHARED } else { MODE_OWN };
    DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    if !takt_ipc::find::is_trustworthy(folder) {
        bail!("{} belongs to another user; use another --folder", folder.display());
    }
    Ok(())
}
