//! Accepts connections, and closes some where there are too many.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use takt_core::{Span, Time};
use takt_ipc::socket::Descriptors;
use takt_os::clock;

use super::Server;
use super::session::Session;
use crate::control::closer::ClientSocket;
use crate::control::user::{Rank, User};

/// Most connections at once.
const SESSIONS_MAX: usize = 256;
/// Most connections that are accepted in one turn: those that are open are served in between.
const ACCEPTED_MAX: usize = 64;
/// How long one turn accepts connections.
const ACCEPTING_MAX: Span = Span::from_ms(2);
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

    /// Accepts clients and tools that wait, for a short time of its own: sessions that are busy keep no new
    /// one waiting.
    pub(super) fn accept(&mut self, began: Time) {
        for _ in 0..ACCEPTED_MAX {
            let now = clock::now();
            if self.closer.is_crowded() {
                return;
            }
            if now >= began + ACCEPTING_MAX {
                // As long as this took, others have the processor.
                self.accept_from = now + now.since(began);
                return;
            }
            match self.socket.listener().accept() {
                Ok(Some((connection, peer))) => {
                    let connection = ClientSocket::new(connection, self.closer.clone());
                    self.make_room();
                    self.accepted += 1;
                    self.sessions.push(Session::new(self.accepted, connection, peer, now));
                    self.recognise(self.sessions.len() - 1);
                }
                Ok(None) => return,
                Err(_) => {
                    self.accept_from = now + PAUSE;
                    return;
                }
            }
        }
    }

    /// Finds out who it is, if a listed domain may fit: its first message goes before those of others then.
    fn recognise(&mut self, index: usize) {
        if self.settings.domains.may_list(self.sessions[index].peer.uid) {
            self.identity(index);
        }
    }

    /// The configuration lists other domains or executables: those that are no apps yet may belong to others.
    pub(super) fn recognise_again(&mut self) {
        for index in 0..self.sessions.len() {
            if self.sessions[index].app.is_none() {
                self.sessions[index].identity = None;
                self.recognise(index);
            }
        }
    }

    /// If there are too many connections, closes the quietest one of the users that have most, so that no
    /// user keeps another one out. A user of listed apps counts apart from what else that user runs, and where
    /// users have as many, those that are not listed go first: one person may have many of these. Connections of
    /// apps stay: there are fewer slots than connections.
    fn make_room(&mut self) {
        if self.sessions.len() < SESSIONS_MAX {
            return;
        }
        let others = (0..self.sessions.len()).filter(|index| self.sessions[*index].app.is_none());
        let others: Vec<(usize, User)> = others.map(|index| (index, self.user(index))).collect();
        let mut counts: BTreeMap<(u32, Rank), usize> = BTreeMap::new();
        for (_, User { uid, rank }) in &others {
            *counts.entry((*uid, *rank)).or_default() += 1;
        }
        let idle = others.iter().min_by_key(|(index, User { uid, rank })| {
            let count = counts.get(&(*uid, *rank)).copied().unwrap_or_default();
            (Reverse(count), Reverse(*rank), self.sessions[*index].heard)
        });
        if let Some((idle, _)) = idle {
            self.sessions.remove(*idle);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use takt_ipc::socket::Connection;

    use super::*;
    use crate::control::config::Settings;

    /// Long enough for any machine.
    const PATIENCE: Duration = Duration::from_secs(30);
    const USER: u32 = 42_000;

    /// Connects as that user.
    fn connect(server: &Server, uid: u32) -> Connection {
        let path = server.socket.path().to_owned();
        let connect = move || {
            rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(uid))
                .expect("root may be any user");
            Connection::connect(&path, PATIENCE).expect("it listens")
        };
        std::thread::scope(|scope| scope.spawn(connect).join()).expect("no panic")
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "what was skipped")]
    fn clients_have_their_rank_before_they_say_anything() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: only root can be several users");
            return;
        }
        let path = std::env::temp_dir().join(format!("takt-rank-{}", std::process::id()));
        let listed =
            Settings::parse(&format!("[[domain]]\nname = 'cluster'\nuser = {USER}")).expect("settings");
        let mut server = Server::start(path, listed).expect("a daemon");
        let by_all = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(server.socket.path(), by_all).expect("our own socket");
        let _silent = [USER, USER + 1, 0].map(|uid| connect(&server, uid));
        while server.sessions.len() < 3 {
            server.turn().expect("served");
        }
        let ranks = |server: &Server| [0, 1, 2].map(|index| server.user(index).rank);
        assert_eq!(ranks(&server), [Rank::Listed, Rank::Other, Rank::Own]);
        let other = Settings::parse(&format!("[[domain]]\nname = 'cluster'\nuser = {}", USER + 1));
        server.apply(other.expect("settings"));
        assert_eq!(ranks(&server), [Rank::Other, Rank::Listed, Rank::Own], "another configuration");
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "what was skipped")]
    fn many_users_with_a_connection_each_keep_no_listed_one_out() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: only root can be several users");
            return;
        }
        let path = std::env::temp_dir().join(format!("takt-many-{}", std::process::id()));
        let listed = Settings::parse(&format!("[[domain]]\nname = 'cluster'\nuser = {USER}"));
        let mut server = Server::start(path, listed.expect("settings")).expect("a daemon");
        let for_all = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(server.socket.path(), for_all).expect("our own socket");
        let quiet = connect(&server, USER);
        let mut others = Vec::new();
        for number in 1..=u32::try_from(SESSIONS_MAX).expect("few") + 20 {
            others.push(connect(&server, USER + number));
            while server.accepted <= u64::from(number) {
                server.turn().expect("served");
            }
        }
        assert_eq!(server.sessions.len(), SESSIONS_MAX);
        let ranks: Vec<Rank> = (0..server.sessions.len()).map(|index| server.user(index).rank).collect();
        assert!(ranks.contains(&Rank::Listed), "it is the quietest one, and stays");
        assert!(!quiet.is_hung_up());
    }
}
