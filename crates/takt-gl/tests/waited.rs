//! Whoever waits for the GPU sees its groups end, and no thread of ours waits beside it.
//!
//! The GPU here is busy for a while with each draw. Display 1 makes fences of EGL at once; on display
//! 2, as on NVIDIA's, that waits for everything.

use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use takt_gl::entry::{self, Ptr};
use takt_gl::{gl, measure, settings};

mod answers;
mod hooked;
use answers::{es, nothing, one, success};
use hooked::{call, column, numbers};

const DRAW: Duration = Duration::from_millis(5);
const FRAMES: usize = 5;
const PLAIN: usize = 1;
const NVIDIA: usize = 2;

/// When the GPU is through with what it has.
static BUSY_UNTIL: Mutex<Option<Instant>> = Mutex::new(None);
/// How often somebody else than the program waited for it.
static WAITS_BESIDE: AtomicUsize = AtomicUsize::new(0);
/// Contexts of ours that were made current in the program's thread.
static INTRUSIONS: AtomicUsize = AtomicUsize::new(0);
/// Calls that should wait do not.
static IMPATIENT: AtomicBool = AtomicBool::new(false);
static PROGRAM: LazyLock<ThreadId> = LazyLock::new(|| thread::current().id());

fn is_program() -> bool {
    thread::current().id() == *PROGRAM
}

/// Waits for the GPU; whether it was through in time.
fn through(within: Duration) -> bool {
    let until = BUSY_UNTIL.lock().expect("no panics").unwrap_or_else(Instant::now);
    let left = until.saturating_duration_since(Instant::now());
    if !left.is_zero() && !within.is_zero() && !is_program() {
        WAITS_BESIDE.fetch_add(1, Ordering::Relaxed);
    }
    thread::sleep(left.min(within));
    left <= within
}

fn program_waits() {
    if !IMPATIENT.load(Ordering::Relaxed) {
        through(Duration::MAX);
    }
}

unsafe extern "C" fn draw(_mode: u32, _first: i32, _count: i32) {
    *BUSY_UNTIL.lock().expect("no panics") = Some(Instant::now() + DRAW);
}

unsafe extern "C" fn finish() {
    program_waits();
}

unsafe extern "C" fn egl_fence(display: Ptr, _kind: u32, _list: Ptr) -> Ptr {
    if display as usize == NVIDIA {
        program_waits();
    }
    handle(5)
}

unsafe extern "C" fn egl_wait(_display: Ptr, _fence: Ptr, _flags: i32, ns: u64) -> i32 {
    if through(Duration::from_nanos(ns)) { gl::EGL_CONDITION_SATISFIED } else { gl::EGL_TIMEOUT_EXPIRED }
}

unsafe extern "C" fn gl_fence() -> Ptr {
    handle(6)
}

unsafe extern "C" fn gl_wait(_fence: Ptr, _flags: u32, ns: u64) -> u32 {
    if through(Duration::from_nanos(ns)) { gl::CONDITION_SATISFIED } else { gl::TIMEOUT_EXPIRED }
}

unsafe extern "C" fn make_current(_display: Ptr, surface: Ptr, _read: Ptr, _context: Ptr) -> u32 {
    if is_program() && surface.is_null() {
        INTRUSIONS.fetch_add(1, Ordering::Relaxed);
    }
    1
}

unsafe extern "C" fn text(_what: u32) -> *const c_char {
    c"OpenGL ES 3.2 of this test".as_ptr()
}

unsafe extern "C" fn egl_text(display: Ptr, what: i32) -> *const c_char {
    let text = match what {
        gl::EGL_VENDOR if display as usize == NVIDIA => c"NVIDIA",
        gl::EGL_EXTENSIONS => c"EGL_KHR_fence_sync EGL_KHR_surfaceless_context",
        _ => c"this test",
    };
    text.as_ptr()
}

