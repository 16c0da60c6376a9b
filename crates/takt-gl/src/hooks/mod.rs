//! The calls that are looked at.
//!
//! Each hook hands its call to the driver exactly once, with the arguments it came with, and
//! returns what the driver returned; only long draws are handed over in pieces, where a
//! daemon schedules. What a hook does besides happens inside of
//! [`current::with`](crate::client::current::with), where nothing that goes wrong reaches the
//! program. No call is hooked unless settings ask for it.

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

/// Functions that call the driver and then note what it was asked to do. What they copy, if anything,
/// is stated before the arrow, and noted before the call.
macro_rules! noted {
    ($(
        $name:ident ( $($arg:ident : $ty:ty),* ) $(copies |$before:ident| $work:expr)? => |$state:ident| $note:expr;
    )*) => {
        $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name($($arg: $ty),*) {
                $($crate::client::current::with(|$before| {
                    let work: Option<takt_predict::predictor::Work> = $work;
                    work.into_iter().for_each(|work| $before.about_to_copy(work));
                });)?
                // SAFETY: the program's own call.
                unsafe { $crate::entry::real::$name($($arg),*) };
                $crate::client::current::with(|$state| $note);
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

/// What programs get instead of the driver's function.
pub fn of(id: Id) -> Option<Ptr> {
    if settings().watches() { hook(id) } else { None }
}

fn hook(id: Id) -> Option<Ptr> {
    let modules: [fn(Id) -> Option<Ptr>; 17] = [
        draw::of,
        draw::rare::of,
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
        submit::waits::of,
        texture::of,
        texture::images::of,
        uniform::of,
        vertex::of,
    ];
    modules.iter().find_map(|of| of(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{IDS, NAMES};

    /// How names of entry points begin that give the GPU work.
    const WORK: [&str; 22] = [
        "eglCopyBuffers",
        "eglPost",
        "eglSwapBuffers",
        "glBlitFramebuffer",
        "glBufferData",
        "glBufferStorageEXT",
        "glBufferSubData",
        "glClear",
        "glCompressedTex",
        "glCopy",
        "glCoverFill",
        "glCoverStroke",
        "glDispatch",
        "glDraw",
        "glGenerateMipmap",
        "glMultiDraw",
        "glResolve",
        "glStencilFill",
        "glStencilStroke",
        "glStencilThen",
        "glTexImage",
        "glTexSubImage",
    ];

    /// Those among them that do not, or not by themselves.
    const IDLE: [(&str, &str); 6] = [
        ("glClearColor", "a value for later"),
        ("glClearDepth", "a value for later"),
        ("glClearPixelLocalStorage", "memory inside of the GPU's tiles, not a pass over a target"),
        ("glClearStencil", "a value for later"),
        ("glCopyPath", "copies an outline, which the driver keeps"),
        ("glDrawBuffers", "says where draws go"),
    ];

    #[test]
    fn all_work_passes_a_hook() {
        let of = |list: &[&str], name: &str| list.iter().any(|start| name.starts_with(start));
        let idle = IDLE.map(|(start, _reason)| start);
        for start in WORK.iter().chain(&idle) {
            assert!(NAMES.iter().any(|name| name.starts_with(start)), "{start} names nothing");
        }
        for (name, id) in NAMES.iter().zip(IDS) {
            assert_eq!(
                of(&WORK, name) && !of(&idle, name),
                of(&WORK, name) && hook(id).is_some(),
                "{name} gives the GPU work exactly if it is hooked"
            );
        }
    }
}
