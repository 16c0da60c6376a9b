//! Catches panics and switches Takt off, so that no mistake of Takt reaches the program.
//!
//! Hooks run their own part inside [`shielded`]: a panic ends there, is said once on standard
//! error, and switches all looking off; from then on calls only pass. So they do in a process that
//! was forked from the one that is watched: the threads of ours are not there, locks may be held
//! for ever, and what is shared with a daemon is the original's.

use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use takt_os::fork::{self, Forks};
use takt_os::signals;

use crate::copies;

static SWITCHED_OFF: AtomicBool = AtomicBool::new(false);

/// This is a copy of the process that is watched, and the user was not told yet.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Runs Takt's part of a call. None if it is switched off, or failed.
#[inline]
pub fn shielded<T>(part: impl FnOnce() -> T) -> Option<T> {
    if SWITCHED_OFF.load(Ordering::Relaxed) {
        passes();
        return None;
    }
    attempted(part)
}

/// Runs what the program depends on, even if Takt is switched off. None if it failed.
#[inline]
pub fn attempted<T>(part: impl FnOnce() -> T) -> Option<T> {
    match panic::catch_unwind(AssertUnwindSafe(part)) {
        Ok(value) => Some(value),
        Err(_) => {
            switch_off("an internal error; the line above says where");
            None
        }
    }
}

/// A call passes. Where a fork is the reason, it is said now: while a process is being copied
/// nothing may be written, and most copies never use the GPU.
#[cold]
fn passes() {
    if FORKED.load(Ordering::Relaxed) && FORKED.swap(false, Ordering::Relaxed) {
        say(&off("the process was forked, and only the original is measured"));
    }
}

/// From now on calls only pass.
#[cold]
pub fn switch_off(reason: &str) {
    if !SWITCHED_OFF.swap(true, Ordering::Relaxed) {
        say(&off(reason));
    }
}

fn off(reason: &str) -> String {
    format!("switched off, the program runs on without it: {reason}")
}

/// Whether calls only pass.
pub fn is_switched_off() -> bool {
    SWITCHED_OFF.load(Ordering::Relaxed)
}

/// Copies of this process are not watched from now on.
pub fn stay_in_this_process() {
    static ONCE: Once = Once::new();
    // Without memory for it, a copy finds out by its number when it hands work over.
    ONCE.call_once(|| {
        fork::watch(Forks { before: forks, original: forked_here, copy: forked });
    });
}

extern "C" fn forks() {
    copies::begin();
}

extern "C" fn forked_here() {
    copies::end();
}

/// Other threads may have held any lock when the process was copied; nothing may wait here.
extern "C" fn forked() {
    copies::begin_anew();
    let was_on = !SWITCHED_OFF.swap(true, Ordering::Relaxed);
    FORKED.store(was_on, Ordering::Relaxed);
}

/// Errors of ours are said in our way, from now on. To be called where this library has a copy of
/// the standard library to itself.
pub fn speak_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| panic::set_hook(Box::new(|info: &PanicHookInfo<'_>| say(&info.to_string()))));
}

/// Tells the user. The program's own standard error is all there is; so this must stay rare.
///
/// Neither a lock that a forked process may find held nor a pipe without a reader may stop the
/// program.
pub fn say(text: &str) {
    signals::write_to_stderr(format!("takt: {text}\n").as_bytes());
}
