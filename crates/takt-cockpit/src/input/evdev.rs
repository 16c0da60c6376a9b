//! What Linux tells of an input device: the events of its file in `/dev/input`, or a recording of them.
//!
//! Events are of 24 bytes: seconds, microseconds, type, code, value, as `struct input_event` of 64-bit systems.
//! Those up to a report belong together. Touch screens have slots (protocol B) or one finger; other devices
//! have axes and keys. Bytes without a meaning are skipped: a device can say what it likes.

use takt_core::{Span, Time};

use super::{ACTS_MAX, Act, FINGERS_MAX};
use crate::config::Kind;
use crate::geometry::{Point, Size};

/// Bytes of an event.
pub const EVENT_BYTES: usize = 24;
const SLOTS: usize = FINGERS_MAX as usize;

// Numbers of linux/input-event-codes.h.
const EV_SYN: u16 = 0;
const EV_KEY: u16 = 1;
const EV_REL: u16 = 2;
const EV_ABS: u16 = 3;
const SYN_REPORT: u16 = 0;
const SYN_DROPPED: u16 = 3;
const REL_X: u16 = 0;
const REL_Y: u16 = 1;
const REL_HWHEEL: u16 = 6;
const REL_DIAL: u16 = 7;
const REL_WHEEL: u16 = 8;
const ABS_X: u16 = 0;
const ABS_Y: u16 = 1;
const ABS_MT_SLOT: u16 = 0x2F;
const ABS_MT_POSITION_X: u16 = 0x35;
const ABS_MT_POSITION_Y: u16 = 0x36;
const ABS_MT_TRACKING_ID: u16 = 0x39;
const BTN_TOUCH: u16 = 0x14A;

/// Values of an axis, from the least to the largest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Axis {
    /// The least.
    pub min: i32,
    /// The largest.
    pub max: i32,
}

/// The axes of a device that knows places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Axes {
    /// To the right.
    pub x: Axis,
    /// Downwards.
    pub y: Axis,
}

impl Axes {
    /// Places are pixels already.
    pub const fn of(size: Size) -> Self {
        Self { x: Axis { min: 0, max: size.width - 1 }, y: Axis { min: 0, max: size.height - 1 } }
    }
}

impl Axis {
    /// A value as a pixel of so many.
    fn pixel(self, value: i32, pixels: i32) -> i32 {
        let (min, max) = (i64::from(self.min), i64::from(self.max.max(self.min)));
        let from_start = i64::from(value).clamp(min, max) - min;
        let pixel = from_start * i64::from(pixels) / (max - min + 1);
        i32::try_from(pixel).unwrap_or_default()
    }
}

/// Acts that belong together, and when they were.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// When, by the clock of the device.
    pub at: Time,
    /// What it did.
    pub acts: Vec<Act>,
}

/// Reads the events of a device.
#[derive(Debug)]
pub struct Reader {
    kind: Kind,
    size: Size,
    axes: Axes,
    /// Bytes of an event that is not complete.
    partial: Vec<u8>,
    /// Slots of fingers, and the one that events are about.
    slots: [Slot; SLOTS],
    slot: Option<usize>,
    /// Whether it has slots; then it tells the first finger twice.
    has_slots: bool,
    /// Where an absolute pointer, or the finger of a touch screen without slots is.
    place: (i32, i32),
    frame: Frame,
    /// Until the next report, because the kernel lost events.
    lost: bool,
}

/// A finger.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Whether it was down at the last report, and is now.
    was: bool,
    is: bool,
    /// Whether it is another finger than at the last report.
    another: bool,
    moved: bool,
    x: i32,
    y: i32,
}

/// What happened since the last report.
#[derive(Debug, Default)]
struct Frame {
    nudge: (i32, i32),
    moved: bool,
    wheel: (i32, i32),
    turn: i32,
    keys: Vec<(u16, bool)>,
    overflow: bool,
}

