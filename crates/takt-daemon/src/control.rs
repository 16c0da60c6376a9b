//! Which clients are scheduled, on which terms: the socket, the list and the configuration.
//!
//! Its thread may allocate, block and fail; apps draw on without it. Not in here: decisions about
//! what runs on the GPU (those are the core's), and memory that clients share (that is
//! [`rt`](crate::rt)'s). The scheduling loop takes orders through a bounded queue only.
//!
//! * [`server`]: the control socket; it answers clients and tools.
//! * [`closer`]: closes connections that may take long to close.
//! * [`socket_path`]: where it listens, so that only one daemon does; [`socket_file`]: what may be
//!   replaced there.
//! * [`ask`]: questions of tools and their answers, in JSON.
//! * `members`: the clients that are scheduled; `history`: those that left; `quarantine`: those that
//!   broke a rule and may not come back yet.
//! * [`terms`]: the terms of an app and how they become parameters; [`contract`]: what they promise.
//! * [`config`]: the configuration file; [`config_watch`]: when it changed; [`mistake`]: what is wrong
//!   in it.
//! * [`vsync`]: when the display refreshes.
//! * [`cpu_latency`]: how deeply processors may sleep.

pub mod ask;
pub mod closer;
pub mod config;
pub mod config_watch;
pub mod contract;
pub mod cpu_latency;
pub(crate) mod history;
pub(crate) mod members;
pub mod mistake;
pub(crate) mod quarantine;
pub mod server;
pub mod socket_file;
pub mod socket_path;
pub mod terms;
pub mod vsync;
