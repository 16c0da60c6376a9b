//! The calls that are looked at.
//!
//! Each hook hands its call to the driver exactly once, with the arguments it came with, and
//! returns what the driver returned; only long draws and dispatches are handed over in pieces, where a
//! daemon schedules. What a hook does besides happens inside of
//! [`current::with`](crate::client::current::with), where nothing that goes wrong reaches the
//! program. No call is hooked unless settings ask for it.

mod desktop;
mod dispatch;
mod draw;
mod egl;
mod given;
mod glx;
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
                    $before.builder.call(stringify!($name));
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
    let modules: [fn(Id) -> Option<Ptr>; 27] = [
        desktop::of,
        dispatch::of,
        draw::of,
        draw::fills::of,
        draw::rare::of,
        egl::of,
        glx::of,
        glx::copies::of,
        object::of,
        object::special::of,
        observe::of,
        pieces::of,
        pieces::based::of,
        pieces::several::of,
        pieces::unknown::of,
        program::of,
        program::special::of,
        query::of,
        raster::of,
        submit::of,
        submit::boundaries::of,
        submit::reads::of,
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
    const WORK: [&str; 33] = [
        "eglCopyBuffers",
        "eglPost",
        "eglSwapBuffers",
        "glApplyFramebufferAttachment",
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
        "glExtrapolateTex",
        "glFlushMapped",
        "glGenerateMipmap",
        "glMultiDraw",
        "glResolve",
        "glStencilFill",
        "glStencilStroke",
        "glStencilThen",
        "glTexEstimateMotion",
        "glTexImage",
        "glTexSubImage",
        "glUnmapBuffer",
        "glXBlit",
        "glXCopyBuffer",
        "glXCopyImage",
        "glXCopySubBuffer",
        "glXNamedCopy",
        "glXSwapBuffers",
    ];

    /// The same of those that only desktop GL has.
    const DESKTOP_WORK: [&str; 17] = [
        "glAccum",
        "glAsyncCopy",
        "glBegin",
        "glBitmap",
        "glBlitNamed",
        "glCall",
        "glClearNamed",
        "glEvalMesh",
        "glMultiMode",
        "glMultiTexImage",
        "glNamedBufferData",
        "glNamedCopy",
        "glRect",
        "glTextureSubImage",
        "glUnmap",
        "glUpdateObjectBuffer",
        "glVideoCaptureNV",
    ];

    /// Those among them that do not, or not by themselves.
    const IDLE: [(&str, &str); 11] = [
        ("glBeginFragmentShaderATI", "the text of a shader"),
        ("glBeginVertexShaderEXT", "the text of a shader"),
        ("glBeginVideoCaptureNV", "a device of its own"),
        ("glClearAccum", "a value for later"),
        ("glClearColor", "a value for later"),
        ("glClearDepth", "a value for later"),
        ("glClearIndex", "a value for later"),
        ("glClearPixelLocalStorage", "memory inside of the GPU's tiles, not a pass over a target"),
        ("glClearStencil", "a value for later"),
        ("glCopyPath", "copies an outline, which the driver keeps"),
        ("glDrawBuffers", "says where draws go"),
    ];

    fn file(path: &str) -> String {
        let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Names between backquotes.
    fn quoted(text: &str) -> impl Iterator<Item = String> {
        text.split('`').skip(1).step_by(2).map(str::to_owned)
    }

    /// Rows of the table of commands of `docs/slicing.md`: commands, and programs that show them.
    fn rows() -> Vec<(Vec<String>, Vec<String>)> {
        let page = file("docs/slicing.md");
        let table = page.lines().skip_while(|line| !line.starts_with("| commands of GL ES 3.2")).skip(2);
        let rows = table.take_while(|line| line.starts_with('|')).map(|row| {
            let cells: Vec<&str> = row.split('|').collect();
            let names = quoted(cells[1]).filter(|name| name.starts_with("gl"));
            (names.collect(), quoted(cells[3]).collect())
        });
        rows.collect()
    }

    /// Names of `docs/slicing.md` that the table of commands has.
    fn documented() -> Vec<String> {
        rows().into_iter().flat_map(|(names, _)| names).collect()
    }

    #[test]
    fn each_row_of_the_table_of_commands_is_shown_by_a_test() {
        let (tests, commands) =
            (file("crates/takt-cli/tests/it/slicing.rs"), file("crates/takt-cli/tests/traps/commands.c"));
        for (names, shown_by) in rows() {
            assert!(shown_by.contains(&"commands".to_owned()), "{names:?}");
            for program in shown_by {
                assert!(tests.contains(&format!("trap(\"{program}\"")), "no test runs {program}");
            }
            for name in names {
                assert!(commands.contains(&format!("CASE({name})")), "commands.c has no case for {name}");
            }
        }
    }

    #[test]
    fn the_table_of_commands_is_complete() {
        let table = documented();
        let of = |list: &[&str], name: &str| list.iter().any(|start| name.starts_with(start));
        let idle = IDLE.map(|(start, _reason)| start);
        // Names of extensions end in that of a vendor.
        let core = |name: &&&str| name.starts_with("gl") && !name.ends_with(|c: char| c.is_ascii_uppercase());
        let es = NAMES.iter().zip(IDS).filter(|(_, id)| id.api() == "gles").map(|(name, _)| name);
        for name in es.filter(core).filter(|name| of(&WORK, name) && !of(&idle, name)) {
            assert!(table.iter().any(|listed| listed == name), "docs/slicing.md does not list {name}");
        }
        for name in &table {
            assert!(
                Id::of(&std::ffi::CString::new(name.as_str()).expect("a name")).and_then(hook).is_some(),
                "{name}"
            );
        }
    }

    #[test]
    fn all_work_passes_a_hook() {
        let of = |list: &[&str], name: &str| list.iter().any(|start| name.starts_with(start));
        let idle = IDLE.map(|(start, _reason)| start);
        for start in WORK.iter().chain(&idle) {
            assert!(NAMES.iter().any(|name| name.starts_with(start)), "{start} names nothing");
        }
        for (name, id) in NAMES.iter().zip(IDS).filter(|(_, id)| id.api() == "gl") {
            let works = of(&WORK, name) || of(&DESKTOP_WORK, name);
            assert!(!works || of(&idle, name) || hook(id).is_some(), "{name} gives the GPU work");
        }
        for (name, id) in NAMES.iter().zip(IDS).filter(|(_, id)| id.api() != "gl") {
            assert_eq!(
                of(&WORK, name) && !of(&idle, name),
                of(&WORK, name) && hook(id).is_some(),
                "{name} gives the GPU work exactly if it is hooked"
            );
        }
    }
}
