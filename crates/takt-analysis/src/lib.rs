//! What can be promised of task sets before anything runs.
//!
//! Each file holds one kind of analysis, with its assumptions, its source and its cost at its head. Takt's own
//! contracts are tested in `takt_core::analysis`; what is here says what other rules could promise.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod cbs;
pub mod edf;
pub mod edf_response;
pub mod method;
mod ratio;
pub mod runlist;
pub mod supply;
pub mod task;
