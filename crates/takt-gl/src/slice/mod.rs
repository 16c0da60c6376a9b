//! Draws and dispatches that take longer than one group may are cut into pieces.
//!
//! A GPU does not interrupt a draw; so a draw of 100 ms delays every other client for as long. Where a
//! daemon schedules and wants groups of a certain length at most, long draws are cut into ranges of
//! primitives and boxes of pixels, dispatches into boxes of workgroups (`grid`), and each piece is a group:
//! with grant, fence and completion of its own. Pixels and memory are the same (`rules` say when that holds).
//!
//! Sizes come from what pieces of the same draw did cost (`known`). A draw of which nothing is
//! known begins with two small pieces whose end is waited for.

mod bands;
mod cut;
mod grid;
mod known;
mod part;
mod ranges;
mod rules;
mod scissor;
mod sizing;
mod slicer;
mod stats;
mod tiles;
mod trust;

pub use bands::{Band, Bands, Fill};
pub use cut::{Cut, Piece};
pub use grid::{Grid, Groups};
pub use known::{
    Figures, Known, Signature, Variant, cut, draw, is_measured, is_short_program, measured, variant,
};
pub use part::{Follow, Part};
pub use rules::{Circumstances, DispatchCircumstances, Habits, Reason, Ways, decide, decide_dispatch};
pub use scissor::Scissor;
pub use sizing::{is_short, pieces};
pub use slicer::{CutPlan, CutTrial, Cuttable, Slicer};
pub(crate) use stats::prepare;
pub use stats::{line, line_of, refused};
pub use tiles::{Area, Tiles};
pub use trust::{Trust, Trusted};
