//! The apps, one module each, with the arguments of its program.

mod dial;
mod drive;
pub mod flood;
pub mod map;
pub mod menu;
pub mod scene;
pub mod speedometer;
pub mod tachometer;
