//! A display: its refreshes, what it shows, and its contract with the scheduler.
//!
//! Each output has a thread, a GL context and a contract of its own, so none waits for another. At refresh
//! *k* the thread takes the newest pictures of all windows in its scene, and composes them within the
//! period that begins; the result is shown at refresh *k* + 1. A composition that is not finished by then
//! is shown at the first refresh after its end, and the display keeps its picture until then.

mod capture;
mod contract;
mod painter;
mod refresh;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use takt_client::Display;
use takt_cockpit::config::Output as Settings;
use takt_cockpit::geometry::Rect;
use takt_core::Time;

use crate::bell::Bell;
use crate::picture::Window;
use crate::sys::{DeviceChoice, NoGl};
pub use capture::{Capture, Wish};
use contract::Contract;
use painter::Painter;
use refresh::Refreshes;

/// Most captures that wait.
const WISHES_MAX: usize = 16;

/// What an output shows.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// Counts scenes.
    pub generation: u64,
    /// Windows from back to front.
    pub windows: Vec<Shown>,
}

/// A window in a scene.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The window.
    pub window: Arc<Window>,
    /// Where its picture goes.
    pub at: Rect,
    /// The part of the output that it may draw to.
    pub clip: Rect,
    /// How opaque it is.
    pub opacity: u8,
    /// Whether it keeps the picture that it has.
    pub frozen: bool,
}

/// What is known of an output, for other threads.
#[derive(Debug, Default)]
pub struct Counters {
    /// Refreshes since the start.
    pub refreshes: AtomicU64,
    /// Of these, those that the thread slept through, and at which nothing could change.
    pub skipped: AtomicU64,
    /// Pictures that were composed.
    pub composed: AtomicU64,
    /// Of these, those that were not finished at the refresh that they were for.
    pub late: AtomicU64,
    /// The longest composition, in nanoseconds.
    pub longest_ns: AtomicU64,
    /// All compositions, in nanoseconds.
    pub busy_ns: AtomicU64,
    /// Whether the daemon schedules compositions.
    pub scheduled: AtomicBool,
    /// Whether it guarantees their deadlines.
    pub guaranteed: AtomicBool,
    /// When the thread last turned, in nanoseconds of the monotonic clock.
    pub turned_ns: AtomicU64,
}

/// An output, as other threads see it.
#[derive(Debug)]
pub struct Output {
    /// What the configuration says of it.
    pub settings: Settings,
    /// Its figures.
    pub counters: Arc<Counters>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread shares with others.
#[derive(Debug)]
pub(crate) struct Shared {
    scene: Mutex<Arc<Scene>>,
    wishes: Mutex<Vec<Wish>>,
    /// Rings when a window has a new picture.
    pub(crate) bell: Arc<Bell>,
    ended: AtomicBool,
}

/// What an output needs to begin.
pub struct OutputParts {
    /// What the configuration says.
    pub settings: Settings,
    /// The daemon's socket.
    pub daemon: PathBuf,
    /// Which device draws.
    pub device: DeviceChoice,
    /// Rings when a window has a new picture.
    pub bell: Arc<Bell>,
    /// Told of windows that are seen for the first time.
    pub seen: crate::manager::Teller,
}

impl Output {
    /// Starts the thread of an output; fails if there is no GL.
    pub fn start(beginning: OutputParts) -> Result<Self, NoGl> {
        let OutputParts { settings, daemon, device, bell, seen } = beginning;
        let shared = Arc::new(Shared {
            scene: Mutex::default(),
            wishes: Mutex::default(),
            bell,
            ended: AtomicBool::new(false),
        });
        let counters = Arc::new(Counters::default());
        let display = Display::owned(daemon.clone(), &settings.name, settings.grid);
        let known = settings.clone();
        let (shared_there, counters_there) = (Arc::clone(&shared), Arc::clone(&counters));
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let run = move || {
            // The context belongs to this thread.
            let painter = match Painter::new(device, known.size) {
                Ok(painter) => painter,
                Err(error) => return tell.send(Err(error)).unwrap_or_default(),
            };
            tell.send(Ok(())).unwrap_or_default();
            let contract = Contract::new(daemon, &known, painter.is_on_cpu());
            let mut refreshes = Refreshes::new(display, contract, painter, counters_there, seen, known.etpf);
            refreshes.run(&shared_there);
        };
        let name = format!("takt-{}", settings.name);
        let thread = std::thread::Builder::new().name(name).spawn(run).map_err(NoGl::Thread)?;
        told.recv().unwrap_or(Err(NoGl::Ended))?;
        Ok(Self { settings, counters, shared, thread: Some(thread) })
    }

    /// Shows another scene from the next refresh on.
    pub fn show(&self, scene: Arc<Scene>) {
        *self.shared.scene.lock().unwrap_or_else(PoisonError::into_inner) = scene;
    }

    /// Asks for what it shows; says whether there is room for the wish.
    pub fn capture(&self, wish: Wish) -> bool {
        let mut wishes = self.shared.wishes.lock().unwrap_or_else(PoisonError::into_inner);
        let room = wishes.len() < WISHES_MAX;
        if room {
            wishes.push(wish);
        }
        room
    }

    /// Whether its thread turned since then.
    pub fn is_alive(&self, since: Time) -> bool {
        self.counters.turned_ns.load(Ordering::Relaxed) >= since.as_ns()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        self.shared.bell.ring();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            thread.join().unwrap_or_default();
        }
    }
}

impl Shared {
    fn scene(&self) -> Arc<Scene> {
        Arc::clone(&self.scene.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn take_wishes(&self) -> Vec<Wish> {
        std::mem::take(&mut self.wishes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}
