//! What windows look like: pixels, and where they go.
//!
//! The thread of a client copies the pixels of committed buffers and publishes pictures; threads of outputs
//! draw them. A picture never changes, so either side works at its own time. No output touches a client's
//! memory, which may be slow or vanish.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use smithay::backend::allocator::Fourcc;
use smithay::utils::{Buffer, Rectangle, Transform};
use takt_cockpit::geometry::{Rect, Size};
use takt_cockpit::input::Times;
use takt_cockpit::windows::WindowId;
use takt_core::Span;

use crate::bell::Bell;
use crate::client::ClientHandle;

/// The pixels of a surface.
#[derive(Debug)]
pub struct Pixels {
    /// The surface, for as long as the compositor runs.
    pub surface: u64,
    /// Counts commits to it.
    pub version: u64,
    /// Width and height in pixels.
    pub size: Size,
    /// How they are stored: four bytes each, row after row, without gaps.
    pub format: Fourcc,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What is different from the version before.
    pub damage: Rect,
}

/// The pixels of one surface at their place.
#[derive(Clone, Debug)]
pub struct Layer {
    /// The pixels.
    pub pixels: Arc<Pixels>,
    /// The part of them that is shown.
    pub source: Rectangle<f64, Buffer>,
    /// Where it is, from the upper left corner of the window.
    pub at: Rect,
    /// How the client turned them.
    pub transform: Transform,
}

/// What a window looks like.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// Counts what the client committed to the window.
    pub number: u64,
    /// Counts how often that changed what the window looks like.
    pub look: u64,
    /// Surfaces from back to front.
    pub layers: Vec<Layer>,
    /// How large the window is, without shadows and pop-ups around it.
    pub size: Size,
}

impl Picture {
    /// Whether both look the same.
    fn looks_like(&self, other: &Self) -> bool {
        let same = |(one, other): (&Layer, &Layer)| {
            let version = |layer: &Layer| (layer.pixels.surface, layer.pixels.version);
            version(one) == version(other)
                && (one.source, one.at, one.transform) == (other.source, other.at, other.transform)
        };
        let count = self.layers.len() == other.layers.len();
        count && self.size == other.size && self.layers.iter().zip(&other.layers).all(same)
    }
}

/// A window between the thread of its client, which paints it, and the threads of outputs.
#[derive(Debug)]
pub struct Window {
    /// Which one.
    pub id: WindowId,
    /// Its client.
    pub client: Arc<ClientHandle>,
    /// The number of its surface in the client's connection.
    pub surface: u32,
    /// Number of the newest picture.
    newest: AtomicU64,
    picture: Mutex<Arc<Picture>>,
    /// Rings when there is a new picture.
    bell: Arc<Bell>,
    /// Number of the last input that its client took, and how long that took of each.
    taken: AtomicU64,
    deliveries: Mutex<Times>,
}

impl Window {
    /// A window without a picture.
    pub fn new(id: WindowId, (client, surface): (Arc<ClientHandle>, u32), bell: Arc<Bell>) -> Self {
        let (picture, deliveries) = (Mutex::default(), Mutex::default());
        let (newest, taken) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { id, client, surface, newest, picture, bell, taken, deliveries }
    }

    /// Shows another picture from now on.
    pub fn publish(&self, mut picture: Picture) {
        let mut known = self.picture.lock().unwrap_or_else(PoisonError::into_inner);
        picture.look = known.look + u64::from(!picture.looks_like(&known));
        self.newest.store(picture.number, Ordering::Release);
        *known = Arc::new(picture);
        drop(known);
        self.bell.ring();
    }

    /// The newest picture.
    pub fn picture(&self) -> Arc<Picture> {
        Arc::clone(&self.picture.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Its client took input of that number, so long after the device did it.
    pub fn take(&self, number: u64, after: Span) {
        self.deliveries.lock().unwrap_or_else(PoisonError::into_inner).add(after);
        self.taken.store(number, Ordering::Release);
    }

    /// Number of the last input that its client took.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Acquire)
    }

    /// How long input took to its client.
    pub fn deliveries(&self) -> Times {
        self.deliveries.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its number.
    pub fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }
}
