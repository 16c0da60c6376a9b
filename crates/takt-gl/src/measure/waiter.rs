//! A context of ours beside the program's, to wait in.
//!
//! NVIDIA's driver (580 at least) comes back from `eglCreateSyncKHR` only when the GPU has done
//! everything, so with fences of EGL a program and the GPU would take turns. Fences of GL come at
//! once, but are waited for where a context of the same share group is current. So the thread that
//! waits has one: it draws nothing, binds nothing, and goes with the program's.

use std::cell::RefCell;
use std::ptr;
use std::sync::Arc;

use crate::entry::{Id, Ptr, real};
use crate::{egl, glx_context, quiet, system};
use takt_client::copies::inside_driver;

/// See the module.
#[derive(Debug)]
pub(crate) struct Waiter {
    display: usize,
    context: usize,
}

thread_local! {
    /// What is current in this thread of ours.
    static HELD: RefCell<Option<Arc<Waiter>>> = const { RefCell::new(None) };
}

impl Waiter {
    /// A context that shares objects with `beside`; none if the driver has none to give.
    pub(crate) fn new(display: usize, beside: usize) -> Option<Arc<Self>> {
        let context = match system::is_glx() {
            true => glx_context::beside(display, beside),
            false => quiet::egl(|| create(display as Ptr, beside as Ptr)) as usize,
        };
        (context != 0).then(|| Arc::new(Self { display, context }))
    }

    /// Makes it current in this thread, which must be one of ours. False if that cannot be.
    pub(crate) fn hold(self: &Arc<Self>) -> bool {
        HELD.with_borrow_mut(|held| {
            if held.as_ref().is_some_and(|held| Arc::ptr_eq(held, self)) {
                return true;
            }
            let done = make_current(self.display, self.context);
            // The one held before is not current any more, or the display is gone altogether.
            *held = done.then(|| self.clone());
            done
        })
    }

    /// Whether only this thread needs it any more, which has so many fences in it.
    pub(crate) fn is_forsaken(self: &Arc<Self>, fences: usize) -> bool {
        let held = HELD.with_borrow(|held| held.as_ref().is_some_and(|held| Arc::ptr_eq(held, self)));
        Arc::strong_count(self) == fences + usize::from(held)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if system::is_glx() {
            return glx_context::leave(self.display, self.context);
        }
        inside_driver(|| {
            // SAFETY: EGL checks the handles; it is current nowhere, since a thread that holds it owns it.
            quiet::egl(|| unsafe { real::eglDestroyContext(self.display as Ptr, self.context as Ptr) });
        });
    }
}

/// Has no context current in this thread any more, because displays are about to go.
pub(crate) fn release() {
    HELD.with_borrow_mut(|held| {
        if let Some(waiter) = held.take() {
            inside_driver(|| make_current(waiter.display, 0));
        }
    });
}

/// The same if the program's context is gone, whose objects would live on.
pub(crate) fn release_forsaken() {
    if HELD.with_borrow(|held| held.as_ref().is_some_and(|held| Arc::strong_count(held) == 1)) {
        release();
    }
}

/// Makes a context current in this thread, which is one of ours; 0 is none. False if that cannot be.
fn make_current(display: usize, context: usize) -> bool {
    if system::is_glx() {
        return glx_context::make_current(display, context);
    }
    let none = ptr::null_mut();
    // SAFETY: EGL checks the handles; nothing of the program's is current in this thread.
    unsafe { real::eglMakeCurrent(display as Ptr, none, none, context as Ptr) != 0 }
}

fn create(display: Ptr, beside: Ptr) -> Ptr {
    let mut id = 0_i32;
    // SAFETY: EGL checks the handles and writes one number.
    unsafe { real::eglQueryContext(display, beside, egl::CONFIG_ID, (&raw mut id).cast()) };
    let Some(config) = config(display, id) else {
        return ptr::null_mut();
    };
    let mut api = egl::OPENGL_ES_API;
    // SAFETY: EGL checks the handles and writes one number.
    unsafe { real::eglQueryContext(display, beside, egl::CONTEXT_CLIENT_TYPE, (&raw mut api).cast()) };
    let other_api = other_api(api.cast_unsigned());
    let mut attributes = [egl::CONTEXT_CLIENT_VERSION, 3, egl::NONE];
    let all = if api == egl::OPENGL_ES_API { &mut attributes[..] } else { &mut attributes[2..] };
    // SAFETY: EGL checks the handles; the list has its end.
    let context = unsafe { real::eglCreateContext(display, config, beside, all.as_mut_ptr().cast()) };
    if let Some(api) = other_api {
        // SAFETY: what was bound before.
        unsafe { real::eglBindAPI(api) };
    }
    context
}

/// The configuration of that number; 0 is that of contexts without one.
fn config(display: Ptr, id: i32) -> Option<Ptr> {
    let mut config: Ptr = ptr::null_mut();
    if id == 0 {
        return Some(config);
    }
    let mut wanted = [egl::CONFIG_ID, id, egl::NONE];
    let (list, found): (Ptr, Ptr) = (wanted.as_mut_ptr().cast(), (&raw mut config).cast());
    let mut count = 0_i32;
    // SAFETY: the list has its end; one configuration and a number are written.
    let done = unsafe { real::eglChooseConfig(display, list, found, 1, (&raw mut count).cast()) };
    (done != 0 && count == 1).then_some(config)
}

/// Binds an API in this thread, and says what was bound before if it was something else.
fn other_api(wanted: u32) -> Option<u32> {
    if ![Id::eglQueryAPI, Id::eglBindAPI].into_iter().all(Id::is_there) {
        return None;
    }
    // SAFETY: may be called at any time by any thread.
    let api = unsafe { real::eglQueryAPI() };
    if api == wanted {
        return None;
    }
    // SAFETY: the same.
    unsafe { real::eglBindAPI(wanted) };
    Some(api)
}
