//! The scheduling core of Takt.
//!
//! Everything that decides *what runs on the GPU and when* lives here, and nothing else does.
//! The core is a state machine: [`Event`]s go in with the time they happened, [`Action`]s come out.
//! It reads no clock, opens no file, spawns no thread and cannot tell whether a simulator or the
//! daemon drives it; the same inputs give the same outputs, always.
//!
//! * [`time`], [`refresh`]: integers with meaning (instants, spans, estimates, costs, periods).
//! * [`app`], [`service`], [`event`]: the vocabulary of what goes in and out.
//! * [`scheduler`]: the machine: queues, frame ledgers, in-flight groups, misses, time-outs.
//! * [`policy`]: the seam for rules that pick the next command group, and Takt's own rule.
//! * [`belief`]: how far the estimates of an app are believed, between an app and the scheduler.
//! * [`analysis`]: what can be promised before anything runs.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;
// Tests run the sources of other rules against the machine as it is here.
#[cfg(test)]
extern crate self as takt_core;

pub mod analysis;
pub mod app;
pub mod belief;
pub mod charge;
pub mod clock;
pub mod config;
pub mod contract;
pub mod event;
pub mod gpu;
pub mod invariant;
pub mod limits;
pub mod policy;
pub mod refresh;
pub mod scheduler;
pub mod service;
pub mod time;

pub use app::{AppId, AppParams, GroupId, GroupKind, Priority, Stride};
pub use charge::Charge;
pub use clock::{Clock, DisplayId};
pub use config::{Adjustable, Config, Margins, Tuning};
pub use event::{Action, Event, FrameDone, Hold, LostBy, Refusal};
pub use gpu::{Divisible, Gpu};
pub use invariant::{Broken, Invariant};
pub use refresh::{Period, RateError, Refresh};
pub use scheduler::{Lane, Scheduler, Stats};
pub use service::Service;
pub use time::{Cost, Estimate, Span, Time};