impl Reader {
    /// For a device of that kind, whose places are those of an output of that size.
    pub fn new(kind: Kind, size: Size, axes: Axes) -> Self {
        Self {
            kind,
            size,
            axes,
            partial: Vec::new(),
            slots: [Slot::default(); SLOTS],
            slot: Some(0),
            has_slots: false,
            place: (axes.x.min, axes.y.min),
            frame: Frame::default(),
            lost: false,
        }
    }

    /// Takes what was read from the device; what that means.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<Report> {
        self.partial.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.partial);
        let (events, rest) = bytes.as_chunks::<EVENT_BYTES>();
        self.partial = rest.to_vec();
        events.iter().filter_map(|event| self.event(event)).collect()
    }

    /// The device is a new one, or begins anew.
    pub fn reset(&mut self) {
        *self = Self::new(self.kind, self.size, self.axes);
    }

    fn event(&mut self, bytes: &[u8; EVENT_BYTES]) -> Option<Report> {
        let number = |at: usize| -> [u8; 8] { std::array::from_fn(|index| bytes[at + index]) };
        let (seconds, micros) = (i64::from_ne_bytes(number(0)), i64::from_ne_bytes(number(8)));
        let [t0, t1, c0, c1, v0, v1, v2, v3] = number(16);
        let (kind, code) = (u16::from_ne_bytes([t0, t1]), u16::from_ne_bytes([c0, c1]));
        let value = i32::from_ne_bytes([v0, v1, v2, v3]);
        match (kind, code) {
            (EV_SYN, SYN_REPORT) => return self.report(stamp(seconds, micros)),
            (EV_SYN, SYN_DROPPED) => self.lost = true,
            (EV_KEY, _) => self.key(code, value),
            (EV_REL, _) => self.relative(code, value),
            (EV_ABS, _) => self.absolute(code, value),
            _ => {}
        }
        None
    }

    fn key(&mut self, code: u16, value: i32) {
        // What the kernel repeats, clients repeat themselves.
        if !(0..=1).contains(&value) {
            return;
        }
        if code == BTN_TOUCH {
            if !self.has_slots {
                let slot = &mut self.slots[0];
                (slot.is, slot.x, slot.y) = (value == 1, self.place.0, self.place.1);
            }
        } else if self.frame.keys.len() < ACTS_MAX / 2 {
            self.frame.keys.push((code, value == 1));
        } else {
            self.frame.overflow = true;
        }
    }

    fn relative(&mut self, code: u16, value: i32) {
        let frame = &mut self.frame;
        let sum = match code {
            REL_X => &mut frame.nudge.0,
            REL_Y => &mut frame.nudge.1,
            REL_HWHEEL if self.kind == Kind::Pointer => &mut frame.wheel.0,
            REL_WHEEL if self.kind == Kind::Pointer => &mut frame.wheel.1,
            REL_DIAL | REL_WHEEL | REL_HWHEEL => &mut frame.turn,
            _ => return,
        };
        *sum = sum.saturating_add(value);
    }

    fn absolute(&mut self, code: u16, value: i32) {
        if matches!(code, ABS_MT_SLOT | ABS_MT_TRACKING_ID | ABS_MT_POSITION_X | ABS_MT_POSITION_Y) {
            self.has_slots = true;
        }
        match code {
            ABS_MT_SLOT => self.slot = usize::try_from(value).ok().filter(|slot| *slot < SLOTS),
            ABS_X | ABS_Y => {
                let axis = if code == ABS_X { &mut self.place.0 } else { &mut self.place.1 };
                *axis = value;
                self.frame.moved = true;
                if !self.has_slots {
                    let slot = &mut self.slots[0];
                    (slot.x, slot.y, slot.moved) = (self.place.0, self.place.1, true);
                }
            }
            _ => {
                if let Some(slot) = self.slot.map(|slot| &mut self.slots[slot]) {
                    slot.change(code, value);
                }
            }
        }
    }

    /// The end of a frame.
    fn report(&mut self, at: Time) -> Option<Report> {
        let frame = std::mem::take(&mut self.frame);
        if std::mem::take(&mut self.lost) || frame.overflow {
            self.slots = [Slot::default(); SLOTS];
            return Some(Report { at, acts: vec![Act::Reset] });
        }
        let mut acts = Vec::new();
        match self.kind {
            Kind::Touch => self.touches(&mut acts),
            Kind::Pointer => self.pointer(&frame, &mut acts),
            Kind::Keys | Kind::Rotary => {
                if frame.turn != 0 && self.kind == Kind::Rotary {
                    acts.push(Act::Turn { steps: frame.turn });
                }
                let key = |(code, down): &(u16, bool)| match (u32::from(*code), down) {
                    (key, true) => Act::KeyDown { key },
                    (key, false) => Act::KeyUp { key },
                };
                acts.extend(frame.keys.iter().map(key));
            }
        }
        (!acts.is_empty()).then_some(Report { at, acts })
    }

    fn touches(&mut self, acts: &mut Vec<Act>) {
        let (size, axes) = (self.size, self.axes);
        for (finger, slot) in (0..).zip(&mut self.slots) {
            let at = Point { x: axes.x.pixel(slot.x, size.width), y: axes.y.pixel(slot.y, size.height) };
            if slot.was && (!slot.is || slot.another) {
                acts.push(Act::Up { finger });
            }
            if slot.is && (!slot.was || slot.another) {
                acts.push(Act::Down { finger, at });
            } else if slot.is && slot.moved {
                acts.push(Act::Drag { finger, at });
            }
            (slot.was, slot.another, slot.moved) = (slot.is, false, false);
        }
    }

    fn pointer(&self, frame: &Frame, acts: &mut Vec<Act>) {
        if frame.moved {
            let (x, y) = self.place;
            let at =
                Point { x: self.axes.x.pixel(x, self.size.width), y: self.axes.y.pixel(y, self.size.height) };
            acts.push(Act::Point { at });
        }
        let (x, y) = frame.nudge;
        if (x, y) != (0, 0) {
            acts.push(Act::Nudge { x, y });
        }
        let button = |(code, down): &(u16, bool)| match (u32::from(*code), down) {
            (button, true) => Act::Press { button },
            (button, false) => Act::Release { button },
        };
        acts.extend(frame.keys.iter().map(button));
        // Wheels of Linux turn away from the user where values grow.
        let (x, y) = (frame.wheel.0, frame.wheel.1.saturating_neg());
        if (x, y) != (0, 0) {
            acts.push(Act::Scroll { x, y });
        }
    }
}

