//! What every interposed API needs between a program and the daemon.
//!
//! The crate knows nothing of GL: any layer that sees a program's GPU work can sit on it.
//!
//! * [`session`]: the connection of one process. It asks for grants, waits for them, paces frames
//!   and reports ends. If the daemon is absent, dead or hung, all work passes at once (fail open).
//! * [`stream`]: the work of one context or queue: its grant, its credit, its frames.
//! * [`gather`]: which short frames share a group.
//! * [`ends`]: when groups ran, by what was seen of their ends.
//! * [`queue`]: how program threads reach the thread that measures.
//! * [`backlog`]: how far a program may be ahead of the GPU where no window stops it.
//! * [`patience`]: how long a program waits for a daemon that does not answer.
//! * `link`: the state behind a session, under one lock.

#![forbid(unsafe_code)]

pub mod backlog;
pub mod ends;
pub mod gather;
mod link;
pub mod patience;
pub mod queue;
pub mod session;
pub mod stream;

pub use patience::Patience;
pub use session::{Grant, Session};
pub use stream::Stream;
