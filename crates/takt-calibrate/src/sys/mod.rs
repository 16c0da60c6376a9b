//! The system's EGL and GL ES, loaded at run time and called through the table of entry points
//! that Takt has anyway ([`takt_gl::entry`]).
//!
//! All unsafe code of the crate is in this folder. Libraries are never unloaded, so a function
//! that was found once stays valid for the rest of the process.
#![expect(unsafe_code, reason = "calls into C libraries cannot be checked by the compiler")]

pub(crate) mod egl;
pub(crate) mod gl;
pub(crate) mod inputs;

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

use libloading::Library;
use takt_gl::entry::{self, Id};

use crate::Problem;

/// libEGL, libGLESv2 and `eglGetProcAddress`, once they are loaded.
static LIBRARIES: OnceLock<Result<Libraries, Problem>> = OnceLock::new();

struct Libraries {
    egl: Library,
    gles: Library,
    proc_address: unsafe extern "C" fn(*const c_char) -> *mut c_void,
}

impl Libraries {
    fn load() -> Result<Self, Problem> {
        let open = |name, package| {
            // SAFETY: loading runs the initialisers of a system library, as linking with it would.
            unsafe { Library::new(name) }.map_err(|error| Problem::Library {
                name,
                reason: error.to_string(),
                package,
            })
        };
        let egl = open("libEGL.so.1", "libegl1")?;
        let gles = open("libGLESv2.so.2", "libgles2")?;
        // SAFETY: the function of this name has this signature, by the headers of EGL.
        let found = unsafe { egl.get(c"eglGetProcAddress") };
        let proc_address = *found.map_err(|_none| Problem::Function("eglGetProcAddress"))?;
        Ok(Self { egl, gles, proc_address })
    }

    fn find(&self, name: &CStr) -> *mut c_void {
        for library in [&self.egl, &self.gles] {
            // SAFETY: only the address is taken; who uses it states the type.
            let symbol = unsafe { library.get::<*mut c_void>(name) };
            if let Ok(found) = symbol {
                return *found;
            }
        }
        // SAFETY: the name ends with a zero byte.
        unsafe { (self.proc_address)(name.as_ptr()) }
    }
}

/// How often threads of this process had to make room for others since it began.
pub(crate) fn evictions() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: one structure is written.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    // SAFETY: all its fields are numbers, and they were zero before.
    unsafe { usage.assume_init() }.ru_nivcsw
}

/// Nanoseconds of `CLOCK_MONOTONIC`, which all processes share.
pub(crate) fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: one structure is written; every kernel has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Finds a function for the table of entry points; null if there is none.
unsafe extern "C" fn find(name: *const c_char) -> *mut c_void {
    let Some(Ok(libraries)) = LIBRARIES.get() else { return std::ptr::null_mut() };
    // SAFETY: the table hands over names that end with a zero byte.
    libraries.find(unsafe { CStr::from_ptr(name) })
}

/// Loads the libraries and makes sure that all these functions are there.
fn load(needed: &[Id]) -> Result<(), Problem> {
    if let Err(problem) = LIBRARIES.get_or_init(Libraries::load) {
        return Err(problem.clone());
    }
    entry::set_finder(find);
    match needed.iter().find(|id| !id.is_there()) {
        Some(missing) => Err(Problem::Function(missing.name())),
        None => Ok(()),
    }
}

/// Safe methods for functions that take plain numbers or handles, which the library itself checks,
/// and a list of all functions that must be there.
macro_rules! numbers {
    ($table:ident needs $list:ident { $($extra:ident),* $(,)? }
     $($name:ident = $real:ident ($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {
        impl $table {
            $(pub(crate) fn $name(&self, $($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the function takes numbers and handles only, and checks them itself;
                // that it is there was checked when this was made.
                unsafe { takt_gl::entry::real::$real($($arg as _),*) $(as $ret)? }
            })*
        }

        const $list: &[takt_gl::entry::Id] =
            &[$(takt_gl::entry::Id::$real,)* $(takt_gl::entry::Id::$extra),*];
    };
}
use numbers;
