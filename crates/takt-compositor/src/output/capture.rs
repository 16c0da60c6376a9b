//! Pictures of what an output shows, for people and tests.

use std::sync::mpsc::SyncSender;

use takt_cockpit::geometry::{Rect, Size};
use takt_core::{Period, Time};

/// What an output showed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capture {
    /// The refresh from which on it was shown.
    pub refresh: Period,
    /// When that was.
    pub at: Time,
    /// Width and height in pixels.
    pub size: Size,
    /// Red, green, blue and alpha of each pixel, row after row.
    pub bytes: Vec<u8>,
}

/// A wish for a capture.
#[derive(Debug)]
pub struct Wish {
    /// The part of the output; none is all of it.
    pub part: Option<Rect>,
    /// Where it goes; one that does not take it at once gets none.
    pub to: SyncSender<Capture>,
}
