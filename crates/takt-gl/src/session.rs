//! The session of this process with the daemon.
//!
//! Where a daemon schedules, no work reaches the driver without a grant. The whole process is one
//! client; [`takt_client::session`] says how its threads share grants, and what happens when the daemon
//! does not answer.

use std::sync::OnceLock;

use takt_client::{Patience, Session};
use takt_ipc::message::Hello;

use crate::guard;
use crate::settings::settings;

/// The session of this process. Without a socket in the settings everything passes.
pub fn session() -> &'static Session {
    static SESSION: OnceLock<Session> = OnceLock::new();
    SESSION.get_or_init(|| {
        let settings = settings();
        let Some(socket) = settings.socket.clone() else {
            return Session::absent(guard::say);
        };
        let hello = Hello { name: takt_ipc::name::nearest(&settings.app), ..settings.hello.clone() };
        Session::new(socket, hello, guard::say, Patience::of_environment())
    })
}
