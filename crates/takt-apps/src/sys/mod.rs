//! The system's libraries, loaded at run time: a program starts on a machine that lacks some of
//! them, and says what is missing when it needs it.
//!
//! All unsafe code of the crate is in this folder. Libraries are never unloaded, so a function that
//! was found once stays valid for the rest of the process.
#![expect(unsafe_code, reason = "calls into C libraries cannot be checked by the compiler")]

pub(crate) mod clock;
pub(crate) mod egl;
pub(crate) mod gl;
pub(crate) mod signal;
pub(crate) mod wayland;
pub(crate) mod x11;
mod xdg_shell;

use std::ffi::{CStr, c_void};

use libloading::Library;

/// Why a library cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Missing {
    /// It is not there, or does not load.
    #[error("cannot load {name}: {reason} (Debian: install {package})")]
    Library {
        /// File name.
        name: &'static str,
        /// What the loader says.
        reason: String,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// It lacks a function.
    #[error("the system's libraries lack the function {0}")]
    Function(String),
}

/// Loads a library for good.
fn open(name: &'static str, package: &'static str) -> Result<&'static Library, Missing> {
    // SAFETY: loading runs the initialisers of a system library, as linking with it would.
    let library = unsafe { Library::new(name) };
    let library = library.map_err(|error| Missing::Library { name, reason: error.to_string(), package })?;
    Ok(Box::leak(Box::new(library)))
}

/// The address of a function or variable; null if there is none.
fn address(library: &'static Library, name: &CStr) -> *const c_void {
    // SAFETY: only the address is taken; who uses it states the type.
    let symbol = unsafe { library.get::<*const c_void>(name) };
    symbol.map_or(std::ptr::null(), |symbol| *symbol)
}

fn non_null(name: &CStr, found: *const c_void) -> Result<*const c_void, Missing> {
    if found.is_null() { Err(Missing::Function(name.to_string_lossy().into_owned())) } else { Ok(found) }
}

/// A table of C functions, filled by a function that finds addresses by name.
///
/// Functions under `safe` take plain numbers or handles that the library itself checks; they become
/// safe methods. Those under `raw` take pointers and are wrapped by hand.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident {
        safe { $($safe:ident = $safe_symbol:literal ($($arg:ident: $ty:ty),*) -> $ret:ty;)* }
        raw { $($raw:ident = $raw_symbol:literal ($($raw_ty:ty),*) -> $raw_ret:ty;)* }
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $table {
            $($safe: unsafe extern "C" fn($($ty),*) -> $ret,)*
            $($raw: unsafe extern "C" fn($($raw_ty),*) -> $raw_ret,)*
        }

        impl $table {
            fn find(find: &dyn Fn(&CStr) -> *const c_void) -> Result<Self, $crate::sys::Missing> {
                Ok(Self {
                    $($safe: {
                        let found = $crate::sys::non_null($safe_symbol, find($safe_symbol))?;
                        // SAFETY: the function of that name has this signature, by the headers of
                        // its library; `found` is not null and stays loaded.
                        unsafe {
                            std::mem::transmute::<*const c_void, unsafe extern "C" fn($($ty),*) -> $ret>(found)
                        }
                    },)*
                    $($raw: {
                        let found = $crate::sys::non_null($raw_symbol, find($raw_symbol))?;
                        // SAFETY: as above.
                        unsafe {
                            std::mem::transmute::<*const c_void, unsafe extern "C" fn($($raw_ty),*) -> $raw_ret>(found)
                        }
                    },)*
                })
            }

            $(pub(crate) fn $safe(&self, $($arg: $ty),*) -> $ret {
                // SAFETY: the function takes numbers and handles only, and checks them itself.
                unsafe { (self.$safe)($($arg),*) }
            })*
        }
    };
}
use functions;
