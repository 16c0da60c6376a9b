//! What every interposed API needs between a program and the daemon.
//!
//! The crate knows nothing of GL: any layer that sees a program's GPU work can sit on it.
//!
//! * [`session`]: the connection of one process. It asks for grants, waits for them, paces frames
//!   and reports ends. If the daemon is absent, dead or hung, all work passes at once (fail open).
//! * [`patience`]: how long a program waits for a daemon that does not answer.
//! * `link`: the state behind a session, under one lock.

#![forbid(unsafe_code)]

mod link;
pub mod patience;
pub mod session;

pub use patience::Patience;
pub use session::{Pass, Session};
