//! What programs get for the entry points of the driver.
//!
//! Programs get the driver's function itself, or a hook, which calls it through [`real`]. So a call
//! without a hook costs nothing when it was found by `eglGetProcAddress`, and a jump when it was
//! linked.

use std::ffi::CStr;

pub use takt_gl_api::entry::*;

use crate::hooks;

/// What a program gets that asked for `name`, given what the driver has: a hook, or the driver's
/// own function.
pub fn offer(name: &CStr, real: Ptr) -> Ptr {
    keep(name, real).and_then(hooks::of).unwrap_or(real)
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn what_the_driver_lacks_stays_lacking() {
        assert!(offer(c"glDrawArrays", ptr::null_mut()).is_null());
    }

    #[test]
    fn unknown_names_pass() {
        let real = ptr::dangling_mut();
        assert_eq!(offer(c"glFutureExtensionXYZ", real), real);
    }
}
