//! Time stamps of the GPU: which clock is believed, and that the program notices nothing.
//!
//! The driver here has a GPU that is nothing but a clock: each draw keeps it busy for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, c_char};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use takt_gl::entry::{self, Ptr};
use takt_gl::{egl, gl, measure, settings};

mod answers;
mod hooked;
use answers::{es, nothing, one, success};
use hooked::{call, column, numbers};

/// How long a draw takes; so long that a busy machine hardly matters.
const DRAW: Duration = Duration::from_millis(50);

/// The GPU and what the driver was asked for.
struct Gpu {
    renderer: &'static CStr,
    /// How many times too slow its clock is.
    slow: u32,
    start: Instant,
    busy_until: Duration,
    /// When a query or fence is passed, by name.
    passed_at: BTreeMap<usize, Duration>,
    names: usize,
    made: u32,
    deleted: u32,
    begun: u32,
    disjoint: bool,
    /// Fences that the measuring thread has seen passed.
    seen: BTreeSet<usize>,
}

static GPU: Mutex<Option<Gpu>> = Mutex::new(None);

fn with<T>(look: impl FnOnce(&mut Gpu) -> T) -> T {
    let mut gpu: MutexGuard<'_, Option<Gpu>> = GPU.lock().unwrap_or_else(PoisonError::into_inner);
    look(gpu.get_or_insert_with(|| Gpu {
        renderer: c"",
        slow: 1,
        start: Instant::now(),
        busy_until: Duration::ZERO,
        passed_at: BTreeMap::new(),
        names: 0,
        made: 0,
        deleted: 0,
        begun: 0,
        disjoint: false,
        seen: BTreeSet::new(),
    }))
}

impl Gpu {
    /// When everything so far is done.
    fn end(&self) -> Duration {
        self.busy_until.max(self.start.elapsed())
    }

    fn is_passed(&self, name: usize) -> bool {
        self.passed_at.get(&name).is_some_and(|at| *at <= self.start.elapsed())
    }
}

unsafe extern "C" fn text(what: u32) -> *const c_char {
    with(|gpu| match what {
        gl::EXTENSIONS => c"GL_EXT_disjoint_timer_query".as_ptr(),
        gl::RENDERER => gpu.renderer.as_ptr(),
        _ => c"OpenGL ES 3.2 of this test".as_ptr(),
    })
}

unsafe extern "C" fn egl_text(_display: Ptr, _what: i32) -> *const c_char {
    c"EGL_KHR_fence_sync".as_ptr()
}

unsafe extern "C" fn draw(_mode: u32, _first: i32, _count: i32) {
    with(|gpu| gpu.busy_until = gpu.end() + DRAW);
}

unsafe extern "C" fn new_fence(_display: Ptr, _kind: u32, _list: Ptr) -> Ptr {
    with(|gpu| {
        gpu.names += 1;
        gpu.passed_at.insert(gpu.names, gpu.end());
        std::ptr::without_provenance_mut(gpu.names)
    })
}

unsafe extern "C" fn wait(_display: Ptr, fence: Ptr, _flags: i32, ns: u64) -> i32 {
    let end = Instant::now() + Duration::from_nanos(ns);
    while !with(|gpu| gpu.is_passed(fence as usize)) {
        if Instant::now() >= end {
            return egl::TIMEOUT_EXPIRED;
        }
        thread::yield_now();
    }
    with(|gpu| gpu.seen.insert(fence as usize));
    egl::CONDITION_SATISFIED
}

unsafe extern "C" fn new_queries(count: i32, list: *mut u32) {
    assert_eq!(count, 1, "room for one");
    with(|gpu| {
        gpu.names += 1;
        gpu.made += 1;
        // SAFETY: there is room for one.
        unsafe { list.write(u32::try_from(gpu.names).expect("as this test writes it")) };
    });
}

unsafe extern "C" fn delete_queries(count: i32, _list: *mut u32) {
    with(|gpu| gpu.deleted += u32::try_from(count).expect("as this test writes it"));
}

unsafe extern "C" fn begin_query(_target: u32, _query: u32) {
    with(|gpu| gpu.begun += 1);
}

unsafe extern "C" fn stamp(query: u32, _target: u32) {
    with(|gpu| gpu.passed_at.insert(query as usize, gpu.end()));
}

unsafe extern "C" fn bits(_target: u32, _what: u32, value: *mut i32) {
    // SAFETY: there is room for one.
    unsafe { value.write(64) };
}

unsafe extern "C" fn available(query: u32, _what: u32, value: *mut u32) {
    // SAFETY: there is room for one.
    unsafe { value.write(with(|gpu| u32::from(gpu.is_passed(query as usize)))) };
}

unsafe extern "C" fn result(query: u32, _what: u32, value: *mut u64) {
    let ns = with(|gpu| (gpu.passed_at[&(query as usize)] / gpu.slow).as_nanos());
    // SAFETY: there is room for one.
    unsafe { value.write(u64::try_from(ns).expect("a short test")) };
}

unsafe extern "C" fn integer(what: u32, value: *mut i32) {
    let disjoint = what == gl::GPU_DISJOINT_EXT && with(|gpu| std::mem::take(&mut gpu.disjoint));
    // SAFETY: there is room for one.
    unsafe { value.write(i32::from(disjoint)) };
}

