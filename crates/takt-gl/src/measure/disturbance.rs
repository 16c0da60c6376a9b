//! Whether a group's time is its own.
//!
//! A GPU that changes contexts before a group takes longer for it. Where a renderer works inside of
//! the program's calls, these take longer if the program's thread is taken off its processor.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The context of the last group of this process, plus one.
static LAST_CONTEXT: AtomicU64 = AtomicU64::new(0);

/// Whether the GPU has to change contexts within this process for a group of this one.
pub(crate) fn is_switch_due(context: u64) -> bool {
    let before = LAST_CONTEXT.load(Ordering::Relaxed);
    before != 0 && before != context + 1
}

/// A context submits a group.
pub(crate) fn submits(context: u64) {
    LAST_CONTEXT.store(context + 1, Ordering::Relaxed);
}

thread_local! {
    static EVICTIONS: Cell<Option<i64>> = const { Cell::new(None) };
}

/// Whether this thread was taken off its processor since it last asked.
pub(crate) fn was_evicted() -> bool {
    // SAFETY: plain data without invariants.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: there is room for the answer.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    // A thread that ends has no more groups.
    let before = EVICTIONS.try_with(|count| count.replace(Some(usage.ru_nivcsw)));
    before.is_ok_and(|before| before.is_some_and(|before| before != usage.ru_nivcsw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_change_of_contexts_is_a_switch() {
        submits(7);
        assert!(!is_switch_due(7));
        assert!(is_switch_due(8));
        submits(8);
        assert!(!is_switch_due(8));
    }
}
