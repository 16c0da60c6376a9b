//! The system's libraries, loaded at run time: a program starts on a machine that lacks some of
//! them, and says what is missing when it needs it.
//!
//! All unsafe code of the crate is in this folder. Libraries are never unloaded, so a function that
//! was found once stays valid for the rest of the process.
#![expect(unsafe_code, reason = "calls into C libraries cannot be checked by the compiler")]

pub(crate) mod clock;
pub(crate) mod signal;
pub(crate) mod wayland;
pub(crate) mod x11;
mod xdg_shell;

/// A table of C functions, found by name in a library.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident { $($name:ident = $symbol:literal ($($ty:ty),*) -> $ret:ty;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $table {
            $($name: unsafe extern "C" fn($($ty),*) -> $ret,)*
        }

        impl $table {
            fn find(library: &takt_gl_driver::Library) -> Result<Self, takt_gl_driver::Missing> {
                Ok(Self {
                    $($name: {
                        let found = library.needed($symbol)?;
                        // SAFETY: the function of that name has this signature, by the headers of
                        // its library; `found` is not null and stays loaded.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> $ret>(found)
                        }
                    },)*
                })
            }
        }
    };
}
use functions;
