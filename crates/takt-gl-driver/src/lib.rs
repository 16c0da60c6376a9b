//! The system's EGL and GL ES, loaded at run time and called safely.
//!
//! [`Egl`] and [`Gl`] call the driver through the table of entry points ([`takt_gl_api::entry`]). Functions that take
//! plain numbers are safe as they are, because the driver checks them; those that take pointers take slices here, and
//! check that they are long enough. Libraries are never unloaded, so a function that was found once stays valid.

mod egl;
mod feedback;
mod gl;
mod inputs;
mod library;
mod mesh;
mod newer;
mod targets;
mod vertices;

pub use egl::{Egl, Fences, Waited};
pub use feedback::Feedback;
pub use gl::{Gl, Stamp, Stamps, Timer};
pub use inputs::{UNIT_2D, UNIT_CUBE};
pub use library::{Library, Missing};
pub use mesh::{Array, Mesh};
pub use newer::{Blit, Compute};
pub use targets::{PixelLayout, Targets};
pub use vertices::Vertices;

/// Safe methods for functions that take plain numbers or handles, which the library itself checks,
/// and a list of all functions that must be there.
macro_rules! numbers {
    ($table:ident needs $list:ident { $($extra:ident),* $(,)? }
     $($(#[$doc:meta])* $name:ident = $real:ident ($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {
        #[expect(missing_docs, reason = "named as the functions that they call, which Khronos documents")]
        impl $table {
            $(pub fn $name(&self, $($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the function takes numbers and handles only, and checks them itself;
                // that it is there was checked when this was made.
                unsafe { takt_gl_api::entry::real::$real($($arg as _),*) $(as $ret)? }
            })*
        }

        const $list: &[takt_gl_api::entry::Id] =
            &[$(takt_gl_api::entry::Id::$real,)* $(takt_gl_api::entry::Id::$extra),*];
    };
}
use numbers;

/// A length as GL takes it.
fn length(count: usize) -> i32 {
    i32::try_from(count).expect("GL counts in 31 bits")
}
