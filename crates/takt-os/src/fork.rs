//! What happens around `fork`, and work in a copy of this process.

use std::io;

/// Functions that the C library calls when this process is copied. They run between threads that may hold any
/// lock, so they must take none.
#[derive(Clone, Copy, Debug)]
pub struct Forks {
    /// Before the copy is made.
    pub before: extern "C" fn(),
    /// After it, in the original.
    pub original: extern "C" fn(),
    /// After it, in the copy, which has one thread.
    pub copy: extern "C" fn(),
}

/// Has them called from now on; false if there is no memory for that.
///
/// They must stay loaded: a library that calls this is never unloaded.
pub fn watch(forks: Forks) -> bool {
    // SAFETY: the functions take no arguments and stay loaded.
    unsafe { libc::pthread_atfork(Some(forks.before), Some(forks.original), Some(forks.copy)) == 0 }
}

/// Does something in a copy of this process that is no child of it, and returns at once here. The copy keeps standard
/// error and no other open file, and ends when `work` does.
///
/// To be called while the process has one thread: the copy may find locks of others held for ever. False in the first
/// process of a system or container, which would become the copy's parent.
pub fn beside(work: impl FnOnce()) -> io::Result<bool> {
    if std::process::id() == 1 {
        return Ok(false);
    }
    // SAFETY: this process has one thread, as the caller says; so the copy may do whatever this one may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: as above. Once the one between has ended, no process of ours waits for the second.
            if unsafe { libc::fork() } == 0 {
                close_files();
                work();
            }
            // SAFETY: ends this copy, and runs nothing that its original registered.
            unsafe { libc::_exit(0) }
        }
        child => loop {
            // SAFETY: waits for the child that was just made, and asks for no status.
            if unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } != -1 {
                return Ok(true);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        },
    }
}

/// Standard error of this process leads nowhere from now on: its reader no longer waits for this process.
pub fn leave_stderr() {
    // SAFETY: the name ends with a zero byte.
    let nothing = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    // SAFETY: replaces a file of this process; a failure leaves it as it was.
    unsafe { libc::dup2(nothing, libc::STDERR_FILENO) };
}

/// Closes all files but standard error: who waits for the end of a pipe waits for the original alone.
fn close_files() {
    // SAFETY: the name ends with a zero byte.
    let nothing = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
    for file in [libc::STDIN_FILENO, libc::STDOUT_FILENO] {
        // SAFETY: replaces a file of this copy; a failure leaves it as it was.
        unsafe { libc::dup2(nothing, file) };
    }
    let first = libc::STDERR_FILENO.unsigned_abs() + 1;
    // SAFETY: closes files of this copy, which no code in it uses any more.
    unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
}
