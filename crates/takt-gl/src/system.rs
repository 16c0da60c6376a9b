//! Which window system this copy of the library stands below: EGL, or GLX.
//!
//! A program may use both; then each has a copy of its own, with contexts of its own.

use std::sync::atomic::{AtomicBool, Ordering};

static GLX: AtomicBool = AtomicBool::new(false);

/// This copy is below GLX, and no function of EGL may be called.
pub(crate) fn begin_glx() {
    GLX.store(true, Ordering::Relaxed);
}

/// Whether this copy is below GLX.
#[inline]
pub(crate) fn is_glx() -> bool {
    GLX.load(Ordering::Relaxed)
}
