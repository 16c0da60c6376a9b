//! Signals that a library in another's process must not receive, nor cause.

use std::{mem, ptr};

use crate::sandbox;

/// Signals that a thread causes itself. The kernel kills a process in which one of them is blocked, and programs in a
/// sandbox answer forbidden system calls in a handler of SIGSYS.
const OWN: [libc::c_int; 6] =
    [libc::SIGSYS, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];

/// Starts something with all signals blocked that others send. A thread that is started so never receives any: the
/// program's signals are for the program's threads.
pub fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: plain data without invariants; both calls below fill it in.
    let mut all: libc::sigset_t = unsafe { mem::zeroed() };
    let mut before = all;
    // SAFETY: the set is ours.
    unsafe { libc::sigfillset(&raw mut all) };
    for signal in OWN {
        // SAFETY: as above.
        unsafe { libc::sigdelset(&raw mut all, signal) };
    }
    // SAFETY: both sets are ours; a thread inherits the mask of the thread that starts it.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
    let result = start();
    // SAFETY: puts back what was there.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
    result
}

/// Signals that end a program together with its neighbours on a terminal do not end this process.
pub fn outlive_others() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM] {
        // SAFETY: nothing is called.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Writes to standard error without a lock that a forked process may find held, and without the signal by which
/// most programs die when no reader is left. What cannot be written is dropped.
pub fn write_to_stderr(bytes: &[u8]) {
    without_broken_pipe(|| {
        let mut rest = bytes;
        while !rest.is_empty() {
            // SAFETY: so many bytes are there.
            let written = unsafe { libc::write(libc::STDERR_FILENO, rest.as_ptr().cast(), rest.len()) };
            match usize::try_from(written) {
                Ok(written) if written > 0 => rest = rest.get(written..).unwrap_or_default(),
                Err(_) if std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) => {}
                _ => break,
            }
        }
    });
}

/// Keeps SIGPIPE from the program if it is ours.
fn without_broken_pipe(write: impl FnOnce()) {
    // Chromium ignores the signal, and its sandbox forbids the questions below.
    if sandbox::is_expected() {
        return write();
    }
    // SAFETY: plain data without invariants; the calls below fill it in.
    let mut pipe: libc::sigset_t = unsafe { mem::zeroed() };
    let (mut before, mut pending) = (pipe, pipe);
    // SAFETY: the set is ours.
    unsafe { libc::sigemptyset(&raw mut pipe) };
    // SAFETY: as above.
    unsafe { libc::sigaddset(&raw mut pipe, libc::SIGPIPE) };
    // SAFETY: as above.
    unsafe { libc::sigpending(&raw mut pending) };
    // SAFETY: as above.
    let theirs = unsafe { libc::sigismember(&raw const pending, libc::SIGPIPE) } == 1;
    // SAFETY: both sets are ours.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const pipe, &raw mut before) };
    write();
    if !theirs {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: set and time are ours; takes the signal if there is one, and waits for none.
        unsafe { libc::sigtimedwait(&raw const pipe, ptr::null_mut(), &raw const now) };
    }
    // SAFETY: puts back what was there.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_ours_get_the_signals_that_they_cause_and_no_others() {
        let is_blocked = |signal| {
            // SAFETY: plain data without invariants; the call below fills it in.
            let mut mask: libc::sigset_t = unsafe { mem::zeroed() };
            // SAFETY: reads the mask of this thread into room of ours.
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut mask) };
            // SAFETY: the set is ours.
            (unsafe { libc::sigismember(&raw const mask, signal) }) == 1
        };
        let blocked = move || [libc::SIGTERM, libc::SIGCHLD, libc::SIGUSR1].map(is_blocked);
        let caused = move || OWN.map(is_blocked);
        let started = without_signals(|| std::thread::Builder::new().spawn(move || (blocked(), caused())));
        assert_eq!(started.expect("it starts").join().expect("it ends"), ([true; 3], [false; 6]));
        assert_eq!(blocked(), [false; 3], "this thread has its mask back");
    }
}
