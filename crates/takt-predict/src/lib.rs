//! Gpu-time prediction: what a command group will cost before it runs.
//!
//! State in, estimate out. Nothing here calls a driver, reads a clock or opens a file.
//!
//! * [`glsl`]: what a shader reads, computes and costs, and where its vertices end up.
//! * [`fragments`]: how many fragments a draw covers.
//! * [`cost`], [`profile`]: what commands cost on a machine whose constants are known.
//! * [`mars`], [`shaders`]: regression splines, and shader costs by five of them.
//! * [`adapt`]: corrections, quantiles and history, learnt from measured times.
//! * [`programs`]: sources and rates of programs that are measured one by one.
//! * [`store`]: names and seals of files that keep profiles and models.
//! * [`predictor`]: all of it together, for a caller that sees an app's commands.

#![forbid(unsafe_code)]

pub mod adapt;
pub mod cost;
mod estimate;
pub mod exactness;
pub mod fragments;
pub mod glsl;
pub mod mars;
pub mod predictor;
pub mod profile;
pub mod programs;
pub mod shaders;
pub mod store;
mod table;

pub use estimate::Prediction;
