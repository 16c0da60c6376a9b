//! Calls of Takt's own that leave no trace.
//!
//! EGL keeps the error of a thread's last call. A call of ours in between would wipe out an error
//! that the program has not fetched yet; so it is fetched before and put back after.

use crate::entry::real;
use crate::{gl, vendor};

/// Runs calls to EGL whose errors are nobody's business.
pub(crate) fn egl<T>(calls: impl FnOnce() -> T) -> T {
    // SAFETY: may be called at any time by any thread.
    let pending = unsafe { real::eglGetError() };
    let result = calls();
    // SAFETY: as above; takes our own error away.
    unsafe { real::eglGetError() };
    if pending != gl::EGL_SUCCESS {
        vendor::restore_egl_error(pending);
    }
    result
}
