//! A thread that waits for the GPU sees its groups end, and no thread of ours waits beside it.
//!
//! The GPU here is through with its work a while after the program has begun to wait for it, or when
//! the test says so. Display 1 makes fences of EGL at once; on display 2, as on NVIDIA's, that waits for
//! everything; those of display 3, as of Mesa's, are kept for a while.

use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use takt_gl::entry::{self, Ptr};
use takt_gl::{egl, gl, guard, measure, settings};

mod answers;
mod hooked;
use answers::{es, nothing, one, success};
use hooked::{call, column, numbers};

const PATIENCE: Duration = Duration::from_secs(20);
const DRAW: Duration = Duration::from_millis(5);
const FRAMES: usize = 5;
const PLAIN: usize = 1;
const NVIDIA: usize = 2;
const MESA: usize = 3;
/// Groups that may wait to be measured, and more than that.
const WAITING_MAX: usize = 4_096;
const TOO_MANY: usize = WAITING_MAX + 100;

static BUSY: AtomicBool = AtomicBool::new(false);
/// How often another thread than the program's waited for the GPU.
static WAITS_BESIDE: AtomicUsize = AtomicUsize::new(0);
/// Contexts of ours that were made current in the program's thread.
static INTRUSIONS: AtomicUsize = AtomicUsize::new(0);
/// Calls that should wait do not.
static IMPATIENT: AtomicBool = AtomicBool::new(false);
/// The program is inside of a call that waits.
static INSIDE: AtomicBool = AtomicBool::new(false);
/// Fences of EGL that were made, before the display was terminated as well, and those of the latter
/// that were destroyed afterwards.
static FENCES: AtomicUsize = AtomicUsize::new(0);
static TERMINATED: AtomicUsize = AtomicUsize::new(0);
static STALE: AtomicUsize = AtomicUsize::new(0);
static PROGRAM: LazyLock<ThreadId> = LazyLock::new(|| thread::current().id());

fn is_program() -> bool {
    thread::current().id() == *PROGRAM
}

/// Waits for the GPU; whether it was through in time.
fn through(within: Duration) -> bool {
    let began = Instant::now();
    if BUSY.load(Ordering::Relaxed) && !within.is_zero() && !is_program() {
        WAITS_BESIDE.fetch_add(1, Ordering::Relaxed);
    }
    while BUSY.load(Ordering::Relaxed) {
        if began.elapsed() >= within {
            return false;
        }
        thread::yield_now();
    }
    true
}

fn program_waits() {
    if !IMPATIENT.load(Ordering::Relaxed) {
        INSIDE.store(true, Ordering::SeqCst);
        // The GPU of this test is busy for so long.
        let began = Instant::now();
        while began.elapsed() < DRAW {
            thread::yield_now();
        }
        BUSY.store(false, Ordering::Relaxed);
        INSIDE.store(false, Ordering::SeqCst);
    }
}

unsafe extern "C" fn draw(_mode: u32, _first: i32, _count: i32) {
    if is_program() {
        BUSY.store(true, Ordering::Relaxed);
    }
}

unsafe extern "C" fn finish() {
    program_waits();
}

unsafe extern "C" fn egl_fence(display: Ptr, _kind: u32, _list: Ptr) -> Ptr {
    if display as usize == NVIDIA {
        program_waits();
    }
    handle(1 + FENCES.fetch_add(1, Ordering::Relaxed))
}

unsafe extern "C" fn egl_destroy(_display: Ptr, fence: Ptr) -> u32 {
    if fence as usize <= TERMINATED.load(Ordering::Relaxed) {
        STALE.fetch_add(1, Ordering::Relaxed);
    }
    1
}

unsafe extern "C" fn terminate(_display: Ptr) -> u32 {
    TERMINATED.store(FENCES.load(Ordering::Relaxed), Ordering::Relaxed);
    1
}

