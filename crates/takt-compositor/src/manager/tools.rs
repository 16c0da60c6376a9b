//! Answers questions and orders of tools.

use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use takt_cockpit::geometry::Rect;
use takt_cockpit::windows::{ClientId, Motion, Order, Subject};

use super::Manager;
use crate::client::Peer;
use crate::output::{Capture, Wish};

/// What a tool wants.
#[derive(Debug)]
pub enum Ask {
    /// Serve a connection of a domain, whose client is known to the tool.
    Connect(usize, Peer, UnixStream),
    /// Change how a window is shown.
    Order(Subject, Order),
    /// The vehicle moves, or stands.
    Move(Motion),
    /// A picture of a part of an output.
    Capture(usize, Option<Rect>, SyncSender<Capture>),
    /// How everything is.
    Status,
}

/// The answer.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// Done.
    Done,
    /// A client is served.
    Client(ClientId),
    /// It is not possible, and why.
    Refused(String),
    /// How everything is.
    Status(Status),
}

/// How everything is.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Status {
    /// Outputs.
    pub outputs: Vec<OutputStatus>,
    /// Clients.
    pub clients: usize,
}

/// How an output is.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OutputStatus {
    /// Its name.
    pub name: String,
    /// Refreshes since the start.
    pub refreshes: u64,
    /// Of these, those that its thread slept through.
    pub skipped: u64,
    /// Pictures that were composed, and those that were not ready in time.
    pub composed: u64,
    /// Late ones.
    pub late: u64,
    /// Nanoseconds of the longest.
    pub longest_ns: u64,
    /// Nanoseconds of all.
    pub busy_ns: u64,
    /// Whether the daemon schedules compositions.
    pub scheduled: bool,
    /// Whether it guarantees them.
    pub guaranteed: bool,
    /// Windows from back to front.
    pub windows: Vec<String>,
}

impl Manager {
    /// Serves a tool, which may have gone by the time of the answer.
    pub(super) fn serve_tool(&mut self, ask: Ask, reply: &SyncSender<Answer>) {
        let answer = match ask {
            Ask::Connect(domain, peer, stream) => match self.connect(domain, peer, stream) {
                Some(client) => Answer::Client(client),
                None => Answer::Refused("the domain has as many clients as it may".to_owned()),
            },
            Ask::Order(subject, order) => match self.windows.order(self.now, &subject, order) {
                Ok(_) => Answer::Done,
                Err(reason) => Answer::Refused(reason),
            },
            Ask::Move(motion) => {
                self.windows.set_motion(self.now, motion);
                Answer::Done
            }
            Ask::Capture(output, part, to) => match self.outputs.get(output) {
                Some(output) if output.capture(Wish { part, to }) => Answer::Done,
                Some(_) => Answer::Refused("too many captures wait".to_owned()),
                None => Answer::Refused(format!("there is no output {output}")),
            },
            Ask::Status => Answer::Status(self.status()),
        };
        self.carry_out();
        reply.try_send(answer).unwrap_or_default();
    }

    fn status(&self) -> Status {
        let of = |(index, output): (usize, &crate::output::Output)| {
            let counters = &output.counters;
            let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
            let windows = self.windows.scene(index).windows.iter();
            let name = |id| self.windows.rule(id).map_or_else(String::new, |rule| rule.name.clone());
            OutputStatus {
                name: output.settings.name.clone(),
                refreshes: count(&counters.refreshes),
                skipped: count(&counters.skipped),
                composed: count(&counters.composed),
                late: count(&counters.late),
                longest_ns: count(&counters.longest_ns),
                busy_ns: count(&counters.busy_ns),
                scheduled: counters.scheduled.load(Ordering::Relaxed),
                guaranteed: counters.guaranteed.load(Ordering::Relaxed),
                windows: windows.map(|placed| name(placed.id)).collect(),
            }
        };
        Status { outputs: self.outputs.iter().enumerate().map(of).collect(), clients: self.clients.len() }
    }
}
