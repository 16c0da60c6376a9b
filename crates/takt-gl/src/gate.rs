//! Leave to work: what the daemon grants.
//!
//! Where a daemon schedules, no work reaches the driver without leave. A context asks before the
//! first command of each group, works against the time it was granted, and reports the end of the
//! group when its fence was passed. After a swap it sleeps until its next frame may begin.
//!
//! The whole process is one client. How none of its threads waits for another that is held, and
//! what happens when the daemon does not answer, is up to [`takt_ipc::session`].

use std::sync::OnceLock;

use takt_core::{GroupKind, Span, Time};
use takt_ipc::message::Hello;
use takt_ipc::session::Session;

use crate::guard;
use crate::settings::settings;

pub use takt_ipc::session::Pass;

/// The session of this process, if anybody is to be asked at all.
fn session() -> Option<&'static Session> {
    static SESSION: OnceLock<Option<Session>> = OnceLock::new();
    let begin = || {
        let settings = settings();
        let socket = settings.socket.clone()?;
        let hello = Hello { name: settings.app.clone(), ..settings.hello.clone() };
        Some(Session::new(socket, hello, guard::say))
    };
    SESSION.get_or_init(begin).as_ref()
}

/// Whether anybody is to be asked at all.
pub fn is_wanted() -> bool {
    settings().socket.is_some()
}

/// Makes itself known, before the first work, and finds out how long groups may be.
pub fn greet() {
    if let Some(session) = session() {
        session.join();
    }
}

/// Asks for leave for a group predicted to take `estimate`, and waits for it. None where nobody
/// schedules.
pub fn ask(kind: GroupKind, estimate: Span) -> Option<Pass> {
    match kind {
        GroupKind::Draw => session()?.ask_to_fill(estimate),
        _ => session()?.ask(kind, estimate),
    }
}

/// Gives leave back that has gone unused for too long; to be called now and then.
pub fn give_back_unused() {
    if let Some(session) = session() {
        session.give_back_unused();
    }
}

/// Whether a pass counts still, or was given back because nothing was done with it.
pub fn is_held(pass: &Pass) -> bool {
    session().is_none_or(|session| session.is_held(pass))
}

/// The group of a pass is with the driver; false if the pass was given back.
pub fn hand_over(pass: &Pass) -> bool {
    session().is_none_or(|session| session.hand_over(pass))
}

/// The group of a pass is over.
pub fn complete(pass: Pass, finished_ns: u64, cost_ns: u64) {
    if let Some(session) = session() {
        session.complete(pass, Time::from_ns(finished_ns), Span::from_ns(cost_ns));
    }
}

/// After a swap: sleeps until the next frame may begin.
pub fn pace(swap: Pass) {
    if let Some(session) = session() {
        session.pace(swap);
    }
}

/// The longest group that is to be formed.
pub fn slice() -> Span {
    session().map_or(Span::FOREVER, Session::slice)
}
