//! What a client is offered, by its domain.

use smithay::input::SeatState;
use smithay::output::{Mode, Output, PhysicalProperties, Scale, Subpixel};
use smithay::reexports::wayland_server::DisplayHandle;
use smithay::reexports::wayland_server::protocol::wl_shm::WlShm;
use smithay::utils::Transform;
use smithay::wayland::compositor::CompositorState;
use smithay::wayland::output::OutputManagerState;
use smithay::wayland::presentation::PresentationState;
use smithay::wayland::shell::xdg::XdgShellState;
use smithay::wayland::shell::xdg::decoration::XdgDecorationState;
use smithay::wayland::viewporter::ViewporterState;
use takt_cockpit::config::{Domain, Kind, Output as Settings, Shell};

use super::ivi_protocol::ivi_application::IviApplication;
use super::state::{Protocols, State};

/// The monotonic clock, as `clock_gettime` numbers it.
const CLOCK_MONOTONIC: u32 = 1;
/// How fast keys repeat.
const REPEAT_DELAY_MS: i32 = 400;
const REPEAT_PER_SECOND: i32 = 25;

/// Globals that need no state of their own.
#[derive(Debug)]
pub(super) struct Globals {
    _viewporter: ViewporterState,
    _presentation: PresentationState,
    _decoration: XdgDecorationState,
    _outputs: OutputManagerState,
}

/// Offers the protocols of a domain.
pub(super) fn offer(
    display: &DisplayHandle,
    domain: &Domain,
    (outputs, kinds): (&[Settings], &[Kind]),
) -> Protocols {
    let compositor = CompositorState::new::<State>(display);
    display.create_global::<State, WlShm, ()>(1, ());
    let xdg = XdgShellState::new::<State>(display);
    if !domain.shells.contains(&Shell::Xdg) {
        display.remove_global::<State>(xdg.global());
    }
    if domain.shells.contains(&Shell::Ivi) {
        display.create_global::<State, IviApplication, ()>(1, ());
    }
    let mut devices = SeatState::new();
    let mut seat = devices.new_wl_seat(display, "cockpit");
    if kinds.contains(&Kind::Pointer) {
        seat.add_pointer();
    }
    if kinds.contains(&Kind::Touch) {
        seat.add_touch();
    }
    if kinds.iter().any(|kind| matches!(kind, Kind::Keys | Kind::Rotary)) {
        // Without a keymap there are no keys, and everything else works.
        let _no_keys = seat.add_keyboard(Default::default(), REPEAT_DELAY_MS, REPEAT_PER_SECOND);
    }
    let globals = Globals {
        _viewporter: ViewporterState::new::<State>(display),
        _presentation: PresentationState::new::<State>(display, CLOCK_MONOTONIC),
        _decoration: XdgDecorationState::new::<State>(display),
        _outputs: OutputManagerState::new_with_xdg_output::<State>(display),
    };
    let outputs = outputs.iter().scan(0, |x, settings| {
        let output = output(display, settings, *x);
        *x += settings.size.width;
        Some(output)
    });
    let outputs = outputs.collect();
    let popups = Default::default();
    Protocols { compositor, xdg, devices, seat, outputs, popups, _globals: globals }
}

/// An output, beside those before it.
fn output(display: &DisplayHandle, settings: &Settings, x: i32) -> Output {
    let physical = PhysicalProperties {
        size: (0, 0).into(),
        subpixel: Subpixel::Unknown,
        make: "Takt".to_owned(),
        model: settings.name.clone(),
    };
    let output = Output::new(settings.name.clone(), physical);
    output.create_global::<State>(display);
    let refresh = i32::try_from(settings.grid.mhz()).unwrap_or(i32::MAX);
    let mode = Mode { size: (settings.size.width, settings.size.height).into(), refresh };
    output.set_preferred(mode);
    let (transform, scale) = (Some(Transform::Normal), Some(Scale::Integer(1)));
    output.change_current_state(Some(mode), transform, scale, Some((x, 0).into()));
    output
}
