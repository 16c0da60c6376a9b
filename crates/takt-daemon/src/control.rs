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
//!   broke a rule and may not come back yet; `evicted`: those that a tool sent away.
//! * [`identity`]: who a client is, by the kernel's word; [`rights`]: what that client may ask for.
//! * `shares`: whether domains have their minimum share of the GPU.
//! * [`outsiders`]: which processes have the GPU open.
//! * [`statement`]: whether an app is called guaranteed, or why not.
//! * [`seal`]: configurations with a signature.
//! * `view`: which apps a tool sees.
//! * [`supervision`]: which listed apps stopped drawing; `restarter`: starts their units again.
//! * `early_ends`: which apps say too early when their groups end.
//! * [`terms`]: the terms of an app and how they become parameters; [`contract`]: what they promise;
//!   [`coverage`]: which promises hold together; `preview`: what an order would do to them.
//! * [`config`]: the configuration file; [`config_watch`]: when it changed; [`mistake`]: what is wrong
//!   in it.
//! * [`limits`]: how long groups may be, and delay contracts, where the file does not say so.
//! * `user`: whose client or tool it is.
//! * [`vsync`]: when the display refreshes.
//! * [`cpu_latency`]: how deeply processors may sleep.

pub mod ask;
pub mod closer;
pub mod config;
pub mod config_watch;
pub mod contract;
pub mod coverage;
pub mod cpu_latency;
pub(crate) mod early_ends;
pub(crate) mod evicted;
pub(crate) mod history;
pub mod identity;
pub mod limits;
pub(crate) mod members;
pub mod outsiders;
pub mod pacing;
pub(crate) mod preview;
pub(crate) mod quarantine;
pub(crate) mod restarter;
pub mod rights;
pub mod seal;
pub mod server;
pub(crate) mod shares;
pub mod socket_file;
pub mod socket_path;
pub mod statement;
pub mod supervision;
pub mod terms;
pub(crate) mod user;
pub(crate) mod view;
pub mod vsync;

pub use takt_config as mistake;
