//! In front of libEGL and libGLESv2, for systems without libglvnd.
//!
//! The library is preloaded and exports every entry point itself. Programs find it by linking,
//! by `eglGetProcAddress`, and by `dlsym`, which is exported as well.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::entry::{self, COUNT, Finder, Id, Ptr};
use crate::guard::{self, say};
use crate::quiet;

/// What each export jumps to: a hook, or the driver's function.
static TARGETS: [AtomicPtr<c_void>; COUNT] = [const { AtomicPtr::new(ptr::null_mut()) }; COUNT];

/// What the export of that name jumps to.
#[inline]
pub fn target(id: Id) -> Ptr {
    let known = TARGETS[id as usize].load(Ordering::Acquire);
    if known.is_null() { resolve(id) } else { known }
}

/// Whether a call of that name replaces EGL's error of the thread.
pub const fn replaces_error(name: &str) -> bool {
    let [b'e', b'g', b'l', rest @ ..] = name.as_bytes() else {
        return false;
    };
    !matches!(rest, b"GetError")
}

#[cold]
fn resolve(id: Id) -> Ptr {
    guard::speak_for_panics();
    entry::set_finder(find);
    let mut name = id.name().as_bytes().to_vec();
    name.push(0);
    // SAFETY: the name ends with the zero byte that was just added.
    let real = unsafe { find(name.as_ptr().cast()) };
    let target = if real.is_null() {
        say(&format!("the program calls {}, which this system does not have", id.name()));
        missing as Ptr
    } else {
        let offered = guard::attempted(|| CStr::from_bytes_with_nul(&name).map(|name| offer(name, real)));
        offered.and_then(Result::ok).unwrap_or(real)
    };
    TARGETS[id as usize].store(target, Ordering::Release);
    target
}

/// Stands for functions that do not exist, and which a linker would have complained about.
extern "C" fn missing() -> usize {
    0
}

/// What a program gets that asked for `name` at run time: exports of ours where they do more than
/// their hooks.
fn offer_found(name: &CStr, real: Ptr) -> Ptr {
    let offered = offer(name, real);
    if name.to_bytes().starts_with(b"egl") && offered == real {
        // SAFETY: glibc's own function, asked for a name of which we are the first to export it.
        let ours = unsafe { real_dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if same_object(ours, look_up as Ptr) {
            return ours;
        }
    }
    offered
}

/// What a program gets that asked for `name`.
fn offer(name: &CStr, real: Ptr) -> Ptr {
    match Id::of(name) {
        Some(Id::eglGetProcAddress) => return get_proc_address as Ptr,
        Some(Id::eglGetError) => {
            entry::offer(name, real);
            return quiet::get_error as Ptr;
        }
        _ => {}
    }
    entry::offer(name, real)
}

/// What programs get as `eglGetProcAddress`.
///
/// # Safety
///
/// The name ends with a zero byte, or is null.
pub unsafe extern "C" fn get_proc_address(name: *const c_char) -> Ptr {
    entry::set_finder(find);
    // SAFETY: as the program called it.
    let real = unsafe { find(name) };
    if name.is_null() || real.is_null() {
        return real;
    }
    // SAFETY: not null, and a string.
    let name = unsafe { CStr::from_ptr(name) };
    guard::attempted(|| offer_found(name, real)).unwrap_or(real)
}

/// The real function of a name: of the libraries that are loaded, or by `eglGetProcAddress`.
unsafe extern "C" fn find(name: *const c_char) -> Ptr {
    if name.is_null() {
        return ptr::null_mut();
    }
    let libraries = LIBRARIES.get_or_init(Libraries::load);
    for handle in [libraries.egl, libraries.gles2, libraries.gles1].into_iter().filter(|handle| *handle != 0)
    {
        // SAFETY: a handle of a library that is never closed; the name ends with a zero byte.
        let found = unsafe { real_dlsym(handle as Ptr, name) };
        if !found.is_null() {
            return found;
        }
    }
    // SAFETY: the name ends with a zero byte.
    libraries.proc_address.map_or(ptr::null_mut(), |find| unsafe { find(name) })
}

/// The real libraries; handles are 0 where there is none.
#[derive(Debug)]
struct Libraries {
    egl: usize,
    gles2: usize,
    gles1: usize,
    proc_address: Option<Finder>,
}

static LIBRARIES: OnceLock<Libraries> = OnceLock::new();

impl Libraries {
    fn load() -> Self {
        let open = |name: &CStr| {
            // SAFETY: the system's own library, which the program has loaded or is about to.
            unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) as usize }
        };
        let egl = open(c"libEGL.so.1");
        // SAFETY: the handle is valid or null, the name ends with a zero byte.
        let proc_address = unsafe { real_dlsym(egl as Ptr, c"eglGetProcAddress".as_ptr()) };
        let proc_address = (egl != 0 && !proc_address.is_null()).then(|| {
            // SAFETY: EGL defines the signature of this name.
            unsafe { std::mem::transmute::<Ptr, Finder>(proc_address) }
        });
        Self { egl, gles2: open(c"libGLESv2.so.2"), gles1: open(c"libGLESv1_CM.so.1"), proc_address }
    }
}

