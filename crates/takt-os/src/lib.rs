//! Answers of the operating system that the standard library does not give.
//!
//! * [`clock`]: the monotonic clock, which all processes share.
//! * [`process`]: whether a process can run, and what a thread of it does.
//! * [`vblank`]: when displays refresh.
//! * [`descriptors`]: which open files started programs inherit.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod clock;
pub mod descriptors;
pub mod process;
pub mod vblank;
