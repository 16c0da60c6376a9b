//! What programs that are started find open.

use std::io::{Error, Result};

/// The first descriptor after those that every program has.
const FIRST: libc::c_uint = 3;

/// Whatever this process has open besides its standard streams, be it inherited itself, is closed in
/// programs that it starts from now on.
pub fn nothing() -> Result<()> {
    let (last, flags) = (libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    // SAFETY: nothing is closed here; what is marked is closed where another program begins.
    let done = unsafe { libc::syscall(libc::SYS_close_range, FIRST, last, flags) };
    match Error::last_os_error() {
        _ if done == 0 => Ok(()),
        // Before Linux 5.11: what is open stays so, as ever.
        error if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) => Ok(()),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

    #[test]
    fn foreign_descriptors_end_here() {
        let file = std::fs::File::open("/dev/null").expect("there");
        fcntl_setfd(&file, FdFlags::empty()).expect("set");
        nothing().expect("done");
        assert_eq!(fcntl_getfd(&file), Ok(FdFlags::CLOEXEC));
    }
}