unsafe extern "C" fn find(name: *const c_char) -> Ptr {
    // SAFETY: callers hand over a string.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"eglSwapBuffers" | b"eglCreateContext" | b"eglCreatePbufferSurface" | b"eglDestroySyncKHR" => {
            one as Ptr
        }
        b"eglMakeCurrent" => make_current as Ptr,
        b"eglGetError" => success as Ptr,
        b"eglQueryAPI" => es as Ptr,
        b"eglQueryString" => egl_text as Ptr,
        b"eglCreateSyncKHR" => egl_fence as Ptr,
        b"eglClientWaitSyncKHR" => egl_wait as Ptr,
        b"glFenceSync" => gl_fence as Ptr,
        b"glClientWaitSync" => gl_wait as Ptr,
        b"glGetString" => text as Ptr,
        b"glDrawArrays" => draw as Ptr,
        b"glFinish" => finish as Ptr,
        _ => nothing as Ptr,
    }
}

fn handle(number: usize) -> Ptr {
    std::ptr::without_provenance_mut(number)
}

fn table() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("waited.csv")
}

/// Draws some frames, which the program waits for in that way: how their groups ended, how long these
/// took, and how often we waited beside it.
fn frames(display: usize, wait: impl Fn()) -> (Vec<String>, Vec<f64>, usize) {
    let display = handle(display);
    let surface = call!(eglCreatePbufferSurface(display, handle(1), null_mut()));
    call!(eglCreateContext(display, handle(1), null_mut(), null_mut()));
    call!(eglMakeCurrent(display, surface, surface, handle(1)));
    // The first group starts the thread that would wait.
    call!(glDrawArrays(gl::TRIANGLES, 0, 3));
    call!(glFlush());
    measure::drain(None);
    let (rows, waits) = (column(&table(), "end").len(), WAITS_BESIDE.load(Ordering::Relaxed));
    for _ in 0..FRAMES {
        call!(glDrawArrays(gl::TRIANGLES, 0, 3));
        wait();
    }
    measure::drain(None);
    let waits = WAITS_BESIDE.load(Ordering::Relaxed) - waits;
    (column(&table(), "end").split_off(rows), numbers(&table(), "measured_us").split_off(rows), waits)
}

/// One test, because settings and the table are the process's.
#[test]
fn the_program_sees_the_end_of_what_it_waits_for() {
    let _none = std::fs::remove_file(table());
    // SAFETY: nobody else in this process reads or writes variables yet.
    unsafe { std::env::set_var(settings::MEASURE, table()) };
    entry::set_finder(find);
    assert!(is_program());
    let fence =
        || assert!(!call!(eglCreateSyncKHR(handle(NVIDIA), gl::EGL_SYNC_FENCE, null_mut())).is_null());
    let least = DRAW.as_micros() as f64;

    for display in [PLAIN, NVIDIA] {
        let (ends, took, waits) = frames(display, || call!(glFinish()));
        assert_eq!(ends, vec!["finish"; FRAMES], "display {display}");
        assert!(took.iter().all(|took| *took >= least), "display {display}: {took:?}");
        assert_eq!(waits, 0, "nobody looks beside the program on display {display}");
    }
    let (ends, took, waits) = frames(NVIDIA, fence);
    assert_eq!((ends, waits), (vec!["read".to_owned(); FRAMES], 0), "fences that wait when they are made");
    assert!(took.iter().all(|took| *took >= least), "{took:?}");

    // Whoever comes back too early is not believed.
    IMPATIENT.store(true, Ordering::Relaxed);
    for (display, wait) in [(PLAIN, &(|| call!(glFinish())) as &dyn Fn()), (NVIDIA, &fence)] {
        let (ends, took, waits) = frames(display, || {
            wait();
            measure::drain(None);
        });
        assert_eq!(ends.len(), FRAMES, "display {display}");
        assert!(took.iter().all(|took| *took >= least), "display {display}: {took:?}");
        assert!(waits >= FRAMES, "display {display}: {waits}");
    }
    assert_eq!(INTRUSIONS.load(Ordering::Relaxed), 0, "the program's own context stays current");
}
