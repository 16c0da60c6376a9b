//! The audit of the daemon's decisions, without files, clocks and threads.
//!
//! * [`record`]: what happened, to which client, the decision and its rule.
//! * [`chain`]: records as lines, each with a hash over itself and all lines before it.
//! * [`mod@verify`]: finds lines that were removed, changed or moved.
//! * [`rules`]: raises alarms; live and afterwards by the same code.
//! * [`dlt`]: records as messages of AUTOSAR's Diagnostic Log and Trace.
//! * [`time`]: times as dates.

#![forbid(unsafe_code)]

pub mod chain;
pub mod dlt;
pub mod record;
pub mod rules;
pub mod time;
pub mod verify;

pub use chain::{Chain, Entry, Hash, Head, Opening};
pub use record::{Decision, Event, Record, Subject};
pub use rules::{Alarm, Engine, Rule};
pub use verify::{Report, Source, verify};
