//! All tests in one program, which is linked once.

#![expect(clippy::unwrap_used, reason = "a test fails where something is missing")]

#[path = "../camera/mod.rs"]
mod camera;
#[path = "../document/mod.rs"]
mod document;
#[path = "../gears/mod.rs"]
mod gears;
#[path = "../imagined/mod.rs"]
mod imagined;
#[path = "../mars_cases/mod.rs"]
mod mars_cases;
#[path = "../models/mod.rs"]
mod models;
#[path = "../play/mod.rs"]
mod play;
#[path = "../scenes/mod.rs"]
mod scenes;

mod adaption;
mod allocations;
mod fragments;
mod glsl_allocations;
mod glsl_hostile;
mod mars_allocations;
mod mars_earth;
mod mars_file;
mod shader_models;
