//! Streams that are captured: their calls are written down into a graph, and give the GPU nothing.
//!
//! An event of ours in such a stream would become part of the graph, so no event is recorded while a stream may begin
//! to be captured, and none in one that is. Most programs never capture; then this costs a load.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::streams::Stream;

/// Captures under way, or more: those that ended in unusual ways still count, which only costs time.
static UNDER_WAY: AtomicU32 = AtomicU32::new(0);

/// Held while events of ours are recorded, and while a stream begins to be captured.
static BEGINS: Mutex<()> = Mutex::new(());

/// No stream begins to be captured while this is held.
pub fn none_begins() -> MutexGuard<'static, ()> {
    BEGINS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether any stream may be captured.
#[inline]
pub fn is_any() -> bool {
    UNDER_WAY.load(Ordering::Acquire) != 0
}

/// Whether a stream is captured, so that work for it is written down.
#[inline]
pub fn is_captured(stream: &Stream) -> bool {
    is_any() && stream.is_captured()
}

/// Makes the program's call that begins a capture.
pub fn begin(call: impl FnOnce() -> i32) -> i32 {
    let _alone = none_begins();
    // Others must not take the stream for a plain one in between.
    UNDER_WAY.fetch_add(1, Ordering::AcqRel);
    let begun = call();
    if begun != 0 {
        end();
    }
    begun
}

/// Makes the program's call by which a stream may become part of a capture.
pub fn join(call: impl FnOnce() -> i32) -> i32 {
    let _alone = none_begins();
    call()
}

/// A capture ended.
pub fn end() {
    let less = |count: u32| Some(count.saturating_sub(1));
    // It cannot fail: there is always another number.
    let _before = UNDER_WAY.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_that_fail_do_not_count() {
        assert_eq!(begin(|| 401), 401);
        assert!(!is_any());
        assert_eq!(begin(|| 0), 0);
        assert!(is_any());
        end();
        end();
        assert!(!is_any());
    }
}
