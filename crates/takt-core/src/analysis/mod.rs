//! What can be promised before anything runs.
//!
//! Each file holds one kind of analysis, with its assumptions, its source and its cost at its head. Analyses that
//! no decision depends on are in `takt-analysis`.

pub mod contracts;
pub mod frames;
