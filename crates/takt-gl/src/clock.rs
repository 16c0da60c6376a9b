//! The one clock, in the unit of tables.

/// Nanoseconds of the clock that daemon and programs share.
pub(crate) fn now_ns() -> u64 {
    takt_os::clock::now().as_ns()
}
