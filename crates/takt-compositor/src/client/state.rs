//! Everything that a client's thread knows of its client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use smithay::desktop::PopupManager;
use smithay::input::{Seat, SeatState};
use smithay::output::Output;
use smithay::reexports::wayland_server::backend::{ClientData, ClientId as BackendId, DisconnectReason};
use smithay::reexports::wayland_server::protocol::wl_callback::WlCallback;
use smithay::reexports::wayland_server::protocol::wl_surface::WlSurface;
use smithay::wayland::compositor::{CompositorClientState, CompositorState};
use smithay::wayland::shell::xdg::{PopupSurface, XdgShellState};
use takt_cockpit::config::Domain;
use takt_cockpit::windows::WindowId;
use takt_core::Time;

use super::globals::Globals;
use super::input::Untaken;
use super::notes::Notes;
use super::shm::Counts;
use super::windows::ClientWindow;
use super::{ClientHandle, Visibility};
use crate::bell::Bell;

/// Numbers windows and surfaces of all clients.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A number that no other window or surface has.
pub(super) fn next_number() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What a client's thread knows.
pub(super) struct State {
    pub(super) client: Arc<ClientHandle>,
    pub(super) domain: Domain,
    pub(super) bell: Arc<Bell>,
    pub(super) notes: Notes,
    pub(super) protocols: Protocols,
    pub(super) shm: Counts,
    pub(super) surfaces: usize,
    /// Bytes of pixels that were copied and are kept.
    pub(super) memory: u64,
    pub(super) windows: BTreeMap<WindowId, ClientWindow>,
    /// Input that the client's socket has not taken.
    pub(super) untaken: Vec<Untaken>,
    /// Popups that end when something else is touched, from the first to the last.
    pub(super) grabbed: Vec<PopupSurface>,
    /// Callbacks of surfaces without a window.
    pub(super) loose: Vec<WlCallback>,
    /// What it did wrong: a rule and a reason.
    pub(super) offence: Option<(&'static str, String)>,
    /// The time of this turn.
    pub(super) now: Time,
}

/// States of the protocols that are offered.
pub(super) struct Protocols {
    pub(super) compositor: CompositorState,
    pub(super) xdg: XdgShellState,
    pub(super) devices: SeatState<State>,
    pub(super) seat: Seat<State>,
    pub(super) outputs: Vec<Output>,
    pub(super) popups: PopupManager,
    pub(super) _globals: Globals,
}

impl State {
    /// It broke a rule: it is disconnected after this turn.
    pub(super) fn offend(&mut self, rule: &'static str, reason: &str) {
        self.offence.get_or_insert_with(|| (rule, reason.to_owned()));
    }

    /// The window that a surface is the root of.
    pub(super) fn window_of(&mut self, root: &WlSurface) -> Option<&mut ClientWindow> {
        self.windows.values_mut().find(|window| window.root() == root)
    }

    /// Whether a window is shown, and where.
    pub(super) fn visibility(&self, id: WindowId) -> Visibility {
        self.windows.get(&id).map(|window| window.visibility).unwrap_or_default()
    }
}

/// What the library keeps with its client.
#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) compositor: CompositorClientState,
    pub(super) gone: Arc<std::sync::Mutex<Option<String>>>,
}

impl ClientData for Data {
    fn initialized(&self, _client: BackendId) {}

    fn disconnected(&self, _client: BackendId, reason: DisconnectReason) {
        let said = match reason {
            DisconnectReason::ConnectionClosed => "the connection was closed".to_owned(),
            DisconnectReason::ProtocolError(error) => {
                format!("{}: {}", error.object_interface, error.message)
            }
        };
        let mut gone = self.gone.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        gone.get_or_insert(said);
    }
}
