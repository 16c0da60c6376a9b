//! The monotonic clock, which all processes share, and how long threads have run.

use rustix::io::Errno;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::Timespec;
use takt_core::{Span, Time};

/// Now, by the monotonic clock.
///
/// The C library is asked because it knows where the kernel keeps the time. Code that looks for that
/// page itself crashes under tools that hide it, such as valgrind.
#[inline]
pub fn now() -> Time {
    Time::from_ns(read(libc::CLOCK_MONOTONIC))
}

/// How long this thread has run.
pub fn of_thread() -> Span {
    Span::from_ns(read(libc::CLOCK_THREAD_CPUTIME_ID))
}

/// How long all threads of this process have run.
pub fn of_process() -> Span {
    Span::from_ns(read(libc::CLOCK_PROCESS_CPUTIME_ID))
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: there is room for the answer.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let ns = u64::try_from(now.tv_nsec).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(ns)
}

/// Sleeps until `at`; returns at once if that is over.
pub fn sleep_until(at: Time) {
    let seconds = i64::try_from(at.as_ns() / 1_000_000_000).unwrap_or(i64::MAX);
    let ns = i64::try_from(at.as_ns() % 1_000_000_000).unwrap_or_default();
    let until = Timespec { tv_sec: seconds, tv_nsec: ns };
    while clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(Errno::INTR) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_ends_at_its_time_and_not_before() {
        let at = now() + Span::from_ms(3);
        sleep_until(at);
        assert!(now() >= at);
        sleep_until(Time::ZERO);
    }
}
