//! In front of libEGL's drivers.
//!
//! libEGL finds vendors by JSON files and calls `__egl_Main` of each. One copy of this library serves one
//! driver: libEGL refuses to load one file twice, so each further driver gets a further copy (`takt run`
//! makes them).

use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::OnceLock;

use super::{load, note_or_say};
use crate::entry::{self, Finder, Ptr};
use crate::guard;
use crate::offscreen::{self, GetPlatformDisplay};

/// What libEGL takes from a vendor: eleven functions, of which only these matter here.
#[repr(C)]
#[derive(Debug)]
pub struct EglImports {
    get_platform_display: Option<GetPlatformDisplay>,
    get_supports_api: Ptr,
    get_vendor_string: Ptr,
    get_proc_address: Option<Finder>,
    get_dispatch_address: Ptr,
    set_dispatch_index: Ptr,
    is_patch_supported: Ptr,
    initiate_patch: Ptr,
    release_patch: Ptr,
    patch_thread_attach: Ptr,
    find_native_display_platform: Ptr,
}

/// What libEGL offers to a vendor, as far as it is used.
#[repr(C)]
#[derive(Debug)]
pub struct Exports {
    thread_init: Ptr,
    get_current_api: Ptr,
    get_current_vendor: Ptr,
    get_current_context: Ptr,
    get_current_display: Ptr,
    get_current_surface: Ptr,
    fetch_dispatch_entry: Ptr,
    set_egl_error: Option<unsafe extern "C" fn(i32)>,
}

type EglMain = unsafe extern "C" fn(u32, *const Exports, Ptr, *mut EglImports) -> u32;

/// The driver behind us.
#[derive(Debug)]
struct Vendor {
    get_proc_address: Finder,
    get_platform_display: Option<GetPlatformDisplay>,
    set_egl_error: Option<unsafe extern "C" fn(i32)>,
}

static VENDOR: OnceLock<Vendor> = OnceLock::new();

/// The body of `__egl_Main`.
///
/// # Safety
///
/// The arguments are libEGL's: valid tables of the given version, of which `imports` may be
/// written.
pub unsafe fn main(version: u32, exports: *const Exports, vendor: Ptr, imports: *mut EglImports) -> u32 {
    let Some(inner_main) = note_or_say().and_then(|note| load(&note.driver, c"__egl_Main")) else {
        return 0;
    };
    // SAFETY: libglvnd defines the signature of this name.
    let inner_main: EglMain = unsafe { std::mem::transmute(inner_main) };
    // SAFETY: the very arguments that libEGL made for a vendor of this version.
    let accepted = unsafe { inner_main(version, exports, vendor, imports) };
    if accepted == 0 {
        return 0;
    }
    // SAFETY: libEGL's table is valid, ours to write, and the driver has filled in its part.
    let imports = unsafe { &mut *imports };
    // SAFETY: libEGL's table is valid for as long as the vendor is loaded.
    let exports = unsafe { exports.as_ref() };
    let Some(get_proc_address) = imports.get_proc_address else {
        return accepted;
    };
    let set_egl_error = exports.and_then(|exports| exports.set_egl_error);
    let get_platform_display = imports.get_platform_display;
    let driver = Vendor { get_proc_address, get_platform_display, set_egl_error };
    if VENDOR.set(driver).is_ok() {
        super::begin(get_proc_address);
        imports.get_proc_address = Some(self::get_proc_address);
        if offscreen::is_wanted() {
            imports.get_platform_display = Some(offscreen_display);
        }
        imports.is_patch_supported = ptr::null_mut();
        imports.initiate_patch = ptr::null_mut();
        imports.release_patch = ptr::null_mut();
    }
    accepted
}

/// Whether this process is hooked in this way.
pub fn is_used() -> bool {
    VENDOR.get().is_some()
}

/// Lets the program's next `eglGetError` say `error`, as if Takt had not called EGL in between.
pub fn restore_egl_error(error: i32) {
    if let Some(set) = VENDOR.get().and_then(|driver| driver.set_egl_error) {
        // SAFETY: libEGL's function, which may be called from every thread at any time.
        unsafe { set(error) };
    }
}

/// What libEGL calls to get a display, where windows are to be done without.
unsafe extern "C" fn offscreen_display(platform: u32, native: Ptr, _attributes: *const isize) -> Ptr {
    let get = VENDOR.get().and_then(|driver| driver.get_platform_display);
    let display = get.and_then(|get| guard::attempted(|| offscreen::display(get, platform, native)));
    display.unwrap_or(ptr::null_mut())
}

/// What libEGL and libGLdispatch call to find entry points.
unsafe extern "C" fn get_proc_address(name: *const c_char) -> Ptr {
    let Some(driver) = VENDOR.get() else {
        return ptr::null_mut();
    };
    // SAFETY: the caller's name, handed on.
    let real = unsafe { (driver.get_proc_address)(name) };
    if name.is_null() || real.is_null() {
        return real;
    }
    // SAFETY: a name ends with a zero byte.
    let name = unsafe { CStr::from_ptr(name) };
    guard::attempted(|| entry::offer(name, real)).unwrap_or(real)
}
