//! Which open files started programs inherit.

use std::io::{Error, Result};

/// The first descriptor after the standard streams.
const FIRST: libc::c_uint = 3;

/// Closes everything that is open now, except the standard streams, in programs that this process
/// starts. That includes descriptors that it inherited itself.
pub fn close_on_exec() -> Result<()> {
    let (last, flags) = (libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    // SAFETY: it marks descriptors and closes none.
    let done = unsafe { libc::syscall(libc::SYS_close_range, FIRST, last, flags) };
    match Error::last_os_error() {
        _ if done == 0 => Ok(()),
        // Before Linux 5.11 there is no such call, and descriptors stay as they are.
        error if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) => Ok(()),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

    #[test]
    fn inherited_descriptors_are_marked() {
        let file = std::fs::File::open("/dev/null").expect("there");
        fcntl_setfd(&file, FdFlags::empty()).expect("set");
        close_on_exec().expect("done");
        assert_eq!(fcntl_getfd(&file), Ok(FdFlags::CLOEXEC));
    }
}
