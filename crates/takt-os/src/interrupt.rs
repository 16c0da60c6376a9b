//! Ends waits of a thread inside the kernel that its caller cannot bound, as a signal does: those of a call that
//! closes a socket which lingers, for example.

use std::io;
use std::mem;
use std::ptr;
use std::sync::Once;
use std::time::Duration;

/// A timer that interrupts the thread that made it, and no other.
#[derive(Debug)]
pub struct Interrupter {
    /// A pointer in disguise, so this stays on its thread.
    timer: libc::timer_t,
}

impl Interrupter {
    /// Of the calling thread. It takes the real-time signal [`signal`] for all of the process.
    pub fn of_this_thread() -> io::Result<Self> {
        static HANDLED: Once = Once::new();
        HANDLED.call_once(handle);
        // SAFETY: a zeroed event is a valid one; the fields that matter are set below.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal();
        // SAFETY: it has no arguments and cannot fail.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer: libc::timer_t = ptr::null_mut();
        // SAFETY: both point to what the kernel reads and writes.
        let made = unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) };
        if made == 0 { Ok(Self { timer }) } else { Err(io::Error::last_os_error()) }
    }

    /// Does something, and interrupts it again and again, first after `every`. What it calls must bear that.
    pub fn interrupting<T>(&self, every: Duration, act: impl FnOnce() -> T) -> T {
        self.set(every);
        let done = act();
        self.set(Duration::ZERO);
        done
    }

    /// Interrupts so often from now on; never again if it is zero.
    fn set(&self, every: Duration) {
        let every = libc::timespec {
            tv_sec: libc::time_t::try_from(every.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: every.subsec_nanos().into(),
        };
        let spec = libc::itimerspec { it_interval: every, it_value: every };
        // SAFETY: the timer is ours until it is dropped, and the kernel copies the times.
        unsafe { libc::timer_settime(self.timer, 0, &raw const spec, ptr::null_mut()) };
    }
}

impl Drop for Interrupter {
    fn drop(&mut self) {
        // SAFETY: the timer is ours, and nothing uses it after this.
        unsafe { libc::timer_delete(self.timer) };
    }
}

/// The signal that interrupts; it does nothing else.
pub fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 6
}

/// Has the signal end waits instead of the process.
fn handle() {
    extern "C" fn nothing(_signal: libc::c_int) {}
    // SAFETY: a zeroed action has no flags, so calls are not started again after it, and an empty mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
    // SAFETY: the handler does nothing, which is safe at any time.
    unsafe { libc::sigaction(signal(), &raw const action, ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_call_that_waits_for_ever_is_interrupted_and_others_are_not_afterwards() {
        let (mut silent, mut other) = UnixStream::pair().expect("a pair");
        let interrupter = Interrupter::of_this_thread().expect("a timer");
        let every = Duration::from_millis(1);
        let ended = interrupter.interrupting(every, || silent.read(&mut [0]).map_err(|error| error.kind()));
        assert_eq!(ended, Err(io::ErrorKind::Interrupted));
        // No signal is left.
        std::thread::scope(|scope| {
            scope.spawn(|| io::Write::write_all(&mut other, b"x").expect("written"));
            assert_eq!(silent.read(&mut [0]).expect("not interrupted"), 1);
        });
    }
}
