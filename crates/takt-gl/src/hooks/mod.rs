//! The calls that are looked at.
//!
//! Each hook hands its call to the driver exactly once, with the arguments it came with, and
//! returns what the driver returned; only long draws are handed over in pieces, where a
//! daemon schedules. What a hook does besides happens inside of
//! [`current::with`](crate::monitor::current::with), where nothing that goes wrong reaches the
//! program. Nobody looks at anything unless settings ask for it.

mod draw;
mod egl;
mod given;
mod object;
mod observe;
mod pieces;
mod program;
mod query;
mod raster;
mod submit;
mod texture;
mod uniform;
mod vertex;

use crate::entry::{Id, Ptr};
use crate::settings::settings;

/// Functions that call the driver and then note what it was asked to do. The name of a method of
/// `State` before the arrow is called first.
macro_rules! noted {
    ($( $name:ident ( $($arg:ident : $ty:ty),* ) $($before:ident)? => |$state:ident| $note:expr; )*) => {
        $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name($($arg: $ty),*) {
                $($crate::monitor::current::with($crate::monitor::context::State::$before);)?
                // SAFETY: the program's own call.
                unsafe { $crate::entry::real::$name($($arg),*) };
                $crate::monitor::current::with(|$state| $note);
            }
        )*
        $crate::hooks::offered!($($name)*);
    };
}

/// What a module of hooks offers, by name.
macro_rules! offered {
    ($($name:ident)*) => {
        pub(in crate::hooks) fn of(id: $crate::entry::Id) -> Option<$crate::entry::Ptr> {
            match id {
                $($crate::entry::Id::$name => {
                    let hook: $crate::entry::kind::$name = $name;
                    Some(hook as $crate::entry::Ptr)
                })*
                _ => None,
            }
        }
    };
}

use {noted, offered};

/// What programs get in place of the driver's function.
pub fn of(id: Id) -> Option<Ptr> {
    if !settings().watches() {
        return None;
    }
    let modules: [fn(Id) -> Option<Ptr>; 15] = [
        draw::of,
        egl::of,
        object::of,
        object::special::of,
        observe::of,
        pieces::of,
        program::of,
        program::special::of,
        query::of,
        raster::of,
        submit::of,
        submit::fences::of,
        texture::of,
        uniform::of,
        vertex::of,
    ];
    modules.iter().find_map(|of| of(id))
}
