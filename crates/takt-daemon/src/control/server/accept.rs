//! Accepts connections, and closes some where there are too many.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use takt_core::{Span, Time};
use takt_ipc::socket::Descriptors;
use takt_os::clock;

use super::Server;
use super::session::Session;
use crate::control::closer::ClientSocket;

/// Most connections at once.
const SESSIONS_MAX: usize = 256;
/// Most connections that are accepted in one turn: those that are open are served in between.
const ACCEPTED_MAX: usize = 64;
/// How long nothing is accepted after the system could not.
const PAUSE: Span = Span::from_ms(20);

impl Server {
    /// Has the kernel pass on messages with descriptors, as those before 6.16 always do; for tests of how the
    /// daemon deals with them.
    pub fn take_descriptors(&mut self) {
        self.socket.listener().set_descriptors(Descriptors::Passed);
    }

    /// Whether connections are accepted now: not while the system has no descriptors left, and not while
    /// so many connections wait to be closed that the open ones need the rest of that queue.
    pub(super) fn is_open(&self, now: Time) -> bool {
        now >= self.accept_from && !self.closer.is_crowded()
    }

    /// Accepts clients and tools that wait, until `until`.
    pub(super) fn accept(&mut self, until: Time) {
        for _ in 0..ACCEPTED_MAX {
            let now = clock::now();
            if self.closer.is_crowded() || now >= until {
                return;
            }
            match self.socket.listener().accept() {
                Ok(Some((connection, peer))) => {
                    let connection = ClientSocket::new(connection, self.closer.clone());
                    self.make_room();
                    self.accepted += 1;
                    self.sessions.push(Session::new(self.accepted, connection, peer, now));
                }
                Ok(None) => return,
                Err(_) => {
                    self.accept_from = now + PAUSE;
                    return;
                }
            }
        }
    }

    /// If there are too many connections, closes the quietest one of the users that have most, so that no
    /// user keeps another one out. Connections of apps stay: there are fewer slots than connections.
    fn make_room(&mut self) {
        if self.sessions.len() < SESSIONS_MAX {
            return;
        }
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        let others = || self.sessions.iter().enumerate().filter(|(_, session)| session.app.is_none());
        for (_, session) in others() {
            *counts.entry(session.peer.uid).or_default() += 1;
        }
        let count = |session: &Session| counts.get(&session.peer.uid).copied().unwrap_or_default();
        let idle = others().min_by_key(|(_, session)| (Reverse(count(session)), session.heard));
        if let Some((idle, _)) = idle {
            self.sessions.remove(idle);
        }
    }
}