unsafe extern "C" fn egl_wait(_display: Ptr, fence: Ptr, _flags: i32, ns: u64) -> i32 {
    if fence as usize <= TERMINATED.load(Ordering::Relaxed) {
        return 0;
    }
    if through(Duration::from_nanos(ns)) { egl::CONDITION_SATISFIED } else { egl::TIMEOUT_EXPIRED }
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

unsafe extern "C" fn new_context() -> usize {
    static LAST: AtomicUsize = AtomicUsize::new(100);
    LAST.fetch_add(1, Ordering::Relaxed)
}

unsafe extern "C" fn text(_what: u32) -> *const c_char {
    c"OpenGL ES 3.2 of this test".as_ptr()
}

unsafe extern "C" fn egl_text(display: Ptr, what: i32) -> *const c_char {
    let text = match what {
        egl::VENDOR if display as usize == NVIDIA => c"NVIDIA",
        egl::VENDOR if display as usize == MESA => c"Mesa Project",
        egl::EXTENSIONS => c"EGL_KHR_fence_sync EGL_KHR_surfaceless_context",
        _ => c"this test",
    };
    text.as_ptr()
}

unsafe extern "C" fn find(name: *const c_char) -> Ptr {
    // SAFETY: callers hand over a string.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"eglSwapBuffers" | b"eglCreatePbufferSurface" => one as Ptr,
        b"eglDestroySyncKHR" => egl_destroy as Ptr,
        b"eglTerminate" => terminate as Ptr,
        b"eglCreateContext" => new_context as Ptr,
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

/// Makes a context of its own current in this thread.
fn enter(display: usize) {
    let display = handle(display);
    let surface = call!(eglCreatePbufferSurface(display, handle(1), null_mut()));
    let context = call!(eglCreateContext(display, handle(1), null_mut(), null_mut()));
    call!(eglMakeCurrent(display, surface, surface, context));
}

/// Waits until something is so.
fn await_that(is: impl Fn() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < PATIENCE, "it never was so");
        thread::yield_now();
    }
}

/// Groups that were measured meanwhile.
struct Measured {
    ends: Vec<String>,
    took_us: Vec<f64>,
    /// How often we waited beside the program.
    waits: usize,
}

/// Draws on a display, and looks what came of it.
fn measured(display: usize, draw: impl FnOnce()) -> Measured {
    enter(display);
    // The first group starts the thread that would wait.
    call!(glDrawArrays(gl::TRIANGLES, 0, 3));
    call!(glFlush());
    BUSY.store(false, Ordering::Relaxed);
    measure::drain(None);
    let (rows, waits) = (column(&table(), "end").len(), WAITS_BESIDE.load(Ordering::Relaxed));
    draw();
    measure::drain(None);
    Measured {
        ends: column(&table(), "end").split_off(rows),
        took_us: numbers(&table(), "measured_us").split_off(rows),
        waits: WAITS_BESIDE.load(Ordering::Relaxed) - waits,
    }
}

fn frame(wait: &dyn Fn()) {
    call!(glDrawArrays(gl::TRIANGLES, 0, 3));
    wait();
}

fn finish_frame() {
    call!(glFinish());
}

fn fence() {
    assert!(!call!(eglCreateSyncKHR(handle(NVIDIA), egl::SYNC_FENCE.cast_unsigned(), null_mut())).is_null());
}

fn the_program_sees_the_end() {
    let ways: [(usize, &dyn Fn(), &str); 3] =
        [(PLAIN, &finish_frame, "finish"), (NVIDIA, &finish_frame, "finish"), (NVIDIA, &fence, "read")];
    for (display, wait, end) in ways {
        let found = measured(display, || (0..FRAMES).for_each(|_| frame(wait)));
        assert_eq!(found.ends, vec![end; FRAMES], "display {display}");
        let least_us = DRAW.as_micros() as f64;
        assert!(found.took_us.iter().all(|took| *took >= least_us), "display {display}: {:?}", found.took_us);
        assert_eq!(found.waits, 0, "no thread looks beside the program on display {display}");
    }
}

