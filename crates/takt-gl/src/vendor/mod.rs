//! In front of a driver, as a vendor of libglvnd: of its libEGL ([`egl`]) or of its libGLX ([`glx`]).
//!
//! libglvnd loads vendors and calls the main function of each. Ours loads the driver it stands for, lets it
//! fill in libglvnd's table, and then puts itself between: every request for an entry point comes to us,
//! however the program makes it. Everything else in the table stays the driver's.
//!
//! A driver could rewrite libglvnd's entry points, past our hooks; so it is not told that it may.

pub mod egl;
pub mod glx;

use std::ffi::{CStr, CString, OsStr, c_void};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::entry::{self, Finder, Ptr};
use crate::guard::{self, say};

/// Beside the library: a [`Note`].
pub const INNER_FILE: &str = "driver";

/// Names the driver when there is no such file.
pub const INNER_VARIABLE: &str = "TAKT_EGL_DRIVER";

/// What a copy of this library is told: the driver it stands for, and which of how many copies it
/// is. They share a process without knowing each other, but number its contexts together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// Name or path of the driver's library.
    pub driver: String,
    /// Number of this copy, from 0.
    pub number: u64,
    /// How many copies there are.
    pub copies: u64,
}

impl Note {
    /// Reads a note; one without numbers is that of a single copy.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(str::trim);
        let driver = lines.next().filter(|driver| !driver.is_empty())?.to_owned();
        let mut numbers = lines.map(|line| line.parse().ok());
        let (number, copies) = (numbers.next().flatten().unwrap_or(0), numbers.next().flatten().unwrap_or(1));
        (number < copies).then_some(Self { driver, number, copies })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}\n{}\n", self.driver, self.number, self.copies)
    }
}

/// The library stands between from now on; what it was not asked for it finds so.
fn begin(finder: Finder) {
    guard::speak_for_panics();
    stay_loaded();
    entry::set_finder(finder);
}

/// Loads a driver, and gives its main function. One that is described but not installed is passed over in
/// silence, as libglvnd does; `takt doctor` tells.
fn load(driver: &str, main: &CStr) -> Option<Ptr> {
    let name = CString::new(driver).ok()?;
    // SAFETY: loading runs the driver's initialisers, as libglvnd would have done.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: the handle is valid, the name ends with a zero byte.
    let found = unsafe { libc::dlsym(handle, main.as_ptr()) };
    if found.is_null() {
        say(&format!("{driver} is no driver for libglvnd: it lacks {}", main.to_string_lossy()));
        return None;
    }
    Some(found)
}

/// What this copy of the library was told; where that is nothing, the user is.
fn note_or_say() -> Option<&'static Note> {
    let note = note();
    if note.is_none() {
        say(&format!(
            "no driver is named: neither a file '{INNER_FILE}' beside the library nor {INNER_VARIABLE}"
        ));
    }
    note
}

/// What this copy of the library was told.
fn note() -> Option<&'static Note> {
    static NOTE: OnceLock<Option<Note>> = OnceLock::new();
    let read = || {
        let beside =
            own_path().and_then(|path| std::fs::read_to_string(path.with_file_name(INNER_FILE)).ok());
        let text = beside.or_else(|| std::env::var(INNER_VARIABLE).ok())?;
        Note::parse(&text)
    };
    NOTE.get_or_init(read).as_ref()
}

/// A number for the context that is the `count`th in this copy, unlike those of other copies.
pub fn context_number(count: u64) -> u64 {
    let (number, copies) =
        note().filter(|_| egl::is_used() || glx::is_used()).map_or((0, 1), |note| (note.number, note.copies));
    count.saturating_mul(copies).saturating_add(number)
}

/// Threads of ours may outlast libglvnd, which unloads drivers at exit.
fn stay_loaded() {
    let path = own_path().and_then(|path| CString::new(path.into_os_string().into_encoded_bytes()).ok());
    if let Some(path) = path {
        // SAFETY: nothing is loaded that is not loaded already.
        unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
    }
}

/// Where this library was loaded from.
fn own_path() -> Option<PathBuf> {
    // SAFETY: plain data without invariants.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for; the answer is written to valid memory.
    let found = unsafe { libc::dladdr(own_path as *const c_void, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's name of this library, which stays as long as the library does.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_are_written() {
        let note = Note { driver: "/a b/libEGL_x.so.0".to_owned(), number: 1, copies: 3 };
        assert_eq!(Note::parse(&note.to_string()), Some(note));
        let single = Note { driver: "libEGL_x.so.0".to_owned(), number: 0, copies: 1 };
        assert_eq!(Note::parse("libEGL_x.so.0"), Some(single));
        assert_eq!(Note::parse("\n0\n1\n"), None);
        assert_eq!(Note::parse("libEGL_x.so.0\n2\n2\n"), None, "numbers begin with 0");
    }
}
