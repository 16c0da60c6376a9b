//! The apps, one module each, with the arguments of its program.

mod dial;
mod drive;
pub mod speedometer;
pub mod tachometer;
