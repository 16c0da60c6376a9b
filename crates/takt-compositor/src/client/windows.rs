//! Windows of a client: what the manager says of them, and which callbacks wait for their frames.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use smithay::reexports::wayland_protocols::wp::presentation_time::server::wp_presentation_feedback::Kind;
use smithay::reexports::wayland_protocols::xdg::shell::server::xdg_toplevel;
use smithay::reexports::wayland_server::Resource;
use smithay::reexports::wayland_server::protocol::wl_callback::WlCallback;
use smithay::reexports::wayland_server::protocol::wl_surface::WlSurface;
use smithay::wayland::presentation::{PresentationFeedbackCallback, Refresh};
use smithay::wayland::shell::xdg::ToplevelSurface;
use takt_cockpit::geometry::{Rect, Size};
use takt_cockpit::windows::{Claims, WindowId};
use takt_core::{Span, Time};

use super::ivi::IviWindow;
use super::notes::FromClient;
use super::state::{State, next_number};
use super::{ToClient, Visibility};
use crate::picture::Window;

/// How often windows that are not shown may draw.
pub(super) const HIDDEN_EVERY: Span = Span::from_ms(250);
/// Most callbacks and feedbacks that wait.
pub(super) const WAITING_MAX: usize = 4096;
/// Longest text of a claim that is looked at.
const CLAIM_MAX: usize = 256;

/// A window of a client.
pub(super) struct ClientWindow {
    pub(super) shared: Arc<Window>,
    pub(super) role: Role,
    /// Counts commits.
    pub(super) number: u64,
    /// Pictures that were copied since an output took one.
    pub(super) copies: u32,
    /// What the manager was last told.
    pub(super) told: Told,
    pub(super) visibility: Visibility,
    /// The size that the manager wants, once it said so.
    pub(super) wanted: Option<Option<Size>>,
    /// What is to be told when the picture of that number is taken, and when it is seen.
    pub(super) callbacks: VecDeque<(u64, Vec<WlCallback>)>,
    pub(super) feedback: VecDeque<(u64, Vec<PresentationFeedbackCallback>)>,
}

/// How the client made it.
#[derive(Clone, Debug)]
pub(super) enum Role {
    /// By `xdg_wm_base`.
    Xdg(ToplevelSurface),
    /// By `ivi_application`.
    Ivi(IviWindow),
}

impl Role {
    /// The surface that is the window.
    fn root(&self) -> &WlSurface {
        match self {
            Self::Xdg(toplevel) => toplevel.wl_surface(),
            Self::Ivi(ivi) => &ivi.surface,
        }
    }
}

/// What the manager knows of a window.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) claims: Option<Claims>,
    pub(super) picture: Option<(Size, Vec<Rect>)>,
}

impl ClientWindow {
    pub(super) fn root(&self) -> &WlSurface {
        self.role.root()
    }

    pub(super) fn id(&self) -> WindowId {
        self.shared.id
    }

    /// The size that it was told to have.
    pub(super) fn area(&self) -> Option<Size> {
        self.wanted.flatten()
    }

    /// What it claims to be.
    pub(super) fn claims(&self) -> Claims {
        match &self.role {
            Role::Xdg(toplevel) => xdg_claims(toplevel),
            Role::Ivi(ivi) => Claims::Ivi(ivi.ivi_id),
        }
    }

    /// Tells the client the size that the manager wants; first as the answer to its first commit.
    pub(super) fn configure(&self) {
        let Some(size) = self.wanted else {
            return;
        };
        match &self.role {
            Role::Xdg(toplevel) => {
                toplevel.with_pending_state(|state| {
                    state.size = size.map(|size| (size.width, size.height).into());
                    state.states.set(xdg_toplevel::State::Activated);
                    match size {
                        Some(_) => state.states.set(xdg_toplevel::State::Fullscreen),
                        None => state.states.unset(xdg_toplevel::State::Fullscreen),
                    };
                });
                toplevel.send_pending_configure();
            }
            Role::Ivi(ivi) => {
                if let Some(size) = size {
                    ivi.window.configure(size.width, size.height);
                }
            }
        }
    }

