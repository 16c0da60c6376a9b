//! The thread of a client.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use smithay::reexports::wayland_server::backend::protocol::ProtocolError;
use smithay::reexports::wayland_server::{Client, Display};
use takt_core::{Span, Time};
use takt_os::clock;

use super::globals::offer;
use super::notes::{FromClient, Notes};
use super::shm::Counts;
use super::state::{Data, State};
use super::valve::Valve;
use super::windows::HIDDEN_EVERY;
use super::{ClientParts, ToClient};
use crate::mailbox::Mailbox;

/// Most objects of a client.
const OBJECTS_MAX: usize = 16_384;
/// Bytes after which they are counted again; the smallest request that makes one has twelve.
const COUNT_EVERY: Span = Span::from_ms(100);
/// Most descriptors that a client sends and that no request takes.
const STRAY_DESCRIPTORS_MAX: u64 = 256;
/// Longest sleep: the thread looks at everything again after that.
const SLEEP_MAX: Span = Span::from_ms(1_000);

/// Serves a client until its connection ends.
pub fn run(beginning: ClientParts) {
    let manager = beginning.manager.clone();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| serve(beginning)));
    let reason = match caught {
        Ok(Ok(reason)) => reason,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the thread of the client panicked".to_owned(),
    };
    manager.note(FromClient::Gone(reason));
}

/// A connection and what is known of it.
struct Served {
    display: Display<State>,
    state: State,
    client: Client,
    valve: Valve,
    mailbox: Mailbox<ToClient>,
    gone: Arc<Mutex<Option<String>>>,
    /// When windows that are not shown were last called back.
    slow: Time,
    counted: Time,
}

fn serve(beginning: ClientParts) -> std::io::Result<String> {
    let ClientParts { client, stream, mailbox, domain, outputs, kinds, manager, bell } = beginning;
    let now = clock::now();
    let mut display: Display<State> = Display::new().map_err(std::io::Error::other)?;
    let mut handle = display.handle();
    let protocols = offer(&handle, &domain, (&outputs, &kinds));
    let (ours, inner) = UnixStream::pair()?;
    let data = Arc::new(Data::default());
    let gone = Arc::clone(&data.gone);
    let inserted = handle.insert_client(ours, data)?;
    let state = State {
        client,
        domain,
        bell,
        notes: Notes::new(manager, now),
        protocols,
        shm: Counts::default(),
        surfaces: 0,
        memory: 0,
        windows: Default::default(),
        untaken: Vec::new(),
        grabbed: Vec::new(),
        loose: Vec::new(),
        offence: None,
        now,
    };
    let valve = Valve::new(stream, inner, now)?;
    display.flush_clients()?;
    let mut served =
        Served { display, state, client: inserted, valve, mailbox, gone, slow: now, counted: now };
    let reason = served.serve()?;
    served.state.notes.send(clock::now());
    Ok(reason)
}

impl Served {
    /// Serves until the connection ends; says why it did.
    fn serve(&mut self) -> std::io::Result<String> {
        loop {
            self.state.now = clock::now();
            self.mailbox.heard();
            while let Some(message) = self.mailbox.take() {
                self.state.obey(message);
            }
            self.valve.pull(self.state.now)?;
            self.display.dispatch_clients(&mut self.state)?;
            self.look();
            self.state.notes.send(self.state.now);
            self.display.flush_clients()?;
            // A client that is gone does not take what is left.
            let pushed = self.valve.push();
            if self.valve.is_clear() {
                self.state.all_taken(clock::now());
            }
            if let Some(reason) = self.end(pushed.is_err()) {
                return Ok(reason);
            }
            self.sleep();
        }
    }

    /// Looks after bounds, and after windows that are not shown.
    fn look(&mut self) {
        let now = self.state.now;
        let taken = self.state.shm.pools_ever;
        if self.valve.descriptors().saturating_sub(taken) > STRAY_DESCRIPTORS_MAX {
            self.state.offend("descriptors-max", "descriptors that no request takes");
        }
        if now.since(self.counted) >= COUNT_EVERY {
            self.counted = now;
            let mut objects = 0;
            let count = |_| objects += 1;
            let backend = self.display.handle().backend_handle();
            // A client that is gone has none.
            backend.with_all_objects_for(self.client.id(), count).unwrap_or_default();
            if objects > OBJECTS_MAX {
                self.state.offend("objects-max", &format!("more than {OBJECTS_MAX} objects"));
            }
        }
        if self.state.notes.is_full() {
            self.state.offend("claims-rate", "it changes windows faster than they can be looked at");
        }
        if now.since(self.slow) >= HIDDEN_EVERY {
            self.slow = now;
            self.state.call_back_slowly();
        }
        self.state.protocols.popups.cleanup();
    }

    /// Why the connection is over, if it is.
    fn end(&mut self, lost: bool) -> Option<String> {
        if let Some((rule, reason)) = self.state.offence.take() {
            let error = ProtocolError {
                code: 3,
                object_id: 1,
                object_interface: "wl_display".to_owned(),
                message: format!("{reason} ({rule})"),
            };
            self.client.kill(&self.display.handle(), error);
            self.display.flush_clients().unwrap_or_default();
            self.valve.push().unwrap_or_default();
            if rule != "disconnected" {
                self.state.notes.end(FromClient::Offended { rule, reason: reason.clone() });
            }
            return Some(reason);
        }
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner).take();
        if gone.is_some() {
            // The client hears why, if it reads.
            self.valve.push().unwrap_or_default();
            return gone;
        }
        (lost || self.valve.is_over()).then(|| "the connection was closed".to_owned())
    }

    /// Sleeps until there is something to do.
    fn sleep(&self) {
        let now = clock::now();
        let slow = self.state.has_slow().then(|| self.slow + HIDDEN_EVERY);
        let times = [slow, self.valve.paused_until(), self.state.notes.next()];
        let until = times.into_iter().flatten().min().unwrap_or(now + SLEEP_MAX);
        let sleep = until.since(now).min(SLEEP_MAX);
        let timeout = crate::timespec(sleep);
        // A side without interest is left out: its end would be told again and again.
        let sides = self.valve.interest().into_iter().filter(|(_, interest)| !interest.is_empty());
        let sides = sides.map(|(side, interest)| PollFd::from_borrowed_fd(side, interest));
        let mut fds: Vec<PollFd<'_>> =
            std::iter::once(PollFd::new(&self.mailbox, PollFlags::IN)).chain(sides).collect();
        // An interrupted sleep is a short one.
        poll(&mut fds, Some(&timeout)).unwrap_or_default();
    }
}
