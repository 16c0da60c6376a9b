//! Fences: marks in the command stream that can be waited for.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::waiter::{self, Waiter};
use crate::entry::{Id, Ptr, real};
use crate::settings::settings;
use crate::{egl, gl, glx_context, guard, quiet, system};
use takt_client::copies::{self, inside_driver};

/// A mark that the GPU will pass.
#[derive(Debug)]
pub(crate) struct Fence {
    display: usize,
    sync: usize,
    kind: FenceKind,
}

#[derive(Debug)]
enum FenceKind {
    /// Of EGL.
    Display {
        /// Whether waiting keeps other threads out of the display.
        locks: bool,
    },
    /// Of GL, to be waited for in this context.
    Context {
        waiter: Arc<Waiter>,
        /// Whether it is to be kept for a while: see [`Passed`].
        fragile: bool,
    },
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
    /// Mesa up to 22 at least keeps its display locked while it waits for a fence of EGL.
    Locking {
        /// Whether fences of GL can be waited for instead.
        in_contexts: bool,
    },
    Independent,
    /// NVIDIA waits for the GPU where fences of EGL are made; those of GL it makes at once.
    InContexts,
    /// GLX has none of its own.
    OfGlx {
        /// Whether passed ones are kept for a while: see [`Passed`].
        fragile: bool,
    },
}

/// How long a wait may keep the program out, and how long it then gets.
const LOCKED_NS: u64 = 300_000;
const UNLOCKED: Duration = Duration::from_micros(30);

/// Whether a display has fences.
pub(crate) fn is_possible(display: usize) -> bool {
    fences(display) != Fences::None
}

/// Whether fences of EGL are made only when the GPU has done everything before.
pub(crate) fn is_waited_for_when_made(display: usize) -> bool {
    fences(display).are_of_contexts()
}

impl Fences {
    /// Whether all fences are those of GL.
    fn are_of_contexts(self) -> bool {
        match self {
            Self::None | Self::Independent => false,
            Self::Locking { in_contexts } => in_contexts && settings().fences_of_contexts,
            Self::InContexts | Self::OfGlx { .. } => true,
        }
    }

    /// Whether passed fences are kept for a while.
    fn are_fragile(self) -> bool {
        matches!(self, Self::Locking { .. } | Self::OfGlx { fragile: true })
    }
}

fn fences(display: usize) -> Fences {
    let mut displays = DISPLAYS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, fences)) = displays.iter().find(|(known, _)| *known == display) {
        return *fences;
    }
    let fences = match system::is_glx() {
        true => Fences::OfGlx { fragile: !glx_context::is_of_nvidia(display) },
        false => quiet::egl(|| ask(display)),
    };
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
    let (extensions, vendor) = (text(display, egl::EXTENSIONS), text(display, egl::VENDOR));
    let has = |wanted: &str| extensions.split(' ').any(|name| name == wanted);
    if !has("EGL_KHR_fence_sync") {
        return Fences::None;
    }
    let in_contexts = has("EGL_KHR_surfaceless_context");
    if vendor.contains("NVIDIA") && in_contexts {
        Fences::InContexts
    } else if vendor.contains("Mesa") {
        Fences::Locking { in_contexts }
    } else {
        Fences::Independent
    }
}

/// A context to wait in for the fences of this one, where such fences are better; `newer` if it
/// knows GL ES 3.
pub(crate) fn waiter(display: usize, context: usize, newer: bool) -> Option<Arc<Waiter>> {
    let better = newer && fences(display).are_of_contexts();
    better.then(|| new_waiter(display, context)).flatten()
}

/// The same where waiting for fences of EGL would keep the program out of its display.
pub(crate) fn waiter_beside(display: usize, context: usize, newer: bool) -> Option<Arc<Waiter>> {
    let better = newer && fences(display) == Fences::Locking { in_contexts: true };
    better.then(|| new_waiter(display, context)).flatten()
}

