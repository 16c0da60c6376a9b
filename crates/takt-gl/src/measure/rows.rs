//! One row per group, as CSV.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::OnceLock;

use takt_core::Span;
use takt_predict::adapt::{Disturbance, HistoryAnswer};

use super::Submitted;
use super::settle::Settled;
use crate::guard;
use crate::predict::{Choice, Predicted};
use crate::settings::settings;

/// The columns; `takt run` writes them when it makes the file.
pub fn header(choice: &Choice) -> String {
    let fragments = if choice.combinations().is_empty() { "" } else { ",fragments" };
    format!("{COLUMNS}{fragments}{}\n", choice.columns())
}

const COLUMNS: &str = "app,process,context,frame,group,kind,command,end,piece,draws,scenes,vertices,clear_pixels,\
                       copy_bytes,submitted_us,completed_us,call_us,granted_us,measured_us,clock,disturbed";

/// Rows are written when so many bytes have gathered, or when there is nothing else to do.
const BUFFER_BYTES: usize = 64 << 10;

/// Where rows go.
#[derive(Debug)]
pub(crate) struct Rows {
    file: Option<File>,
    text: String,
}

impl Rows {
    /// Of the file that was asked for, if any.
    pub(crate) fn open() -> Self {
        Self { file: table().and_then(|file| file.try_clone().ok()), text: String::new() }
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, submitted: &Submitted, settled: &Settled) {
        if self.file.is_none() {
            return;
        }
        let (settings, group) = (settings(), &submitted.group);
        let (work, timing) = (&group.work, &settled.timing);
        self.text += &format!(
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            settings.app,
            settings.process,
            group.context,
            group.frame,
            group.number,
            group.kind,
            group.command,
            group.end.name(),
            submitted.follow.part.as_ref().map_or(0, |part| part.number),
            work.draws,
            work.scenes,
            work.vertices,
            work.clear_pixels,
            work.copy_bytes,
            us(timing.submitted_ns),
            us(timing.completed_ns),
            us(work.call_ns),
            submitted.grant.map_or_else(String::new, |grant| us(grant.credit.as_ns())),
            us(timing.cost_ns),
            settled.clock.name(),
            if settled.disturbance == Disturbance::None { "no" } else { "yes" },
        );
        if let Some((_, predicted)) = &submitted.predicted {
            let weight = submitted.follow.part.as_ref().map_or(1.0, |part| part.weight);
            self.predictions(predicted, weight);
        }
        self.text.push('\n');
        if self.text.len() >= BUFFER_BYTES {
            self.write();
        }
    }

    /// What was predicted, of which the group is the part that `weight` says.
    fn predictions(&mut self, predicted: &Predicted, weight: f64) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded, not negative")]
        let part = |span: Span| us((span.as_ns() as f64 * weight).round() as u64);
        let fragments = predicted.predictions.first().map_or(0.0, |(_, ticket)| ticket.fragments());
        self.text += &format!(",{:.0}", fragments * weight);
        for (prediction, ticket) in &predicted.predictions {
            let raw_us = ticket.parts().total_ns() * weight / 1000.0;
            let (value, upper) = (part(prediction.value.span()), part(prediction.upper.span()));
            self.text += &format!(",{value},{upper},{raw_us:.3}");
        }
        if let Some(history) = predicted.history {
            let hit = if matches!(history, HistoryAnswer::Hit(_)) { "yes" } else { "no" };
            self.text += &format!(",{},{hit}", part(history.estimate().span()));
        }
    }

    /// Writes what has gathered.
    pub(crate) fn write(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let written = self.file.as_mut().map_or(Ok(()), |file| file.write_all(self.text.as_bytes()));
        if let Err(error) = written {
            guard::say(&format!("cannot write measurements any more: {error}"));
            self.file = None;
        }
        self.text.clear();
    }
}

fn us(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// The file that was asked for, if any. The first call opens it: a sandbox that the program enters later may allow
/// that no more.
pub(crate) fn table() -> Option<&'static File> {
    static TABLE: OnceLock<Option<File>> = OnceLock::new();
    TABLE.get_or_init(|| settings().measure.as_deref().and_then(append)).as_ref()
}

/// Whole rows are appended, so that several processes can share a file.
fn append(path: &Path) -> Option<File> {
    match OpenOptions::new().append(true).create(true).open(path) {
        Ok(file) => Some(file),
        Err(error) => {
            guard::say(&format!("cannot write measurements to {}: {error}", path.display()));
            None
        }
    }
}
