//! The cockpit: Wayland clients of several domains, and their pictures on displays of one scheduled GPU.
//!
//! * [`manager`]: the thread that decides which windows are shown where, by the rules of `takt-cockpit`.
//! * [`client`]: one thread for each connection; it speaks Wayland and copies what the client draws.
//! * [`output`]: one thread for each display; it composes with GL, by a contract with the scheduler.
//! * [`picture`]: what passes from clients to outputs.
//! * [`cockpit`]: all of it together.
//! * [`admin`]: the socket for tools.
//! * [`input`]: threads that read input devices.
//! * [`programs`]: programs that the cockpit starts.
//! * [`records`]: what was decided, as lines for people or machines.
//! * [`sys`]: the one place that calls what the compiler cannot check.

#![deny(unsafe_code)]

pub mod admin;
pub mod bell;
pub mod client;
pub mod cockpit;
pub mod input;
pub mod mailbox;
pub mod manager;
pub mod output;
pub mod picture;
pub mod programs;
pub mod records;
#[expect(unsafe_code, reason = "GL contexts are made here, input devices asked, and processes prepared")]
pub mod sys;

pub use cockpit::{Cockpit, Controls, Options};

/// A span as the kernel takes it.
fn timespec(span: takt_core::Span) -> rustix::time::Timespec {
    let part = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let ns = span.as_ns();
    rustix::time::Timespec { tv_sec: part(ns / 1_000_000_000), tv_nsec: part(ns % 1_000_000_000) }
}
