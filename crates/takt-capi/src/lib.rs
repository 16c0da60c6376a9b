//! libtakt: deadlines on a shared GPU for programs that ask for them themselves, in C.
//!
//! Programs whose GPU work does not go through GL ES, or that know better than any model what their
//! work will cost, register here, ask for a grant before each batch of work, and are released frame
//! by frame, by the same daemon and under the same rules as those of `takt run`.
//!
//! * [`app`]: registering, frame targets, leaving, its state.
//! * [`batch`]: batches and frames.
//! * [`job`]: work with a deadline of its own, several at once.
//! * [`display`]: waiting for a refresh, for compositors.
//! * [`status`]: how calls end; `sized`: structures of other versions.
//!
//! `include/takt.h` is generated from this crate; `docs/capi.md` is the manual.

#![allow(non_camel_case_types, reason = "names of C")]

pub mod app;
pub mod batch;
pub mod display;
pub mod job;
mod sized;
pub mod status;

use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use status::Status;

/// Version of libtakt, such as "0.1.0". Never NULL; the text lives forever.
#[unsafe(no_mangle)]
pub extern "C" fn takt_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Runs a call of the interface; no panic ever unwinds into C.
fn shielded(call: impl FnOnce() -> Result<Status, Status>) -> Status {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(status) | Err(status)) => status,
        Err(_) => Status::TAKT_INTERNAL,
    }
}

/// A number of milliseconds from outside as a span.
fn span(ms: f64, max_ms: f64) -> Result<takt_core::Span, Status> {
    if !(0.0..=max_ms).contains(&ms) {
        return Err(Status::TAKT_INVALID);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    let ns = (ms * 1e6).round() as u64;
    Ok(takt_core::Span::from_ns(ns))
}

/// The same the other way round.
fn ms(span: takt_core::Span) -> f64 {
    span.as_ns() as f64 / 1e6
}
