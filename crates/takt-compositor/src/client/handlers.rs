//! Callbacks of smithay, for each protocol.

use smithay::desktop::PopupKind;
use smithay::input::pointer::CursorImageStatus;
use smithay::input::{Seat, SeatHandler, SeatState};
use smithay::reexports::wayland_protocols::xdg::decoration::zv1::server::zxdg_toplevel_decoration_v1::Mode;
use smithay::reexports::wayland_server::protocol::wl_callback::WlCallback;
use smithay::reexports::wayland_server::protocol::wl_compositor::WlCompositor;
use smithay::reexports::wayland_server::protocol::wl_output::WlOutput;
use smithay::reexports::wayland_server::protocol::wl_region::{self, WlRegion};
use smithay::reexports::wayland_server::protocol::wl_seat::WlSeat;
use smithay::reexports::wayland_server::protocol::wl_subcompositor::WlSubcompositor;
use smithay::reexports::wayland_server::protocol::wl_subsurface::WlSubsurface;
use smithay::reexports::wayland_server::protocol::wl_surface::{self, WlSurface};
use smithay::reexports::wayland_server::{
    Client, DataInit, Dispatch, DisplayHandle, Resource, delegate_dispatch, delegate_global_dispatch,
};
use smithay::utils::{Rectangle, Serial};
use smithay::wayland::compositor::{
    CompositorClientState, CompositorHandler, CompositorState, RegionUserData, SubsurfaceUserData,
    SurfaceAttributes, SurfaceUserData, get_parent, get_region_attributes, with_states,
};
use smithay::wayland::output::OutputHandler;
use smithay::wayland::shell::xdg::decoration::XdgDecorationHandler;
use smithay::wayland::shell::xdg::{
    PopupSurface, PositionerState, ToplevelSurface, XdgShellHandler, XdgShellState,
};
use smithay::{
    delegate_output, delegate_presentation, delegate_seat, delegate_viewporter, delegate_xdg_decoration,
    delegate_xdg_shell,
};

use super::state::{Data, State};
use super::windows::Role;

/// Most surfaces on top of each other in one window: the library walks over them recursively.
const DEPTH_MAX: usize = 16;
/// Most rectangles of a region.
const REGION_MAX: usize = 1024;
/// Most parts of a surface that a client calls changed without a commit.
const DAMAGE_MAX: usize = 4096;

impl CompositorHandler for State {
    fn compositor_state(&mut self) -> &mut CompositorState {
        &mut self.protocols.compositor
    }

    fn client_compositor_state<'a>(&self, client: &'a Client) -> &'a CompositorClientState {
        match client.get_data::<Data>() {
            Some(data) => &data.compositor,
            None => unreachable!("the thread inserted its client with this data"),
        }
    }

    fn new_surface(&mut self, _surface: &WlSurface) {
        self.surfaces += 1;
        let most = self.domain.surfaces_max;
        if self.surfaces > most {
            self.offend("surfaces-max", &format!("more than {most} surfaces"));
        }
    }

    fn new_subsurface(&mut self, surface: &WlSurface, parent: &WlSurface) {
        let above = std::iter::successors(Some(parent.clone()), get_parent).take(DEPTH_MAX + 1).count();
        if above > DEPTH_MAX || surface == parent {
            self.offend("depth-max", &format!("more than {DEPTH_MAX} surfaces on top of each other"));
        }
    }

    fn commit(&mut self, surface: &WlSurface) {
        self.committed(surface);
    }

    fn destroyed(&mut self, surface: &WlSurface) {
        self.surfaces = self.surfaces.saturating_sub(1);
        self.forget_surface(surface);
    }
}

impl XdgShellHandler for State {
    fn xdg_shell_state(&mut self) -> &mut XdgShellState {
        &mut self.protocols.xdg
    }

    fn new_toplevel(&mut self, surface: ToplevelSurface) {
        // It says what it claims with its first commit.
        let _id = self.add_window(Role::Xdg(surface));
    }

    fn new_popup(&mut self, surface: PopupSurface, positioner: PositionerState) {
        self.place_popup(&surface, positioner);
        // A popup whose client is gone needs no place.
        let _dead = self.protocols.popups.track_popup(PopupKind::Xdg(surface));
    }

    fn reposition_request(&mut self, surface: PopupSurface, positioner: PositionerState, token: u32) {
        self.place_popup(&surface, positioner);
        surface.send_repositioned(token);
    }

    fn grab(&mut self, surface: PopupSurface, _devices: WlSeat, _serial: Serial) {
        self.grabbed.retain(PopupSurface::alive);
        self.grabbed.push(surface);
    }

    fn maximize_request(&mut self, surface: ToplevelSurface) {
        answer(&surface);
    }

    fn fullscreen_request(&mut self, surface: ToplevelSurface, _output: Option<WlOutput>) {
        answer(&surface);
    }

    fn toplevel_destroyed(&mut self, surface: ToplevelSurface) {
        if let Some(id) = self.window_of(surface.wl_surface()).map(|window| window.id()) {
            self.remove_window(id);
        }
    }

    fn popup_destroyed(&mut self, surface: PopupSurface) {
        if let Some(parent) = surface.get_parent_surface() {
            self.publish_root(&parent);
        }
    }

