//! Writers that turn a run into files other tools read.
//!
//! Each one is an [`Observer`](crate::Observer) over any [`std::io::Write`]: it writes while the
//! run passes and keeps only what has begun and not ended. An observer cannot fail in the middle of a run, so
//! a writer remembers the first I/O error, falls silent, and returns it from its `finish`.
//!
//! * [`csv`]: one row per executed command group, for spreadsheets and statistics.
//! * [`json`]: every record, one JSON object per line; it is read again, too.
//! * [`perfetto`]: tracks, slices and flows for the Perfetto UI.
//!
//! The formats are described in `docs/formats.md`.

pub mod csv;
pub mod json;
mod packets;
pub mod perfetto;
mod proto;
mod sink;

pub use csv::Csv;
pub use json::Json;
pub use perfetto::Perfetto;
