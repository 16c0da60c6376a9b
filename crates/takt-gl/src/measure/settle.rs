//! What a complete group cost, by the clocks that saw it.

use takt_client::ends::Timing;
use takt_predict::adapt::Disturbance;

use super::Submitted;
use super::stamps::Fate;
use crate::client::group::Kind;

/// Stamps that tell of more than so many times the time of the fence, and this much more, have seen
/// something else: waiting for a grant, or other processes' turns.
const BELIEVED: u64 = 2;
const BELIEVED_NS: u64 = 500_000;

/// A group that is complete.
#[derive(Debug)]
pub(super) struct Complete {
    pub(super) submitted: Box<Submitted>,
    pub(super) timing: Timing,
    /// How long threads of the renderer worked for it, if that is known.
    pub(super) worked_ns: Option<u64>,
    /// As in [`Settled`].
    pub(super) learned: Option<Option<u64>>,
}

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

impl Complete {
    /// What it cost; none if that is not known yet and `patient`.
    pub(super) fn settle(&self, patient: bool) -> Option<Settled> {
        let Self { submitted, timing, worked_ns, learned } = self;
        let fence_ns = timing.cost_ns;
        let (learned, clock, disturbance) = (*learned, Clock::Fence, submitted.disturbance);
        let mut settled = Settled { timing: *timing, fence_ns, learned, clock, disturbance };
        // Showing a frame is no work of the renderer. Nor do its stamps count: the first one lies before
        // the wait for the grant to show it.
        if submitted.group.kind == Kind::Swap && submitted.group.work.is_empty() {
            return Some(settled);
        }
        if let Some(worked_ns) = worked_ns {
            settled.timing.cost_ns = worked_ns + timing.in_calls_ns;
            settled.clock = Clock::Processor;
        }
        let Some(stamped) = &submitted.stamped else {
            return Some(settled);
        };
        match stamped.fate() {
            Fate::Awaited if patient => return None,
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
        Some(settled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::group::{Builder, End};
    use crate::slice::Follow;
    use takt_client::ends::Submission;

    fn complete(end: End, draws: u32) -> Complete {
        let mut builder = Builder::default();
        (0..draws).for_each(|_| builder.draw(None, 3));
        let submitted = Box::new(Submitted {
            group: builder.end(0, end).unwrap(),
            submission: Submission::default(),
            software: true,
            predicted: None,
            grant: None,
            follow: Follow::default(),
            stamped: None,
            disturbance: Disturbance::None,
        });
        let timing =
            Timing { submitted_ns: 0, completed_ns: 90, cost_ns: 90, together: false, in_calls_ns: 5 };
        Complete { submitted, timing, worked_ns: Some(30), learned: None }
    }

    #[test]
    fn the_processor_measures_what_renderers_on_the_cpu_do() {
        let settled = complete(End::Flush, 1).settle(true).unwrap();
        assert_eq!((settled.timing.cost_ns, settled.clock, settled.fence_ns), (35, Clock::Processor, 90));
        let swap = complete(End::Swap, 0).settle(true).unwrap();
        assert_eq!((swap.timing.cost_ns, swap.clock), (90, Clock::Fence), "showing is no work of theirs");
    }
}
