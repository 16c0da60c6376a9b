//! The clock that all times are read from.

use std::ffi::{c_int, c_long};

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: c_long,
}

// SAFETY: as <time.h> declares it.
unsafe extern "C" {
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
}

const CLOCK_MONOTONIC: c_int = 1;

/// Nanoseconds on `CLOCK_MONOTONIC`, so that logs of several processes can be laid side by side.
pub(crate) fn now_ns() -> u64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: one time is written; this clock exists on every Linux.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &raw mut time) };
    u64::try_from(time.seconds).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.nanoseconds).unwrap_or(0)
}
