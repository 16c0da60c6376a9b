//! Submission points inside of GL.
//!
//! A fence goes behind the group, then the program's own call makes the driver start.

use takt_client::frame_finder::Boundary;

use crate::client::current;
use crate::client::group::End;
use crate::entry::{Ptr, real};
use crate::measure::{self, Witnessed};
use crate::shadow::texture::pixel_bytes;
use crate::{clock, egl, gl, guard};

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

/// Makes the program's own call at a point where a frame may end that no swap shows. A program that is
/// paced waits there for its next one, as in a swap.
fn at_boundary<T>(boundary: Boundary, call: impl FnOnce() -> T) -> T {
    let ended = current::with(|state| state.reaches(boundary)).flatten();
    let result = call();
    let held = ended.map(|end| guard::shielded(|| end.hold_back()).unwrap_or(false));
    current::with(|state| state.reached(held));
    result
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glFinish() {
    let witnessed = current::with(|state| state.submit_to_wait(End::Finish).1).flatten();
    at_boundary(Boundary::Finish, || {
        // SAFETY: the program's own call.
        unsafe { real::glFinish() };
        waited(witnessed);
    });
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glFlush() {
    ended(End::Flush);
    // SAFETY: the program's own call.
    at_boundary(Boundary::Flush, || unsafe { real::glFlush() });
}

/// Waits for a fence. Without a time-out the program only asks whether it has passed.
fn waiting<T>(timeout: u64, call: impl FnOnce() -> T) -> T {
    ended(End::Read);
    if timeout == 0 { call() } else { at_boundary(Boundary::Wait, call) }
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glClientWaitSync(sync: Ptr, flags: u32, timeout: u64) -> u32 {
    // SAFETY: the program's own call.
    waiting(timeout, || unsafe { real::glClientWaitSync(sync, flags, timeout) })
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglClientWaitSync(display: Ptr, sync: Ptr, flags: i32, timeout: u64) -> i32 {
    // SAFETY: the program's own call.
    waiting(timeout, || unsafe { real::eglClientWaitSync(display, sync, flags, timeout) })
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglClientWaitSyncKHR(display: Ptr, sync: Ptr, flags: i32, timeout: u64) -> i32 {
    // SAFETY: the program's own call.
    waiting(timeout, || unsafe { real::eglClientWaitSyncKHR(display, sync, flags, timeout) })
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glClientWaitSyncAPPLE(sync: Ptr, flags: u32, timeout: u64) -> u32 {
    // SAFETY: the program's own call.
    waiting(timeout, || unsafe { real::glClientWaitSyncAPPLE(sync, flags, timeout) })
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglClientWaitSyncNV(sync: Ptr, flags: i32, timeout: u64) -> i32 {
    // SAFETY: the program's own call.
    waiting(timeout, || unsafe { real::eglClientWaitSyncNV(sync, flags, timeout) })
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glFinishFenceNV(fence: u32) {
    // SAFETY: the program's own call.
    waiting(u64::MAX, || unsafe { real::glFinishFenceNV(fence) });
}

/// What was drawn goes to others by a call that has been made, if it `did` so.
fn handed_on(boundary: Boundary, did: bool) {
    if did {
        at_boundary(boundary, || ());
    }
}

/// Whether an image is made of something that this context drew, and not of what others hand over.
fn is_of_gl(target: u32) -> bool {
    let target = target.cast_signed();
    let textures = egl::GL_TEXTURE_2D..=egl::GL_TEXTURE_CUBE_MAP_NEGATIVE_Z;
    textures.contains(&target) || target == egl::GL_RENDERBUFFER
}

macro_rules! imaging {
    ($( $name:ident )*) => {
        $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name(display: Ptr, context: Ptr, target: u32, buffer: Ptr, attributes: Ptr) -> Ptr {
                if is_of_gl(target) {
                    flushed(End::Flush);
                }
                // SAFETY: the program's own call.
                let image = unsafe { real::$name(display, context, target, buffer, attributes) };
                handed_on(Boundary::Image, is_of_gl(target) && !image.is_null());
                image
            }
        )*
    };
}

imaging! { eglCreateImage eglCreateImageKHR }

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglExportDMABUFImageMESA(
    display: Ptr,
    image: Ptr,
    fds: Ptr,
    strides: Ptr,
    offsets: Ptr,
) -> u32 {
    flushed(End::Flush);
    // SAFETY: the program's own call.
    let done = unsafe { real::eglExportDMABUFImageMESA(display, image, fds, strides, offsets) };
    handed_on(Boundary::Image, done != 0);
    done
}

/// The program has flushed already: its fence is with the GPU.
#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglDupNativeFenceFDANDROID(display: Ptr, sync: Ptr) -> i32 {
    // SAFETY: the program's own call.
    let fd = unsafe { real::eglDupNativeFenceFDANDROID(display, sync) };
    handed_on(Boundary::Export, fd != egl::NO_NATIVE_FENCE_FD_ANDROID);
    fd
}

/// Where frames may end that no swap shows.
pub(super) mod boundaries {
    use super::*;
    crate::hooks::offered!(
        glFlush glClientWaitSync glClientWaitSyncAPPLE glFinishFenceNV
        eglClientWaitSync eglClientWaitSyncKHR eglClientWaitSyncNV
        eglCreateImage eglCreateImageKHR eglExportDMABUFImageMESA eglDupNativeFenceFDANDROID
    );
}

/// What waits for everything that a context was asked to do; fences of EGL are made so by some drivers.
pub(super) mod waits {
    use super::*;
    crate::hooks::offered!(glFinish eglCreateSync eglCreateSyncKHR eglCreateSync64KHR);
}

/// Reads pixels: a group of its own where there are many, or where few were read very often.
fn reading(name: &'static str, [width, height]: [i32; 2], [format, kind]: [u32; 2], call: impl FnOnce()) {
    let began_ns = current::with(|state| {
        state.submit(End::Read);
        state.builder.call(name);
        let side = |side: i32| u64::try_from(side).unwrap_or(0);
        let pixels = side(width).saturating_mul(side(height));
        let bytes = pixels.saturating_mul(u64::from(pixel_bytes(format, kind)));
        // The end of what the GPU puts into a buffer is not waited for.
        let waits = state.shadow.buffer(gl::PIXEL_PACK_BUFFER).is_none();
        state.about_to_read(bytes).then(clock::now_ns).filter(|_| waits)
    });
    call();
    if let Some(began_ns) = began_ns.flatten() {
        current::with(|state| state.submit_since(End::Read, began_ns));
    }
}

macro_rules! reads {
    ($( $name:ident ( $($more:ident : $ty:ty),* ); )*) => {
        $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name(
                x: i32, y: i32, width: i32, height: i32, format: u32, kind: u32, $($more: $ty),*
            ) {
                reading(stringify!($name), [width, height], [format, kind], || {
                    // SAFETY: the program's own call.
                    unsafe { real::$name(x, y, width, height, format, kind, $($more),*) };
                });
            }
        )*
        crate::hooks::offered!($($name)*);
    };
}

/// What reads pixels.
pub(super) mod reads {
    use super::*;

    reads! {
        glReadPixels(pixels: Ptr);
        glReadnPixels(size: i32, pixels: Ptr);
        glReadnPixelsEXT(size: i32, pixels: Ptr);
        glReadnPixelsKHR(size: i32, pixels: Ptr);
    }
}

fn result(what: u32) -> Option<End> {
    (what == gl::QUERY_RESULT).then_some(End::Read)
}

submitting! {
    glGetQueryObjectuiv(id: u32, what: u32, value: Ptr) => result(what);
    glGetQueryObjectuivEXT(id: u32, what: u32, value: Ptr) => result(what);
    glGetQueryObjectivEXT(id: u32, what: u32, value: Ptr) => result(what);
    glGetQueryObjecti64vEXT(id: u32, what: u32, value: Ptr) => result(what);
    glGetQueryObjectui64vEXT(id: u32, what: u32, value: Ptr) => result(what);
    glSignalSemaphoreEXT(
        semaphore: u32, buffers: u32, buffer_names: Ptr, textures: u32, texture_names: Ptr, layouts: Ptr
    ) => Some(End::Flush);
    glSignalVkFenceNV(fence: u64) => Some(End::Flush);
    glSignalVkSemaphoreNV(semaphore: u64) => Some(End::Flush);
    eglWaitClient() -> u32 => Some(End::Finish);
    eglWaitGL() -> u32 => Some(End::Finish);
}
