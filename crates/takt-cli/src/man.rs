//! `takt man`: manual pages, from the same words as `--help`.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use crate::Answer;
use crate::args::Args;
use crate::output;

pub(crate) fn run(folder: &Path) -> anyhow::Result<Answer> {
    std::fs::create_dir_all(folder).with_context(|| output::cannot_write(folder))?;
    // One line per paragraph, as troff wants it: it fills lines itself.
    let command = Args::command().max_term_width(0);
    clap_mangen::generate_to(command, folder).with_context(|| output::cannot_write(folder))?;
    let count = std::fs::read_dir(folder).map_or(0, Iterator::count);
    output::print(&format!("{count} pages are in {}; read one with man -l\n", folder.display()))?;
    Ok(Answer::Yes)
}
