//! Groups that are complete, but whose time stamps nobody has read yet.

use std::collections::VecDeque;

use takt_client::ends::Timing;
use takt_predict::adapt::Disturbance;

use super::Submitted;
use super::stamps::Fate;
use crate::client::group::Kind;

/// Groups that wait; beyond this, the time of the fence counts for the first of them.
const WAITING_MAX: usize = 16;

/// Stamps that tell of more than so many times the time of the fence, and this much more, have seen
/// something else: waiting for leave, or other processes' turns.
const BELIEVED: u64 = 2;
const BELIEVED_NS: u64 = 500_000;

/// What a group cost in the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Settled {
    /// By what measures.
    pub(crate) timing: Timing,
    /// By the fence alone.
    pub(crate) fence_ns: u64,
    /// What the models are to learn, if anything, where that was known at once.
    pub(crate) learned: Option<Option<u64>>,
    /// What measured it.
    pub(crate) clock: Clock,
    /// Whether the time is the group's own.
    pub(crate) disturbance: Disturbance,
}

/// What measured a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Clock {
    Fence,
    Timer,
    /// The processor time of a renderer on the CPU.
    Processor,
}

impl Clock {
    /// As files have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fence => "fence",
            Self::Timer => "timer",
            Self::Processor => "processor",
        }
    }
}

/// A group that is complete.
#[derive(Debug)]
pub(crate) struct Complete {
    pub(crate) submitted: Box<Submitted>,
    pub(crate) timing: Timing,
    /// How long threads of the renderer worked for it, if that is known.
    pub(crate) worked_ns: Option<u64>,
    /// As in [`Settled`].
    pub(crate) learned: Option<Option<u64>>,
}

/// See the module. Groups leave in the order in which they came.
#[derive(Default, Debug)]
pub(crate) struct Late {
    waiting: VecDeque<Complete>,
}

impl Late {
    /// A group is complete.
    pub(crate) fn add(&mut self, complete: Complete) {
        self.waiting.push_back(complete);
    }

    /// The first group, if its cost is known; with `now`, in any case.
    pub(crate) fn next(&mut self, now: bool) -> Option<(Box<Submitted>, Settled)> {
        let Complete { submitted, timing, worked_ns, learned } = self.waiting.front()?;
        let fence_ns = timing.cost_ns;
        let disturbance = submitted.disturbance;
        let (learned, clock) = (*learned, Clock::Fence);
        let mut settled = Settled { timing: *timing, fence_ns, learned, clock, disturbance };
        // Showing a frame is no work of the renderer.
        let renders = submitted.group.kind != Kind::Swap || !submitted.group.work.is_empty();
        if let Some(worked_ns) = worked_ns.filter(|_| renders) {
            settled.timing.cost_ns = worked_ns + timing.in_calls_ns;
            settled.clock = Clock::Processor;
        }
        // Nor do its stamps count: the first one lies before the wait for leave to show it.
        if let Some(stamped) = submitted.stamped.as_ref().filter(|_| renders) {
            match stamped.fate() {
                Fate::Awaited if !now && self.waiting.len() <= WAITING_MAX => return None,
                Fate::Awaited | Fate::Lost => {}
                Fate::Disjoint => settled.disturbance = Disturbance::Unknown,
                Fate::Known(stamps) => match stamped.judge.cost_ns(&stamps, fence_ns) {
                    Some(cost_ns) if cost_ns <= BELIEVED * fence_ns + BELIEVED_NS => {
                        settled.timing.cost_ns = cost_ns;
                        settled.timing.together = false;
                        settled.clock = Clock::Timer;
                    }
                    // The fence was passed long before, so most of that is not the group's.
                    Some(_) if timing.together => settled.learned = Some(None),
                    _ => {}
                },
            }
        }
        self.waiting.pop_front().map(|complete| (complete.submitted, settled))
    }
}