    fn app_id_changed(&mut self, surface: ToplevelSurface) {
        self.claims_changed(&surface);
    }

    fn title_changed(&mut self, surface: ToplevelSurface) {
        self.claims_changed(&surface);
    }
}

/// The protocol wants an answer to each wish, also if nothing comes of it.
fn answer(surface: &ToplevelSurface) {
    if surface.is_initial_configure_sent() {
        surface.send_configure();
    }
}

impl State {
    fn place_popup(&mut self, popup: &PopupSurface, positioner: PositionerState) {
        let kind = PopupKind::Xdg(popup.clone());
        let geometry = match self.popup_room(&kind) {
            Some(room) => positioner.get_unconstrained_geometry(room),
            None => positioner.get_geometry(),
        };
        popup.with_pending_state(|state| (state.geometry, state.positioner) = (geometry, positioner));
    }

    /// Where a popup may be: inside of the area of its window, as seen from its parent.
    fn popup_room(&mut self, popup: &PopupKind) -> Option<Rectangle<i32, smithay::utils::Logical>> {
        let root = smithay::desktop::find_popup_root_surface(popup).ok()?;
        let area = self.window_of(&root)?.area()?;
        let at = smithay::desktop::get_popup_toplevel_coords(popup);
        Some(Rectangle::new((-at.x, -at.y).into(), (area.width, area.height).into()))
    }

    fn claims_changed(&mut self, surface: &ToplevelSurface) {
        let known = self.window_of(surface.wl_surface()).filter(|window| window.told.claims.is_some());
        // Before its first commit a window has not said all that it claims.
        if let Some(id) = known.map(|window| window.id()) {
            self.tell_claims(id);
        }
    }
}

impl XdgDecorationHandler for State {
    fn new_decoration(&mut self, toplevel: ToplevelSurface) {
        toplevel.with_pending_state(|state| state.decoration_mode = Some(Mode::ServerSide));
        answer(&toplevel);
    }

    fn request_mode(&mut self, toplevel: ToplevelSurface, _mode: Mode) {
        answer(&toplevel);
    }

    fn unset_mode(&mut self, toplevel: ToplevelSurface) {
        answer(&toplevel);
    }
}

impl SeatHandler for State {
    type KeyboardFocus = WlSurface;
    type PointerFocus = WlSurface;
    type TouchFocus = WlSurface;

    fn seat_state(&mut self) -> &mut SeatState<Self> {
        &mut self.protocols.devices
    }

    fn focus_changed(&mut self, _devices: &Seat<Self>, _focused: Option<&WlSurface>) {}

    fn cursor_image(&mut self, _devices: &Seat<Self>, _image: CursorImageStatus) {}
}

impl OutputHandler for State {}

/// The library keeps regions and damage as the client sends them, without a bound.
impl Dispatch<WlRegion, RegionUserData> for State {
    fn request(
        state: &mut Self,
        client: &Client,
        region: &WlRegion,
        request: wl_region::Request,
        data: &RegionUserData,
        display: &DisplayHandle,
        init: &mut DataInit<'_, Self>,
    ) {
        <CompositorState as Dispatch<_, _, Self>>::request(
            state, client, region, request, data, display, init,
        );
        if region.is_alive() && get_region_attributes(region).rects.len() > REGION_MAX {
            state.offend("region-max", &format!("a region of more than {REGION_MAX} rectangles"));
        }
    }
}

impl Dispatch<WlSurface, SurfaceUserData> for State {
    fn request(
        state: &mut Self,
        client: &Client,
        surface: &WlSurface,
        request: wl_surface::Request,
        data: &SurfaceUserData,
        display: &DisplayHandle,
        init: &mut DataInit<'_, Self>,
    ) {
        let damages =
            matches!(request, wl_surface::Request::Damage { .. } | wl_surface::Request::DamageBuffer { .. });
        <CompositorState as Dispatch<_, _, Self>>::request(
            state, client, surface, request, data, display, init,
        );
        if damages {
            let parts = with_states(surface, |states| {
                states.cached_state.get::<SurfaceAttributes>().pending().damage.len()
            });
            if parts > DAMAGE_MAX {
                state.offend("damage-max", &format!("more than {DAMAGE_MAX} changed parts without a commit"));
            }
        }
    }

    fn destroyed(
        state: &mut Self,
        client: smithay::reexports::wayland_server::backend::ClientId,
        surface: &WlSurface,
        data: &SurfaceUserData,
    ) {
        <CompositorState as Dispatch<_, _, Self>>::destroyed(state, client, surface, data);
    }
}

delegate_global_dispatch!(State: [WlCompositor: ()] => CompositorState);
delegate_global_dispatch!(State: [WlSubcompositor: ()] => CompositorState);
delegate_dispatch!(State: [WlCompositor: ()] => CompositorState);
delegate_dispatch!(State: [WlCallback: ()] => CompositorState);
delegate_dispatch!(State: [WlSubcompositor: ()] => CompositorState);
delegate_dispatch!(State: [WlSubsurface: SubsurfaceUserData] => CompositorState);
delegate_output!(State);
delegate_presentation!(State);
delegate_seat!(State);
delegate_viewporter!(State);
delegate_xdg_decoration!(State);
delegate_xdg_shell!(State);
