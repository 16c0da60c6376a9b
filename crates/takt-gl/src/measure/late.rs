//! Groups that are complete, but whose time stamps nobody has read yet.

use std::collections::VecDeque;

use super::stamps::Fate;
use super::{Submitted, Timing};

/// Groups that wait; beyond this, the time of the fence counts for the first of them.
const WAITING_MAX: usize = 256;

/// What a group cost in the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Settled {
    /// By what measures.
    pub(crate) timing: Timing,
    /// By the fence alone.
    pub(crate) fence_ns: u64,
    /// Whether a timer measured it.
    pub(crate) by_timer: bool,
    /// What the models are to learn, if anything, where that was known at once.
    pub(crate) learned: Option<Option<u64>>,
    /// Whether the GPU's clock jumped meanwhile: then the time tells nothing.
    pub(crate) doubtful: bool,
}

/// See the module. Groups leave in the order in which they came.
#[derive(Default, Debug)]
pub(crate) struct Late {
    waiting: VecDeque<(Box<Submitted>, Timing, Option<Option<u64>>)>,
}

impl Late {
    /// A group is complete; `learned` as in [`Settled`].
    pub(crate) fn add(&mut self, submitted: Box<Submitted>, timing: Timing, learned: Option<Option<u64>>) {
        self.waiting.push_back((submitted, timing, learned));
    }

    /// The first group, if its cost is known; with `now`, in any case.
    pub(crate) fn next(&mut self, now: bool) -> Option<(Box<Submitted>, Settled)> {
        let (submitted, timing, learned) = self.waiting.front()?;
        let fence_ns = timing.cost_ns;
        let mut settled =
            Settled { timing: *timing, fence_ns, by_timer: false, learned: *learned, doubtful: false };
        if let Some(stamped) = &submitted.stamped {
            match stamped.fate() {
                Fate::Awaited if !now && self.waiting.len() <= WAITING_MAX => return None,
                Fate::Awaited | Fate::Lost => {}
                Fate::Disjoint => settled.doubtful = true,
                Fate::Known(stamps) => {
                    if let Some(cost_ns) = stamped.judge.cost_ns(&stamps, fence_ns) {
                        settled.timing.cost_ns = cost_ns;
                        settled.timing.together = false;
                        settled.by_timer = true;
                    }
                }
            }
        }
        self.waiting.pop_front().map(|(submitted, ..)| (submitted, settled))
    }
}
