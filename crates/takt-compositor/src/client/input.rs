//! What windows of a client hear of input devices.
//!
//! The manager says which window hears what, at which place of its picture; this thread finds the surface there,
//! and notes when the client's socket has taken it.

use std::collections::BTreeSet;
use std::sync::Arc;

use smithay::backend::input::{Axis, AxisSource, ButtonState, KeyState, TouchSlot};
use smithay::input::keyboard::{FilterResult, Keycode, KeysymHandle};
use smithay::input::pointer::{AxisFrame, ButtonEvent, MotionEvent};
use smithay::input::touch::{DownEvent, MotionEvent as TouchMotion, UpEvent};
use smithay::reexports::wayland_server::protocol::wl_surface::WlSurface;
use smithay::utils::{Logical, Point, SERIAL_COUNTER};
use smithay::wayland::shell::xdg::PopupSurface;
use takt_cockpit::geometry::Point as Place;
use takt_cockpit::input::{Deed, Delivery, Push};
use takt_core::Time;

use super::commits::root_of;
use super::picture;
use super::state::State;
use crate::picture::Window;

/// Most deliveries that a client's socket has not taken.
const UNTAKEN_MAX: usize = 4096;
/// What the numbers of keys in Linux are off by in those of layouts.
const XKB_OFFSET: u32 = 8;
/// Pixels and parts of a click for one click of a wheel.
const CLICK_PIXELS: f64 = 15.0;
const CLICK_PARTS: i32 = 120;

/// Something that the client's socket has not taken yet.
pub(super) struct Untaken {
    window: Arc<Window>,
    number: u64,
    at: Time,
}

impl State {
    /// A window hears something.
    pub(super) fn take_input(&mut self, delivery: &Delivery) {
        let Some(window) = self.windows.get(&delivery.window) else {
            return;
        };
        let root = window.root().clone();
        let (window, number, at) = (Arc::clone(&window.shared), delivery.number, delivery.at);
        self.untaken.push(Untaken { window, number, at });
        if self.untaken.len() > UNTAKEN_MAX {
            self.offend("input-max", "it does not take its input");
        }
        #[expect(clippy::cast_possible_truncation, reason = "the protocol's time wraps around")]
        let ms = (delivery.at.as_ns() / 1_000_000) as u32;
        match delivery.deed {
            Deed::TouchDown(..) | Deed::TouchMove(..) | Deed::TouchUp(_) | Deed::TouchCancel => {
                self.touch(&root, delivery.deed, ms);
            }
            Deed::Over(..) | Deed::Away | Deed::Button(..) | Deed::Scroll(..) => {
                self.point(&root, delivery.deed, ms);
            }
            Deed::Focus | Deed::Unfocus | Deed::Key(..) => self.keys(&root, delivery.deed, ms),
        }
    }

    fn touch(&mut self, root: &WlSurface, deed: Deed, time: u32) {
        let Some(touch) = self.protocols.seat.get_touch() else {
            return;
        };
        let serial = SERIAL_COUNTER.next_serial();
        let slot = |finger: u32| TouchSlot::from(Some(finger));
        match deed {
            Deed::TouchDown(finger, at) => {
                let focus = picture::surface_at(root, at);
                self.end_popups(focus.as_ref().map(|(surface, _)| surface));
                let event = DownEvent { slot: slot(finger), location: logical(at), serial, time };
                touch.down(self, focus, &event);
            }
            Deed::TouchMove(finger, at) => {
                touch.motion(self, None, &TouchMotion { slot: slot(finger), location: logical(at), time });
            }
            Deed::TouchUp(finger) => touch.up(self, &UpEvent { slot: slot(finger), serial, time }),
            _ => return touch.cancel(self),
        }
        touch.frame(self);
    }

    fn point(&mut self, root: &WlSurface, deed: Deed, time: u32) {
        let Some(pointer) = self.protocols.seat.get_pointer() else {
            return;
        };
        let serial = SERIAL_COUNTER.next_serial();
        match deed {
            Deed::Over(at) => {
                let focus = picture::surface_at(root, at);
                pointer.motion(self, focus, &MotionEvent { location: logical(at), serial, time });
            }
            Deed::Away => {
                let location = pointer.current_location();
                pointer.motion(self, None, &MotionEvent { location, serial, time });
            }
            Deed::Button(button, push) => {
                if push == Push::Down {
                    self.end_popups(pointer.current_focus().as_ref());
                }
                let state = match push {
                    Push::Down => ButtonState::Pressed,
                    Push::Up => ButtonState::Released,
                };
                pointer.button(self, &ButtonEvent { serial, time, button, state });
            }
            Deed::Scroll(x, y) => {
                let mut frame = AxisFrame::new(time).source(AxisSource::Wheel);
                for (axis, clicks) in [(Axis::Horizontal, x), (Axis::Vertical, y)] {
                    if clicks != 0 {
                        frame = frame.value(axis, f64::from(clicks) * CLICK_PIXELS);
                        frame = frame.v120(axis, clicks.saturating_mul(CLICK_PARTS));
                    }
                }
                pointer.axis(self, frame);
            }
            _ => return,
        }
        pointer.frame(self);
    }

    fn keys(&mut self, root: &WlSurface, deed: Deed, time: u32) {
        let Some(keyboard) = self.protocols.seat.get_keyboard() else {
            return;
        };
        let is_focus = keyboard.current_focus().as_ref() == Some(root);
        match deed {
            Deed::Focus => keyboard.set_focus(self, Some(root.clone()), SERIAL_COUNTER.next_serial()),
            Deed::Unfocus if is_focus => {
                self.end_popups(None);
                keyboard.set_focus(self, None, SERIAL_COUNTER.next_serial());
                // Keys that are held go up for another window, or for none.
                let held: BTreeSet<u32> = keyboard.pressed_keys().into_iter().map(Keycode::raw).collect();
                for key in held {
                    let (serial, up) = (SERIAL_COUNTER.next_serial(), KeyState::Released);
                    let forward = |_: &mut Self, _: &_, _: KeysymHandle<'_>| FilterResult::<()>::Forward;
                    keyboard.input(self, Keycode::new(key), up, serial, time, forward);
                }
            }
            // Only what has the focus hears keys, whatever came in between.
            Deed::Key(key, push) if is_focus => {
                let state = match push {
                    Push::Down => KeyState::Pressed,
                    Push::Up => KeyState::Released,
                };
                let (key, serial) = (Keycode::new(key + XKB_OFFSET), SERIAL_COUNTER.next_serial());
                keyboard.input::<(), _>(self, key, state, serial, time, |_, _, _| FilterResult::Forward);
            }
            _ => {}
        }
    }

    /// Something is touched: popups that it is not a part of end, as their clients wanted.
    fn end_popups(&mut self, touched: Option<&WlSurface>) {
        let touched = touched.map(root_of);
        let is_part = |popup: &PopupSurface| Some(popup.wl_surface()) == touched.as_ref();
        if self.grabbed.iter().any(is_part) {
            return;
        }
        for popup in self.grabbed.drain(..).rev().filter(PopupSurface::alive) {
            popup.send_popup_done();
        }
    }

    /// The client's socket has taken everything.
    pub(super) fn all_taken(&mut self, now: Time) {
        for Untaken { window, number, at } in self.untaken.drain(..) {
            window.take(number, now.since(at));
        }
    }
}

fn logical(place: Place) -> Point<f64, Logical> {
    (f64::from(place.x), f64::from(place.y)).into()
}
