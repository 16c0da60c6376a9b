//! The thread that decides: it knows all clients and windows, and says what outputs show.
//!
//! Rules are those of [`takt_cockpit::windows`]; this thread hears what clients, outputs and tools do, and
//! carries out what the rules decide. It never waits for a client or an output.

mod clients;
mod input;
mod listen;
mod scenes;
mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use rustix::event::{PollFd, PollFlags, poll};
use takt_cockpit::config::Cockpit as Config;
use takt_cockpit::input::evdev::Report;
use takt_cockpit::input::{Inputs, Seen};
use takt_cockpit::windows::{Action, ClientId, Kind, Note, WindowId, Windows};
use takt_core::{Span, Time};
use takt_os::clock;

use crate::client::{ClientHandle, FromClient, Visibility};
use crate::mailbox::{Mailbox, Sender, Unsent};
use crate::output::Output;
use crate::picture::Window;
pub use listen::Listening;
pub use tools::{Answer, Ask};

/// Most messages that wait for the manager.
pub const MESSAGES_MAX: usize = 65_536;
/// Longest sleep.
const SLEEP_MAX: Span = Span::from_ms(500);
/// How long a client's thread may wait for room in the manager's queue at a time.
const ROOM_NAP: std::time::Duration = std::time::Duration::from_millis(1);

/// What the manager hears.
#[derive(Debug)]
pub enum ToManager {
    /// A client did something.
    Client(ClientId, FromClient),
    /// An output did something.
    Output(usize, FromOutput),
    /// An input device did something.
    Input(usize, InputNews),
    /// A tool wants something.
    Tool(Ask, SyncSender<Answer>),
    /// It ends.
    End,
}

/// What is new of an input device.
#[derive(Clone, PartialEq, Debug)]
pub enum InputNews {
    /// It did something.
    Reports(Vec<Report>),
    /// It is read, or not any more, in words.
    State(String),
}

/// What an output did.
#[derive(Clone, PartialEq, Debug)]
pub enum FromOutput {
    /// A picture of a window was seen.
    Seen {
        /// Of that window.
        window: WindowId,
        /// Its number.
        number: u64,
        /// How it looks, as a number that grows whenever that changes.
        look: u64,
        /// When the display refreshed.
        at: Time,
    },
    /// A window looks different from when this was last told.
    Changed(WindowId),
    /// It could not draw.
    Failed(String),
}

/// The way to the manager.
#[derive(Clone, Debug)]
pub struct Teller {
    origin: Origin,
    sender: Sender<ToManager>,
}

#[derive(Clone, Copy, Debug)]
enum Origin {
    Client(ClientId),
    Output(usize),
}

impl Teller {
    /// For a client's thread.
    pub fn of_client(id: ClientId, sender: Sender<ToManager>) -> Self {
        Self { origin: Origin::Client(id), sender }
    }

    /// For an output's thread.
    pub fn of_output(index: usize, sender: Sender<ToManager>) -> Self {
        Self { origin: Origin::Output(index), sender }
    }

    /// Tells what an output did; what finds no room is lost, since an output never waits.
    pub fn tell(&self, message: FromOutput) {
        if let Origin::Output(index) = self.origin {
            self.sender.send(ToManager::Output(index, message)).unwrap_or_default();
        }
    }

    /// Tells what a client did; the client's thread waits for room.
    pub fn note(&self, note: FromClient) {
        let Origin::Client(id) = self.origin else {
            return;
        };
        let mut message = Some(ToManager::Client(id, note));
        while let Some(next) = message.take() {
            match self.sender.offer(next) {
                Err((Unsent::Full, back)) => {
                    message = Some(back);
                    std::thread::sleep(ROOM_NAP);
                }
                // Without a manager there is nothing to tell.
                Ok(()) | Err((Unsent::Gone, _)) => {}
            }
        }
    }
}

/// Takes records of decisions.
pub type Recorder = Box<dyn FnMut(&Entry) + Send>;

/// A record, with what is known of its client.
#[derive(Clone, PartialEq, Debug)]
pub enum Entry {
    /// A decision about windows.
    Note(Note, Option<crate::client::Peer>),
    /// A client connected, or may not, or is gone.
    Client {
        /// Its domain.
        domain: usize,
        /// Who it is.
        peer: crate::client::Peer,
        /// What happened.
        what: Connection,
    },
    /// An output could not draw.
    Output(usize, String),
    /// An input device is read, or not any more.
    Input(usize, String),
}

