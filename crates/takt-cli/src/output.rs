//! Where results and complaints go.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use takt_trace::visible;

/// Prints to standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(visible::shown(text).as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Tells on standard error what went wrong, all the way down.
pub(crate) fn complain(error: &anyhow::Error) {
    let mut out = io::stderr().lock();
    // If standard error is closed, too, nothing more can be done.
    let _gone = writeln!(out, "error: {}", visible::shown(&format!("{error:#}")));
}

/// Says something on standard error that is no error.
pub(crate) fn warn(text: &str) {
    let mut out = io::stderr().lock();
    let _gone = writeln!(out, "{}", visible::shown(text));
}

/// Whether the error is only that our reader went away.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    kinds.map(io::Error::kind).any(|kind| kind == io::ErrorKind::BrokenPipe)
}

/// Whether JSON replaces the text for people.
pub(crate) fn is_stdout(path: Option<&Path>) -> bool {
    path.is_some_and(|path| path == Path::new("-"))
}

/// Writes `value` as JSON to `path`, or to standard output for `-`.
pub(crate) fn json(path: Option<&Path>, value: &impl Serialize) -> anyhow::Result<()> {
    let Some(path) = path else {
        return Ok(());
    };
    let text = visible::json(&serde_json::to_string_pretty(value)?).into_owned() + "\n";
    if is_stdout(Some(path)) { print(&text) } else { file(path, &text) }
}

/// Writes a whole file and its folder.
pub(crate) fn file(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut out = create(path)?;
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).with_context(|| cannot_write(path))
}

/// Creates a file and its folder.
pub(crate) fn create(path: &Path) -> anyhow::Result<BufWriter<File>> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).with_context(|| cannot_write(path))?;
    }
    Ok(BufWriter::new(File::create(path).with_context(|| cannot_write(path))?))
}

pub(crate) fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// A progress bar on standard error, if that is a terminal.
pub(crate) fn progress(total: u64, what: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total);
    if let Ok(style) = ProgressStyle::with_template("{msg:28} {bar:40} {percent:>3} %  {eta} left") {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
