//! In front of libGLX's driver: `libGLX_takt.so.0`, which `__GLX_VENDOR_LIBRARY_NAME=takt` names.
//!
//! libGLX asks a vendor for all of its own functions and for those of GL. Where several drivers are
//! installed, libGLX would ask the X server which one it wants; so do we, and if the answer is none of
//! those that we know, libGLX is told to look for itself.

use std::ffi::{CStr, c_char};
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

use super::{load, note_or_say};
use crate::entry::{self, Finder, Ptr};
use crate::x11;
use crate::{guard, system};

/// What libGLX takes from a vendor: nine functions, of which only these matter here.
#[repr(C)]
#[derive(Debug)]
pub struct GlxImports {
    is_screen_supported: Ptr,
    get_proc_address: Option<Finder>,
    get_dispatch_address: Ptr,
    set_dispatch_index: Ptr,
    notify_error: Ptr,
    is_patch_supported: Ptr,
    initiate_patch: Ptr,
    release_patch: Ptr,
    patch_thread_attach: Ptr,
}

type GlxMain = unsafe extern "C" fn(u32, Ptr, Ptr, *mut GlxImports) -> i32;

/// Finds functions of the driver behind us.
static DRIVER: OnceLock<Finder> = OnceLock::new();

/// The body of `__glx_Main`.
///
/// # Safety
///
/// The arguments are libGLX's: valid tables of the given version, of which `imports` may be written.
pub unsafe fn main(version: u32, exports: Ptr, vendor: Ptr, imports: *mut GlxImports) -> i32 {
    let driver = note_or_say().and_then(|note| chosen(&note.driver));
    let Some(inner_main) = driver.and_then(|driver| load(driver, c"__glx_Main")) else {
        return 0;
    };
    // SAFETY: libglvnd defines the signature of this name.
    let inner_main: GlxMain = unsafe { std::mem::transmute(inner_main) };
    // SAFETY: the very arguments that libGLX made for a vendor of this version.
    let accepted = unsafe { inner_main(version, exports, vendor, imports) };
    if accepted == 0 {
        return 0;
    }
    // SAFETY: libGLX's table is valid, ours to write, and the driver has filled in its part.
    let imports = unsafe { &mut *imports };
    let Some(get_proc_address) = imports.get_proc_address else {
        return accepted;
    };
    if DRIVER.set(get_proc_address).is_ok() {
        system::begin_glx();
        super::begin(get_proc_address);
        imports.get_proc_address = Some(self::get_proc_address);
        imports.is_patch_supported = ptr::null_mut();
        imports.initiate_patch = ptr::null_mut();
        imports.release_patch = ptr::null_mut();
    }
    accepted
}

/// Whether this process is hooked in this way.
pub fn is_used() -> bool {
    DRIVER.get().is_some()
}

/// What libGLX and libGLdispatch call to find entry points.
unsafe extern "C" fn get_proc_address(name: *const c_char) -> Ptr {
    let Some(find) = DRIVER.get() else {
        return ptr::null_mut();
    };
    // SAFETY: the caller's name, handed on.
    let real = unsafe { find(name) };
    if name.is_null() || real.is_null() {
        return real;
    }
    // SAFETY: a name ends with a zero byte.
    let name = unsafe { CStr::from_ptr(name) };
    guard::attempted(|| entry::offer(name, real)).unwrap_or(real)
}

/// The driver for the X server at hand, of those that a note names one behind the other. A note with one
/// means that one.
fn chosen(drivers: &'static str) -> Option<&'static str> {
    let all: Vec<&str> = drivers.split(' ').filter(|driver| !driver.is_empty()).collect();
    match all[..] {
        [] => None,
        [only] => Some(only),
        _ => wanted(&all, &x11::wanted_vendors()?),
    }
}

/// The first driver that the X server names.
fn wanted<'a>(drivers: &[&'a str], names: &str) -> Option<&'a str> {
    names.split(' ').find_map(|name| {
        let library = format!("libGLX_{name}.so.0");
        let is_it = |driver: &&&str| Path::new(driver).file_name().is_some_and(|file| *file == *library);
        drivers.iter().find(is_it).copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_names_the_driver() {
        let drivers = ["libGLX_mesa.so.0", "/opt/libGLX_nvidia.so.0"];
        assert_eq!(wanted(&drivers, "nvidia mesa"), Some(drivers[1]));
        assert_eq!(wanted(&drivers, "other mesa"), Some(drivers[0]));
        assert_eq!(wanted(&drivers, "other"), None);
        assert_eq!(chosen("libGLX_mesa.so.0"), Some(drivers[0]), "no server has to be asked");
        assert_eq!(chosen(" "), None);
    }
}
