//! What can be promised before anything runs.
//!
//! Each file holds one kind of analysis, with its assumptions, its source and its cost at its head.

pub mod cbs;
pub mod contracts;
pub mod edf;
pub mod edf_response;
pub mod frames;
pub mod method;
mod ratio;
pub mod runlist;
pub mod supply;
pub mod task;