fn a_call_that_returns_too_early_is_not_believed() {
    IMPATIENT.store(true, Ordering::Relaxed);
    let ways: [(usize, &dyn Fn()); 3] = [(PLAIN, &finish_frame), (NVIDIA, &finish_frame), (NVIDIA, &fence)];
    for (display, wait) in ways {
        let found = measured(display, || {
            for _ in 0..FRAMES {
                let waits = WAITS_BESIDE.load(Ordering::Relaxed);
                frame(wait);
                // Our thread waits in the program's place.
                await_that(|| WAITS_BESIDE.load(Ordering::Relaxed) > waits);
                BUSY.store(false, Ordering::Relaxed);
                measure::drain(None);
            }
        });
        assert_eq!((found.ends.len(), found.waits >= FRAMES), (FRAMES, true), "display {display}");
    }
    IMPATIENT.store(false, Ordering::Relaxed);
}

/// Another thread's groups come while the program waits: they are behind its own, which keeps its time.
fn ends_come_in_order() {
    let found = measured(PLAIN, || {
        thread::scope(|scope| {
            scope.spawn(|| {
                enter(PLAIN);
                await_that(|| INSIDE.load(Ordering::SeqCst));
                for _ in 0..3 {
                    call!(glDrawArrays(gl::TRIANGLES, 0, 3));
                    call!(glFlush());
                }
            });
            frame(&finish_frame);
        });
    });
    assert_eq!(found.ends, ["finish", "flush", "flush", "flush"]);
    assert!(found.took_us[0] >= DRAW.as_micros() as f64, "{:?}", found.took_us);
}

/// Where too much waits to be measured, what is too much is taken away in the program's own context.
fn a_full_queue_leaves_the_program_its_context() {
    IMPATIENT.store(true, Ordering::Relaxed);
    for display in [PLAIN, NVIDIA] {
        let found = measured(display, || {
            let rows = || column(&table(), "end").len();
            let before = rows();
            for _ in 0..TOO_MANY {
                frame(&finish_frame);
            }
            BUSY.store(false, Ordering::Relaxed);
            // A full queue has no room for the question whether it is empty either.
            await_that(|| {
                measure::drain(None);
                rows() >= before + WAITING_MAX
            });
        });
        assert!(found.ends.len() < TOO_MANY, "display {display}: not all were measured");
    }
    IMPATIENT.store(false, Ordering::Relaxed);
}

/// A display is terminated while the program waits for a group of it: its fences are gone then.
fn what_is_kept_is_over_before_its_display_is() {
    let found = measured(MESA, || {
        thread::scope(|scope| {
            scope.spawn(|| {
                await_that(|| INSIDE.load(Ordering::SeqCst));
                call!(eglTerminate(handle(MESA)));
            });
            frame(&finish_frame);
        });
        enter(MESA);
        (0..20).for_each(|_| frame(&finish_frame));
    });
    assert_eq!((found.ends.len(), STALE.load(Ordering::Relaxed)), (21, 0));
}

/// A mistake elsewhere switches everything off while the program waits: the group is told all the
/// same.
fn what_is_kept_is_told_even_if_all_is_switched_off() {
    enter(PLAIN);
    let rows = column(&table(), "end").len();
    thread::scope(|scope| {
        scope.spawn(|| {
            await_that(|| INSIDE.load(Ordering::SeqCst));
            guard::switch_off("this test says so");
        });
        frame(&finish_frame);
    });
    // Asking whether all is measured would get it measured in any case.
    await_that(|| column(&table(), "end").len() > rows);
    assert_eq!(column(&table(), "end").split_off(rows), ["finish"]);
}

/// One test, because settings and the table are the process's.
#[test]
fn a_waiting_program_tells() {
    let _none = std::fs::remove_file(table());
    // SAFETY: no other thread of this process reads or writes variables yet.
    unsafe { std::env::set_var(settings::MEASURE, table()) };
    entry::set_finder(find);
    assert!(is_program());
    the_program_sees_the_end();
    a_call_that_returns_too_early_is_not_believed();
    ends_come_in_order();
    a_full_queue_leaves_the_program_its_context();
    what_is_kept_is_over_before_its_display_is();
    what_is_kept_is_told_even_if_all_is_switched_off();
    assert_eq!(INTRUSIONS.load(Ordering::Relaxed), 0, "the program's own context stays current");
}
