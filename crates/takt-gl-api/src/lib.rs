//! Names of GL, GL ES, EGL and GLX: every entry point with its type, and every number.
//!
//! [`entry`] is the table of entry points with a slot for the driver's function each; [`gl`], [`egl`]
//! and [`glx`] have the numbers. All are generated from the Khronos registry by `cargo xtask gl`.
//! The crate uses no other, because programs load it as part of `takt-hook`.

pub mod egl;
pub mod entry;
pub mod gl;
pub mod glx;