type Dlsym = unsafe extern "C" fn(Ptr, *const c_char) -> Ptr;

/// glibc's own `dlsym`, past ours.
pub fn libc_dlsym() -> Ptr {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    let known = FOUND.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    for version in [c"GLIBC_2.34", c"GLIBC_2.2.5", c"GLIBC_2.17"] {
        // SAFETY: both names end with zero bytes; versions that do not exist give null.
        let found = unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
        if !found.is_null() {
            FOUND.store(found, Ordering::Relaxed);
            return found;
        }
    }
    ptr::null_mut()
}

unsafe fn real_dlsym(handle: Ptr, name: *const c_char) -> Ptr {
    let found = libc_dlsym();
    if found.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: glibc's function of this name.
    let dlsym: Dlsym = unsafe { std::mem::transmute(found) };
    // SAFETY: up to the caller.
    unsafe { dlsym(handle, name) }
}

/// What our `dlsym` answers: an entry point of ours, or null for glibc's to answer.
///
/// # Safety
///
/// The name ends with a zero byte.
pub unsafe extern "C" fn look_up(handle: Ptr, name: *const c_char) -> Ptr {
    // SAFETY: up to the caller, as for `dlsym` itself.
    let Some(name) = (unsafe { interesting(name) }) else {
        return ptr::null_mut();
    };
    // SAFETY: the program's own arguments.
    let real = unsafe { real_dlsym(handle, name.as_ptr()) };
    if real.is_null() { real } else { offer_unless_ours(name, real) }
}

/// The name, if it is one of ours.
unsafe fn interesting<'a>(name: *const c_char) -> Option<&'a CStr> {
    if name.is_null() {
        return None;
    }
    // SAFETY: a string, of which the first bytes are read up to its end.
    let name = unsafe { CStr::from_ptr(name) };
    let bytes = name.to_bytes();
    (bytes.starts_with(b"gl") || bytes.starts_with(b"egl"))
        .then_some(name)
        .filter(|name| Id::of(name).is_some())
}

/// `dlsym` may find our own exports first; these are what the program shall get.
fn offer_unless_ours(name: &CStr, found: Ptr) -> Ptr {
    if same_object(found, look_up as Ptr) { found } else { offer_found(name, found) }
}

fn same_object(a: Ptr, b: Ptr) -> bool {
    let base = |address: Ptr| {
        // SAFETY: plain data without invariants.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: any address may be asked for.
        let found: c_int = unsafe { libc::dladdr(address, &raw mut info) };
        if found == 0 { ptr::null_mut() } else { info.dli_fbase }
    };
    base(a) == base(b)
}
