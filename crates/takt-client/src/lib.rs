//! What every interposed API needs between a program and the daemon.
//!
//! The crate knows nothing of GL: any layer that sees a program's GPU work can sit on it.
//!
//! * [`session`]: the connection of one process. It asks for grants, waits for them, paces frames
//!   and reports ends. If the daemon is absent, dead or hung, all work passes at once (fail open).
//! * [`display`]: when a display refreshes, and whose frames were finished before that.
//! * [`stream`]: the work of one context or queue: its grant, its credit, its frames.
//! * [`gather`]: which short frames share a group.
//! * [`frame_finder`]: where frames end in programs that never swap.
//! * [`pace_finder`]: what decides when a program begins its frames.
//! * [`ends`]: when groups ran, by what was seen of their ends.
//! * [`queue`]: how program threads reach the thread that measures.
//! * [`backlog`]: how far a program may be ahead of the GPU where no window stops it.
//! * [`environment`]: what `takt run` asks for.
//! * [`family`]: what becomes of programs that a program starts.
//! * [`guard`]: nothing that goes wrong reaches the program; [`copies`]: when the process may be copied.
//! * [`patience`]: how long a program waits for a daemon that does not answer.
//! * `turns`: how long turns on the GPU are to last, for all sessions of a process.
//! * `link`: the state behind a session, under one lock.

#![forbid(unsafe_code)]

pub mod backlog;
pub mod copies;
pub mod display;
pub mod ends;
pub mod environment;
pub mod family;
pub mod frame_finder;
pub mod gather;
pub mod guard;
mod link;
pub mod pace_finder;
pub mod patience;
pub mod queue;
pub mod session;
pub mod stream;
mod turns;

pub use display::{Display, Vsync};
pub use patience::Patience;
pub use session::{Grant, Session};
pub use stream::Stream;
