//! The connection to the daemon, as it comes and goes.

mod commands;
mod grants;
mod joining;
mod listener;
mod pacing;
mod slices;
mod suspicion;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use takt_core::{Estimate, GroupId, GroupKind, Span, Time};

use crate::Patience;
use crate::session::Say;
use commands::Commands;
use grants::Grants;
pub(crate) use listener::{Heard, Listener};
use pacing::Telling;
use suspicion::Look;
use takt_ipc::client::{Joining, NotScheduled, Receiver, Sender, renew};
use takt_ipc::message::{Hello, Welcome};
use takt_ipc::region::Region;
use takt_ipc::socket::Connection;
use takt_ipc::spin::SpinBudget;
use takt_ipc::{Reply, Request};
use takt_os::clock;

/// What a program does whose daemon is gone.
const UNSCHEDULED: &str = "the program runs on unscheduled";
/// How often to look whether the daemon is back.
const RETRY: Span = Span::from_ms(1_000);

/// Everything that is known about the connection.
pub(crate) struct Link {
    on: Option<On>,
    joining: Option<(Joining, Time)>,
    /// A connection on which the daemon may still say why it evicted us.
    parting: Option<Arc<Connection>>,
    /// Counts connections.
    life: u64,
    /// Counts connections, and times when grants were taken back.
    epoch: u64,
    retry_at: Time,
    /// Where the daemon listens; none if there is none to look for.
    socket: Option<PathBuf>,
    /// What we ask for.
    hello: Hello,
    say: Say,
    patience: Patience,
    /// The last thing that was said, so that it is said once.
    said: Option<String>,
    groups: u64,
}

/// While connected.
struct On {
    /// We have left when this is closed.
    connection: Arc<Connection>,
    /// The daemon's process.
    daemon: u32,
    sender: Sender,
    region: Region,
    /// None while a thread listens.
    receiver: Option<Receiver>,
    /// The first look at a daemon that is silent.
    first: Option<Look>,
    welcome: Welcome,
    /// How long to spin for grants.
    spin: SpinBudget,
    grants: Grants,
    commands: Commands,
    release: Option<Time>,
    /// A frame ended, and the next one has not begun.
    between_frames: bool,
    slice: Option<Span>,
    telling: Telling,
}

/// Whether to go on waiting.
pub(crate) enum Waiting<T> {
    NotYet,
    /// Found, or never to be found.
    Over(Option<T>),
}

/// A question for other terms, which may take its time.
pub(crate) struct Renewal {
    connection: Arc<Connection>,
    hello: Hello,
    pub(crate) life: u64,
    patience: Duration,
}

impl Renewal {
    /// Asks, and waits for the answer.
    pub(crate) fn ask(&self) -> Result<Welcome, NotScheduled> {
        renew(&self.connection, &self.hello, self.patience)
    }
}

impl Link {
    pub(crate) const fn new(socket: Option<PathBuf>, hello: Hello, say: Say, patience: Patience) -> Self {
        Self {
            on: None,
            joining: None,
            parting: None,
            life: 0,
            epoch: 0,
            retry_at: Time::ZERO,
            socket,
            hello,
            say,
            patience,
            said: None,
            groups: 0,
        }
    }

    /// From the next connection on, the daemon hears that we draw on that GPU.
    pub(crate) fn draws_on(&mut self, gpu: String, on_cpu: bool) {
        (self.hello.gpu, self.hello.on_cpu) = (Some(gpu), on_cpu);
    }

    /// The daemon's welcome, if it schedules us; its terms are kept up to date.
    pub(crate) fn welcome(&self) -> Option<&Welcome> {
        self.on.as_ref().map(|on| &on.welcome)
    }

    /// The last thing that was said.
    pub(crate) fn said(&self) -> &str {
        self.said.as_deref().unwrap_or_default()
    }

    /// How to ask for other terms; none if we are unscheduled, and then the next connection asks.
    pub(crate) fn begin_renewal(&mut self, hello: &Hello) -> Option<Renewal> {
        let (life, patience) = (self.life, self.patience.answer);
        let Some(on) = &mut self.on else {
            self.hello = hello.clone();
            self.connect();
            return None;
        };
        // So that the next answer is the one to this question.
        on.hear_answer(patience);
        // A priority that we have, or would have but for another app, is not asked for again.
        let priority = hello.priority.filter(|priority| Some(*priority) != self.hello.priority);
        Some(Renewal {
            connection: Arc::clone(&on.connection),
            hello: Hello { priority, ..hello.clone() },
            life,
            patience,
        })
    }

    /// The answer came; says whether `hello` is what we ask for from now on.
    pub(crate) fn end_renewal(
        &mut self,
        hello: Hello,
        life: u64,
        answer: Result<Welcome, NotScheduled>,
    ) -> bool {
        if let Err(NotScheduled::Refused(reason)) = answer {
            self.say(format!("the terms stay: {reason}"));
            return false;
        }
        self.hello = hello;
        // Another connection than the one that was asked knows nothing of it.
        if let Some(on) = self.of(life) {
            match answer {
                Ok(welcome) => {
                    on.welcome = welcome;
                    self.say_welcome();
                }
                Err(error) => self.lose(&error.to_string()),
            }
        }
        true
    }

