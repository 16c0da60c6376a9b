//! Turns results into pages people look at.
//!
//! [`render`] makes one HTML page of one run, or of several runs of the same scenario side by
//! side. The page is a single file: style, pictures and the few lines of script are inside, and
//! it asks no server for anything, so it can be mailed, archived and opened years later.
//!
//! Names of apps and scenarios come from outside and are never trusted: `html` escapes all
//! text, and data for the script travels as JSON that cannot close its element.
//!
//! * `page`: the page as a whole, the verdict and the table of apps.
//! * `bars`, `utilisation`, `histogram`: pictures drawn from the summary.
//! * `timeline`: the timing diagram, drawn by `drawing.js` from the records and moved by
//!   `timeline.js`.
//! * `misses`: missed deadlines and their causes.
//! * [`compare`]: how good predictions were: figures and plots of compare files.
//! * [`frames`]: frames of real programs, run several times.
//! * [`lines`]: how figures depend on what a study varied.
//! * `svg`, `html`: how pictures and text are written.

#![forbid(unsafe_code)]

mod bars;
pub mod compare;
pub mod frames;
mod histogram;
mod html;
mod jobs;
pub mod lines;
mod misses;
mod page;
mod strips;
mod svg;
#[cfg(test)]
mod tests;
mod timeline;
mod utilisation;

use takt_trace::{Log, Meta, Summary};

/// One run to show.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its figures.
    pub summary: Summary,
    /// What the numbers in its records stand for.
    pub meta: Meta,
    /// The records for the timing diagram, all of them or those of a window.
    pub timeline: Log,
}

/// When frames finish in runs of one scenario, as a picture (SVG): a column for each run, a row for
/// each app.
pub fn histograms(runs: &[Summary]) -> String {
    histogram::picture(runs)
}

/// A self-contained HTML page that shows `runs`, compared with each other if there are several.
pub fn render(runs: &[Run]) -> String {
    page::render(runs)
}
