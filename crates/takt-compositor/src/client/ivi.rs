//! Windows with numbers: `ivi_application`.
//!
//! A number is a claim like any other: the rules of the client's domain say whether there is such a window, and
//! where. Two windows of a client with one number, and a surface that is something else already, are errors of
//! the protocol.

use smithay::reexports::wayland_server::protocol::wl_surface::WlSurface;
use smithay::reexports::wayland_server::{
    Client, DataInit, Dispatch, DisplayHandle, GlobalDispatch, New, Resource,
};
use smithay::wayland::compositor::give_role;
use takt_cockpit::windows::WindowId;

use super::ivi_protocol::ivi_application::{self, IviApplication};
use super::ivi_protocol::ivi_surface::{self, IviSurface};
use super::state::State;
use super::windows::Role;

/// What such surfaces are.
const ROLE: &str = "ivi_surface";

impl GlobalDispatch<IviApplication, ()> for State {
    fn bind(
        _state: &mut Self,
        _display: &DisplayHandle,
        _client: &Client,
        resource: New<IviApplication>,
        _data: &(),
        init: &mut DataInit<'_, Self>,
    ) {
        init.init(resource, ());
    }
}

impl Dispatch<IviApplication, ()> for State {
    fn request(
        state: &mut Self,
        _client: &Client,
        application: &IviApplication,
        request: ivi_application::Request,
        _data: &(),
        _display: &DisplayHandle,
        init: &mut DataInit<'_, Self>,
    ) {
        let ivi_application::Request::SurfaceCreate { ivi_id, surface, id } = request;
        let window = init.init(id, surface.downgrade());
        let twice = state.windows.values().any(|window| window.ivi_id() == Some(ivi_id));
        let used = state.window_of(&surface).is_some();
        if twice {
            application.post_error(ivi_application::Error::IviId, format!("{ivi_id} is in use"));
        } else if used || give_role(&surface, ROLE).is_err() {
            application.post_error(ivi_application::Error::Role, "the surface is something else already");
        } else {
            let id = state.add_window(Role::Ivi(IviWindow { window, surface, ivi_id }));
            state.tell_claims(id);
        }
    }
}

/// The surface of a window; it may be gone.
type Surface = smithay::reexports::wayland_server::Weak<WlSurface>;

impl Dispatch<IviSurface, Surface> for State {
    fn request(
        state: &mut Self,
        _client: &Client,
        window: &IviSurface,
        request: ivi_surface::Request,
        _surface: &Surface,
        _display: &DisplayHandle,
        _init: &mut DataInit<'_, Self>,
    ) {
        match request {
            ivi_surface::Request::Destroy => state.forget_ivi(window),
        }
    }

    fn destroyed(
        state: &mut Self,
        _client: smithay::reexports::wayland_server::backend::ClientId,
        window: &IviSurface,
        _surface: &Surface,
    ) {
        state.forget_ivi(window);
    }
}

/// A window with a number.
#[derive(Clone, Debug)]
pub(super) struct IviWindow {
    pub(super) window: IviSurface,
    pub(super) surface: WlSurface,
    pub(super) ivi_id: u32,
}

impl State {
    fn forget_ivi(&mut self, gone: &IviSurface) {
        let is_it = |role: &Role| matches!(role, Role::Ivi(ivi) if ivi.window == *gone);
        let found: Option<WindowId> =
            self.windows.values().find(|window| is_it(&window.role)).map(|window| window.id());
        if let Some(id) = found {
            self.remove_window(id);
        }
    }
}
