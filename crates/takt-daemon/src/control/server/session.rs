//! A connection of an app or of a tool.
//!
//! An answer may be longer than the buffer of a socket. The rest waits here until the other side has
//! read. Meanwhile no further question is read from it, so a tool that asks without reading costs one
//! answer, for a limited time. The same holds while a question waits that takes long to answer.

use std::io::{ErrorKind, Result};
use std::sync::Arc;

use rustix::event::PollFlags;
use takt_core::{AppId, Span, Time};
use takt_ipc::credentials::PeerProcess;
use takt_ipc::message::{Message, TEXT_MAX};
use takt_ipc::socket::{Connection, Peer};

use super::analysts::Query;
use crate::control::closer::ClientSocket;
use crate::control::identity::Identity;

/// How long a tool may take to read an answer.
const PATIENCE: Span = Span::from_ms(10_000);

/// A question that takes long to answer.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) query: Query,
    pub(super) since: Time,
    /// It is being answered.
    pub(super) is_given: bool,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Session {
    /// Tells it from all others, now and later.
    pub(super) id: u64,
    pub(super) connection: Arc<ClientSocket>,
    pub(super) peer: Peer,
    /// Who that is: known at once if a listed domain may fit, otherwise once it matters.
    pub(super) identity: Option<Arc<Identity>>,
    pub(super) app: Option<AppId>,
    /// Its process, once it is an app: a child that inherited the connection is not the app, and does not keep it.
    pub(super) process: Option<PeerProcess>,
    pub(super) closing: bool,
    /// When its last message came, or it connected.
    pub(super) heard: Time,
    /// When it was last served.
    pub(super) served: Time,
    /// A question that waits for its answer.
    pub(super) question: Option<Question>,
    /// When it last asked for other terms.
    pub(super) renewed: Option<Time>,
    answer: Option<PendingAnswer>,
}

/// An answer that is not read yet.
#[derive(Debug)]
struct PendingAnswer {
    text: Arc<str>,
    sent: usize,
    asked: Time,
}

impl Session {
    pub(super) fn new(id: u64, connection: ClientSocket, peer: Peer, now: Time) -> Self {
        Self {
            id,
            connection: Arc::new(connection),
            peer,
            identity: None,
            app: None,
            process: None,
            closing: false,
            heard: now,
            served: Time::ZERO,
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

    /// Closes the connection if the other side has not read an answer for too long.
    pub(super) fn expire(&mut self, now: Time) {
        if self.asked().is_some_and(|asked| now.since(asked) >= PATIENCE) {
            self.give_up();
        }
    }

    /// Sends as much of an answer as fits at once; [`Self::flush`] sends the rest.
    pub(super) fn answer(&mut self, text: Arc<str>, now: Time) {
        self.answer = Some(PendingAnswer { text, sent: 0, asked: now });
        self.flush();
    }

    /// Sends the rest of an answer; returns whether the next question may be read.
    pub(super) fn flush(&mut self) -> bool {
        let Some(answer) = &mut self.answer else {
            return self.question.is_none();
        };
        match answer.send(&self.connection) {
            Ok(()) => self.answer = None,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
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
