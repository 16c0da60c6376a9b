//! The monotonic clock, which all processes share.

use takt_core::Time;

/// Now, by the monotonic clock.
///
/// The C library is asked because it knows where the kernel keeps the time. Code that looks for that
/// page itself crashes under tools that hide it, such as valgrind.
pub fn now() -> Time {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: there is room for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let ns = u64::try_from(now.tv_nsec).unwrap_or_default();
    Time::from_ns(seconds.saturating_mul(1_000_000_000).saturating_add(ns))
}
