//! A connection of an app or of a tool.
//!
//! An answer may be longer than the buffer of a socket. The rest waits here until the other side has
//! read. Meanwhile no further question is read from it, so a tool that asks without reading costs one
//! answer, for a limited time. The same holds while a question waits that takes long to answer.

use std::io::{ErrorKind, Result};
use std::sync::Arc;

use rustix::event::PollFlags;
use takt_core::{AppId, Span, Time};
use takt_ipc::message::{Message, TEXT_MAX};
use takt_ipc::socket::{Connection, Peer};

use crate::control::ask::Ask;
use crate::control::closer::ClientSocket;

/// How long a tool may take to read an answer.
const PATIENCE: Span = Span::from_ms(10_000);

/// A connection.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) connection: Arc<ClientSocket>,
    pub(super) peer: Peer,
    pub(super) app: Option<AppId>,
    pub(super) closing: bool,
    /// When its last message came, or it connected.
    pub(super) heard: Time,
    /// A question that waits for its turn, and since when.
    pub(super) question: Option<(Time, Ask)>,
    /// When it last asked for other terms.
    pub(super) renewed: Option<Time>,
    answer: Option<PendingAnswer>,
}

/// An answer that is not read yet.
#[derive(Debug)]
struct PendingAnswer {
    text: String,
    sent: usize,
    asked: Time,
}

impl Session {
    pub(super) fn new(connection: ClientSocket, peer: Peer, now: Time) -> Self {
        Self {
            connection: Arc::new(connection),
            peer,
            app: None,
            closing: false,
            heard: now,
            question: None,
            renewed: None,
            answer: None,
        }
    }

    /// The events to wait for.
    pub(super) fn interest(&self) -> PollFlags {
        match (&self.answer, &self.question) {
            (Some(_), _) => PollFlags::OUT,
            (None, Some(_)) => PollFlags::empty(),
            (None, None) => PollFlags::IN,
        }
    }

    /// How much of an answer waits to be read.
    pub(super) fn unread(&self) -> usize {
        self.answer.as_ref().map_or(0, |answer| answer.text.len() - answer.sent)
    }

    /// Since when an answer waits, if one does.
    pub(super) fn asked(&self) -> Option<Time> {
        self.answer.as_ref().map(|answer| answer.asked)
    }

    /// Closes the connection of a tool that does not read.
    pub(super) fn give_up(&mut self) {
        (self.answer, self.closing) = (None, true);
    }

    /// Sends as much of an answer as fits at once; [`Self::flush`] sends the rest.
    pub(super) fn answer(&mut self, text: String, now: Time) {
        self.answer = Some(PendingAnswer { text, sent: 0, asked: now });
        self.flush(now);
    }

    /// Sends the rest of an answer; returns whether the next question may be read.
    pub(super) fn flush(&mut self, now: Time) -> bool {
        let Some(answer) = &mut self.answer else {
            return self.question.is_none();
        };
        match answer.send(&self.connection) {
            Ok(()) => self.answer = None,
            Err(error) if error.kind() == ErrorKind::WouldBlock && now.since(answer.asked) < PATIENCE => {}
            Err(_) => self.give_up(),
        }
        self.answer.is_none() && !self.closing
    }
}

impl PendingAnswer {
    fn send(&mut self, connection: &Connection) -> Result<()> {
        loop {
            let rest = &self.text[self.sent..];
            let piece = &rest[..rest.floor_char_boundary(TEXT_MAX)];
            let more = piece.len() < rest.len();
            connection.send(&Message::Answer { text: piece.to_owned(), more }, &[])?;
            self.sent += piece.len();
            if !more {
                return Ok(());
            }
        }
    }
}
