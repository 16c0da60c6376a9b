//! In front of a driver, as a vendor of libglvnd.
//!
//! libEGL finds vendors by JSON files and calls `__egl_Main` of each. Ours loads the driver it
//! stands for, lets it fill in libEGL's table, and then puts itself between: every request for an
//! entry point comes to `get_proc_address`, however the program makes it. Everything else
//! in the table stays the driver's.
//!
//! A driver could rewrite libglvnd's entry points, past our hooks; so it is not told
//! that it may. One copy of this library serves one driver: libEGL refuses to load one file twice,
//! so each further driver gets a further copy (`takt run` makes them).

use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::sync::OnceLock;

use crate::entry::{self, Finder, Ptr};
use crate::guard::{self, say};
use crate::offscreen::{self, GetPlatformDisplay};

/// Beside the library: a [`Note`].
pub const INNER_FILE: &str = "driver";

/// Names the driver when there is no such file.
pub const INNER_VARIABLE: &str = "TAKT_EGL_DRIVER";

/// What a copy of this library is told: the driver it stands for, and which of how many copies it
/// is. They share a process without knowing each other, but number its contexts together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// Name or path of the driver's library.
    pub driver: String,
    /// Number of this copy, from 0.
    pub number: u64,
    /// How many copies there are.
    pub copies: u64,
}

impl Note {
    /// Reads a note; one without numbers is that of a single copy.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(str::trim);
        let driver = lines.next().filter(|driver| !driver.is_empty())?.to_owned();
        let mut numbers = lines.map(|line| line.parse().ok());
        let (number, copies) = (numbers.next().flatten().unwrap_or(0), numbers.next().flatten().unwrap_or(1));
        (number < copies).then_some(Self { driver, number, copies })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}\n{}\n", self.driver, self.number, self.copies)
    }
}

/// What libEGL takes from a vendor: eleven functions, of which only these matter here.
#[repr(C)]
#[derive(Debug)]
pub struct Imports {
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

type Main = unsafe extern "C" fn(u32, *const Exports, Ptr, *mut Imports) -> u32;

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
pub unsafe fn main(version: u32, exports: *const Exports, vendor: Ptr, imports: *mut Imports) -> u32 {
    let Some(note) = note() else {
        say(&format!(
            "no driver is named: neither a file '{INNER_FILE}' beside the library nor {INNER_VARIABLE}"
        ));
        return 0;
    };
    let Some(inner_main) = load(&note.driver) else {
        return 0;
    };
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
        guard::speak_for_panics();
        stay_loaded();
        entry::set_finder(get_proc_address);
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

/// Loads a driver. One that is described but not installed is passed over in silence, as libEGL
/// does; `takt doctor` tells.
fn load(driver: &str) -> Option<Main> {
    let name = CString::new(driver).ok()?;
    // SAFETY: loading runs the driver's initialisers, as libEGL would have done.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: the handle is valid, the name ends with a zero byte.
    let main = unsafe { libc::dlsym(handle, c"__egl_Main".as_ptr()) };
    if main.is_null() {
        say(&format!("{driver} is no EGL driver for libglvnd: it lacks __egl_Main"));
        return None;
    }
    // SAFETY: libglvnd defines the signature of this name.
    Some(unsafe { std::mem::transmute::<*mut c_void, Main>(main) })
}

/// What this copy of the library was told.
fn note() -> Option<&'static Note> {
    static NOTE: OnceLock<Option<Note>> = OnceLock::new();
    let read = || {
        let beside =
            own_path().and_then(|path| std::fs::read_to_string(path.with_file_name(INNER_FILE)).ok());
        let text = beside.or_else(|| std::env::var(INNER_VARIABLE).ok())?;
        Note::parse(&text)
    };
    NOTE.get_or_init(read).as_ref()
}

/// A number for the context that is the `count`th in this copy, unlike those of other copies.
pub fn context_number(count: u64) -> u64 {
    let (number, copies) = note().filter(|_| is_used()).map_or((0, 1), |note| (note.number, note.copies));
    count.saturating_mul(copies).saturating_add(number)
}

/// Threads of ours may outlast libEGL, which unloads drivers at exit.
fn stay_loaded() {
    let path = own_path().and_then(|path| CString::new(path.into_os_string().into_encoded_bytes()).ok());
    if let Some(path) = path {
        // SAFETY: nothing is loaded that is not loaded already.
        unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
    }
}

/// Where this library was loaded from.
fn own_path() -> Option<PathBuf> {
    // SAFETY: plain data without invariants.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for; the answer is written to valid memory.
    let found = unsafe { libc::dladdr(own_path as *const c_void, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's name of this library, which stays as long as the library does.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_are_written() {
        let note = Note { driver: "/a b/libEGL_x.so.0".to_owned(), number: 1, copies: 3 };
        assert_eq!(Note::parse(&note.to_string()), Some(note));
        let single = Note { driver: "libEGL_x.so.0".to_owned(), number: 0, copies: 1 };
        assert_eq!(Note::parse("libEGL_x.so.0"), Some(single));
        assert_eq!(Note::parse("\n0\n1\n"), None);
        assert_eq!(Note::parse("libEGL_x.so.0\n2\n2\n"), None, "numbers begin with 0");
    }
}