impl Slot {
    fn change(&mut self, code: u16, value: i32) {
        match code {
            ABS_MT_TRACKING_ID => {
                let is = value >= 0;
                self.another |= self.was && is;
                self.is = is;
            }
            ABS_MT_POSITION_X => (self.x, self.moved) = (value, true),
            ABS_MT_POSITION_Y => (self.y, self.moved) = (value, true),
            _ => {}
        }
    }
}

fn stamp(seconds: i64, micros: i64) -> Time {
    let part = |number: i64| u64::try_from(number).unwrap_or_default();
    Time::from_ns(
        part(seconds).saturating_mul(1_000_000_000).saturating_add(part(micros).saturating_mul(1_000)),
    )
}

/// An event as the kernel writes it, for tests and recordings.
pub fn event(at: Span, (kind, code): (u16, u16), value: i32) -> [u8; EVENT_BYTES] {
    let (seconds, micros) = (at.as_us() / 1_000_000, at.as_us() % 1_000_000);
    let mut bytes = [0; EVENT_BYTES];
    bytes[..8].copy_from_slice(&seconds.to_ne_bytes());
    bytes[8..16].copy_from_slice(&micros.to_ne_bytes());
    bytes[16..18].copy_from_slice(&kind.to_ne_bytes());
    bytes[18..20].copy_from_slice(&code.to_ne_bytes());
    bytes[20..].copy_from_slice(&value.to_ne_bytes());
    bytes
}
