//! A real GL ES driver and real shaders, for tests to compare with.
//!
//! [`Driver`] makes an OpenGL ES 3.0 context without a display and runs vertex shaders in it;
//! positions come back by transform feedback. It also counts the
//! fragments of triangles. [`corpus`] has shaders of real programs.
//!
//! The driver is loaded at run time, so the crate builds where none is installed. Where none can
//! be loaded, [`Driver::new`] says why, and a test that needs it must say that it was skipped.

#![forbid(unsafe_code)]

pub mod corpus;
mod driver;
mod pixels;

pub use driver::{Attribute, Driver, Run, RunError, Unavailable, Uniform, Value};
pub use pixels::Canvas;
