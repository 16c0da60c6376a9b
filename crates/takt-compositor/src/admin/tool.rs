//! A tool: its requests, one after the other, and what it hears.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use takt_cockpit::control::{REQUEST_BYTES_MAX, Reply, Request};

use super::{PATIENCE, shot};
use crate::cockpit::Controls;

/// Shortest time-out that sockets take.
const MOMENT: Duration = Duration::from_millis(1);

/// A connection of a tool.
pub(super) struct Tool {
    stream: UnixStream,
    controls: Controls,
    /// What it sent, and was not looked at.
    read: Vec<u8>,
}

/// What a tool sent.
enum Sent {
    /// A line.
    Line(Vec<u8>),
    /// Nothing any more.
    End,
    /// Something else, and the connection is over.
    Wrong(String),
}

impl Tool {
    pub(super) fn new(stream: UnixStream, controls: Controls) -> Self {
        Self { stream, controls, read: Vec::new() }
    }

    /// Answers until the tool is gone.
    pub(super) fn serve(&mut self) -> Result<()> {
        self.stream.set_nonblocking(false)?;
        self.stream.set_write_timeout(Some(PATIENCE))?;
        loop {
            match self.next_line()? {
                Sent::Line(line) if line.iter().all(u8::is_ascii_whitespace) => {}
                Sent::Line(line) => {
                    let (reply, picture) = self.answer(&line);
                    self.say(&reply)?;
                    self.stream.write_all(&picture)?;
                }
                Sent::End => return Ok(()),
                Sent::Wrong(reason) => return self.say(&Reply::Refused { reason }),
            }
        }
    }

    fn say(&mut self, reply: &Reply) -> Result<()> {
        let line = serde_json::to_string(reply).map_err(Error::other)? + "\n";
        self.stream.write_all(line.as_bytes())
    }

    /// The next line, without its end.
    fn next_line(&mut self) -> Result<Sent> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.read, rest);
                line.truncate(end);
                return Ok(Sent::Line(line));
            }
            if self.read.len() >= REQUEST_BYTES_MAX {
                return Ok(Sent::Wrong(format!("a request has {REQUEST_BYTES_MAX} bytes at most")));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Sent::Wrong(format!("nothing was asked for {} s", PATIENCE.as_secs())));
            }
            self.stream.set_read_timeout(Some(left.max(MOMENT)))?;
            let mut bytes = [0u8; 1024];
            let room = bytes.len().min(REQUEST_BYTES_MAX - self.read.len());
            match self.stream.read(&mut bytes[..room]) {
                Ok(0) => return Ok(Sent::End),
                Ok(count) => self.read.extend_from_slice(&bytes[..count]),
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The answer to a request, and the bytes that follow it.
    fn answer(&self, line: &[u8]) -> (Reply, Vec<u8>) {
        let refused = |reason: String| (Reply::Refused { reason }, Vec::new());
        let request: Request = match serde_json::from_slice(line) {
            Ok(request) => request,
            Err(error) => return refused(format!("not a request of a cockpit: {error}")),
        };
        match self.carry_out(&request) {
            Ok(answer) => answer,
            Err(reason) => refused(reason),
        }
    }

    fn carry_out(&self, request: &Request) -> std::result::Result<(Reply, Vec<u8>), String> {
        if let Some((window, order)) = request.order()? {
            self.controls.order(window, order)?;
            return Ok((Reply::Done, Vec::new()));
        }
        match request {
            Request::Motion { motion } => {
                self.controls.set_motion(*motion)?;
                Ok((Reply::Done, Vec::new()))
            }
            Request::Input { device, acts } => {
                self.controls.input(device, acts.clone())?;
                Ok((Reply::Done, Vec::new()))
            }
            Request::Shot { output, part } => {
                let (shot, png) = shot::take(&self.controls, output, *part)?;
                Ok((Reply::Shot(shot), png))
            }
            // The rest are orders, which are carried out above.
            _ => Ok((Reply::Status(self.controls.status()?), Vec::new())),
        }
    }
}
