//! How calls end.

use std::ffi::{CStr, c_char};

/// How a call ended. Negative: nothing was done, as the caller made a mistake, or libtakt did
/// (TAKT_INTERNAL).
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Done.
    TAKT_OK = 0,
    /// Done, but the app is unscheduled: it goes on as if Takt were not there.
    TAKT_UNSCHEDULED = 1,
    /// A pointer that must not be is NULL.
    TAKT_NULL = -1,
    /// A number is out of range, or a text is no UTF-8 or too long.
    TAKT_INVALID = -2,
    /// A structure was not made by its initialiser, or is of a later version than the library.
    TAKT_SIZE = -3,
    /// A mistake in libtakt, not of the caller; the app should be left.
    TAKT_INTERNAL = -4,
    /// There are as many as there can be: end some first.
    TAKT_BUSY = -5,
}

impl Status {
    fn text(self) -> &'static CStr {
        match self {
            Self::TAKT_OK => c"done",
            Self::TAKT_UNSCHEDULED => c"unscheduled, the program runs on; takt_message says why",
            Self::TAKT_NULL => c"a pointer is NULL that must not be",
            Self::TAKT_INVALID => c"a number is out of range, or a text is no UTF-8 or too long",
            Self::TAKT_SIZE => {
                c"initialise the structure first; if that was done, the library is older than the program"
            }
            Self::TAKT_BUSY => c"there are as many as there can be: end some first",
            Self::TAKT_INTERNAL => c"a mistake in libtakt, please report it",
        }
    }
}

/// What a status means, in English. Never NULL; the text lives forever.
#[unsafe(no_mangle)]
pub extern "C" fn takt_strerror(status: i32) -> *const c_char {
    let all = [
        Status::TAKT_OK,
        Status::TAKT_UNSCHEDULED,
        Status::TAKT_NULL,
        Status::TAKT_INVALID,
        Status::TAKT_SIZE,
        Status::TAKT_INTERNAL,
        Status::TAKT_BUSY,
    ];
    // A number from a program becomes an enum only after it is known to be one.
    let known = all.into_iter().find(|known| *known as i32 == status);
    known.map_or(c"no status of libtakt", Status::text).as_ptr()
}
