//! The connection to the daemon, as it comes and goes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use takt_core::{Estimate, GroupId, GroupKind, Span, Time};
use takt_ipc::client::{Broken, Joined, NotScheduled, Receiver, Sender, join};
use takt_ipc::message::Hello;
use takt_ipc::socket::Connection;
use takt_ipc::{Reply, Request};

use crate::settings::settings;
use crate::{clock, guard};

/// How long the daemon may take to admit us: it is another process on the same machine.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often to look whether the daemon is back.
const RETRY: Span = Span::from_ms(1_000);
/// How long the daemon may be silent before we go on without it. It beats every 10 ms.
const SILENCE: Span = Span::from_ms(50);

/// Everything that is known about the connection.
pub(super) struct Link {
    on: Option<On>,
    /// Counts connections.
    life: u64,
    retry_at: Time,
    /// The last thing that was said, so that it is said once.
    said: Option<String>,
    groups: u64,
}

/// While connected.
struct On {
    /// We have left when this is closed.
    _connection: Connection,
    sender: Sender,
    /// None while somebody listens.
    receiver: Option<Receiver>,
    paced: bool,
    granted: BTreeMap<u64, Span>,
    release: Option<Time>,
    slice: Option<Span>,
}

/// Whether to go on waiting.
pub(super) enum Waiting<T> {
    NotYet,
    /// Found, or never to be found.
    Over(Option<T>),
}

/// Somebody who sleeps until there is a reply.
pub(super) struct Listener {
    receiver: Receiver,
    life: u64,
}

/// What came of listening.
pub(super) enum Heard {
    Replies(Vec<Reply>),
    /// The daemon writes nonsense.
    Nonsense(Broken),
    /// The daemon has not been alive for too long.
    Silence(Span),
}

impl Listener {
    pub(super) fn listen(&mut self, nap: Duration) -> Heard {
        self.receiver.sleep(nap);
        let mut replies = Vec::new();
        loop {
            match self.receiver.next_reply() {
                Ok(Some(reply)) => replies.push(reply),
                Ok(None) => break,
                Err(broken) => return Heard::Nonsense(broken),
            }
        }
        let silent = self.receiver.silent_for(Time::from_ns(clock::now_ns()));
        if replies.is_empty() && silent > SILENCE { Heard::Silence(silent) } else { Heard::Replies(replies) }
    }
}

impl Link {
    pub(super) const fn new() -> Self {
        Self { on: None, life: 0, retry_at: Time::ZERO, said: None, groups: 0 }
    }

    /// Sends a group to the daemon; its number and the connection it was sent on.
    pub(super) fn submit(&mut self, socket: &Path, kind: GroupKind, estimate: Span) -> Option<(u64, u64)> {
        self.connect(socket);
        let on = self.on.as_mut()?;
        let number = self.groups;
        let estimate = Estimate::new(estimate);
        if kind.ends_frame() {
            on.release = None;
        }
        if on.sender.send(&Request::Submit { group: GroupId(number), kind, estimate }).is_err() {
            self.lose("the daemon does not read what it is asked");
            return None;
        }
        self.groups += 1;
        Some((number, self.life))
    }

    /// The time granted to a group, if it was.
    pub(super) fn granted(&mut self, number: u64, life: u64) -> Waiting<Span> {
        match self.of(life) {
            None => Waiting::Over(None),
            Some(on) => {
                on.granted.remove(&number).map_or(Waiting::NotYet, |credit| Waiting::Over(Some(credit)))
            }
        }
    }

    /// When the next frame may begin, if that is up to the daemon.
    pub(super) fn released(&mut self, life: u64) -> Waiting<Time> {
        match self.of(life).filter(|on| on.paced) {
            None => Waiting::Over(None),
            Some(on) => on.release.map_or(Waiting::NotYet, |at| Waiting::Over(Some(at))),
        }
    }

    pub(super) fn complete(&mut self, number: u64, life: u64, finished: Time, cost: Span) {
        let complete = Request::Complete { group: GroupId(number), finished, cost };
        if let Some(on) = self.of(life)
            && on.sender.send(&complete).is_err()
        {
            self.lose("the daemon does not read what it is told");
        }
    }

    pub(super) fn slice(&self) -> Span {
        self.on.as_ref().and_then(|on| on.slice).unwrap_or(Span::FOREVER)
    }

    /// Whether the limit is known, or will never be.
    pub(super) fn is_limited(&self) -> bool {
        self.on.as_ref().is_none_or(|on| on.slice.is_some())
    }

    /// Takes the receiver, unless somebody has it.
    pub(super) fn begin_listening(&mut self) -> Option<Listener> {
        let life = self.life;
        self.on.as_mut()?.receiver.take().map(|receiver| Listener { receiver, life })
    }

    /// Puts the receiver back, with what it heard.
    pub(super) fn end_listening(&mut self, listener: Listener, heard: Heard) {
        let Some(on) = self.of(listener.life) else {
            return;
        };
        on.receiver = Some(listener.receiver);
        match heard {
            Heard::Replies(replies) => {
                for reply in replies {
                    self.hear(reply);
                }
            }
            Heard::Nonsense(broken) => self.lose(&format!("the daemon writes nonsense ({broken})")),
            Heard::Silence(span) => {
                self.lose(&format!("the daemon has been silent for {} ms", span.as_ns() / 1_000_000));
            }
        }
    }

    fn hear(&mut self, reply: Reply) {
        let Some(on) = &mut self.on else {
            return;
        };
        match reply {
            Reply::Grant { group, credit } => {
                on.granted.insert(group.0, credit);
            }
            Reply::Release { at } => on.release = Some(at),
            Reply::Limit { slice } => on.slice = Some(slice),
            Reply::Farewell => self.lose("the daemon has let this program go"),
        }
    }

    fn of(&mut self, life: u64) -> Option<&mut On> {
        if life == self.life { self.on.as_mut() } else { None }
    }

    /// Joins, if that is due.
    pub(super) fn connect(&mut self, socket: &Path) {
        let now = Time::from_ns(clock::now_ns());
        if self.on.is_some() || now < self.retry_at {
            return;
        }
        self.retry_at = now + RETRY;
        let settings = settings();
        let hello = Hello { name: settings.app.clone(), ..settings.hello.clone() };
        match join(socket, &hello, PATIENCE) {
            Ok(joined) => self.joined(joined),
            Err(NotScheduled::Refused(reason)) => {
                // Asking again would not change its mind.
                self.retry_at = Time::NEVER;
                self.say(format!("not scheduled: {reason}"));
            }
            Err(error) => self.say(format!("not scheduled: {error}")),
        }
    }

    fn joined(&mut self, joined: Joined) {
        let Joined { connection, welcome, sender, receiver } = joined;
        self.life += 1;
        self.on = Some(On {
            _connection: connection,
            sender,
            receiver: Some(receiver),
            paced: welcome.paced,
            granted: BTreeMap::new(),
            release: None,
            slice: None,
        });
        self.say(format!("scheduled as {}: {}", settings().app, welcome.admission));
    }

    /// Goes on without the daemon.
    fn lose(&mut self, why: &str) {
        self.on = None;
        self.life += 1;
        self.retry_at = Time::from_ns(clock::now_ns()) + RETRY;
        self.say(format!("{why}; the program runs on unscheduled"));
    }

    fn say(&mut self, text: String) {
        if self.said.as_ref() != Some(&text) {
            guard::say(&text);
            self.said = Some(text);
        }
    }
}