    /// Sends a group to the daemon; its number and the connection it was sent on.
    pub(crate) fn submit(&mut self, kind: GroupKind, estimate: Span) -> Option<(u64, u64)> {
        self.connect();
        let on = self.on.as_mut()?;
        let number = self.groups;
        let estimate = Estimate::new(estimate);
        if kind.ends_frame() {
            (on.release, on.between_frames) = (None, true);
        }
        if on.sender.send(&Request::Submit { group: GroupId(number), kind, estimate }).is_err() {
            self.lose("the daemon does not read what it is asked");
            return None;
        }
        on.grants.asked();
        self.groups += 1;
        Some((number, self.life))
    }

    /// A frame is about to begin, if none has: the connection that says when it may, if that is by a clock
    /// of our own.
    pub(crate) fn begin_frame(&mut self) -> Option<u64> {
        let on = self.on.as_mut().filter(|on| on.welcome.standing.own)?;
        std::mem::take(&mut on.between_frames).then_some(self.life)
    }

    /// Whether frames begin by a clock of our own.
    pub(crate) fn has_own_clock(&self) -> bool {
        self.welcome().is_some_and(|welcome| welcome.standing.own)
    }

    /// When the next frame may begin, if that is up to the daemon.
    pub(crate) fn released(&mut self, life: u64) -> Waiting<Time> {
        match self.of(life).filter(|on| on.welcome.standing.paced) {
            None => Waiting::Over(None),
            Some(on) => on.release.map_or(Waiting::NotYet, |at| Waiting::Over(Some(at))),
        }
    }

    /// Whether we are the only client, and no thread of the program waits for a grant.
    pub(crate) fn is_alone(&self) -> bool {
        self.on.as_ref().is_some_and(|on| on.region.solitude().is_alone() && !on.grants.is_waited_for())
    }

    /// Whether a thread of the program waits for a grant.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.on.as_ref().is_some_and(|on| on.grants.is_waited_for())
    }

    /// Changes with each connection, and when grants are taken back.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The memory that says whether we are the only client.
    pub(crate) fn region(&self) -> Option<&Region> {
        self.on.as_ref().map(|on| &on.region)
    }

    /// The longest group that is to be formed among others.
    pub(crate) fn slice(&self) -> Span {
        self.on.as_ref().and_then(|on| on.slice).unwrap_or(Span::FOREVER)
    }

    /// Whether the limit is known, or will never be.
    pub(crate) fn is_limited(&self) -> bool {
        self.on.as_ref().is_none_or(|on| on.slice.is_some())
    }

    /// Takes the receiver, unless another thread has it.
    pub(crate) fn begin_listening(&mut self) -> Option<Listener> {
        let (life, silence) = (self.life, self.patience.silence);
        let on = self.on.as_mut()?;
        let receiver = on.receiver.take()?;
        let connection = Arc::clone(&on.connection);
        Some(Listener { receiver, first: on.first, connection, daemon: on.daemon, life, silence })
    }

    /// How long to spin for a grant.
    pub(crate) fn spin_limit(&self) -> Span {
        self.on.as_ref().map_or(Span::ZERO, |on| on.spin.limit())
    }

    /// A grant came after so long.
    pub(crate) fn waited(&mut self, span: Span) {
        if let Some(on) = &mut self.on {
            on.spin.waited(span);
        }
    }

    /// Puts the receiver back, with what it heard.
    pub(crate) fn end_listening(&mut self, listener: Listener, heard: Heard) {
        let Some(on) = self.of(listener.life) else {
            return;
        };
        on.receiver = Some(listener.receiver);
        on.first = listener.first;
        match heard {
            Heard::Replies(replies) => {
                for reply in replies {
                    self.hear(reply);
                }
            }
            Heard::Nonsense(broken) => self.lose(&format!("the daemon writes nonsense ({broken})")),
            Heard::Gone => self.lose("the daemon is gone"),
            Heard::Stopped => self.lose("the daemon was stopped"),
            Heard::Hangs => self.lose("the daemon hangs"),
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
                if !on.grants.hear(group.0, credit) {
                    self.tell_end(group.0, self.life, clock::now(), Span::ZERO, 0);
                }
            }
            Reply::Release { at } => on.release = Some(at),
            Reply::Limit { slice } => on.slice = Some(slice),
            Reply::Standing(standing) => on.welcome.standing = standing,
            Reply::Stuck { group, estimate } => self.is_stuck(group, estimate),
            Reply::Farewell => {
                self.parting = Some(Arc::clone(&on.connection));
                self.lose("the daemon has evicted this program");
            }
        }
    }

    fn of(&mut self, life: u64) -> Option<&mut On> {
        if life == self.life { self.on.as_mut() } else { None }
    }

    /// Goes on without the daemon.
    fn lose(&mut self, why: &str) {
        self.on = None;
        self.life += 1;
        self.epoch += 1;
        self.retry_at = clock::now() + RETRY;
        self.say(format!("{why}; {UNSCHEDULED}"));
    }

    fn is_unscheduled_said(&self) -> bool {
        self.said.as_ref().is_some_and(|said| said.ends_with(UNSCHEDULED))
    }

    fn say(&mut self, text: String) {
        if self.said.as_ref() != Some(&text) {
            (self.say)(&text);
            self.said = Some(text);
        }
    }
}

#[cfg(test)]
mod tests;
