//! The connection to the daemon, as it comes and goes.

mod grants;
mod listener;
mod pacing;
mod slices;
mod suspicion;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use takt_core::{Estimate, GroupId, GroupKind, Span, Time};

use crate::Patience;
use crate::session::Say;
use grants::{Ahead, Open};
pub(crate) use listener::{Heard, Listener};
use pacing::Telling;
use suspicion::Look;
use takt_ipc::client::{Joined, Joining, NotScheduled, Progress, Receiver, Sender, join, renew};
use takt_ipc::message::{Hello, Message, Welcome};
use takt_ipc::region::Region;
use takt_ipc::socket::Connection;
use takt_ipc::spin::SpinBudget;
use takt_ipc::{Command, Reply, Request};
use takt_os::{clock, sandbox};

/// How long the daemon may take to admit us while we run on.
const JOINING_MAX: Span = Span::from_ms(5_000);
/// What a program does whose daemon is gone.
const UNSCHEDULED: &str = "the program runs on unscheduled";
/// How often to look whether the daemon is back.
const RETRY: Span = Span::from_ms(1_000);
/// Longest time to spin for a reply, whatever the daemon says.
const SPIN_MAX_US: u32 = 1_000;

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

/// Groups whose commands are remembered: more than threads ever wait for.
const COMMANDS_MAX: usize = 32;

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
    granted: BTreeMap<u64, Span>,
    /// Commands for which the last groups were asked.
    commands: VecDeque<(u64, &'static str)>,
    /// Groups with a grant that are still being filled.
    open: BTreeMap<u64, Open>,
    /// A grant that was asked for before it is needed.
    ahead: Option<Ahead>,
    /// Groups that were asked for, and that were granted.
    asked: u64,
    answered: u64,
    /// Groups that are not needed any more, and that the daemon will grant all the same.
    unwanted: BTreeSet<u64>,
    /// Frames that ended after their group had been given back: the next group counts them.
    stray_frames: u32,
    release: Option<Time>,
    /// A frame ended, and the next one has not begun.
    between_frames: bool,
    slice: Option<Span>,
    telling: Telling,
}

