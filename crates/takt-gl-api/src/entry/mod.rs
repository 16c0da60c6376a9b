//! The table of entry points: names, types, and the driver's functions.
//!
//! A slot per entry point holds the driver's function, which [`real`] calls. A slot is filled by
//! [`keep`], or by the finder ([`set_finder`]) when it is first used.

#[macro_use]
mod table;

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Pointers and handles of all kinds: a wrapper only hands them on.
pub type Ptr = *mut c_void;

macro_rules! declare {
    ($( $api:ident $name:ident ( $($arg:ident : $ty:ty),* ) $(-> $ret:ty)? ; )*) => {
        /// Every entry point, by name.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u16)]
        #[expect(non_camel_case_types, reason = "names of the registry")]
        #[expect(missing_docs, reason = "documented by Khronos")]
        pub enum Id { $($name),* }

        /// Names by number; sorted.
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];

        /// Whose each of them is: `egl`, `glx`, `gles`, or `gl` for what only desktop GL has.
        pub const APIS: &[&str] = &[$(stringify!($api)),*];

        /// Entry points by number.
        pub const IDS: [Id; COUNT] = [$(Id::$name),*];

        /// Types of the entry points.
        #[allow(non_camel_case_types, missing_docs, reason = "names of the registry")]
        pub mod kind {
            use super::Ptr;
            $(pub type $name = unsafe extern "C" fn($($ty),*) $(-> $ret)?;)*
        }

        /// The driver's functions.
        #[allow(non_snake_case, reason = "names of the registry")]
        #[allow(clippy::too_many_arguments, reason = "signatures of the registry")]
        #[allow(clippy::missing_safety_doc, reason = "what each of them demands is said by Khronos")]
        #[allow(missing_docs, reason = "documented by Khronos")]
        pub mod real {
            use super::{Id, Ptr, kind, slot};
            $(
                #[inline]
                pub unsafe fn $name($($arg: $ty),*) $(-> $ret)? {
                    // SAFETY: the slot holds the driver's function of this name, whose signature
                    // the registry tells.
                    let call: kind::$name = unsafe { std::mem::transmute(slot(Id::$name)) };
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
pub type Finder = unsafe extern "C" fn(*const c_char) -> Ptr;

/// How to find functions that the program has not asked for.
static FINDER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

impl Id {
    /// The entry point of that name.
    pub fn of(name: &CStr) -> Option<Self> {
        let name = name.to_str().ok()?;
        let at = NAMES.binary_search(&name).ok()?;
        Some(IDS[at])
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// Whose it is, as [`APIS`] has it.
    pub fn api(self) -> &'static str {
        APIS[self as usize]
    }

    /// Whether the driver has it; looks for it if it is not known yet.
    pub fn is_there(self) -> bool {
        !slot(self).is_null()
    }
}

/// Sets how functions are found that the program has not asked for.
pub fn set_finder(finder: Finder) {
    FINDER.store(finder as *mut c_void, Ordering::Release);
}

/// Keeps the driver's function of that name; the entry point, if it is known and `real` not null.
pub fn keep(name: &CStr, real: Ptr) -> Option<Id> {
    let id = Id::of(name).filter(|_| !real.is_null())?;
    REAL[id as usize].store(real, Ordering::Release);
    Some(id)
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
    let real = unsafe { finder(name.as_ptr().cast()) };
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
        assert_eq!(Id::of(c"glDrawArrays"), Some(Id::glDrawArrays));
        assert_eq!(Id::of(c"glDrawArray"), None);
        assert_eq!(Id::eglSwapBuffersWithDamageKHR.name(), "eglSwapBuffersWithDamageKHR");
        let apis = [Id::eglInitialize, Id::glXSwapBuffers, Id::glDrawArrays, Id::glBegin].map(Id::api);
        assert_eq!(apis, ["egl", "glx", "gles", "gl"]);
    }

    #[test]
    fn neither_null_nor_unknown_names_are_kept() {
        assert_eq!(keep(c"glDrawArrays", ptr::null_mut()), None);
        assert_eq!(keep(c"glFutureExtensionXYZ", ptr::dangling_mut()), None);
    }
}
