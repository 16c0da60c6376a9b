//! Being asked to stop by the terminal or by a supervisor.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

const SIGINT: c_int = 2;
const SIGTERM: c_int = 15;
/// The default action, as in `<signal.h>`.
const SIG_DFL: usize = 0;

// SAFETY: as <signal.h> declares it.
unsafe extern "C" {
    fn signal(number: c_int, handler: usize) -> usize;
}

extern "C" fn stop(number: c_int) {
    STOP.store(true, Ordering::Relaxed);
    // A second request ends the program at once, should it hang in a driver.
    // SAFETY: `signal` may be called in a handler, and the default action needs no code of ours.
    unsafe { signal(number, SIG_DFL) };
}

/// Notes requests to stop from here on, so that the program can still print what it measured.
pub(crate) fn watch() {
    for number in [SIGINT, SIGTERM] {
        let handler: extern "C" fn(c_int) = stop;
        // SAFETY: the handler only stores to an atomic and calls `signal`; both are allowed there.
        unsafe { signal(number, handler as usize) };
    }
}

/// Whether a signal asked the program to stop.
pub(crate) fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}
