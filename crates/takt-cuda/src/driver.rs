//! The real driver.
//!
//! The library that programs load needs the driver under the name [`LIBRARY`], so the loader has found it before. Where
//! there is none, the loader finds our own library under that name; then there is no driver.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};

use takt_cuda_api::{Id, Ptr, real, result, set_finder};

use crate::guard;

/// The name by which our library needs the driver; that of `takt-cuda-hook/build.rs`.
pub const LIBRARY: &CStr = c"libcuda-driver.so";

/// The newest version of the API that the table of entry points knows.
pub const KNOWN_VERSION: i32 = 13_040;

/// Where our own library begins in memory.
static OWN: AtomicUsize = AtomicUsize::new(0);

/// The driver's functions are looked for from now on. `own` is a function of the library that programs load.
pub fn begin(own: Ptr) {
    OWN.store(library_of(own), Ordering::Relaxed);
    set_finder(find);
}

/// Whether there is a driver.
pub fn is_there() -> bool {
    !Id::cuInit.function().is_null()
}

/// The version that the driver has, if it tells.
pub fn version() -> Option<i32> {
    static VERSION: OnceLock<i32> = OnceLock::new();
    let mut version = 0_i32;
    if let Some(known) = VERSION.get() {
        return Some(*known);
    }
    // SAFETY: there is room for the number.
    let told = unsafe { real::cuDriverGetVersion((&raw mut version).cast()) };
    (told == result::SUCCESS).then(|| *VERSION.get_or_init(|| version))
}

/// Says, once, that there is no GPU for CUDA, or not even a driver.
pub fn say_none(driver_is_there: bool) {
    static ONCE: Once = Once::new();
    let what =
        if driver_is_there { "the CUDA driver finds no GPU" } else { "there is no CUDA driver any more" };
    ONCE.call_once(|| guard::say(&format!("{what}: the program runs on without CUDA being scheduled")));
}

/// Says, once, if the driver is newer than what is known.
pub fn say_version() {
    static ONCE: Once = Once::new();
    if ONCE.is_completed() {
        return;
    }
    ONCE.call_once(|| {});
    if let Some(version) = version().filter(|version| *version > KNOWN_VERSION) {
        let dotted = |version: i32| format!("{}.{}", version / 1000, version % 1000 / 10);
        guard::say(&format!(
            "the driver is of CUDA {}, and Takt knows {}: calls that are new there pass unscheduled",
            dotted(version),
            dotted(KNOWN_VERSION)
        ));
    }
}

fn find(name: &CStr) -> Ptr {
    static DRIVER: OnceLock<usize> = OnceLock::new();
    let driver = *DRIVER.get_or_init(|| {
        // SAFETY: the name ends with a zero byte; nothing is loaded that is not there.
        unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) }.addr()
    });
    if driver == 0 {
        return ptr::null_mut();
    }
    // SAFETY: a library that is loaded, and a name that ends with a zero byte.
    let found = unsafe { libc::dlsym(ptr::without_provenance_mut(driver), name.as_ptr()) };
    if library_of(found) == OWN.load(Ordering::Relaxed) { ptr::null_mut() } else { found }
}

/// Where the library of an address begins; 0 if it is in none.
fn library_of(address: *const c_void) -> usize {
    let mut info = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: any address may be asked for, and there is room for the answer.
    let found = unsafe { libc::dladdr(address, &raw mut info) };
    if found == 0 { 0 } else { info.dli_fbase.addr() }
}
