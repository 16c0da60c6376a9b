//! Fences: marks in the command stream that can be waited for.

use std::ffi::CStr;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

use crate::entry::{Id, Ptr, real};
use crate::{gl, guard, quiet};

/// A mark that the GPU will pass.
#[derive(Debug)]
pub(crate) struct Fence {
    display: usize,
    sync: usize,
    /// Whether waiting keeps other threads out of the display.
    locks: bool,
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waited {
    /// The GPU has passed the mark.
    Passed,
    /// Not yet.
    NotYet,
    /// The mark is gone, for example because the display was terminated.
    Lost,
}

/// Displays that were asked whether they have fences: few, so a list does.
static DISPLAYS: Mutex<Vec<(usize, Fences)>> = Mutex::new(Vec::new());

/// What a display offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fences {
    None,
    /// Mesa up to 22 at least keeps its display locked while it waits for a fence.
    Locking,
    Free,
}

/// How long a wait may keep the program out, and how long it then gets.
const LOCKED_NS: u64 = 300_000;
const UNLOCKED: Duration = Duration::from_micros(30);

/// Whether a display has fences.
pub(crate) fn is_possible(display: usize) -> bool {
    fences(display) != Fences::None
}

fn fences(display: usize) -> Fences {
    let mut displays = DISPLAYS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, fences)) = displays.iter().find(|(known, _)| *known == display) {
        return *fences;
    }
    let fences = quiet::egl(|| ask(display));
    if fences == Fences::None {
        guard::say("this driver has no EGL_KHR_fence_sync: command groups cannot be measured");
    }
    displays.push((display, fences));
    fences
}

fn ask(display: usize) -> Fences {
    let calls = [Id::eglCreateSyncKHR, Id::eglClientWaitSyncKHR, Id::eglDestroySyncKHR];
    if !calls.into_iter().all(Id::is_there) {
        return Fences::None;
    }
    let (extensions, vendor) = (text(display, gl::EGL_EXTENSIONS), text(display, gl::EGL_VENDOR));
    match extensions.split(' ').any(|name| name == "EGL_KHR_fence_sync") {
        false => Fences::None,
        true if vendor.contains("Mesa") => Fences::Locking,
        true => Fences::Free,
    }
}

fn text(display: usize, what: i32) -> String {
    // SAFETY: EGL checks the display.
    let text = unsafe { real::eglQueryString(display as Ptr, what) };
    if text.is_null() {
        return String::new();
    }
    // SAFETY: a string that lives as long as the display.
    unsafe { CStr::from_ptr(text.cast()) }.to_string_lossy().into_owned()
}

/// Puts a mark into the stream of the current context.
pub(crate) fn insert(display: usize) -> Option<Fence> {
    let fences = fences(display);
    if fences == Fences::None {
        return None;
    }
    let sync = quiet::egl(|| {
        // SAFETY: EGL checks the display; no attributes are given.
        unsafe { real::eglCreateSyncKHR(display as Ptr, gl::EGL_SYNC_FENCE, std::ptr::null_mut()) }
    });
    (!sync.is_null()).then_some(Fence { display, sync: sync as usize, locks: fences == Fences::Locking })
}

impl Fence {
    /// Waits for the GPU. Only threads that run none of the program's code may call this, because
    /// EGL's error of the thread changes.
    pub(crate) fn wait(&self, ns: u64) -> Waited {
        let mut left_ns = ns;
        while self.locks && left_ns > LOCKED_NS {
            match self.wait_once(LOCKED_NS) {
                Waited::NotYet => left_ns -= LOCKED_NS,
                ended => return ended,
            }
            thread::sleep(UNLOCKED);
        }
        self.wait_once(left_ns)
    }

    fn wait_once(&self, ns: u64) -> Waited {
        // SAFETY: EGL checks both handles.
        match unsafe { real::eglClientWaitSyncKHR(self.display as Ptr, self.sync as Ptr, 0, ns) } {
            gl::EGL_CONDITION_SATISFIED => Waited::Passed,
            gl::EGL_TIMEOUT_EXPIRED => Waited::NotYet,
            _ => Waited::Lost,
        }
    }

    /// Takes the mark away.
    pub(crate) fn remove(self) {
        // SAFETY: EGL checks both handles; nobody else knows this one.
        unsafe { real::eglDestroySyncKHR(self.display as Ptr, self.sync as Ptr) };
    }
}
