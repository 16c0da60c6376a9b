//! The clock that everybody shares.

use rustix::time::{ClockId, clock_gettime};
use takt_core::Time;

/// Now, by the monotonic clock.
pub fn now() -> Time {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let ns = u64::try_from(now.tv_nsec).unwrap_or_default();
    Time::from_ns(seconds.saturating_mul(1_000_000_000).saturating_add(ns))
}
