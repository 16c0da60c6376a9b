//! Contexts of GLX: how each was made, so that one more can be made beside it.
//!
//! GLX has no fences of its own. Those of GL are waited for by a thread of ours in a context that shares
//! objects with the program's and was made in the same way. Only threads of the program make and destroy
//! such contexts, because only they may talk to the X server; the thread that waits makes them current
//! without a drawable, which needs no server.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::client::current;
use crate::entry::{Id, Ptr, real};
use crate::{glx, guard, measure, system, x11};

/// How a context was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Birth {
    /// `glXCreateContext`, from a copy of the program's description of a visual.
    Visual { visual: Visual, direct: i32 },
    /// `glXCreateNewContext`.
    Config { config: usize, kind: i32, direct: i32 },
    /// `glXCreateContextAttribsARB`, with the end of its attributes.
    Attributes { config: usize, direct: i32, attributes: Vec<i32> },
}

/// Xlib's `XVisualInfo`, of which nothing has to be known but its size.
pub(crate) type Visual = [usize; 8];

#[derive(Debug)]
struct Contexts {
    births: BTreeMap<(usize, usize), Birth>,
    /// Contexts that no thread of ours needs any more, with their displays.
    left: Vec<(usize, usize)>,
    /// Displays whose end we hear of.
    displays: Vec<usize>,
}

static CONTEXTS: Mutex<Contexts> =
    Mutex::new(Contexts { births: BTreeMap::new(), left: Vec::new(), displays: Vec::new() });
/// Whether a context is to be destroyed.
static LEFT: AtomicBool = AtomicBool::new(false);

fn contexts() -> MutexGuard<'static, Contexts> {
    CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A context was made.
pub(crate) fn born(display: usize, context: usize, birth: Birth) {
    let mut contexts = contexts();
    contexts.births.insert((display, context), birth);
    if !contexts.displays.contains(&display) {
        contexts.displays.push(display);
        drop(contexts);
        // Displays of tests are none.
        if system::is_glx() {
            x11::on_close(display as Ptr, closes);
        }
    }
}

/// The program destroyed a context.
pub(crate) fn died(display: usize, context: usize) {
    contexts().births.remove(&(display, context));
}

/// A display is about to be closed: nothing of it may be used from now on, in any thread.
unsafe extern "C" fn closes(display: Ptr, _codes: Ptr) -> i32 {
    let display = display as usize;
    guard::attempted(|| {
        measure::drain(Some(display));
        current::terminated(display);
        let mut contexts = contexts();
        contexts.births.retain(|(of, _), _| *of != display);
        contexts.left.retain(|(of, _)| *of != display);
        contexts.displays.retain(|known| *known != display);
    });
    0
}

/// Makes a context that shares objects with one of the program's; 0 if that is impossible. Called in a
/// thread of the program.
pub(crate) fn beside(display: usize, context: usize) -> usize {
    let birth = contexts().births.get(&(display, context)).cloned();
    let (display, share) = (display as Ptr, context as Ptr);
    let made = match birth {
        None => ptr::null_mut(),
        Some(Birth::Visual { mut visual, direct }) => {
            let visual = visual.as_mut_ptr().cast();
            // SAFETY: what the program made a context with, and a context of the same display.
            unsafe { real::glXCreateContext(display, visual, share, direct) }
        }
        Some(Birth::Config { config, kind, direct }) => {
            // SAFETY: the same.
            unsafe { real::glXCreateNewContext(display, config as Ptr, kind, share, direct) }
        }
        Some(Birth::Attributes { config, direct, mut attributes }) => {
            let list = attributes.as_mut_ptr().cast();
            // SAFETY: the same; the list has its end.
            unsafe { real::glXCreateContextAttribsARB(display, config as Ptr, share, direct, list) }
        }
    };
    made as usize
}

/// Makes a context of ours current in this thread, or none. False if that fails.
pub(crate) fn make_current(display: usize, context: usize) -> bool {
    if !Id::glXMakeContextCurrent.is_there() {
        return false;
    }
    // SAFETY: a context that only this thread uses, or none; no drawable.
    unsafe { real::glXMakeContextCurrent(display as Ptr, 0, 0, context as Ptr) != 0 }
}

/// A context of ours is not needed any more; a thread of the program destroys it in its next call.
pub(crate) fn leave(display: usize, context: usize) {
    contexts().left.push((display, context));
    LEFT.store(true, Ordering::Release);
}

/// Destroys contexts that are not needed any more. Called in threads of the program.
#[inline]
pub(crate) fn clear_left() {
    if LEFT.load(Ordering::Acquire) {
        destroy_left();
    }
}

#[cold]
fn destroy_left() {
    LEFT.store(false, Ordering::Release);
    let left = std::mem::take(&mut contexts().left);
    for (display, context) in left {
        // SAFETY: a context that only we knew, and which is current nowhere.
        unsafe { real::glXDestroyContext(display as Ptr, context as Ptr) };
    }
}

/// The attributes of `glXCreateContextAttribsARB` with their end; `given` has none of its own.
pub(crate) fn ended(given: &[i32]) -> Vec<i32> {
    given.iter().copied().chain([0]).collect()
}

/// Whether a context renders directly, and not through the X server.
pub(crate) fn is_direct(display: Ptr, context: Ptr) -> bool {
    // SAFETY: a context that was just made.
    !Id::glXIsDirect.is_there() || unsafe { real::glXIsDirect(display, context) != 0 }
}

/// Whether the driver is NVIDIA's.
pub(crate) fn is_of_nvidia(display: usize) -> bool {
    if !Id::glXGetClientString.is_there() {
        return false;
    }
    // SAFETY: a display of the program; what comes back is a string, or null.
    let vendor = unsafe { real::glXGetClientString(display as Ptr, glx::VENDOR) };
    if vendor.is_null() {
        return false;
    }
    // SAFETY: a string that lives as long as the driver.
    unsafe { std::ffi::CStr::from_ptr(vendor.cast()) }.to_string_lossy().contains("NVIDIA")
}
