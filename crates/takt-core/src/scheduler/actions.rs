//! Decisions of the scheduler that wait to be fetched.

use alloc::collections::VecDeque;

use crate::event::Action;
use crate::limits::{DISPATCHES_PER_EVENT_MAX, FRAME_ENDS_MAX, FRAMES_PER_GROUP_MAX, REPORTS_MAX};

/// A queue of actions whose memory is taken at construction.
///
/// Actions that must be obeyed always have room: between two calls of a caller that fetches
/// everything there are, for each slot in flight, at most a lost group, a dispatch, a release, a
/// preemption and the frames that one group can end, with a release for each that waited for it; for
/// each app, those that end without a group and their releases; and for each that joins or leaves a
/// release, a departure and a changed reason. Reports (refusals, misses and ranks) come with every
/// event; beyond their share they are counted instead of kept.
#[derive(Debug)]
pub(super) struct Actions {
    queue: VecDeque<Action>,
    reports_max: usize,
}

impl Actions {
    pub(super) fn new(apps_max: usize) -> Self {
        let frames = 1 + FRAMES_PER_GROUP_MAX as usize + 2 * FRAME_ENDS_MAX;
        // And one that says, once, that the scheduler is broken.
        let obeyed = (4 + frames) * DISPATCHES_PER_EVENT_MAX + (4 + 2 * FRAME_ENDS_MAX) * apps_max + 1;
        let reports_max = REPORTS_MAX + 2 * apps_max;
        Self { queue: VecDeque::with_capacity(obeyed + reports_max), reports_max }
    }

    pub(super) fn push(&mut self, action: Action) {
        self.queue.push_back(action);
    }

    /// Adds a report unless too many actions wait already; says whether it was added.
    pub(super) fn report(&mut self, action: Action) -> bool {
        let room = self.queue.len() < self.reports_max;
        if room {
            self.queue.push_back(action);
        }
        room
    }

    pub(super) fn pop(&mut self) -> Option<Action> {
        self.queue.pop_front()
    }
}
