//! libtakt-cuda: deadlines for the work of CUDA streams, and targets for frames of GL.
//!
//! The names and units are those of HERCULES (deliverable D5.2). What is behind them are the libraries that `takt run`
//! puts under a program: this one looks which of them are loaded and hands the call on. A program that runs without
//! Takt runs as if the calls were not there.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Done, or nothing to be done: a success for CUDA.
const SUCCESS: i32 = 0;
/// A number is out of range: `cudaErrorInvalidValue`.
const INVALID: i32 = 1;

/// What a hook answers; `takt_cuda::deadlines::Answer` has the same numbers.
mod answer {
    pub(super) const DONE: i32 = 0;
    pub(super) const INVALID: i32 = 1;
    pub(super) const TOO_MANY: i32 = 3;
}

/// Libraries of Takt under CUDA programs, by how their files' names begin.
const CUDA: &[&CStr] = &[c"libcuda.so", c"libcuda_takt.so"];
/// The same under programs of GL.
const GL: &[&CStr] = &[c"libEGL_takt.so", c"libGLX_takt.so"];

type Begin = extern "C" fn(*mut c_void, u32, u32, i32) -> i32;
type End = extern "C" fn(*mut c_void) -> i32;
type Target = extern "C" fn(u32, u32) -> i32;

/// What is put into `stream` from now on is a job that is due `deadline_us` after its first work arrives, needs
/// `budget_us` of GPU time, and comes again after `period_us` at the earliest; 0 or less if it has no period.
///
/// Returns 0, or 1 (cudaErrorInvalidValue) if no job could be so. Without Takt it does nothing.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the name of D5.2")]
pub extern "C" fn cudaStreamDeadlineBegin(
    stream: *mut c_void,
    deadline_us: u32,
    budget_us: u32,
    period_us: i32,
) -> i32 {
    static FOUND: Found = Found::new(CUDA, c"takt_stream_deadline_begin");
    let Some(address) = FOUND.address() else {
        return without(c"cudaStreamDeadlineBegin");
    };
    // SAFETY: the function of that name has this signature.
    let begin: Begin = unsafe { std::mem::transmute(address) };
    told(begin(stream, deadline_us, budget_us, period_us), c"cudaStreamDeadlineBegin")
}

/// The job of `stream` has all of its work; it is over when the GPU has done that. Does not wait.
///
/// Returns 0.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the name of D5.2")]
pub extern "C" fn cudaStreamDeadlineEnd(stream: *mut c_void) -> i32 {
    static FOUND: Found = Found::new(CUDA, c"takt_stream_deadline_end");
    let Some(address) = FOUND.address() else {
        return without(c"cudaStreamDeadlineEnd");
    };
    // SAFETY: the function of that name has this signature.
    let end: End = unsafe { std::mem::transmute(address) };
    told(end(stream), c"cudaStreamDeadlineEnd")
}

/// The program draws so many frames per second, and needs so much GPU time for each, in microseconds. To be called
/// once before the loop that draws, when there is a context. Each swap waits for the next frame from then on.
///
/// Returns 0, or 1 if no frames could be so. Without Takt it does nothing.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the name of D5.2")]
pub extern "C" fn glSetFrameTarget(framerate: u32, budget_us: u32) -> i32 {
    const NAME: &CStr = c"takt_gl_set_frame_target";
    // A program may have loaded the libraries for EGL and for GLX; one of them schedules it.
    let mut answer = None;
    each_library(GL, &mut |library| {
        if let Some(address) = function(library, NAME) {
            // SAFETY: the function of that name has this signature.
            let target: Target = unsafe { std::mem::transmute(address) };
            let own = target(framerate, budget_us);
            let best = |other: i32| if other == answer::DONE { other } else { own };
            answer = Some(answer.map_or(own, best));
        }
    });
    match answer {
        Some(answer) => told(answer, c"glSetFrameTarget"),
        None => without(c"glSetFrameTarget"),
    }
}

/// What the program hears of a hook's answer.
fn told(answer: i32, call: &CStr) -> i32 {
    match answer {
        answer::DONE => SUCCESS,
        answer::INVALID => INVALID,
        answer::TOO_MANY => {
            static ONCE: Once = Once::new();
            ONCE.call_once(|| say(call, "32 streams have deadlines, and this one gets none"));
            SUCCESS
        }
        _ => without(call),
    }
}

/// Nothing is done: the program runs as if the call were not there.
fn without(call: &CStr) -> i32 {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        say(call, "does nothing here, the program is not scheduled (takt run --schedule -- PROGRAM)");
    });
    SUCCESS
}

fn say(call: &CStr, what: &str) {
    let text = format!("takt: {}: {what}\n", call.to_string_lossy());
    // SAFETY: so many bytes of a text. No reader is needed.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

/// A function of a library of Takt, once it was found.
struct Found {
    libraries: &'static [&'static CStr],
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Found {
    const fn new(libraries: &'static [&'static CStr], name: &'static CStr) -> Self {
        Self { libraries, name, address: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Its address. Until it is there it is looked for each time: programs load drivers late.
    fn address(&self) -> Option<*mut c_void> {
        let known = self.address.load(Ordering::Acquire);
        if !known.is_null() {
            return Some(known);
        }
        let mut found = None;
        each_library(self.libraries, &mut |library| found = found.or_else(|| function(library, self.name)));
        self.address.store(found.unwrap_or(ptr::null_mut()), Ordering::Release);
        found
    }
}

/// A function of a library that is loaded.
fn function(library: &CStr, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a path that ends with a zero byte; nothing is loaded that is not there.
    let loaded = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    if loaded.is_null() {
        return None;
    }
    // SAFETY: a library that is loaded, and a name that ends with a zero byte. The library is never given back, so the
    // function stays.
    let found = unsafe { libc::dlsym(loaded, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Calls `with` for the path of each library that is loaded and whose file has such a name.
fn each_library(names: &[&CStr], with: &mut dyn FnMut(&CStr)) {
    let mut paths: Paths<'_> = (names, Vec::new());
    // SAFETY: `note` takes what is handed to it here.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut paths).cast()) };
    // Outside of the walk, in which the loader holds its locks.
    paths.1.iter().for_each(|path| with(path));
}

/// Names, and paths of libraries that have such.
type Paths<'a> = (&'a [&'a CStr], Vec<std::ffi::CString>);

unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _size: usize, paths: *mut c_void) -> c_int {
    // SAFETY: what `each_library` handed on, which waits.
    let (names, found) = unsafe { &mut *paths.cast::<Paths<'_>>() };
    // SAFETY: the loader hands an object that is loaded.
    let name: *const c_char = unsafe { (*info).dlpi_name };
    if name.is_null() {
        return 0;
    }
    // SAFETY: a path that ends with a zero byte.
    let path = unsafe { CStr::from_ptr(name) };
    let file = path.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    if names.iter().any(|name| file.starts_with(name.to_bytes())) {
        found.push(path.to_owned());
    }
    0
}
