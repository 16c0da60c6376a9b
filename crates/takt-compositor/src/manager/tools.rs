//! Answers questions and orders of tools.

use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use takt_cockpit::control::{OutputStatus, Status, WindowStatus};
use takt_cockpit::geometry::Rect;
use takt_cockpit::input::Act;
use takt_cockpit::windows::{ClientId, Motion, Order, Subject, WindowId};

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
    /// An input device does something.
    Input(usize, Vec<Act>),
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
            Ask::Input(device, acts) => match self.input(device, &acts, self.now) {
                Ok(()) => Answer::Done,
                Err(reason) => Answer::Refused(reason),
            },
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
        let outputs = (0..self.outputs.len()).map(|index| self.output_status(index)).collect();
        let shown = |id: &WindowId| self.windows.shown_on(*id).is_some();
        let scenes =
            (0..self.outputs.len()).flat_map(|output| self.windows.scene(output).windows.iter().rev());
        let in_front = scenes.map(|placed| placed.id);
        let others = self.windows.ids().filter(|id| !shown(id));
        let windows = in_front.chain(others).filter_map(|id| self.window_status(id)).collect();
        Status {
            motion: self.windows.motion(),
            outputs,
            windows,
            programs: Vec::new(),
            clients: self.clients.len(),
            records_lost: self.windows.lost() + self.inputs.lost(),
        }
    }

    fn output_status(&self, index: usize) -> OutputStatus {
        let output = &self.outputs[index];
        let (settings, counters) = (&output.settings, &output.counters);
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let windows = self.windows.scene(index).windows.iter();
        let name = |id| self.windows.rule(id).map_or_else(String::new, |rule| rule.name.clone());
        OutputStatus {
            name: settings.name.clone(),
            size: settings.size,
            refresh_hz: f64::from(settings.grid.mhz()) / 1000.0,
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
    }

    fn window_status(&self, id: WindowId) -> Option<WindowStatus> {
        let (claims, mapped) = self.windows.claims(id)?;
        let client = self.clients.get(&self.windows.client(id)?)?;
        let output = self.windows.shown_on(id);
        let placed = output.and_then(|output| self.windows.scene(output).find(id));
        Some(WindowStatus {
            id: id.0,
            name: self.windows.rule(id).map(|rule| rule.name.clone()),
            claims: claims.to_string(),
            domain: self.config.domains[client.domain].name.clone(),
            pid: client.peer.pid,
            output: output.map(|output| self.config.outputs[output].name.clone()),
            area: placed.map(|placed| placed.seen()),
            opacity: placed.map_or(0.0, |placed| f64::from(placed.opacity) / 255.0),
            mapped,
            frozen: placed.is_some_and(|placed| placed.frozen),
            client: client.id.0,
            surface: self.shared.get(&id).map_or(0, |window| window.surface),
            focus: self.has_focus(id),
            input: self.input_status(id),
        })
    }
}
