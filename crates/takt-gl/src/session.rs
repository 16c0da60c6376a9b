//! The session of this process with the daemon.
//!
//! Where a daemon schedules, no work reaches the driver without a grant. The whole process is one
//! client; [`takt_client::session`] says how its threads share grants, and what happens when the daemon
//! does not answer.

use std::sync::OnceLock;

use takt_client::{Session, environment};
use takt_ipc::message::{Hello, Pacing};

use crate::settings::settings;

/// The session of this process. Without a socket in the settings everything passes.
pub fn session() -> &'static Session {
    static SESSION: OnceLock<Session> = OnceLock::new();
    SESSION.get_or_init(|| {
        // What decides when frames begin shows in the first ones.
        let hello = Hello { pacing: Some(Pacing::Unknown), ..settings().hello.clone() };
        environment::session(settings().socket.clone(), hello)
    })
}
