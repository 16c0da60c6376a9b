//! What crosses a process boundary.
//!
//! A client (an app with Takt underneath) and the daemon share one region of memory, made and
//! sealed by the daemon, with a ring in each direction. Everything read from it is copied out
//! first and validated then. Nothing the other side does can make a read undefined, shrink the
//! region or block another client.
//!
//! * [`record`]: what the rings carry, as typed values and as eight words each.
//! * [`command`]: names of commands in records.
//! * [`ring`]: a bounded queue between two sides that do not trust each other.
//! * [`region`]: the shared memory itself: layout, seals, mapping.
//! * [`beat`]: the page on which the daemon shows all clients that it is alive.
//! * [`frame_page`]: the page on which it shows when displays refresh, and which frames are finished.
//! * [`wake`]: how each side wakes the other; [`spin`]: how long it spins before it sleeps.
//! * [`message`], [`socket`]: joining and leaving, parameters, questions and answers.
//! * [`credentials`]: what the kernel vouches for about the other side.
//! * [`find`]: where daemons listen, and which one to turn to.
//! * [`client`]: a client's end of all of it. `takt-client` makes a session of it that fails open.
//!
//! The layout is documented in `docs/ipc.md` and pinned by compile-time assertions.

#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(not(loom))]
pub mod beat;
#[cfg(not(loom))]
pub mod client;
pub mod command;
#[cfg(not(loom))]
pub mod credentials;
#[cfg(not(loom))]
pub mod find;
#[cfg(not(loom))]
pub mod frame_page;
pub mod message;
pub mod name;
pub mod record;
#[cfg(not(loom))]
pub mod region;
pub mod ring;
#[cfg(not(loom))]
pub mod socket;
pub mod spin;
mod sync;
pub mod wake;

pub use command::Command;
pub use record::{Malformed, Reply, Request, Standing};
pub use ring::{Corrupt, Full};

/// Version of everything in this crate that both sides must agree on.
pub const VERSION: u16 = 6;
