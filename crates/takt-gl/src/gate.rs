//! Leave to work: what the daemon grants.
//!
//! Where a daemon schedules, no work reaches the driver without leave. A context asks before the
//! first command of each group, works against the time it was granted, and reports the end of the
//! group when its fence was passed. After a swap it sleeps until its next frame may begin.
//!
//! The whole process is one client. How none of its threads waits for another that is held, and
//! what happens when the daemon does not answer, is up to [`takt_client::session`].

use std::sync::OnceLock;

use takt_client::{Patience, Session};
use takt_core::{GroupKind, Span, Time};
use takt_ipc::message::Hello;

use crate::guard;
use crate::settings::settings;

pub use takt_client::Pass;

/// The session of this process, if anybody is to be asked at all.
fn session() -> Option<&'static Session> {
    static SESSION: OnceLock<Option<Session>> = OnceLock::new();
    let begin = || {
        let settings = settings();
        let socket = settings.socket.clone()?;
        let hello = Hello { name: settings.app.clone(), ..settings.hello.clone() };
        Some(Session::new(socket, hello, guard::say, Patience::of_environment()))
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

/// Asks for leave to show a frame, which is predicted to take `estimate`, and waits for it. None where
/// nobody schedules.
pub fn ask_to_swap(estimate: Span) -> Option<Pass> {
    session()?.ask(GroupKind::Swap, estimate)
}

/// Asks for leave for a group that begins with commands predicted to take `need`, and takes
/// `estimate` if it goes on as expected; waits for it. None where nobody schedules.
pub fn ask(need: Span, estimate: Span) -> Option<Pass> {
    session()?.ask_to_fill(need, estimate)
}

/// Asks for leave for the group after the current one, and does not wait for it.
pub fn ask_ahead(estimate: Span) {
    if let Some(session) = session() {
        session.ask_ahead(estimate);
    }
}

/// Whether the program is scheduled, and its frames begin when it likes.
pub fn is_free_running() -> bool {
    session().is_some_and(Session::is_free_running)
}

/// Whether there is leave that must not go unused for long.
pub fn is_hasty() -> bool {
    session().is_some_and(Session::is_hasty)
}

/// Whether leave that was asked for has not come yet.
pub fn is_awaited() -> bool {
    session().is_some_and(Session::is_awaited)
}

/// A frame ended inside of the group of a pass, which goes on.
pub fn end_frame(pass: &Pass) {
    if let Some(session) = session() {
        session.end_frame(pass);
    }
}

/// Gives leave back that has gone unused for too long; to be called now and then.
pub fn give_back_unused() {
    if let Some(session) = session() {
        session.give_back_unused();
    }
}

/// Whether a pass counts still, or was given back because nothing was done with it; and whether the
/// program is scheduled, and nobody else is.
pub fn look(pass: Option<&Pass>) -> (bool, bool) {
    session().map_or((true, false), |session| session.look(pass))
}

/// The group of a pass is with the driver; none if the pass was given back.
pub fn hand_over(pass: Pass) -> Option<Pass> {
    session().map_or(Some(pass), |session| session.hand_over(pass))
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

/// Whether the program is scheduled, and nobody else is.
pub fn is_alone() -> bool {
    session().is_some_and(Session::is_alone)
}

/// Whether the program is scheduled, and others are as well.
pub fn has_company() -> bool {
    session().is_some_and(Session::has_company)
}

/// The longest group that is to be formed.
pub fn slice() -> Span {
    session().map_or(Span::FOREVER, Session::slice)
}
