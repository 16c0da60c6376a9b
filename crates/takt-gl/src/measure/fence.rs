//! Fences: marks in the command stream that can be waited for.

use std::ffi::CStr;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::entry::{Id, Ptr, real};
use crate::{gl, guard, quiet};

/// A mark that the GPU will pass.
#[derive(Debug)]
pub(crate) struct Fence {
    display: usize,
    sync: usize,
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
static DISPLAYS: Mutex<Vec<(usize, bool)>> = Mutex::new(Vec::new());

/// Whether a display has fences.
pub(crate) fn is_possible(display: usize) -> bool {
    let mut displays = DISPLAYS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, has)) = displays.iter().find(|(known, _)| *known == display) {
        return *has;
    }
    let has = quiet::egl(|| has_fences(display));
    if !has {
        guard::say("this driver has no EGL_KHR_fence_sync: command groups cannot be measured");
    }
    displays.push((display, has));
    has
}

fn has_fences(display: usize) -> bool {
    let calls = [Id::eglCreateSyncKHR, Id::eglClientWaitSyncKHR, Id::eglDestroySyncKHR];
    if !calls.into_iter().all(Id::is_there) {
        return false;
    }
    // SAFETY: EGL checks the display.
    let list = unsafe { real::eglQueryString(display as Ptr, gl::EGL_EXTENSIONS) };
    if list.is_null() {
        return false;
    }
    // SAFETY: a string that lives as long as the display.
    let list = unsafe { CStr::from_ptr(list.cast()) };
    list.to_bytes().split(|byte| *byte == b' ').any(|name| name == b"EGL_KHR_fence_sync")
}

/// Puts a mark into the stream of the current context.
pub(crate) fn insert(display: usize) -> Option<Fence> {
    if !is_possible(display) {
        return None;
    }
    let sync = quiet::egl(|| {
        // SAFETY: EGL checks the display; no attributes are given.
        unsafe { real::eglCreateSyncKHR(display as Ptr, gl::EGL_SYNC_FENCE, std::ptr::null_mut()) }
    });
    (!sync.is_null()).then_some(Fence { display, sync: sync as usize })
}

impl Fence {
    /// Waits for the GPU. Only threads that run none of the program's code may call this, because
    /// EGL's error of the thread changes.
    pub(crate) fn wait(&self, ns: u64) -> Waited {
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
