//! Schedules of the rules that Takt is compared with, by the scripts that the core's own tests play.

extern crate alloc;

mod frame_rates;
mod germ;
#[path = "../../../takt-core/src/scheduler/tests/rig/mod.rs"]
#[expect(clippy::unwrap_used, reason = "part of a test where it comes from")]
mod rig;
mod runlist;
mod servers;
mod timegraph;

// The rig names the modules of the core as if it were part of it.
use takt_core::{Clock, app, clock, config, event, gpu, limits, policy, refresh, scheduler, service, time};
