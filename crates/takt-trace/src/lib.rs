//! What happened, and what it means.
//!
//! A run leaves [`Record`]s: everything that went into the scheduling core, everything that came
//! out, and what the GPU did. Observers turn the stream into answers while it passes; exporters
//! turn it into files that other tools read. Nothing here touches a file or a clock: exporters
//! write into any [`std::io::Write`].
//!
//! * [`deduce`]: what the GPU did, where only completions tell.
//! * [`export`]: Perfetto, CSV and JSON lines.
//! * [`frames`]: what programs themselves wrote of their frames, judged.
//! * [`lives`]: the life of each command group, joined from the records.
//! * [`record`]: the records and the [`Observer`] trait.
//! * [`metrics`]: collects the figures of a run, with a cause for every missed deadline.
//! * [`replay`]: whether the core would do the same again.
//! * [`rules`]: what must hold in every run.
//! * [`summary`]: those figures, as `--json` prints them.
//! * [`tenants`]: apps told apart that had the same slot.
//! * [`totals`]: counters that only grow, for monitoring.
//! * [`visible`]: text that steers no terminal and hides nothing.

#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as takt_trace;

mod app_figures;
mod blame;
mod blocking;
pub mod deduce;
pub mod export;
pub mod frames;
mod jobs;
pub mod lives;
pub mod metrics;
mod promise;
pub mod record;
pub mod replay;
mod roster;
pub mod rules;
#[cfg(test)]
mod sample;
pub mod summary;
pub mod tenants;
pub mod totals;
pub mod visible;

pub use deduce::Deduced;
pub use metrics::{Metrics, RunFacts};
pub use record::{AppMeta, GpuRecord, JobsMeta, Log, Meta, Observer, Record, why_held};
pub use summary::{AppSummary, Cause, CauseKind, Miss, Promise, Quantiles, Summary};
pub use tenants::Tenants;
