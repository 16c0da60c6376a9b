//! The preloaded library that sees which channel groups a program has: `libtakt_ioctl.so`.
//!
//! It exports `ioctl`, which hands every call on as it came and looks at those to the NVIDIA driver when they are done,
//! and the table by which Takt's layers set slices. Everything else is in `takt-slices`.

use std::ffi::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use takt_slices::abi;
use takt_slices::device::{Ioctl, Kernel};
use takt_slices::own::{Own, Report};
use takt_slices::table::Table;

static OWN: Own<Kernel> = Own::new(Kernel(next_ioctl));

/// What layers find by its name.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "a name for C")]
pub static takt_slices_1: Table = Table { epoch, set, read, restore };

/// The program's call to a device.
///
/// # Safety
///
/// As of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(file: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    // SAFETY: as the program called it.
    let returned = unsafe { next_ioctl(file, request, argument) };
    if returned >= 0 && abi::is_drivers(request) {
        keeping_errno(|| {
            // SAFETY: the call has returned without an error.
            unsafe { OWN.saw(file, request, argument) };
        });
    }
    returned
}

/// The `ioctl` behind ours: another preloaded one, or that of the C library.
unsafe extern "C" fn next_ioctl(file: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    let mut next = NEXT.load(Ordering::Relaxed);
    if next.is_null() {
        // SAFETY: the name ends with a zero byte.
        next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"ioctl".as_ptr()) };
        NEXT.store(next, Ordering::Relaxed);
    }
    if next.is_null() {
        // SAFETY: the system call of the same arguments; a C library without `ioctl` does not exist.
        let returned = unsafe { libc::syscall(libc::SYS_ioctl, file, request, argument) };
        return c_int::try_from(returned).unwrap_or(-1);
    }
    // SAFETY: a function of this name, with the third argument where a plain one would be.
    let call: Ioctl = unsafe { std::mem::transmute(next) };
    // SAFETY: up to the caller.
    unsafe { call(file, request, argument) }
}

/// The program sees the error that its own call left.
fn keeping_errno<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: the C library has one for each thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: it is this thread's.
    let before = unsafe { *errno };
    let result = act();
    // SAFETY: as above.
    unsafe { *errno = before };
    result
}

extern "C" fn epoch() -> u32 {
    OWN.epoch()
}

extern "C" fn set(us: u64) -> Report {
    keeping_errno(|| OWN.set(us))
}

extern "C" fn read() -> Report {
    keeping_errno(|| OWN.read())
}

extern "C" fn restore() -> Report {
    keeping_errno(|| OWN.restore())
}
