//! Nothing that goes wrong here may reach the program.
//!
//! Hooks run their own part inside [`shielded`]: a panic ends there, is said once on standard
//! error, and switches all looking off; from then on calls only pass.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};

static SWITCHED_OFF: AtomicBool = AtomicBool::new(false);

/// Runs Takt's part of a call. None if it is switched off, or failed.
#[inline]
pub fn shielded<T>(part: impl FnOnce() -> T) -> Option<T> {
    if SWITCHED_OFF.load(Ordering::Relaxed) {
        return None;
    }
    match panic::catch_unwind(AssertUnwindSafe(part)) {
        Ok(value) => Some(value),
        Err(_) => {
            switch_off("an internal error; the line above says where");
            None
        }
    }
}

/// From now on calls only pass.
#[cold]
pub fn switch_off(reason: &str) {
    if !SWITCHED_OFF.swap(true, Ordering::Relaxed) {
        say(&format!("switched off, the program runs on without it: {reason}"));
    }
}

/// Whether calls only pass.
pub fn is_switched_off() -> bool {
    SWITCHED_OFF.load(Ordering::Relaxed)
}

/// Tells the user. The program's own standard error is all there is; so this must stay rare.
#[expect(clippy::print_stderr, reason = "there is no other way to be heard from inside a program")]
pub fn say(text: &str) {
    // Broken standard error is no reason to panic inside of someone else's program.
    let _unheard = panic::catch_unwind(|| eprintln!("takt: {text}"));
}
