//! Surfaces and their sizes.
//!
//! A window's size is its user's business and changes at any time. Asking for it can mean a round
//! trip to the X server, so it is asked for when a surface is bound, when the program sets a
//! viewport of another size, and every [`FRAMES_BETWEEN`] frames.

use std::sync::{Mutex, PoisonError};

use crate::entry::{Ptr, real};
use crate::{egl, quiet};

/// Frames between two looks at the size of a window whose program gives no sign of a change.
pub const FRAMES_BETWEEN: u32 = 60;

/// A surface.
#[derive(Debug)]
pub struct Surface {
    /// Its display.
    pub display: usize,
    /// EGL's handle.
    pub handle: usize,
    /// Whether a swap shows it. One of a pbuffer or pixmap has no effect, as EGL has it.
    pub shows: bool,
    state: Mutex<Look>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Look {
    size: [u32; 2],
    samples: u32,
    frames: u32,
    known: bool,
}

impl Surface {
    /// A surface of unknown size.
    pub fn new(display: usize, handle: usize, shows: bool) -> Self {
        Self { display, handle, shows, state: Mutex::default() }
    }

    /// Its size as last seen.
    pub fn size(&self) -> [u32; 2] {
        self.look(|look| look.size)
    }

    /// Its samples per pixel.
    pub fn samples(&self) -> u32 {
        self.look(|look| look.samples)
    }

    /// Asks for its size, which must happen where EGL may be called.
    pub fn measure(&self) {
        let ask = |what: i32| {
            let mut value = 0_i32;
            // SAFETY: display and surface come from EGL, which checks both; there is room for the
            // one number.
            let done = unsafe {
                real::eglQuerySurface(self.display as Ptr, self.handle as Ptr, what, (&raw mut value).cast())
            };
            (done != 0).then(|| u32::try_from(value).unwrap_or(0))
        };
        let size = quiet::egl(|| ask(egl::WIDTH).zip(ask(egl::HEIGHT)));
        self.look(|look| {
            if let Some((width, height)) = size {
                look.size = [width, height];
                look.known = true;
            }
            look.frames = 0;
        });
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
