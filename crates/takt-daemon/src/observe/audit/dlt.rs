//! Hands records to `dlt-daemon`, over its pipe or its socket.
//!
//! It never waits: what the daemon does not take at once is lost there, and counted.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use takt_audit::Record;
use takt_audit::dlt::{Encoder, Level};
use takt_os::clock;

/// How often a daemon that does not run is looked for.
const RETRY: Duration = Duration::from_secs(1);

/// The way to the daemon.
#[derive(Debug)]
pub(super) struct DltOutput {
    path: PathBuf,
    encoder: Encoder,
    file: Option<File>,
    /// What the daemon has not taken of a message of which it has taken a part.
    rest: Vec<u8>,
    tried: Option<Instant>,
    /// Messages that it did not take.
    pub(super) lost: u64,
}

impl DltOutput {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            encoder: Encoder::new(std::process::id()),
            file: None,
            rest: Vec::new(),
            tried: None,
            lost: 0,
        }
    }

    /// Sends the line of a record.
    pub(super) fn send(&mut self, record: &Record, line: &str) {
        let uptime_us = clock::now().as_ns() / 1000;
        let message = self.encoder.log(Level::of(record), uptime_us, line.trim_end());
        let sent = self.connect().and_then(|()| self.put(&message));
        if let Err(error) = sent {
            self.lost += 1;
            // A full pipe is that of a daemon that is slow; all else ends the connection.
            if error.kind() != ErrorKind::WouldBlock {
                self.file = None;
            }
        }
    }

    /// Writes a message, or nothing of it. What does not fit of one that has begun goes before the next one, which
    /// would be no message otherwise.
    fn put(&mut self, message: &[u8]) -> Result<()> {
        let Some(file) = &mut self.file else { return Err(ErrorKind::NotConnected.into()) };
        while !self.rest.is_empty() {
            let count = file.write(&self.rest)?;
            self.rest.drain(..count);
        }
        let count = file.write(message)?;
        self.rest.extend_from_slice(&message[count..]);
        Ok(())
    }

    fn connect(&mut self) -> Result<()> {
        if self.file.is_none() {
            if self.tried.is_some_and(|tried| tried.elapsed() < RETRY) {
                return Err(ErrorKind::NotConnected.into());
            }
            self.tried = Some(Instant::now());
            self.file = Some(self.open()?);
            self.rest.clear();
            for message in self.encoder.registration() {
                if let Err(error) = self.put(&message) {
                    self.file = None;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn open(&self) -> Result<File> {
        let kind = std::fs::metadata(&self.path)?.file_type();
        if kind.is_fifo() {
            let flags = OFlags::NONBLOCK.bits().cast_signed();
            return OpenOptions::new().write(true).custom_flags(flags).open(&self.path);
        }
        if !kind.is_socket() {
            return Err(Error::new(ErrorKind::InvalidInput, "neither a pipe nor a socket"));
        }
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(&self.path)?)?;
        Ok(socket.into())
    }
}
