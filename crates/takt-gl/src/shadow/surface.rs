//! Surfaces and their sizes.
//!
//! A window's size is its user's business and changes at any time. Asking for it can mean a round
//! trip to the X server, so it is asked for when a surface is bound, when the program sets a
//! viewport of another size, and every [`FRAMES_BETWEEN`] frames.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::entry::{Ptr, real};
use crate::{egl, quiet, system, x11};

/// Frames between two looks at the size of a window whose program gives no sign of a change.
pub const FRAMES_BETWEEN: u32 = 60;

/// What a surface is to its program and to its driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SurfaceKind {
    /// A window that swaps show.
    Window,
    /// A window to the program, but nothing shows it.
    UnseenWindow,
    /// A pbuffer or pixmap: a swap of it has no effect, as EGL has it.
    Buffer,
}

/// A surface.
#[derive(Debug)]
pub struct Surface {
    /// Its display.
    pub display: usize,
    /// EGL's handle, or the number of the drawable.
    pub handle: usize,
    kind: SurfaceKind,
    /// How many refreshes of a display its swaps wait for, if they wait for one at all.
    interval: AtomicI32,
    state: Mutex<Look>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Look {
    size: [u32; 2],
    samples: u32,
    frames: u32,
    known: bool,
    fixed: bool,
}

impl Surface {
    /// A surface of unknown size.
    pub fn new(display: usize, handle: usize, kind: SurfaceKind) -> Self {
        Self { display, handle, kind, interval: AtomicI32::new(1), state: Mutex::default() }
    }

    /// The same with another handle; its size is to be looked at again.
    #[must_use]
    pub fn with_handle(&self, handle: usize) -> Self {
        let other = Self::new(self.display, handle, self.kind);
        other.set_samples(self.samples());
        other.set_interval(self.interval.load(Ordering::Relaxed));
        other
    }

    /// Whether a swap shows it.
    pub fn shows(&self) -> bool {
        self.kind == SurfaceKind::Window
    }

    /// Whether its program means its swaps to wait for a display.
    pub fn waits(&self) -> bool {
        self.kind != SurfaceKind::Buffer && self.interval.load(Ordering::Relaxed) != 0
    }

    /// `eglSwapInterval`.
    pub fn set_interval(&self, interval: i32) {
        self.interval.store(interval, Ordering::Relaxed);
    }

    /// Its size as last seen.
    pub fn size(&self) -> [u32; 2] {
        self.look(|look| look.size)
    }

    /// Its samples per pixel.
    pub fn samples(&self) -> u32 {
        self.look(|look| look.samples)
    }

    /// Asks for its size, which must happen where EGL or GLX may be called.
    pub fn measure(&self) {
        let size = if system::is_glx() { self.size_by_x11() } else { self.size_by_egl() };
        self.look(|look| {
            if let Some(size) = size {
                look.size = size;
                look.known = true;
            }
            look.frames = 0;
        });
    }

    /// The X server knows windows and pixmaps; other drawables keep the size that they were made with.
    fn size_by_x11(&self) -> Option<[u32; 2]> {
        if self.look(|look| look.fixed) { None } else { x11::size(self.display as Ptr, self.handle) }
    }

    fn size_by_egl(&self) -> Option<[u32; 2]> {
        let ask = |what: i32| {
            let mut value = 0_i32;
            // SAFETY: display and surface come from EGL, which checks both; there is room for the
            // one number.
            let done = unsafe {
                real::eglQuerySurface(self.display as Ptr, self.handle as Ptr, what, (&raw mut value).cast())
            };
            (done != 0).then(|| u32::try_from(value).unwrap_or(0))
        };
        quiet::egl(|| ask(egl::WIDTH).zip(ask(egl::HEIGHT))).map(|(width, height)| [width, height])
    }

    /// It was made with that size, and keeps it.
    pub(crate) fn set_size(&self, size: [u32; 2]) {
        self.look(|look| (look.size, look.known, look.fixed) = (size, true, true));
    }

    /// Its configuration has that many samples.
    pub fn set_samples(&self, samples: u32) {
        self.look(|look| look.samples = samples);
    }

    /// Whether it is time to ask again, given the viewport the program draws with.
    pub fn wants_look(&self, viewport: Option<[u32; 2]>) -> bool {
        self.look(|look| {
            look.frames += 1;
            !look.known || look.frames >= FRAMES_BETWEEN || viewport.is_some_and(|size| size != look.size)
        })
    }

    fn look<T>(&self, with: impl FnOnce(&mut Look) -> T) -> T {
        with(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Samples per pixel of surfaces with that configuration.
pub(crate) fn samples(display: Ptr, config: Ptr) -> u32 {
    let mut samples = 0_i32;
    quiet::egl(|| {
        // SAFETY: EGL checks display and configuration; there is room for one number.
        unsafe { real::eglGetConfigAttrib(display, config, egl::SAMPLES, (&raw mut samples).cast()) }
    });
    u32::try_from(samples).unwrap_or(0)
}
