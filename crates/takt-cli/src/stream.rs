//! The records that a daemon streams to tools.

use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use takt_daemon::control::ask::Ask;
use takt_ipc::message::Message;
use takt_ipc::socket::Connection;

/// How often to look whether it is time to stop.
const NAP: Duration = Duration::from_millis(100);

/// The lines that the daemon tells, until told to stop.
#[derive(Debug)]
pub(crate) struct Stream {
    connection: Connection,
    piece: Vec<u8>,
    taken: usize,
    stop: Arc<AtomicBool>,
    until: Option<Instant>,
    gone: Arc<AtomicBool>,
}

impl Stream {
    /// Asks the daemon at `path` to tell everything, until `stop` is set or `length` is over.
    pub(crate) fn open(path: &Path, stop: Arc<AtomicBool>, length: Option<Duration>) -> anyhow::Result<Self> {
        let connection = Connection::connect(path, NAP)
            .with_context(|| format!("no daemon answers at {}: start one with takt serve", path.display()))?;
        connection.send(&Message::Ask { text: serde_json::to_string(&Ask::Watch)? }, &[])?;
        let until = length.map(|length| Instant::now() + length);
        Ok(Self { connection, piece: Vec::new(), taken: 0, stop, until, gone: Arc::default() })
    }

    /// Set when the daemon has hung up.
    pub(crate) fn gone(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.gone)
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// The next piece; none if it is over.
    fn receive(&mut self) -> Result<bool> {
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
                    let answer: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
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
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.taken == self.piece.len() && !self.receive()? {
            return Ok(0);
        }
        let count = buffer.len().min(self.piece.len() - self.taken);
        buffer[..count].copy_from_slice(&self.piece[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}
