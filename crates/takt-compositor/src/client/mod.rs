//! A client: one connection, served by a thread of its own.
//!
//! The thread speaks Wayland with the client, copies the pixels that it commits, and publishes pictures of
//! its windows. What a client does wrong, or does without end, costs its own thread alone. The manager says
//! where windows are shown; outputs say when pictures were taken and seen.

mod commits;
mod globals;
mod handlers;
mod input;
mod ivi;
mod ivi_protocol;
mod notes;
mod picture;
mod shm;
mod state;
mod thread;
mod valve;
mod windows;

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use takt_cockpit::config::{Domain, Kind, Output};
use takt_cockpit::geometry::Size;
use takt_cockpit::input::Delivery;
use takt_cockpit::windows::{ClientId, WindowId};
use takt_core::{Span, Time};

use crate::bell::Bell;
use crate::mailbox::{Mailbox, Sender, Unsent, mailbox};
use crate::manager::Teller;
pub use notes::FromClient;
pub use thread::run;

/// Most messages that wait for a client's thread.
const MESSAGES_MAX: usize = 1024;

/// Who a client is, by the kernel's word.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Peer {
    /// Its process; 0 if the kernel does not tell.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// What it executes, where the system tells.
    pub executable: Option<String>,
}

/// A client, as other threads see it.
#[derive(Debug)]
pub struct ClientHandle {
    /// Which one.
    pub id: ClientId,
    /// Its domain.
    pub domain: usize,
    /// Who it is.
    pub peer: Peer,
    sender: Sender<ToClient>,
    /// Its connection, to end it even if its thread hangs.
    socket: OwnedFd,
    /// Whether its thread did not take a message.
    overrun: AtomicBool,
}

/// What a client's thread is told.
#[derive(Clone, PartialEq, Debug)]
pub enum ToClient {
    /// A window is to have that size; none lets it choose.
    Configure(WindowId, Option<Size>),
    /// A window is to close.
    Close(WindowId),
    /// A window is shown there, or not.
    Shown(WindowId, Visibility),
    /// The picture of that number was taken for the refresh that follows this one.
    Taken {
        /// Of that window.
        window: WindowId,
        /// Counts commits.
        number: u64,
        /// When the refresh was.
        at: Time,
    },
    /// The picture of that number was seen.
    Presented {
        /// Of that window.
        window: WindowId,
        /// Counts commits.
        number: u64,
        /// When the display refreshed.
        at: Time,
        /// Number of that refresh.
        sequence: u64,
        /// Time between two refreshes.
        refresh: Span,
    },
    /// A window hears something.
    Input(Delivery),
    /// The client is to be disconnected, for that reason.
    Disconnect(String),
}

/// Whether a window is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Visibility {
    /// It is not.
    #[default]
    Hidden,
    /// On that output, but its picture stays as it is.
    Frozen(usize),
    /// On that output.
    Shown(usize),
}

impl Visibility {
    /// The output that it is on.
    pub fn output(self) -> Option<usize> {
        match self {
            Self::Hidden => None,
            Self::Frozen(output) | Self::Shown(output) => Some(output),
        }
    }
}

/// What a client's thread needs to begin.
#[derive(Debug)]
pub struct ClientParts {
    /// The client.
    pub client: Arc<ClientHandle>,
    /// Its connection.
    pub stream: UnixStream,
    /// What it is told.
    pub mailbox: Mailbox<ToClient>,
    /// Its domain.
    pub domain: Domain,
    /// All outputs.
    pub outputs: Vec<Output>,
    /// Kinds of input devices that it may ever hear.
    pub kinds: Vec<Kind>,
    /// The manager.
    pub manager: Teller,
    /// Rings when it has a new picture.
    pub bell: Arc<Bell>,
}

impl ClientHandle {
    /// A client with that connection, and its mailbox.
    pub fn new(
        id: ClientId,
        domain: usize,
        peer: Peer,
        stream: &UnixStream,
    ) -> std::io::Result<(Self, Mailbox<ToClient>)> {
        let socket = stream.as_fd().try_clone_to_owned()?;
        let (sender, mailbox) = mailbox(MESSAGES_MAX)?;
        let overrun = AtomicBool::new(false);
        Ok((Self { id, domain, peer, sender, socket, overrun }, mailbox))
    }

    /// Tells its thread something; never waits.
    pub fn tell(&self, message: ToClient) {
        if self.sender.send(message) == Err(Unsent::Full) {
            self.overrun.store(true, Ordering::Relaxed);
        }
    }

    /// Whether its thread left messages lying, so that it does not know what it should.
    pub fn is_overrun(&self) -> bool {
        self.overrun.load(Ordering::Relaxed)
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.peer.pid
    }

    /// Ends its connection, be its thread as it may.
    pub fn cut(&self) {
        // A connection that has ended already is as it should be.
        rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both).unwrap_or_default();
    }
}
