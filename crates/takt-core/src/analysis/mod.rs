//! What can be promised before anything runs.
//!
//! Each file holds one kind of analysis, with its assumptions and its source at its head.

pub mod frames;
