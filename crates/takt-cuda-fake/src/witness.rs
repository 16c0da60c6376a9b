//! The part of CUPTI that tells of calls, in the driver's own library: a link with CUPTI's name leads here.

use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

use takt_cuda_api::Ptr;

/// What is told of a call.
#[repr(C)]
struct Told {
    site: u32,
    name: *const c_char,
}

type Callback = unsafe extern "C" fn(Ptr, u32, u32, *const Told);

static SUBSCRIBER: OnceLock<(Callback, usize)> = OnceLock::new();
static ENABLED: OnceLock<()> = OnceLock::new();

/// Calls of the driver's interface, and the moments before and after each.
const DRIVER_API: u32 = 1;
const SITES: [u32; 2] = [0, 1];
const MAX_LIMIT_REACHED: i32 = 12;

/// The program begins: loads what is to be told of its calls.
pub(crate) fn begin() {
    let Some(path) =
        std::env::var("CUDA_INJECTION64_PATH").ok().and_then(|path| std::ffi::CString::new(path).ok())
    else {
        return;
    };
    // SAFETY: a path that ends with a zero byte.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    if library.is_null() {
        return;
    }
    // SAFETY: a library that is loaded.
    let begin = unsafe { libc::dlsym(library, c"InitializeInjection".as_ptr()) };
    if !begin.is_null() {
        // SAFETY: what the vendor says of that name.
        unsafe { std::mem::transmute::<Ptr, extern "C" fn() -> i32>(begin.cast())() };
    }
}

/// A call of that name is made.
pub(crate) fn tell(name: &CStr) {
    if let Some((callback, data)) = SUBSCRIBER.get().filter(|_| ENABLED.get().is_some()) {
        for site in SITES {
            let call = Told { site, name: name.as_ptr() };
            // SAFETY: what the subscriber gave.
            unsafe { callback(std::ptr::with_exposed_provenance_mut(*data), DRIVER_API, 0, &raw const call) };
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiSubscribe(subscriber: *mut Ptr, callback: Callback, data: Ptr) -> i32 {
    if SUBSCRIBER.set((callback, data.expose_provenance())).is_err() {
        return MAX_LIMIT_REACHED;
    }
    // SAFETY: up to the caller.
    unsafe { subscriber.write(std::ptr::without_provenance_mut(1)) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn cuptiEnableDomain(enable: u32, _subscriber: Ptr, domain: u32) -> i32 {
    if enable == 1 && domain == DRIVER_API {
        ENABLED.get_or_init(|| ());
    }
    0
}
