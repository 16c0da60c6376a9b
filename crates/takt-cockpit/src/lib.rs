//! Rules of a cockpit: which windows of which domain are shown where, and what reaches them.
//!
//! Everything here is a state machine or a function: events and the time come in, decisions come out.
//! The compositor (`takt-compositor`) carries them out.
//!
//! * [`config`]: the configuration file.
//! * [`windows`]: which windows there are, what they claim to be, and where they are shown.
//! * [`input`]: what input devices do, and to whom that goes.
//! * [`control`]: what tools ask of a running cockpit, and what it answers.
//! * [`geometry`] and [`pattern`]: rectangles, and texts with stars.

#![forbid(unsafe_code)]

pub mod config;
pub mod control;
pub mod geometry;
pub mod input;
pub mod pattern;
pub mod windows;