fn new_waiter(display: usize, context: usize) -> Option<Arc<Waiter>> {
    let calls = [Id::glFenceSync, Id::glClientWaitSync, Id::glDeleteSync];
    calls.into_iter().all(Id::is_there).then(|| Waiter::new(display, context)).flatten()
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

/// Puts a mark into the stream of the current context; `waiter` is where it is to be waited for, if
/// not anywhere.
pub(crate) fn insert(display: usize, waiter: Option<&Arc<Waiter>>) -> Option<Fence> {
    if let Some(waiter) = waiter {
        // SAFETY: the context is current.
        let sync = unsafe { real::glFenceSync(gl::SYNC_GPU_COMMANDS_COMPLETE, 0) } as usize;
        let fragile = fences(display).are_fragile();
        let kind = FenceKind::Context { waiter: waiter.clone(), fragile };
        return (sync != 0).then_some(Fence { display, sync, kind });
    }
    let fences = fences(display);
    if matches!(fences, Fences::None | Fences::OfGlx { .. }) {
        return None;
    }
    let sync = quiet::egl(|| {
        // SAFETY: EGL checks the display; no attributes are given.
        unsafe {
            real::eglCreateSyncKHR(display as Ptr, egl::SYNC_FENCE.cast_unsigned(), std::ptr::null_mut())
        }
    });
    let kind = FenceKind::Display { locks: matches!(fences, Fences::Locking { .. }) };
    (!sync.is_null()).then_some(Fence { display, sync: sync as usize, kind })
}

impl Fence {
    /// Waits for the GPU. Only threads that run none of the program's code may call this, because
    /// EGL's error of the thread changes.
    pub(crate) fn wait(&self, ns: u64) -> Waited {
        let locks = self.locks();
        let at_once_ns = if locks { LOCKED_NS } else { copies::CALL_NS_MAX };
        let mut left_ns = ns;
        while left_ns > at_once_ns {
            match inside_driver(|| self.wait_once(at_once_ns)) {
                Waited::NotYet => left_ns -= at_once_ns,
                ended => return ended,
            }
            if locks {
                thread::sleep(UNLOCKED);
            }
        }
        inside_driver(|| self.wait_once(left_ns))
    }

    /// Looks whether the GPU is there already; from the program's thread, where the context is current
    /// in which it was made.
    pub(crate) fn is_passed(&self) -> bool {
        let passed = match self.kind {
            FenceKind::Display { .. } => quiet::egl(|| self.wait_once(0)),
            FenceKind::Context { .. } => self.wait_in_context(0),
        };
        passed == Waited::Passed
    }

    fn locks(&self) -> bool {
        matches!(self.kind, FenceKind::Display { locks: true })
    }

    /// Whether it must not be taken away as soon as it was passed: see [`Passed`].
    fn is_fragile(&self) -> bool {
        matches!(self.kind, FenceKind::Display { locks: true } | FenceKind::Context { fragile: true, .. })
    }

    fn waiter(&self) -> Option<&Arc<Waiter>> {
        match &self.kind {
            FenceKind::Display { .. } => None,
            FenceKind::Context { waiter, .. } => Some(waiter),
        }
    }

    fn wait_once(&self, ns: u64) -> Waited {
        if let FenceKind::Context { waiter, .. } = &self.kind {
            return if waiter.hold() { self.wait_in_context(ns) } else { Waited::Lost };
        }
        // SAFETY: EGL checks both handles.
        match unsafe { real::eglClientWaitSyncKHR(self.display as Ptr, self.sync as Ptr, 0, ns) } {
            egl::CONDITION_SATISFIED => Waited::Passed,
            egl::TIMEOUT_EXPIRED => Waited::NotYet,
            _ => Waited::Lost,
        }
    }

    fn wait_in_context(&self, ns: u64) -> Waited {
        // SAFETY: a context of the fence's share group is current, and only this thread knows it.
        match unsafe { real::glClientWaitSync(self.sync as Ptr, 0, ns) } {
            gl::ALREADY_SIGNALED | gl::CONDITION_SATISFIED => Waited::Passed,
            gl::TIMEOUT_EXPIRED => Waited::NotYet,
            _ => Waited::Lost,
        }
    }

    /// Takes the mark away in the program's thread, where the context is current in which it was made.
    pub(crate) fn remove_here(self) {
        match self.kind {
            FenceKind::Display { .. } => quiet::egl(|| self.remove()),
            // SAFETY: the context is current, and only this thread knows the fence.
            FenceKind::Context { .. } => unsafe { real::glDeleteSync(self.sync as Ptr) },
        };
    }

    /// Takes the mark away. Only threads that run none of the program's code may call this.
    pub(crate) fn remove(self) {
        inside_driver(|| self.remove_now());
    }

    fn remove_now(self) {
        if let FenceKind::Context { waiter, .. } = &self.kind {
            if waiter.hold() {
                // SAFETY: as above.
                unsafe { real::glDeleteSync(self.sync as Ptr) };
            }
            return;
        }
        // SAFETY: EGL checks both handles; only this thread knows this one.
        unsafe { real::eglDestroySyncKHR(self.display as Ptr, self.sync as Ptr) };
    }
}

/// Fences that were passed, and are not taken away yet.
///
/// A thread of Mesa's llvmpipe (22.3 at least) counts itself past a fence, and then wakes those who
/// wait and unlocks the fence. A thread that looks in between without the lock, as waiting for no
/// time and reusing a drawn-from resource do, finds the fence passed; if it has no owner any more, it
/// is freed, and the thread writes to what is not its own. Such threads go through fences in order: as
/// long as we hold one until later ones were passed, it is not freed too early.
#[derive(Default, Debug)]
pub(crate) struct Passed(VecDeque<Fence>);

/// How many of a display are kept. One would do if there was always work between two fences; one
/// behind nothing is passed at once and says nothing about those before it.
const KEPT: usize = 8;

impl Passed {
    /// Keeps a fence, and takes away the one of its display that is long behind.
    pub(crate) fn keep(&mut self, fence: Fence) {
        // Others free theirs in time.
        if !fence.is_fragile() {
            return fence.remove();
        }
        if let Some(old) = self.add(fence) {
            old.remove();
        }
    }

    fn add(&mut self, fence: Fence) -> Option<Fence> {
        let display = fence.display;
        self.0.push_back(fence);
        let of_display = |(_, fence): &(usize, &Fence)| fence.display == display;
        let mut kept = self.0.iter().enumerate().filter(of_display);
        let (oldest, _) = kept.next()?;
        if kept.count() >= KEPT { self.0.remove(oldest) } else { None }
    }

    /// Takes away what is kept in contexts that are not needed any more, and those contexts with it.
    pub(crate) fn release_forsaken(&mut self) {
        let waiter_of = |fence: &Fence| fence.waiter().map(Arc::as_ptr);
        let kept: Vec<_> = self.0.iter().filter_map(waiter_of).collect();
        if kept.is_empty() {
            return waiter::release_forsaken();
        }
        let is_forsaken = |fence: &Fence| {
            let count =
                |waiter: &Arc<Waiter>| kept.iter().filter(|kept| **kept == Arc::as_ptr(waiter)).count();
            fence.waiter().is_some_and(|waiter| waiter.is_forsaken(count(waiter)))
        };
        // All of a context are told apart before the first of them goes.
        let forsaken: Vec<bool> = self.0.iter().map(is_forsaken).collect();
        for (fence, forsaken) in std::mem::take(&mut self.0).into_iter().zip(forsaken) {
            if forsaken {
                fence.remove();
            } else {
                self.0.push_back(fence);
            }
        }
        waiter::release_forsaken();
    }

    /// The display is about to be terminated, and takes its fences away itself.
    pub(crate) fn forget(&mut self, display: usize) {
        self.0.retain(|fence| fence.display != display);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(display: usize, sync: usize) -> Fence {
        Fence { display, sync, kind: FenceKind::Display { locks: true } }
    }

    #[test]
    fn fences_are_taken_away_in_order_when_enough_of_their_display_are_behind_them() {
        let mut passed = Passed::default();
        let mut taken = |display, sync| passed.add(fence(display, sync)).map(|fence| fence.sync);
        assert_eq!(taken(7, 1000), None);
        for sync in 0..KEPT {
            assert_eq!(taken(3, sync), None);
        }
        assert_eq!(taken(3, KEPT), Some(0));
        assert_eq!(taken(7, 1001), None);
        assert_eq!(taken(3, KEPT + 1), Some(1));
    }

    #[test]
    fn fences_of_a_terminated_display_are_not_ours_any_more() {
        let mut passed = Passed::default();
        for sync in 0..KEPT {
            assert!(passed.add(fence(3, sync)).is_none());
            assert!(passed.add(fence(7, sync)).is_none());
        }
        passed.forget(3);
        assert!(passed.add(fence(3, KEPT)).is_none());
        assert_eq!(passed.add(fence(7, KEPT)).map(|fence| (fence.display, fence.sync)), Some((7, 0)));
    }
}
