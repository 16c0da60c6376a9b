//! Calls of Takt's own that the program cannot notice.
//!
//! EGL keeps the error of a thread's last call. A call of ours in between would wipe out an error
//! that the program has not fetched yet; so it is fetched before and put back after. libglvnd
//! takes it back; where we are preloaded, our own `eglGetError` gives it out.

use std::cell::Cell;

use crate::egl;
use crate::entry::real;
use crate::vendor::egl as vendor;

thread_local! {
    static PENDING: Cell<i32> = const { Cell::new(egl::SUCCESS) };
}

/// Runs calls to EGL whose errors the program must not see.
pub(crate) fn egl<T>(calls: impl FnOnce() -> T) -> T {
    // SAFETY: may be called at any time by any thread.
    let pending = unsafe { real::eglGetError() };
    let result = calls();
    // SAFETY: as above; takes our own error away.
    unsafe { real::eglGetError() };
    if pending != egl::SUCCESS {
        if vendor::is_used() {
            vendor::restore_egl_error(pending);
        } else {
            set_pending(pending);
        }
    }
    result
}

/// The program calls EGL: what was pending is not the last error any more.
pub fn forget() {
    set_pending(egl::SUCCESS);
}

/// What `eglGetError` answers where we are preloaded.
///
/// # Safety
///
/// None is needed; the signature is that of all entry points.
pub unsafe extern "C" fn get_error() -> i32 {
    let pending = PENDING.try_with(|pending| pending.replace(egl::SUCCESS)).unwrap_or(egl::SUCCESS);
    if pending != egl::SUCCESS {
        return pending;
    }
    // SAFETY: may be called at any time by any thread.
    unsafe { real::eglGetError() }
}

fn set_pending(error: i32) {
    // A thread that ends asks for no more errors.
    let _ended = PENDING.try_with(|pending| pending.set(error));
}