/// What became of a connection.
#[derive(Clone, PartialEq, Debug)]
pub enum Connection {
    /// It is served.
    Opened,
    /// It is refused, for that rule and reason.
    Refused(&'static str, String),
    /// It broke that rule, for that reason, and was cut.
    Cut(&'static str, String),
    /// It is over.
    Closed(String),
}

/// The manager.
pub struct Manager {
    config: Arc<Config>,
    windows: Windows,
    inputs: Inputs,
    shared: BTreeMap<WindowId, Arc<Window>>,
    visibility: BTreeMap<WindowId, Visibility>,
    clients: BTreeMap<ClientId, Arc<ClientHandle>>,
    next_client: u64,
    outputs: Vec<Output>,
    generation: u64,
    listening: Listening,
    mailbox: Mailbox<ToManager>,
    sender: Sender<ToManager>,
    recorder: Recorder,
    bell: Arc<crate::bell::Bell>,
    now: Time,
}

/// What the manager needs to begin.
pub struct ManagerParts {
    /// The rules.
    pub config: Arc<Config>,
    /// Outputs, in the order of the rules.
    pub outputs: Vec<Output>,
    /// Sockets of domains.
    pub listening: Listening,
    /// What it hears.
    pub mailbox: Mailbox<ToManager>,
    /// The way to it, for clients.
    pub sender: Sender<ToManager>,
    /// Takes records.
    pub recorder: Recorder,
    /// Rings when a window has a new picture.
    pub bell: Arc<crate::bell::Bell>,
}

impl Manager {
    /// A manager without clients.
    pub fn new(beginning: ManagerParts) -> Self {
        let ManagerParts { config, outputs, listening, mailbox, sender, recorder, bell } = beginning;
        let now = clock::now();
        Self {
            windows: Windows::new(Arc::clone(&config), now),
            inputs: Inputs::new(Arc::clone(&config)),
            config,
            shared: BTreeMap::new(),
            visibility: BTreeMap::new(),
            clients: BTreeMap::new(),
            next_client: 0,
            outputs,
            generation: 0,
            listening,
            mailbox,
            sender,
            recorder,
            bell,
            now,
        }
    }

    /// Goes on until it is told to end.
    pub fn run(&mut self) {
        loop {
            self.now = clock::now();
            self.mailbox.heard();
            while let Some(message) = self.mailbox.take() {
                match message {
                    ToManager::Client(id, note) => self.hear(id, note),
                    ToManager::Output(index, news) => self.hear_output(index, news),
                    ToManager::Input(device, news) => self.hear_device(device, news),
                    ToManager::Tool(ask, reply) => self.serve_tool(ask, &reply),
                    ToManager::End => return,
                }
                self.carry_out();
            }
            self.accept();
            self.windows.pass(self.now);
            self.supervise_input();
            self.carry_out();
            self.cut_overrun();
            self.sleep();
        }
    }

    fn hear_output(&mut self, index: usize, news: FromOutput) {
        match news {
            FromOutput::Seen { window, look, at, .. } => {
                self.windows.seen(window);
                self.inputs.seen(Seen { window, look, at });
            }
            FromOutput::Changed(window) => self.windows.change(self.now, window),
            FromOutput::Failed(reason) => (self.recorder)(&Entry::Output(index, reason)),
        }
    }

    /// Carries out what the rules decided.
    fn carry_out(&mut self) {
        let mut changed = false;
        while let Some(action) = self.windows.poll() {
            changed |= match &action {
                Action::Show(_) => true,
                Action::Record(note) => note.kind == Kind::Motion,
                _ => false,
            };
            match action {
                Action::Configure(id, size) => self.tell(id, crate::client::ToClient::Configure(id, size)),
                Action::Close(id) => self.tell(id, crate::client::ToClient::Close(id)),
                Action::Disconnect(client, reason) => self.disconnect(client, reason),
                Action::Show(output) => self.show(output),
                Action::Record(note) => self.record(note),
            }
        }
        if changed {
            self.inputs.review(&self.windows, self.now);
        }
        self.send_input();
    }

    fn tell(&self, id: WindowId, message: crate::client::ToClient) {
        if let Some(window) = self.shared.get(&id) {
            window.client.tell(message);
        }
    }

    fn record(&mut self, note: Note) {
        let peer = note.client.and_then(|id| self.clients.get(&id)).map(|client| client.peer.clone());
        (self.recorder)(&Entry::Note(note, peer));
    }

    /// Sleeps until there is something to do.
    fn sleep(&self) {
        let now = clock::now();
        let timeouts = [self.windows.next_timeout(), self.inputs.next_timeout()];
        let until = timeouts.into_iter().flatten().min().unwrap_or(now + SLEEP_MAX);
        let timeout = crate::timespec(until.since(now).min(SLEEP_MAX));
        let listeners = self.listening.listeners().map(|listener| PollFd::new(listener, PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> =
            std::iter::once(PollFd::new(&self.mailbox, PollFlags::IN)).chain(listeners).collect();
        // An interrupted sleep is a short one.
        poll(&mut fds, Some(&timeout)).unwrap_or_default();
    }
}
