//! What the daemon reports: it reads what happened and changes nothing.
//!
//! Not in here: anything on the way of a grant, and buffers without a bound. A reader that is slow
//! loses records, and the loss is counted; scheduling never waits for a reader.
//!
//! * [`journal`]: events, one line each, for people and machines.
//! * [`audit`]: what was decided about which client, in files that show what is missing.
//! * `folds`: how many lines each user gets in a second.
//! * [`recent`]: the records of the last seconds, judged as a simulation is.
//! * `trace_stream`: every record, line by line, for a file and for tools.
//! * `waits`: which app waits for a grant, since when, and why.
//! * `counted_as`, `exposition`, [`exporter`]: counters for monitoring tools.
//! * [`notify`]: messages to the service manager.

pub mod audit;
pub(crate) mod counted_as;
pub(crate) mod evidence;
pub mod exporter;
pub(crate) mod exposition;
pub(crate) mod folds;
pub mod journal;
pub mod notify;
pub mod recent;
pub(crate) mod trace_stream;
pub(crate) mod waits;
