//! Groups whose end the program's own thread sees.
//!
//! Whoever waits for the GPU knows when it is there: nobody else has to be woken, and to look at the
//! same time. So a group that the program is about to wait for is kept back until the call has
//! returned, and its fence is looked at once, without waiting. A renderer on the CPU finishes a frame
//! inside of `eglSwapBuffers`, so that the same holds for a frame's last group.

use std::sync::Arc;

use super::fence::{self, Fence};
use super::processor::Reading;
use super::{REAPER, RENDERER, Submitted, Waiter, give_back, is_forked, is_wanted, reaper::Reaper};
use crate::{clock, gate};

/// A group that the program's next call waits for.
#[derive(Debug)]
pub(crate) struct Witnessed {
    fence: Fence,
    submitted: Box<Submitted>,
    inserted_ns: u64,
}

/// What the program's thread saw when a group was complete.
#[derive(Debug)]
pub(crate) struct Witness {
    /// When it looked.
    pub(crate) at_ns: u64,
    /// What the renderer's threads had done by then, if that is what the group costs.
    pub(crate) renderer: Option<Reading>,
}

/// Whether frames of a renderer on the CPU may be measured so: nobody waits for their end.
pub(crate) fn is_seen_when_shown() -> bool {
    is_wanted() && !gate::is_wanted() && RENDERER.is_known()
}

/// Whether a group may be measured so that the program is about to wait for. The end of a group is
/// told after those before it, and nobody must be waiting for what is learned from it.
pub(crate) fn is_seen_when_waited_for(submitted: &Submitted) -> bool {
    let plain = submitted.gathered.is_none() && !submitted.follow.is_awaited();
    plain && is_wanted() && REAPER.get().and_then(Option::as_ref).is_some_and(Reaper::has_seen_all)
}

impl Witnessed {
    /// The group is with the driver, and the call that waits for it is next. The context must be
    /// current in this thread, on this display.
    pub(crate) fn begin(display: usize, waiter: Option<&Arc<Waiter>>, submitted: Submitted) -> Option<Self> {
        if is_forked() {
            return None;
        }
        let Some(fence) = fence::insert(display, waiter) else {
            give_back(&submitted);
            return None;
        };
        Some(Self { fence, submitted: Box::new(submitted), inserted_ns: clock::now_ns() })
    }

    /// The call is over: the time if the group is complete. If it is not, it is left to the thread
    /// that waits for fences. The context must still be current.
    pub(crate) fn end(self) -> Option<u64> {
        let reaper = REAPER.get_or_init(Reaper::start).as_ref()?;
        let at_ns = clock::now_ns();
        if !self.fence.is_passed() {
            reaper.hand_over(self.fence, self.submitted, self.inserted_ns);
            return None;
        }
        let renderer = self.submitted.software.then(|| RENDERER.look()).flatten();
        reaper.hand_over_seen(Some(self.fence), self.submitted, Witness { at_ns, renderer });
        Some(at_ns)
    }
}

/// Has a swap measured that ended at that time, with everything before it.
pub(crate) fn shown(submitted: Submitted, at_ns: u64) {
    if let Some(reaper) = REAPER.get().and_then(Option::as_ref) {
        reaper.hand_over_seen(None, Box::new(submitted), Witness { at_ns, renderer: None });
    }
}
