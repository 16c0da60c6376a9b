//! The simulated world.
//!
//! A [`Scenario`] says which apps share a GPU, what their frames cost, how well they are predicted
//! and what goes wrong. The engine plays it in virtual time against the very scheduling core that
//! the daemon runs. Same scenario, same seed: same events, byte for byte. A [`study`] varies
//! scenarios and analyses.

#![forbid(unsafe_code)]

mod client;
pub mod demand;
pub mod gpu;
mod hash;
mod memory;
pub mod model;
pub mod prove;
pub mod rng;
pub mod scenario;
pub mod study;
pub mod task_sets;
pub mod timegraph;
pub mod world;

pub use model::Scenario;
pub use world::{Outcome, World, meta, run, summarize};
