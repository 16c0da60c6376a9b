//! Frames of a program that never swaps and hands them over by fences that others wait for, or as images.
//!
//! llvmpipe exports no fences, so the driver here does. No daemon answers: the program runs on
//! unscheduled, and its frames are counted all the same.

use std::ffi::{CStr, c_char};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use takt_gl::entry::{self, Ptr};
use takt_gl::{egl, gl, measure, settings};

mod answers;
mod hooked;
use answers::{es, nothing, one, success};
use hooked::{call, numbers};

/// The driver has no fence to hand over.
static REFUSES: AtomicBool = AtomicBool::new(false);

/// Frames before it is clear that the program does not sleep.
const UNKNOWN: f64 = 10.0;
const FRAMES: u32 = 50;

unsafe extern "C" fn text(_what: u32) -> *const c_char {
    c"OpenGL ES 3.2 of this test".as_ptr()
}

unsafe extern "C" fn egl_text(_display: Ptr, _what: i32) -> *const c_char {
    c"EGL_KHR_fence_sync EGL_ANDROID_native_fence_sync EGL_KHR_image_base".as_ptr()
}

unsafe extern "C" fn wait(_display: Ptr, _fence: Ptr, _flags: i32, _ns: u64) -> i32 {
    egl::CONDITION_SATISFIED
}

unsafe extern "C" fn native_fence(_display: Ptr, _fence: Ptr) -> i32 {
    if REFUSES.load(Ordering::Relaxed) { egl::NO_NATIVE_FENCE_FD_ANDROID } else { 5 }
}

unsafe extern "C" fn find(name: *const c_char) -> Ptr {
    // SAFETY: callers hand over a string.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"eglMakeCurrent" | b"eglCreateContext" | b"eglCreateSyncKHR" | b"eglDestroySyncKHR"
        | b"eglCreateImageKHR" => one as Ptr,
        b"eglGetError" => success as Ptr,
        b"eglQueryAPI" => es as Ptr,
        b"eglQueryString" => egl_text as Ptr,
        b"eglClientWaitSyncKHR" => wait as Ptr,
        b"eglDupNativeFenceFDANDROID" => native_fence as Ptr,
        b"glGetString" => text as Ptr,
        _ => nothing as Ptr,
    }
}

fn handle(number: usize) -> Ptr {
    std::ptr::without_provenance_mut(number)
}

fn table() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("exports.csv")
}

/// How many frames more a context is seen to have whose program ends each so.
fn frames(end: impl Fn()) -> f64 {
    call!(eglMakeCurrent(handle(1), null_mut(), null_mut(), handle(1)));
    let seen = || numbers(&table(), "frame").last().copied().unwrap_or(0.0);
    let before = seen();
    for _ in 0..FRAMES {
        call!(glDrawArrays(gl::TRIANGLES, 0, 3));
        end();
    }
    call!(glDrawArrays(gl::TRIANGLES, 0, 3));
    call!(eglMakeCurrent(handle(1), null_mut(), null_mut(), null_mut()));
    measure::drain(None);
    seen() - before
}

/// One test, because settings and the rhythm are the process's.
#[test]
fn exported_fences_and_images_end_frames() {
    let _none = std::fs::remove_file(table());
    let nowhere = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("exports.nowhere");
    // SAFETY: no other thread of this process reads or writes variables yet.
    unsafe { std::env::set_var(settings::MEASURE, table()) };
    // SAFETY: as above.
    unsafe { std::env::set_var(settings::SOCKET, nowhere) };
    entry::set_finder(find);
    call!(eglCreateContext(handle(1), handle(1), null_mut(), null_mut()));
    let image = |target: i32| {
        move || {
            let target = target.cast_unsigned();
            assert!(!call!(eglCreateImageKHR(handle(1), handle(1), target, handle(1), null_mut())).is_null());
        }
    };
    let export = || {
        let refuses = REFUSES.load(Ordering::Relaxed);
        assert_eq!(call!(eglDupNativeFenceFDANDROID(handle(1), handle(1))) < 0, refuses);
    };
    let each = f64::from(FRAMES) - UNKNOWN..=f64::from(FRAMES);

    assert_eq!(frames(image(egl::LINUX_DMA_BUF_EXT)), 0.0, "images that come from others");
    REFUSES.store(true, Ordering::Relaxed);
    assert_eq!(frames(export), 0.0, "no fence was handed over");
    let seen = frames(image(egl::GL_TEXTURE_2D));
    assert!(each.contains(&seen), "{seen} frames by images");
    REFUSES.store(false, Ordering::Relaxed);
    let seen = frames(export);
    assert!(each.contains(&seen), "{seen} frames by fences");
}
