//! What devices do.

use serde::{Deserialize, Serialize};

use crate::config::Kind;
use crate::geometry::Point;

/// Most fingers of a device.
pub const FINGERS_MAX: u32 = 16;
/// Most acts of a device at once.
pub const ACTS_MAX: usize = 64;

/// What a device does. Places are those of its display, in pixels.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Act {
    /// A finger touches the display.
    Down {
        /// Which one.
        #[serde(default)]
        finger: u32,
        /// Where.
        at: Point,
    },
    /// It is elsewhere.
    Drag {
        /// Which one.
        #[serde(default)]
        finger: u32,
        /// Where.
        at: Point,
    },
    /// It is gone.
    Up {
        /// Which one.
        #[serde(default)]
        finger: u32,
    },
    /// The pointer is there.
    Point {
        /// Where.
        at: Point,
    },
    /// The pointer moves by so many pixels.
    Nudge {
        /// To the right.
        x: i32,
        /// Downwards.
        y: i32,
    },
    /// A button of the pointer goes down.
    Press {
        /// Its number in Linux.
        button: u32,
    },
    /// It goes up.
    Release {
        /// Its number in Linux.
        button: u32,
    },
    /// The wheel of the pointer turns by so many clicks.
    Scroll {
        /// To the right.
        #[serde(default)]
        x: i32,
        /// Downwards.
        y: i32,
    },
    /// A key goes down.
    KeyDown {
        /// Its number in Linux.
        key: u32,
    },
    /// It goes up.
    KeyUp {
        /// Its number in Linux.
        key: u32,
    },
    /// A knob turns by so many steps, clockwise if they are positive.
    Turn {
        /// How far.
        steps: i32,
    },
    /// Nothing is held any more: what happened in between is not known.
    Reset,
}

/// A key or a button goes down or up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Push {
    /// It is pressed.
    Down,
    /// It is released.
    Up,
}

impl Act {
    /// Whether devices of that kind do such things, with numbers that can be.
    pub fn is_of(self, kind: Kind) -> bool {
        match self {
            Self::Down { finger, .. } | Self::Drag { finger, .. } | Self::Up { finger } => {
                kind == Kind::Touch && finger < FINGERS_MAX
            }
            Self::Point { .. }
            | Self::Nudge { .. }
            | Self::Press { .. }
            | Self::Release { .. }
            | Self::Scroll { .. } => kind == Kind::Pointer,
            Self::KeyDown { key } | Self::KeyUp { key } => {
                matches!(kind, Kind::Keys | Kind::Rotary) && key <= KEY_MAX
            }
            Self::Turn { .. } => kind == Kind::Rotary,
            Self::Reset => true,
        }
    }

    /// As it is called in records and requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down { .. } => "down",
            Self::Drag { .. } => "drag",
            Self::Up { .. } => "up",
            Self::Point { .. } => "point",
            Self::Nudge { .. } => "nudge",
            Self::Press { .. } => "press",
            Self::Release { .. } => "release",
            Self::Scroll { .. } => "scroll",
            Self::KeyDown { .. } => "key-down",
            Self::KeyUp { .. } => "key-up",
            Self::Turn { .. } => "turn",
            Self::Reset => "reset",
        }
    }
}

/// Largest number of a key in Linux (`KEY_MAX`).
const KEY_MAX: u32 = 0x2FF;
