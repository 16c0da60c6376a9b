//! Schedules live clients.
//!
//! * [`engine`]: one turn of the scheduling loop: clients' requests in, the core's decisions out.
//!   It takes the time as an argument, allocates nothing, locks nothing and waits for nothing.
//! * [`seat`]: what the loop keeps of each client.
//! * [`config`], [`members`]: who may be scheduled, and on which terms; [`contract`]: what an app is
//!   promised; [`departed`]: who was.
//! * [`thread`]: the loop itself, on a thread of its own with real-time rights where allowed;
//!   [`ear`]: what wakes it.
//! * [`rights`], [`awake`]: what makes that thread punctual.
//! * [`log`]: what happened lately, judged like a simulation.
//! * [`journal`], [`notify`]: what it tells people, machines and the service manager.
//! * [`watch`]: whether its configuration is another one than before.
//! * [`quarantine`]: who did something wrong and may not come back yet.
//! * [`vsync`]: when the display refreshes.
//! * [`place`]: where it listens, so that only one does.
//! * [`exposition`], [`exporter`]: counters for monitoring tools.
//! * [`feed`]: what happens, line by line, for a file and for tools.
//! * [`waits`]: who waits for leave, since when, and why.
//! * [`ask`], [`server`]: the control socket: clients and tools.

#![forbid(unsafe_code)]

pub mod ask;
pub mod awake;
pub mod clock;
pub mod config;
pub mod contract;
pub mod departed;
pub mod ear;
pub mod engine;
pub mod exporter;
pub mod exposition;
pub mod feed;
pub mod journal;
pub mod log;
pub mod members;
pub mod notify;
pub mod place;
pub mod quarantine;
pub mod rights;
pub mod seat;
pub mod server;
pub mod thread;
pub mod vsync;
pub mod waits;
pub mod watch;
