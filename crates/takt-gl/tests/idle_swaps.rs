//! Swaps that show nothing give the GPU nothing to do, and no fence goes behind them.
//!
//! The driver here counts fences, which are passed at once unless they are held.

use std::ffi::{CStr, c_char};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use takt_gl::entry::{self, Ptr};
use takt_gl::{egl, gl, measure, settings};

mod answers;
mod hooked;
use answers::{es, nothing, one, success};
use hooked::{call, column, numbers};

static FENCES: AtomicUsize = AtomicUsize::new(0);
static HELD: AtomicBool = AtomicBool::new(false);
/// The measuring thread waits for a fence that is held.
static AWAITED: AtomicBool = AtomicBool::new(false);

const WINDOW: usize = 11;
const PBUFFER: usize = 12;
const FRAMES: usize = 5;

unsafe extern "C" fn window() -> usize {
    WINDOW
}

unsafe extern "C" fn pbuffer() -> usize {
    PBUFFER
}

unsafe extern "C" fn text(_what: u32) -> *const c_char {
    c"OpenGL ES 3.2 of this test".as_ptr()
}

unsafe extern "C" fn egl_text(_display: Ptr, _what: i32) -> *const c_char {
    c"EGL_KHR_fence_sync".as_ptr()
}

unsafe extern "C" fn new_fence(_display: Ptr, _kind: u32, _list: Ptr) -> Ptr {
    std::ptr::without_provenance_mut(1 + FENCES.fetch_add(1, Ordering::Relaxed))
}

unsafe extern "C" fn wait(_display: Ptr, _fence: Ptr, _flags: i32, ns: u64) -> i32 {
    let end = Instant::now() + Duration::from_nanos(ns);
    while HELD.load(Ordering::Relaxed) {
        if Instant::now() >= end {
            return egl::TIMEOUT_EXPIRED;
        }
        AWAITED.store(true, Ordering::Relaxed);
        thread::yield_now();
    }
    egl::CONDITION_SATISFIED
}

unsafe extern "C" fn find(name: *const c_char) -> Ptr {
    // SAFETY: callers hand over a string.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"eglMakeCurrent" | b"eglSwapBuffers" | b"eglCopyBuffers" | b"eglCreateContext"
        | b"eglDestroySyncKHR" => one as Ptr,
        b"eglCreateWindowSurface" => window as Ptr,
        b"eglCreatePbufferSurface" => pbuffer as Ptr,
        b"eglGetError" => success as Ptr,
        b"eglQueryAPI" => es as Ptr,
        b"eglQueryString" => egl_text as Ptr,
        b"eglCreateSyncKHR" => new_fence as Ptr,
        b"eglClientWaitSyncKHR" => wait as Ptr,
        b"glGetString" => text as Ptr,
        _ => nothing as Ptr,
    }
}

fn handle(number: usize) -> Ptr {
    std::ptr::without_provenance_mut(number)
}

/// Fences behind some frames that are drawn to a surface, and how their groups ended.
fn frames(surface: Ptr, show: impl Fn()) -> (usize, Vec<String>) {
    call!(eglMakeCurrent(handle(1), surface, surface, handle(1)));
    let (fences, before) = (FENCES.load(Ordering::Relaxed), ends().len());
    for _ in 0..FRAMES {
        call!(glDrawArrays(gl::TRIANGLES, 0, 3));
        show();
    }
    measure::drain(None);
    (FENCES.load(Ordering::Relaxed) - fences, ends().split_off(before))
}

/// Why groups ended, as the table has it.
fn ends() -> Vec<String> {
    column(&table(), "end")
}

fn table() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("idle-swaps.csv")
}

/// One test, because settings and fences are the process's.
#[test]
fn no_fence_goes_behind_a_swap_without_effect() {
    let _none = std::fs::remove_file(table());
    // SAFETY: no other thread of this process reads or writes variables yet.
    unsafe { std::env::set_var(settings::MEASURE, table()) };
    entry::set_finder(find);
    call!(eglCreateContext(handle(1), handle(1), null_mut(), null_mut()));
    let window = call!(eglCreateWindowSurface(handle(1), handle(1), handle(1), null_mut()));
    let pbuffer = call!(eglCreatePbufferSurface(handle(1), handle(1), null_mut()));
    let swap = |surface| move || assert_eq!(call!(eglSwapBuffers(handle(1), surface)), 1);
    let copy = || assert_eq!(call!(eglCopyBuffers(handle(1), pbuffer, handle(2))), 1);
    let each_frame = ["before-swap", "swap"].repeat(FRAMES);

    let (fences, ends) = frames(window, swap(window));
    assert_eq!(
        (fences, ends),
        (2 * FRAMES, each_frame.iter().map(ToString::to_string).collect()),
        "a window"
    );
    let (fences, ends) = frames(pbuffer, swap(pbuffer));
    assert_eq!((fences, ends), (FRAMES, each_frame.iter().map(ToString::to_string).collect()), "a pbuffer");
    let (fences, ends) = frames(pbuffer, copy);
    assert_eq!((fences, ends.len()), (2 * FRAMES, 2 * FRAMES), "what is copied is work");

    // It is over when what is before it is, and not before, and has taken no time of its own.
    call!(eglMakeCurrent(handle(1), pbuffer, pbuffer, handle(1)));
    HELD.store(true, Ordering::Relaxed);
    call!(glDrawArrays(gl::TRIANGLES, 0, 3));
    swap(pbuffer)();
    let began = Instant::now();
    while !AWAITED.load(Ordering::Relaxed) {
        thread::yield_now();
    }
    let held = began.elapsed().as_micros() as f64;
    HELD.store(false, Ordering::Relaxed);
    measure::drain(None);
    let (took, completed) = (numbers(&table(), "measured_us"), numbers(&table(), "completed_us"));
    let [.., draw, swap] = took[..] else { panic!("{took:?}") };
    assert!(draw >= held && swap == 0.0, "{draw} {swap}");
    let [.., draw, swap] = completed[..] else { panic!("{completed:?}") };
    assert!(swap >= draw, "{draw} {swap}");
}