    /// The number that it claims.
    pub(super) fn ivi_id(&self) -> Option<u32> {
        match &self.role {
            Role::Ivi(ivi) => Some(ivi.ivi_id),
            Role::Xdg(_) => None,
        }
    }

    fn close(&self) {
        match &self.role {
            Role::Xdg(toplevel) => toplevel.send_close(),
            // The protocol has no word for it.
            Role::Ivi(_) => {}
        }
    }

    /// Those that wait for pictures up to that number may draw.
    pub(super) fn call_back(&mut self, number: u64, at: Time) {
        #[expect(clippy::cast_possible_truncation, reason = "the protocol's time wraps around")]
        let ms = (at.as_ns() / 1_000_000) as u32;
        while self.callbacks.front().is_some_and(|(of, _)| *of <= number) {
            let (_, callbacks) = self.callbacks.pop_front().unwrap_or_default();
            callbacks.into_iter().for_each(|callback| callback.done(ms));
        }
    }

    /// Pictures before that number are never seen.
    pub(super) fn discard(&mut self, before: u64) {
        while self.feedback.front().is_some_and(|(of, _)| *of < before) {
            let (_, feedback) = self.feedback.pop_front().unwrap_or_default();
            feedback.into_iter().for_each(PresentationFeedbackCallback::discarded);
        }
    }

    /// How many wait for it.
    pub(super) fn waiting(&self) -> usize {
        let callbacks: usize = self.callbacks.iter().map(|(_, waiting)| waiting.len()).sum();
        callbacks + self.feedback.iter().map(|(_, waiting)| waiting.len()).sum::<usize>()
    }

    /// Whether it is called back slowly.
    pub(super) fn is_slow(&self) -> bool {
        !matches!(self.visibility, Visibility::Shown(_))
    }
}

