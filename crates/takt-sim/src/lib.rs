//! The simulated world.
//!
//! A [`Scenario`] says which apps share a GPU, what their frames cost, how well they are predicted
//! and what goes wrong. The engine plays it in virtual time against the very scheduling core that
//! the daemon runs. Same scenario, same seed: same events, byte for byte.

#![forbid(unsafe_code)]

pub mod model;

pub use model::Scenario;
