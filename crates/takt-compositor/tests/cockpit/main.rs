//! A cockpit with real clients, in real time: what is on its displays, and what clients hear of it.

mod admin;
mod animation;
mod chaos;
mod composition;
mod figures;
mod hostile;
mod input;
mod ivi;
mod program;
mod programs;
mod wayland;
mod wlcs;
mod world;

use std::time::Duration;

/// Long enough for any machine; nothing waits this long unless it is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