impl On {
    /// Whether a thread needs a grant that has not come yet.
    fn is_waited_for(&self) -> bool {
        let ahead = self.ahead.as_ref().is_some_and(Ahead::is_awaited);
        self.asked - self.answered > u64::from(ahead)
    }
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
        on.asked += 1;
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
        self.on.as_ref().is_some_and(|on| on.region.solitude().is_alone() && !on.is_waited_for())
    }

    /// Whether a thread of the program waits for a grant.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.on.as_ref().is_some_and(On::is_waited_for)
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
        if matches!(reply, Reply::Grant { .. }) {
            on.answered += 1;
        }
        match reply {
            Reply::Grant { group, .. } if on.unwanted.remove(&group.0) => {
                self.tell_end(group.0, self.life, clock::now(), Span::ZERO, 0);
            }
            Reply::Grant { group, credit } => {
                if let Some(ahead) = &mut on.ahead {
                    ahead.hear(group.0);
                }
                on.granted.insert(group.0, credit);
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

    /// Notes the command for which a group is asked.
    pub(crate) fn names(&mut self, number: u64, command: &'static str) {
        if let Some(on) = &mut self.on {
            on.commands.retain(|(of, _)| *of != number);
            if on.commands.len() >= COMMANDS_MAX {
                on.commands.pop_front();
            }
            on.commands.push_back((number, command));
        }
    }

    /// Work waits which cannot be cut and fits nowhere: says so, and tells the daemon which command that is.
    fn is_stuck(&mut self, group: GroupId, estimate: Estimate) {
        let Some(on) = &mut self.on else {
            return;
        };
        let named = on.commands.iter().find(|(number, _)| *number == group.0).map(|(_, command)| *command);
        let names = Request::Names { group, command: Command::new(named.unwrap_or_default()) };
        if on.sender.send(&names).is_err() {
            return self.lose("the daemon does not read what it is asked");
        }
        self.say_stuck(named, estimate);
    }

    fn say_stuck(&mut self, command: Option<&str>, estimate: Estimate) {
        let what = command.filter(|command| !command.is_empty()).unwrap_or("work");
        let length = match estimate {
            Estimate::UNBOUNDED => "of unknown length".to_owned(),
            estimate => format!("of {:.1} ms", estimate.span().as_ns() as f64 / 1e6),
        };
        self.say(format!(
            "{what} {length} waits: it cannot be cut and fits nowhere beside the contracts of other apps; \
             uncut = \"run\" in the [[app]] section of {} lets it run and withdraws their guarantees",
            self.hello.name
        ));
    }

    fn of(&mut self, life: u64) -> Option<&mut On> {
        if life == self.life { self.on.as_mut() } else { None }
    }

    /// Joins, unless we have joined or tried a moment ago.
    pub(crate) fn connect(&mut self) {
        let (None, Some(socket)) = (&self.on, self.socket.clone()) else {
            return;
        };
        let now = clock::now();
        self.ask_why();
        if let Some((joining, until)) = self.joining.take() {
            match joining.finish(Duration::ZERO) {
                Ok(Progress::NotYet(joining)) if now < until => self.joining = Some((joining, until)),
                Ok(Progress::NotYet(joining)) => self.not_joined(joining.too_late(), now),
                Ok(Progress::Joined(joined)) => self.joined(*joined),
                Err(error) => self.not_joined(error, now),
            }
            return;
        }
        if now < self.retry_at {
            return;
        }
        if sandbox::has_closed() {
            return self.shut_in();
        }
        let is_first = self.retry_at == Time::ZERO;
        self.retry_at = now + RETRY;
        if is_first {
            match join(&socket, &self.hello, self.patience.answer) {
                Ok(joined) => self.joined(joined),
                Err(error) => self.not_joined(error, now),
            }
        } else {
            match Joining::begin(&socket, &self.hello) {
                Ok(joining) => self.joining = Some((joining, now + JOINING_MAX)),
                Err(error) => self.not_joined(error, now),
            }
        }
    }

    /// The program's sandbox allows no new connection, and may end a program that tries.
    fn shut_in(&mut self) {
        self.retry_at = Time::NEVER;
        self.say(
            "not scheduled: the program is in its sandbox by now, which allows no connection".to_owned(),
        );
    }

    fn not_joined(&mut self, error: NotScheduled, now: Time) {
        match &error {
            // Asking again would not change its mind.
            NotScheduled::Refused(_) => self.retry_at = Time::NEVER,
            NotScheduled::NotNow { again, .. } => {
                let again = Span::from_ns(u64::try_from(again.as_nanos()).unwrap_or(u64::MAX));
                self.retry_at = now + again.max(RETRY);
            }
            // That it is gone was said when it went.
            NotScheduled::Absent { .. } if self.is_unscheduled_said() => return,
            NotScheduled::Absent { .. } | NotScheduled::Nonsense => {}
        }
        self.say(format!("not scheduled: {error}"));
    }

    fn joined(&mut self, joined: Joined) {
        let Joined { connection, welcome, sender, receiver } = joined;
        self.life += 1;
        self.epoch += 1;
        self.parting = None;
        self.on = Some(On {
            daemon: connection.peer().map_or(0, |peer| peer.pid),
            connection: Arc::new(connection),
            sender,
            region: receiver.region(),
            receiver: Some(receiver),
            first: None,
            spin: SpinBudget::new(Span::from_us(welcome.spin_us.min(SPIN_MAX_US).into())),
            welcome,
            granted: BTreeMap::new(),
            commands: VecDeque::with_capacity(COMMANDS_MAX),
            open: BTreeMap::new(),
            ahead: None,
            asked: 0,
            answered: 0,
            unwanted: BTreeSet::new(),
            stray_frames: 0,
            release: None,
            between_frames: false,
            slice: None,
            telling: Telling::new(&self.hello),
        });
        self.say_welcome();
    }

    fn say_welcome(&mut self) {
        let admission = self.welcome().map(|welcome| welcome.admission.clone()).unwrap_or_default();
        self.say(format!("scheduled as {}: {admission}", self.hello.name));
    }

    /// Says why the daemon evicted us, once it has told.
    fn ask_why(&mut self) {
        let Some(connection) = self.parting.take_if(|parting| parting.wait(Duration::ZERO).unwrap_or(true))
        else {
            return;
        };
        if let Ok(Some(received)) = connection.receive()
            && let Message::Refused { reason, .. } = received.message
        {
            self.say(format!("evicted: {reason}"));
        }
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
