//! What the scheduler has decided and nobody has fetched yet.

use alloc::collections::VecDeque;

use crate::event::Action;
use crate::limits::DISPATCHES_PER_EVENT_MAX;

/// A queue of actions whose memory is taken at construction.
///
/// It has room for all that one event can cause: a refusal; a lost or finished group, a finished
/// frame and a dispatch with a release for each place in flight; and a miss and a changed reason
/// for each app. A caller that hands in many events before fetching anything makes it grow once.
#[derive(Debug)]
pub(super) struct Actions {
    queue: VecDeque<Action>,
}

impl Actions {
    pub(super) fn new(apps_max: usize) -> Self {
        Self { queue: VecDeque::with_capacity(1 + 4 * DISPATCHES_PER_EVENT_MAX + 2 * apps_max) }
    }

    pub(super) fn push(&mut self, action: Action) {
        self.queue.push_back(action);
    }

    pub(super) fn pop(&mut self) -> Option<Action> {
        self.queue.pop_front()
    }
}