unsafe extern "C" fn find(name: *const c_char) -> Ptr {
    // SAFETY: callers hand over a string.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"eglMakeCurrent" | b"eglSwapBuffers" | b"eglCreateContext" | b"eglDestroySyncKHR" => one as Ptr,
        b"eglGetError" => success as Ptr,
        b"eglQueryAPI" => es as Ptr,
        b"eglQueryString" => egl_text as Ptr,
        b"eglCreateSyncKHR" => new_fence as Ptr,
        b"eglClientWaitSyncKHR" => wait as Ptr,
        b"glGetString" => text as Ptr,
        b"glDrawArrays" => draw as Ptr,
        b"glGenQueriesEXT" => new_queries as Ptr,
        b"glDeleteQueriesEXT" => delete_queries as Ptr,
        b"glBeginQueryEXT" | b"glEndQueryEXT" | b"glBeginQuery" | b"glEndQuery" => begin_query as Ptr,
        b"glQueryCounterEXT" => stamp as Ptr,
        b"glGetQueryivEXT" => bits as Ptr,
        b"glGetQueryObjectuivEXT" => available as Ptr,
        b"glGetQueryObjectui64vEXT" => result as Ptr,
        b"glGetIntegerv" => integer as Ptr,
        _ => nothing as Ptr,
    }
}

fn program_is_told_of_a_jump() -> bool {
    let mut disjoint = 7_i32;
    call!(glGetIntegerv(gl::GPU_DISJOINT_EXT, (&raw mut disjoint).cast()));
    disjoint == 1
}

/// Draws and flushes; each group is over before the next one.
fn groups(count: u32) {
    for _ in 0..count {
        call!(glDrawArrays(gl::TRIANGLES, 0, 3));
        call!(glFlush());
        let fence = with(|gpu| gpu.names);
        while !with(|gpu| gpu.seen.contains(&fence)) {
            thread::yield_now();
        }
    }
}

/// The clocks of a new context's groups on such a GPU, and what `then` does after some of them.
fn clocks(renderer: &'static CStr, slow: u32, then: impl FnOnce()) -> Vec<(String, f64)> {
    with(|gpu| (gpu.renderer, gpu.slow, gpu.made, gpu.deleted) = (renderer, slow, 0, 0));
    let handle = std::ptr::without_provenance_mut::<std::ffi::c_void>;
    call!(eglCreateContext(handle(1), handle(1), null_mut(), null_mut()));
    call!(eglMakeCurrent(handle(1), null_mut(), null_mut(), handle(1)));
    let before = rows().len();
    groups(12);
    then();
    groups(3);
    call!(eglMakeCurrent(handle(1), null_mut(), null_mut(), null_mut()));
    measure::drain(None);
    rows().split_off(before)
}

fn rows() -> Vec<(String, f64)> {
    column(&table(), "clock").into_iter().zip(numbers(&table(), "measured_us")).collect()
}

fn table() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("timer-queries.csv")
}

/// One test, because settings and the GPU are the process's.
#[test]
fn the_right_clock_measures_and_the_program_notices_nothing() {
    let _none = std::fs::remove_file(table());
    // SAFETY: no other thread of this process reads or writes variables yet.
    unsafe { std::env::set_var(settings::MEASURE, table()) };
    entry::set_finder(find);

    let right = clocks(c"right", 1, || ());
    let kinds: Vec<&str> = right.iter().map(|(clock, _)| clock.as_str()).collect();
    assert_eq!(right.len(), 15);
    assert!(kinds[..8].iter().all(|clock| *clock == "fence"), "not decided yet: {kinds:?}");
    assert!(kinds[9..12].iter().all(|clock| *clock == "timer"), "{kinds:?}");
    let mut shown = right.iter().filter(|(clock, _)| clock == "timer").map(|(_, us)| *us);
    assert!(shown.all(|us| us >= 50_000.0), "{right:?}");
    assert_eq!(with(|gpu| gpu.deleted), 0);
    assert!(with(|gpu| gpu.made) <= 6, "queries are used again");

    let wrong = clocks(c"wrong", 10, || ());
    assert!(wrong.iter().all(|(clock, _)| clock == "fence"), "{wrong:?}");
    assert!(wrong.iter().all(|(_, us)| *us > 40_000.0), "{wrong:?}");
    assert_eq!(with(|gpu| gpu.deleted), with(|gpu| gpu.made), "what is of no use is gone");

    let jumps = clocks(c"right", 1, || {
        with(|gpu| gpu.disjoint = true);
        groups(2);
        assert!(program_is_told_of_a_jump(), "although we have asked before");
        assert!(!program_is_told_of_a_jump(), "once");
    });
    assert!(jumps.iter().take(11).all(|(clock, _)| clock == "timer"), "known from before: {jumps:?}");
    assert!(jumps.iter().skip(11).take(2).any(|(clock, _)| clock == "fence"), "stamps were lost: {jumps:?}");
    assert_eq!(with(|gpu| gpu.begun), 0, "queries of targets are the program's alone");
}