fn xdg_claims(toplevel: &ToplevelSurface) -> Claims {
    use smithay::wayland::compositor::with_states;
    use smithay::wayland::shell::xdg::XdgToplevelSurfaceData;
    let cut = |text: Option<&String>| {
        let text = text.map(String::as_str).unwrap_or_default();
        text[..text.floor_char_boundary(CLAIM_MAX)].to_owned()
    };
    with_states(toplevel.wl_surface(), |states| {
        let attributes = states.data_map.get::<XdgToplevelSurfaceData>();
        let attributes =
            attributes.map(|attributes| attributes.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        let (app_id, title) = match &attributes {
            Some(attributes) => (cut(attributes.app_id.as_ref()), cut(attributes.title.as_ref())),
            None => Default::default(),
        };
        Claims::Xdg { app_id, title }
    })
}

impl State {
    /// A client makes a window.
    pub(super) fn add_window(&mut self, role: Role) -> WindowId {
        let id = WindowId(next_number());
        let surface = role.root().id().protocol_id();
        let client = (Arc::clone(&self.client), surface);
        let shared = Arc::new(Window::new(id, client, Arc::clone(&self.bell)));
        let window = ClientWindow {
            shared,
            role,
            number: 0,
            copies: 0,
            told: Told::default(),
            visibility: Visibility::Hidden,
            wanted: None,
            callbacks: VecDeque::new(),
            feedback: VecDeque::new(),
        };
        self.windows.insert(id, window);
        id
    }

    /// A window is gone.
    pub(super) fn remove_window(&mut self, id: WindowId) {
        if let Some(mut window) = self.windows.remove(&id) {
            window.call_back(u64::MAX, self.now);
            window.discard(u64::MAX);
            if window.told.claims.is_some() {
                self.notes.put(FromClient::Vanished(id));
            }
        }
    }

    /// Tells the manager what a window claims to be, if that is new.
    pub(super) fn tell_claims(&mut self, id: WindowId) {
        let Some(window) = self.windows.get_mut(&id) else {
            return;
        };
        let claims = window.claims();
        if window.told.claims.as_ref() == Some(&claims) {
            return;
        }
        let note = match window.told.claims.replace(claims.clone()) {
            None => FromClient::Appeared(Arc::clone(&window.shared), claims),
            Some(_) => FromClient::Claimed(id, claims),
        };
        self.notes.put(note);
    }

    /// Does what it is told.
    pub(super) fn obey(&mut self, message: ToClient) {
        match message {
            ToClient::Configure(id, size) => {
                if let Some(window) = self.windows.get_mut(&id) {
                    window.wanted = Some(size);
                    window.configure();
                }
            }
            ToClient::Close(id) => {
                if let Some(window) = self.windows.get(&id) {
                    window.close();
                }
            }
            ToClient::Shown(id, visibility) => self.show(id, visibility),
            ToClient::Taken { window: id, number, at } => {
                if let Some(window) = self.windows.get_mut(&id) {
                    window.call_back(number, at);
                    window.copies = 0;
                    self.catch_up(id);
                }
            }
            ToClient::Presented { window: id, number, at, sequence, refresh } => {
                self.present(id, number, (at, sequence, refresh));
            }
            ToClient::Input(delivery) => self.take_input(&delivery),
            ToClient::Disconnect(reason) => self.offend("disconnected", &reason),
        }
    }

    fn show(&mut self, id: WindowId, visibility: Visibility) {
        let Some(window) = self.windows.get_mut(&id) else {
            return;
        };
        let before = std::mem::replace(&mut window.visibility, visibility).output();
        let after = visibility.output();
        if before != after {
            let output = |index: Option<usize>| index.and_then(|index| self.protocols.outputs.get(index));
            if let Some(output) = output(before) {
                output.leave(window.root());
            }
            if let Some(output) = output(after) {
                output.enter(window.root());
            }
        }
        self.catch_up(id);
    }

    fn present(&mut self, id: WindowId, number: u64, seen: (Time, u64, Span)) {
        let (at, sequence, refresh) = seen;
        let output = self.visibility(id).output().and_then(|index| self.protocols.outputs.get(index));
        let Some(window) = self.windows.get_mut(&id) else {
            return;
        };
        window.discard(number);
        let Some((_, feedback)) = window.feedback.pop_front_if(|(of, _)| *of == number) else {
            return;
        };
        for feedback in feedback {
            match output {
                Some(output) => feedback.presented(
                    output,
                    Duration::from_nanos(at.as_ns()),
                    Refresh::fixed(Duration::from_nanos(refresh.as_ns())),
                    sequence,
                    Kind::Vsync,
                ),
                None => feedback.discarded(),
            }
        }
    }

    /// Calls back windows that are not shown, and surfaces without a window, so that no client hangs.
    pub(super) fn call_back_slowly(&mut self) {
        let now = self.now;
        let slow: Vec<WindowId> =
            self.windows.values().filter(|window| window.is_slow()).map(ClientWindow::id).collect();
        for id in slow {
            if let Some(window) = self.windows.get_mut(&id) {
                window.copies = 0;
                let newest = window.number;
                window.call_back(newest, now);
                window.discard(newest.saturating_add(1));
            }
            self.catch_up(id);
        }
        #[expect(clippy::cast_possible_truncation, reason = "the protocol's time wraps around")]
        let ms = (now.as_ns() / 1_000_000) as u32;
        self.loose.drain(..).for_each(|callback| callback.done(ms));
    }

    /// Whether [`Self::call_back_slowly`] has anything to do.
    pub(super) fn has_slow(&self) -> bool {
        let waits = |window: &ClientWindow| window.is_slow() && (window.waiting() > 0 || window.copies > 0);
        !self.loose.is_empty() || self.windows.values().any(waits)
    }
}
