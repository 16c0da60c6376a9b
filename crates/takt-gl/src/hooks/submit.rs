//! Submission points inside of GL.
//!
//! A fence goes behind the group, then the program's own call makes the driver start.

use crate::client::current;
use crate::client::group::End;
use crate::entry::{Ptr, real};
use crate::measure::{self, Witnessed};
use crate::{gl, guard};

/// Ends the group and makes the driver start, where the program's call would not.
pub(super) fn flushed(end: End) {
    if current::with(|state| state.submit(end)) == Some(true) {
        current::flush();
    }
}

fn ended(end: End) {
    current::with(|state| state.submit(end));
}

macro_rules! submitting {
    ($( $name:ident ( $($arg:ident : $ty:ty),* ) $(-> $ret:ty)? => $end:expr; )*) => {
        $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
                if let Some(end) = $end {
                    ended(end);
                }
                // SAFETY: the program's own call.
                unsafe { real::$name($($arg),*) }
            }
        )*
        super::offered!($($name)*);
    };
}

/// A fence of EGL is about to be made, which some drivers do only when the GPU is there.
fn before_fence(display: Ptr) -> Option<Witnessed> {
    if guard::shielded(|| measure::is_waited_for_when_made(display as usize)) != Some(true) {
        return None;
    }
    let (submitted, witnessed) = current::with(|state| state.submit_to_wait(End::Read))?;
    if submitted {
        current::flush();
    }
    witnessed
}

/// The call is over that waits for a group.
fn waited(witnessed: Option<Witnessed>) {
    if let Some(witnessed) = witnessed {
        // Even if all was switched off meanwhile, a daemon may wait for that.
        guard::attempted(|| witnessed.waited());
    }
}

macro_rules! creating {
    ($( $name:ident )*) => {
        $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name(display: Ptr, kind: u32, attributes: Ptr) -> Ptr {
                let witnessed = before_fence(display);
                // SAFETY: the program's own call.
                let fence = unsafe { real::$name(display, kind, attributes) };
                waited(witnessed);
                fence
            }
        )*
    };
}

creating! { eglCreateSync eglCreateSyncKHR eglCreateSync64KHR }

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glFinish() {
    let witnessed = current::with(|state| state.submit_to_wait(End::Finish).1).flatten();
    // SAFETY: the program's own call.
    unsafe { real::glFinish() };
    waited(witnessed);
}

/// What waits for everything that a context was asked to do; fences of EGL are made so by some drivers.
pub(super) mod waits {
    use super::*;
    crate::hooks::offered!(glFinish eglCreateSync eglCreateSyncKHR eglCreateSync64KHR);
}

fn result(what: u32) -> Option<End> {
    (what == gl::QUERY_RESULT).then_some(End::Read)
}

submitting! {
    glFlush() => Some(End::Flush);
    glReadPixels(x: i32, y: i32, width: i32, height: i32, format: u32, kind: u32, pixels: Ptr) => Some(End::Read);
    glReadnPixels(x: i32, y: i32, width: i32, height: i32, format: u32, kind: u32, size: i32, data: Ptr) =>
        Some(End::Read);
    glReadnPixelsEXT(x: i32, y: i32, width: i32, height: i32, format: u32, kind: u32, size: i32, data: Ptr) =>
        Some(End::Read);
    glReadnPixelsKHR(x: i32, y: i32, width: i32, height: i32, format: u32, kind: u32, size: i32, data: Ptr) =>
        Some(End::Read);
    glClientWaitSync(sync: Ptr, flags: u32, timeout: u64) -> u32 => Some(End::Read);
    glGetQueryObjectuiv(id: u32, what: u32, value: Ptr) => result(what);
    glGetQueryObjectuivEXT(id: u32, what: u32, value: Ptr) => result(what);
    glGetQueryObjectivEXT(id: u32, what: u32, value: Ptr) => result(what);
    glGetQueryObjecti64vEXT(id: u32, what: u32, value: Ptr) => result(what);
    glGetQueryObjectui64vEXT(id: u32, what: u32, value: Ptr) => result(what);
    eglWaitClient() -> u32 => Some(End::Finish);
    eglWaitGL() -> u32 => Some(End::Finish);
    eglClientWaitSync(display: Ptr, sync: Ptr, flags: i32, timeout: u64) -> i32 => Some(End::Read);
    eglClientWaitSyncKHR(display: Ptr, sync: Ptr, flags: i32, timeout: u64) -> i32 => Some(End::Read);
}
