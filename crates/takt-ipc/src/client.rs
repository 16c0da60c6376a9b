//! The client's end.
//!
//! In two halves: several threads of an app may send (the one that draws, the one that sees groups
//! end) and share the [`Sender`] under a lock of theirs, while one waits with the [`Receiver`].

use std::io::{Error, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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
        path: PathBuf,
        /// What the system says.
        source: Error,
    },
    /// The daemon does not want to.
    #[error("the daemon refuses: {0}")]
    Refused(String),
    /// The daemon does not want to now.
    #[error("the daemon refuses for now: {reason}")]
    NotNow {
        /// Why, for people.
        reason: String,
        /// When it may be asked again.
        again: Duration,
    },
    /// The daemon says something else.
    #[error("the daemon does not answer as it should")]
    Nonsense,
}

/// Joins the daemon at `path`, and waits for its answer for `patience` at most.
pub fn join(path: &Path, hello: &Hello, patience: Duration) -> Result<Joined, NotScheduled> {
    let absent = |source| NotScheduled::Absent { path: path.to_owned(), source };
    let connection = Connection::connect(path, patience).map_err(absent)?;
    match Joining::say(connection, path, hello)?.finish(patience)? {
        Progress::Joined(joined) => Ok(*joined),
        Progress::NotYet(joining) => Err(joining.too_late()),
    }
}

/// A daemon that was asked and has not answered yet.
#[derive(Debug)]
pub struct Joining {
    connection: Connection,
    path: PathBuf,
}

/// How far joining has come.
#[derive(Debug)]
pub enum Progress {
    /// There.
    Joined(Box<Joined>),
    /// Ask again later.
    NotYet(Joining),
}

impl Joining {
    /// Asks the daemon at `path` without waiting for anything.
    pub fn begin(path: &Path, hello: &Hello) -> Result<Self, NotScheduled> {
        let absent = |source| NotScheduled::Absent { path: path.to_owned(), source };
        Self::say(Connection::connect_at_once(path).map_err(absent)?, path, hello)
    }

    fn say(connection: Connection, path: &Path, hello: &Hello) -> Result<Self, NotScheduled> {
        let joining = Self { connection, path: path.to_owned() };
        let said = joining.connection.send(&Message::Hello(hello.clone()), &[]);
        said.map_err(|source| joining.absent(source))?;
        Ok(joining)
    }

    /// Waits for the answer, for `patience` at most.
    pub fn finish(self, patience: Duration) -> Result<Progress, NotScheduled> {
        match self.connection.wait(patience) {
            Ok(true) => {}
            Ok(false) => return Ok(Progress::NotYet(self)),
            Err(error) => return Err(self.absent(error)),
        }
        let Some(Received { message, fds }) = self.connection.receive().map_err(|e| self.absent(e))? else {
            return Err(NotScheduled::Nonsense);
        };
        match (message, <[OwnedFd; 3]>::try_from(fds)) {
            (Message::Welcome(welcome), Ok([region, doorbell, beat])) => {
                let (sender, receiver) = ends(&region, doorbell, &beat).map_err(|e| self.absent(e))?;
                let Self { connection, .. } = self;
                Ok(Progress::Joined(Box::new(Joined { connection, welcome, sender, receiver })))
            }
            (Message::Refused { reason, again_ms: None }, _) => Err(NotScheduled::Refused(reason)),
            (Message::Refused { reason, again_ms: Some(ms) }, _) => {
                Err(NotScheduled::NotNow { reason, again: Duration::from_millis(ms.into()) })
            }
            _ => Err(NotScheduled::Nonsense),
        }
    }

    /// The daemon took too long.
    pub fn too_late(self) -> NotScheduled {
        self.absent(Error::new(ErrorKind::TimedOut, "it takes too long"))
    }

    fn absent(&self, source: Error) -> NotScheduled {
        NotScheduled::Absent { path: self.path.clone(), source }
    }
}

/// Asks for other terms on a connection that has joined, and waits for the answer for `patience` at
/// most. The shared memory stays.
pub fn renew(connection: &Connection, hello: &Hello, patience: Duration) -> Result<Welcome, NotScheduled> {
    let nonsense = |_| NotScheduled::Nonsense;
    connection.send(&Message::Hello(hello.clone()), &[]).map_err(nonsense)?;
    if !connection.wait(patience).map_err(nonsense)? {
        return Err(NotScheduled::Nonsense);
    }
    match connection.receive().map_err(nonsense)?.map(|received| received.message) {
        Some(Message::Welcome(welcome)) => Ok(welcome),
        Some(Message::Refused { reason, .. }) => Err(NotScheduled::Refused(reason)),
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

    /// Spins for a reply, for `limit` at most; says whether there is one. For replies that are
    /// likely to come sooner than falling asleep and waking up would take.
    pub fn spin(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        while self.replies.is_empty() {
            if Instant::now() >= until {
                return false;
            }
            std::hint::spin_loop();
        }
        true
    }

    /// Sleeps until there may be a reply, for `timeout` at most.
    pub fn sleep(&self, timeout: Duration) {
        self.region.bell().sleep(timeout, || !self.replies.is_empty());
    }

    /// What says whether this client is the only one.
    pub fn region(&self) -> Region {
        self.region.clone()
    }

    /// The daemon's signs of life.
    pub fn pulse(&self) -> &Pulse {
        &self.pulse
    }
}
