//! A tool's end of the control socket: questions with one answer each, and the stream of records.

use std::io::{Error, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use takt_ipc::message::Message;
use takt_ipc::name::{self, Wanted};
use takt_ipc::socket::Connection;

use crate::control::ask::Ask;

/// How often a stream looks whether it is time to stop.
const NAP: Duration = Duration::from_millis(100);
/// Longest answer that is put together; the daemon keeps no longer ones.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// No daemon listens there.
    #[error("no daemon answers at {}: start one with takt serve", .path.display())]
    Absent {
        /// Where.
        path: PathBuf,
        /// What the system says.
        source: Error,
    },
    /// It took the question and does not answer.
    #[error("the daemon at {} does not answer: is it stopped (kill -CONT), or the machine too busy?", .path.display())]
    Silent {
        /// Where.
        path: PathBuf,
        /// What the system says.
        source: Error,
    },
    /// It closed the connection.
    #[error("the daemon hung up")]
    HungUp,
    /// It closed the connection and said why.
    #[error("the daemon refuses: {0}")]
    TurnedAway(String),
    /// It does not do what was asked; in its words.
    #[error("{0}")]
    Refused(String),
    /// Its answer cannot be understood.
    #[error("the daemon answers something else; takt --version says whether it is of another build")]
    OtherBuild,
}

/// A connection for questions, one after the other.
#[derive(Debug)]
pub struct Tool {
    connection: Connection,
    path: PathBuf,
}

impl Tool {
    /// Connects to the daemon at `path`; an answer may take `patience`.
    pub fn connect(path: &Path, patience: Duration) -> Result<Self, Unanswered> {
        let absent = |source| Unanswered::Absent { path: path.to_owned(), source };
        Ok(Self { connection: Connection::connect(path, patience).map_err(absent)?, path: path.to_owned() })
    }

    /// What the daemon answers, unless it refuses. After an error other than a refusal, the connection is of no
    /// more use.
    pub fn ask(&self, ask: &Ask) -> Result<Value, Unanswered> {
        let text = serde_json::to_string(ask).map_err(|error| Unanswered::Refused(error.to_string()))?;
        let silent = |source| Unanswered::Silent { path: self.path.clone(), source };
        self.connection.send(&Message::Ask { text }, &[]).map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => Unanswered::HungUp,
            _ => silent(error),
        })?;
        let mut answer = String::new();
        loop {
            let received = self.connection.receive().map_err(|error| match error.kind() {
                ErrorKind::ConnectionReset => Unanswered::HungUp,
                ErrorKind::InvalidData => Unanswered::OtherBuild,
                _ => silent(error),
            })?;
            match received.ok_or(Unanswered::HungUp)?.message {
                Message::Answer { text, .. } if answer.len() + text.len() > ANSWER_BYTES_MAX => {
                    return Err(Unanswered::OtherBuild);
                }
                Message::Answer { text, more } => {
                    answer.push_str(&text);
                    if !more {
                        return read(&answer);
                    }
                }
                Message::Refused { reason, .. } => return Err(Unanswered::TurnedAway(reason)),
                _ => return Err(Unanswered::OtherBuild),
            }
        }
    }
}

fn read(answer: &str) -> Result<Value, Unanswered> {
    let Ok(mut answer) = serde_json::from_str::<Value>(answer) else {
        return Err(Unanswered::OtherBuild);
    };
    match answer["answer"].as_str() {
        Some("refused") => {
            Err(Unanswered::Refused(answer["is"].as_str().unwrap_or("for no reason that it told").to_owned()))
        }
        Some(_) => Ok(answer["is"].take()),
        None => Err(Unanswered::OtherBuild),
    }
}

/// What a summary says of an app of the list of apps.
pub fn figures_of<'a>(summary: &'a Value, app: &Value) -> &'a Value {
    let all = summary["apps"].as_array().map_or(&[][..], Vec::as_slice);
    // Names may occur twice, priorities among all apps do not.
    all.iter()
        .find(|figures| figures["priority"] == app["core_priority"] && figures["name"] == app["name"])
        .unwrap_or(&Value::Null)
}

/// The app of the list that the daemon takes it for. The list is by falling priority, and so by falling importance of
/// domains.
pub fn app_of<'a>(list: &'a Value, app: &str) -> Option<&'a Value> {
    let wanted = name::wanted(app);
    let is_meant = |item: &&Value| match wanted {
        Wanted::Slot(slot) => item["app"] == slot,
        Wanted::Process(pid) => item["pid"] == pid,
        Wanted::Name(name, user) => item["name"] == name && user.is_none_or(|user| item["uid"] == user),
    };
    let found: Vec<&Value> = list.as_array()?.iter().filter(is_meant).collect();
    found.iter().find(|item| item["listed"] == true).or_else(|| found.first()).copied()
}

/// The lines that the daemon tells, until told to stop.
#[derive(Debug)]
pub struct Stream {
    connection: Connection,
    piece: Vec<u8>,
    taken: usize,
    stop: Arc<AtomicBool>,
    until: Option<Instant>,
    gone: Arc<AtomicBool>,
}

impl Stream {
    /// Asks the daemon at `path` to tell everything, until `stop` is set or `length` is over.
    pub fn open(path: &Path, stop: Arc<AtomicBool>, length: Option<Duration>) -> Result<Self, Unanswered> {
        let absent = |source| Unanswered::Absent { path: path.to_owned(), source };
        let connection = Connection::connect(path, NAP).map_err(absent)?;
        let text = serde_json::to_string(&Ask::Watch).map_err(|error| absent(error.into()))?;
        connection.send(&Message::Ask { text }, &[]).map_err(absent)?;
        let until = length.map(|length| Instant::now() + length);
        Ok(Self { connection, piece: Vec::new(), taken: 0, stop, until, gone: Arc::default() })
    }

    /// Set when the daemon has hung up.
    pub fn gone(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.gone)
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// The next piece; none if it is over.
    fn receive(&mut self) -> std::io::Result<bool> {
        while !self.is_over() {
            let received = match self.connection.receive() {
                Ok(received) => received,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) =>
                {
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
                Err(error) => return Err(error),
            };
            match received.map(|received| received.message) {
                Some(Message::Answer { text, more: true }) => {
                    self.piece = text.into_bytes();
                    self.taken = 0;
                    return Ok(true);
                }
                Some(Message::Answer { text, .. }) => {
                    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
                    let reason = answer["is"].as_str().unwrap_or(&text);
                    return Err(Error::other(format!("the daemon refuses: {reason}")));
                }
                Some(Message::Refused { reason, .. }) => {
                    return Err(Error::other(format!("the daemon refuses: {reason}")));
                }
                Some(_) => {
                    return Err(Error::other("the daemon answers something else; upgrade the older one"));
                }
                None => {
                    self.gone.store(true, Ordering::Relaxed);
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.taken == self.piece.len() && !self.receive()? {
            return Ok(0);
        }
        let count = buffer.len().min(self.piece.len() - self.taken);
        buffer[..count].copy_from_slice(&self.piece[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}
