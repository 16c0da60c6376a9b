//! Counts of the operating system.
#![expect(unsafe_code, reason = "the C library's functions cannot be checked by the compiler")]

/// How often threads of this process had to make room for others since it began.
pub(crate) fn evictions() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: one structure is written.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    // SAFETY: all its fields are numbers, and they were zero before.
    unsafe { usage.assume_init() }.ru_nivcsw
}

/// Nanoseconds of `CLOCK_MONOTONIC`, which all processes share.
pub(crate) fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: one structure is written; every kernel has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
