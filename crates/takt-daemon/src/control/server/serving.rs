//! Waits for events, and serves those connections first that matter most.

use std::io::ErrorKind;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use takt_core::{Span, Time};
use takt_os::clock;

use super::Server;
use crate::control::user::{Rank, User};
use crate::rt::realtime;

/// How often notes are read when nothing else happens.
const TURN: Duration = Duration::from_millis(20);

/// What has happened.
pub(super) struct Ready {
    /// A connection waits to be accepted.
    pub(super) is_called: bool,
    /// Sessions that have something to be served, by their index.
    pub(super) sessions: Vec<(usize, PollFlags)>,
    /// Sessions of apps whose process has ended.
    pub(super) ended: Vec<usize>,
}

impl Server {
    /// Lets this thread go before ordinary ones, where the system allows that: other programs that are busy
    /// delay no join then. How much time users that are not listed take from others by that is bounded by
    /// their [rests](super::fair::Fair::rest).
    pub(super) fn hurry(&mut self) {
        if !std::mem::replace(&mut self.hurried, true) {
            realtime::before_ordinary();
        }
    }

    /// Waits for connections, answers and messages.
    pub(super) fn wait(&mut self) -> std::io::Result<Ready> {
        let now = clock::now();
        let interest = if self.is_open(now) { PollFlags::IN } else { PollFlags::empty() };
        let is_heard = |index: &usize| !self.fair.is_resting(now) || self.user(*index).rank != Rank::Other;
        let waiting: Vec<usize> = (0..self.sessions.len()).filter(is_heard).collect();
        let mut fds = vec![PollFd::new(&self.socket, interest), PollFd::new(&self.analysts, PollFlags::IN)];
        fds.extend(waiting.iter().map(|index| {
            let session = &self.sessions[*index];
            PollFd::new(&session.connection, session.interest())
        }));
        let process = |index: usize| Some((index, self.sessions[index].process.as_ref()?));
        let (apps, processes): (Vec<usize>, Vec<_>) = (0..self.sessions.len()).filter_map(process).unzip();
        fds.extend(processes.iter().map(|process| PollFd::new(*process, PollFlags::IN)));
        let timeout = Timespec { tv_sec: 0, tv_nsec: self.patience(now).subsec_nanos().into() };
        self.stalls.wait(now);
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.stalls.wake(clock::now());
        let is_called = !fds[0].revents().is_empty();
        let mut events = fds[2..].iter().map(PollFd::revents);
        let sessions =
            waiting.into_iter().zip(&mut events).filter(|(_, events)| !events.is_empty()).collect();
        let ended = apps.into_iter().zip(events).filter(|(_, events)| !events.is_empty());
        let ended = ended.map(|(index, _)| index).collect();
        Ok(Ready { is_called, sessions, ended })
    }

    /// How long to wait for events.
    fn patience(&self, now: Time) -> Duration {
        if !self.scheduling.notes.is_empty() {
            return Duration::ZERO;
        }
        let due = [self.fair.rests_until(), self.accept_from].into_iter().filter(|due| *due > now).min();
        due.map_or(TURN, |due| TURN.min(Duration::from_nanos(due.since(now).as_ns())))
    }

    /// Serves sessions that are ready, until `until`: first those of users that are better known, and of
    /// these those on whom least time was spent.
    pub(super) fn serve_ready(&mut self, mut ready: Vec<(usize, PollFlags)>, until: Time) {
        ready.sort_by_cached_key(|(index, _)| {
            let (user, session) = (self.user(*index), &self.sessions[*index]);
            (user.rank, self.fair.spent(user.uid), session.served)
        });
        let mut on_others = Span::ZERO;
        for (count, (index, events)) in ready.into_iter().enumerate() {
            let began = clock::now();
            if count > 0 && began >= until {
                break;
            }
            let user = self.user(index);
            self.attend(index, events, began);
            let now = clock::now();
            self.fair.charge(now, user.uid, now.since(began));
            if user.rank == Rank::Other {
                on_others += now.since(began);
            }
        }
        self.fair.rest(clock::now(), on_others);
    }

    fn attend(&mut self, index: usize, events: PollFlags, now: Time) {
        let session = &mut self.sessions[index];
        session.served = now;
        let is_gone = events.intersects(PollFlags::HUP | PollFlags::ERR);
        if session.question.is_some() && is_gone {
            // It does not wait for its answer.
            session.closing = true;
        } else if session.flush() && !session.closing {
            self.serve(index);
        }
    }

    /// Whose session it is.
    pub(super) fn user(&self, index: usize) -> User {
        let (uid, who) = (self.sessions[index].peer.uid, &self.sessions[index].identity);
        let is_listed = || who.as_ref().is_some_and(|who| !self.settings.domains.of(who).unlisted);
        let rank = match uid {
            uid if uid == 0 || uid == self.settings.domains.own_uid => Rank::Own,
            _ if is_listed() => Rank::Listed,
            _ => Rank::Other,
        };
        User { uid, rank }
    }

    /// Reads one message of a session, so that sessions with several take turns with the others.
    fn serve(&mut self, index: usize) {
        let session = &mut self.sessions[index];
        match session.connection.receive_message() {
            Ok(Some(message)) => {
                session.heard = clock::now();
                self.handle(index, message);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::InvalidInput) => {
                self.refuse(index, error.to_string());
            }
            Ok(None) | Err(_) => session.closing = true,
        }
    }
}
