//! The client's end.
//!
//! In two halves: several threads of an app may send (the one that draws, the one that sees groups
//! end) and share the [`Sender`] under a lock of theirs, while one waits with the [`Receiver`].

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use takt_core::{Span, Time};

use crate::beat::Pulse;
use crate::message::{Hello, Message, Welcome};
use crate::record::{Malformed, Reply, Request};
use crate::region::{Region, Replies, Requests};
use crate::ring::{Corrupt, Full, Reader, Writer};
use crate::socket::{Connection, Received};
use crate::wake::Doorbell;

/// Why an app is not scheduled.
#[derive(Debug, thiserror::Error)]
pub enum NotScheduled {
    /// No daemon, or it does not answer.
    #[error("no daemon answers at {path}: {source}")]
    Absent {
        /// Where it should be.
        path: std::path::PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The daemon does not want to.
    #[error("the daemon refuses: {0}")]
    Refused(String),
    /// The daemon says something else.
    #[error("the daemon does not answer as it should")]
    Nonsense,
}

/// Joins the daemon at `path`. The connection must be kept: when it closes, the app has left.
pub fn join(path: &Path, hello: &Hello, patience: Duration) -> Result<Joined, NotScheduled> {
    let absent = |source| NotScheduled::Absent { path: path.to_owned(), source };
    let connection = Connection::connect(path, patience).map_err(absent)?;
    connection.send(&Message::Hello(hello.clone()), &[]).map_err(absent)?;
    let Some(Received { message, fds }) = connection.receive().map_err(absent)? else {
        return Err(NotScheduled::Nonsense);
    };
    match (message, <[OwnedFd; 3]>::try_from(fds)) {
        (Message::Welcome(welcome), Ok([region, doorbell, beat])) => {
            let (sender, receiver) = ends(&region, doorbell, &beat).map_err(absent)?;
            Ok(Joined { connection, welcome, sender, receiver })
        }
        (Message::Refused { reason }, _) => Err(NotScheduled::Refused(reason)),
        _ => Err(NotScheduled::Nonsense),
    }
}

/// An app that is scheduled.
#[derive(Debug)]
pub struct Joined {
    /// The app leaves when this is dropped.
    pub connection: Connection,
    /// What the daemon said.
    pub welcome: Welcome,
    /// For requests.
    pub sender: Sender,
    /// For replies.
    pub receiver: Receiver,
}

/// Both halves of the client's end of a region.
pub fn ends(region: &impl AsFd, doorbell: OwnedFd, beat: &impl AsFd) -> std::io::Result<(Sender, Receiver)> {
    let region = Region::open(region.as_fd())?;
    let pulse = Pulse::open(beat.as_fd())?;
    let (requests, replies) = region.client_ends();
    let sender = Sender { requests, doorbell: Doorbell::from_fd(doorbell) };
    Ok((sender, Receiver { region, replies, pulse }))
}

/// Sends requests.
#[derive(Debug)]
pub struct Sender {
    requests: Writer<Requests>,
    doorbell: Doorbell,
}

impl Sender {
    /// Sends a request and wakes the daemon.
    pub fn send(&mut self, request: &Request) -> Result<(), Full> {
        self.requests.push(&request.encode())?;
        self.doorbell.ring();
        Ok(())
    }
}

/// Receives replies.
#[derive(Debug)]
pub struct Receiver {
    region: Region,
    replies: Reader<Replies>,
    pulse: Pulse,
}

/// The daemon writes nonsense: it is broken or not ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Broken {
    /// The ring contradicts itself.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
    /// A record is none.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl Receiver {
    /// The next reply, if there is one.
    pub fn next_reply(&mut self) -> Result<Option<Reply>, Broken> {
        let words = self.replies.pop()?;
        Ok(words.map(|words| Reply::decode(&words)).transpose()?)
    }

    /// Sleeps until there may be a reply, for `timeout` at most.
    pub fn sleep(&self, timeout: Duration) {
        self.region.bell().sleep(timeout, || !self.replies.is_empty());
    }

    /// How long ago the daemon was last seen alive.
    pub fn silent_for(&self, now: Time) -> Span {
        self.pulse.silent_for(now)
    }
}
