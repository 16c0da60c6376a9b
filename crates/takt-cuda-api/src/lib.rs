//! Names of the CUDA driver API.
//!
//! * [`Id`], [`NAMES`], [`kind`], [`real`]: every entry point by name, its type, and the driver's function of it.
//! * [`for_each_hook`]: the part of them that Takt stands in front of.
//! * [`result`], [`stream`]: numbers; [`types`]: structures, as far as Takt reads them.
//!
//! A slot per entry point holds the driver's function, which [`real`] calls. The finder ([`set_finder`]) fills it when
//! it is first used. A function that the driver lacks answers [`result::NOT_FOUND`].

#[macro_use]
mod table;
mod hooks;
pub mod types;

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

pub use types::Handle64;

/// Pointers and handles of all kinds: a wrapper only hands them on.
pub type Ptr = *mut c_void;

/// Numbers of results.
#[expect(missing_docs, reason = "documented by the vendor")]
pub mod result {
    pub const SUCCESS: i32 = 0;
    pub const INVALID_VALUE: i32 = 1;
    pub const OUT_OF_MEMORY: i32 = 2;
    pub const NOT_INITIALIZED: i32 = 3;
    pub const DEINITIALIZED: i32 = 4;
    pub const NO_DEVICE: i32 = 100;
    pub const INVALID_DEVICE: i32 = 101;
    pub const INVALID_IMAGE: i32 = 200;
    pub const INVALID_CONTEXT: i32 = 201;
    pub const INVALID_HANDLE: i32 = 400;
    pub const ILLEGAL_STATE: i32 = 401;
    pub const NOT_FOUND: i32 = 500;
    pub const NOT_READY: i32 = 600;
    pub const ILLEGAL_ADDRESS: i32 = 700;
    pub const CONTEXT_IS_DESTROYED: i32 = 709;
    pub const NOT_SUPPORTED: i32 = 801;
    pub const STREAM_CAPTURE_UNSUPPORTED: i32 = 900;
    pub const STREAM_CAPTURE_INVALIDATED: i32 = 901;
    pub const STREAM_CAPTURE_IMPLICIT: i32 = 906;
    pub const STREAM_CAPTURE_WRONG_THREAD: i32 = 908;
}

/// Streams that every context has.
pub mod stream {
    /// The default stream of the context, by the usual names; that of the thread by names that end in `_ptsz`.
    pub const DEFAULT: usize = 0;
    /// The default stream of the context, by any name.
    pub const LEGACY: usize = 1;
    /// The default stream of the thread, by any name.
    pub const PER_THREAD: usize = 2;
}

macro_rules! declare {
    ($( $name:ident ( $($arg:ident : $ty:ty),* ) ; )*) => {
        /// Every entry point, by name.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u16)]
        #[expect(non_camel_case_types, reason = "names of the API")]
        #[expect(missing_docs, reason = "documented by the vendor")]
        pub enum Id { $($name),* }

        /// Names by number; sorted.
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];

        /// Entry points by number.
        pub const IDS: [Id; COUNT] = [$(Id::$name),*];

        /// Types of the entry points.
        #[allow(non_camel_case_types, missing_docs, reason = "names of the API")]
        pub mod kind {
            use super::{Handle64, Ptr};
            $(pub type $name = unsafe extern "C" fn($($ty),*) -> i32;)*
        }

        /// The driver's functions.
        #[allow(non_snake_case, reason = "names of the API")]
        #[allow(clippy::too_many_arguments, reason = "signatures of the API")]
        #[allow(clippy::missing_safety_doc, reason = "what each of them demands is said by the vendor")]
        #[allow(missing_docs, reason = "documented by the vendor")]
        pub mod real {
            use super::{Handle64, Id, Ptr, kind, result, slot};
            $(
                #[inline]
                pub unsafe fn $name($($arg: $ty),*) -> i32 {
                    let function = slot(Id::$name);
                    if function.is_null() {
                        return result::NOT_FOUND;
                    }
                    // SAFETY: the slot holds the driver's function of this name, whose signature the table tells.
                    let call: kind::$name = unsafe { std::mem::transmute(function) };
                    // SAFETY: up to the caller, as if it had called the driver.
                    unsafe { call($($arg),*) }
                }
            )*
        }
    };
}

for_each_entry_point!(declare);

/// How many entry points there are.
pub const COUNT: usize = NAMES.len();

static REAL: [AtomicPtr<c_void>; COUNT] = [const { AtomicPtr::new(ptr::null_mut()) }; COUNT];

/// Finds a driver's function by name.
pub type Finder = fn(&CStr) -> Ptr;

/// How to find functions.
static FINDER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

impl Id {
    /// The entry point of that name.
    pub fn of(name: &CStr) -> Option<Self> {
        Self::named(name.to_str().ok()?)
    }

    /// The same.
    pub fn named(name: &str) -> Option<Self> {
        NAMES.binary_search(&name).ok().map(|at| IDS[at])
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// The driver's function; null if it has none.
    pub fn function(self) -> Ptr {
        slot(self)
    }
}

/// Sets how functions are found.
pub fn set_finder(finder: Finder) {
    FINDER.store(finder as *mut c_void, Ordering::Release);
}

/// The driver's function; null if it has none.
#[inline]
fn slot(id: Id) -> Ptr {
    let known = REAL[id as usize].load(Ordering::Acquire);
    if known.is_null() { find(id) } else { known }
}

#[cold]
fn find(id: Id) -> Ptr {
    let finder = FINDER.load(Ordering::Acquire);
    let Some(finder) = ptr::NonNull::new(finder) else {
        return ptr::null_mut();
    };
    // SAFETY: only `set_finder` writes it, and with a finder.
    let finder: Finder = unsafe { std::mem::transmute(finder) };
    let mut name = [0_u8; NAME_BYTES];
    let text = id.name().as_bytes();
    name[..text.len()].copy_from_slice(text);
    // SAFETY: the name is followed by a zero byte, because no name fills the array.
    let real = finder(unsafe { CStr::from_ptr(name.as_ptr().cast::<c_char>()) });
    REAL[id as usize].store(real, Ordering::Release);
    real
}

/// Room for the longest name and its end.
const NAME_BYTES: usize = 96;

const _: () = {
    let mut at = 0;
    while at < COUNT {
        assert!(NAMES[at].len() < NAME_BYTES);
        at += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_found() {
        assert!(NAMES.is_sorted());
        assert_eq!(Id::of(c"cuLaunchKernel_ptsz"), Some(Id::cuLaunchKernel_ptsz));
        assert_eq!(Id::of(c"cuLaunchKerne"), None);
        assert_eq!(Id::cuMemcpyHtoD_v2_ptds.name(), "cuMemcpyHtoD_v2_ptds");
    }

    #[test]
    fn what_the_driver_lacks_is_not_called() {
        // SAFETY: no driver is loaded, so nothing is called.
        assert_eq!(unsafe { real::cuInit(0) }, result::NOT_FOUND);
    }
}
