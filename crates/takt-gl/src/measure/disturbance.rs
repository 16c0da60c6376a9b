//! Whether a group's time is its own.
//!
//! A GPU that changes contexts before a group takes longer for it, and one that others use may serve them
//! in the middle of it.

use std::sync::atomic::{AtomicU64, Ordering};

use takt_predict::adapt::Disturbance;

use crate::session::session;

/// The context of the last group of this process, plus one.
static LAST_CONTEXT: AtomicU64 = AtomicU64::new(0);

/// Whether the GPU has to change contexts within this process for a group of this one.
pub(crate) fn switches_context(context: u64) -> bool {
    let before = LAST_CONTEXT.load(Ordering::Relaxed);
    before != 0 && before != context + 1
}

/// A context submits a group.
pub(crate) fn submits(context: u64) {
    LAST_CONTEXT.store(context + 1, Ordering::Relaxed);
}

/// Others may have the GPU meanwhile, if they are there when a group is submitted or when it has ended. A
/// renderer on the CPU is the program's own, and its time is that of its threads.
pub(crate) fn beside_others(disturbance: Disturbance, software: bool) -> Disturbance {
    let shared = !software && session().has_company();
    if shared && disturbance == Disturbance::None { Disturbance::Company } else { disturbance }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_change_of_contexts_is_a_switch() {
        submits(7);
        assert!(!switches_context(7));
        assert!(switches_context(8));
        submits(8);
        assert!(!switches_context(8));
    }
}
