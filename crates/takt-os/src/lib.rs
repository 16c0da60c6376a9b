//! Answers of the operating system that the standard library does not give.
//!
//! * [`clock`]: the monotonic clock, which all processes share, and how long threads have run.
//! * [`process`]: whether a process can run, and what a thread of it does.
//! * [`sandbox`]: whether this process has forbidden itself system calls.
//! * [`vblank`]: when displays refresh.
//! * [`descriptors`]: which open files started programs inherit.
//! * [`fork`]: what happens around it, and work in a copy; [`peers`]: who is connected to a server.
//! * [`signals`]: which a library must neither receive nor cause.
//! * [`interrupt`]: how waits inside the kernel are ended.
//! * [`files`]: which files only the superuser can replace.
//! * [`users`]: the numbers of users and groups.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod clock;
pub mod descriptors;
pub mod files;
pub mod fork;
pub mod interrupt;
pub mod peers;
pub mod process;
pub mod sandbox;
pub mod signals;
pub mod users;
pub mod vblank;
