//! What the real-time thread touches, and nothing else.
//!
//! Not in here: allocation after start, locks, calls that block (but for the one wait in
//! [`thread`]), formatting, files, and anything of [`control`](crate::control) or
//! [`observe`](crate::observe). What the rest of the daemon must know leaves through a bounded queue.
//!
//! * [`engine`]: one turn of the scheduling loop: requests in, the core's decisions out.
//! * [`queues`]: orders to the loop and notes from it.
//! * [`endpoint`]: the daemon's end of a client's shared memory; `pause`: one that a tool paused.
//! * [`thread`]: the loop in time; [`wakeup`]: what ends its wait.
//! * [`realtime`]: the privileges that make the thread punctual.

pub mod endpoint;
pub mod engine;
mod pause;
pub mod queues;
pub mod realtime;
pub mod thread;
pub mod wakeup;
