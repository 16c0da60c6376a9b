//! Groups whose end the program's own thread sees.
//!
//! Whoever waits for the GPU knows when it is there: nobody else has to be woken, and to look at the
//! same time. So a group that the program is about to wait for is kept back until the call has
//! returned, and its fence is looked at once, without waiting. A renderer on the CPU finishes a frame
//! inside of `eglSwapBuffers`, so that the same holds for a frame's last group.
//!
//! Only one group is kept so at a time, and our thread takes it over as soon as something comes that
//! was submitted later.

use std::sync::Arc;

use super::desk::Fenced;
use super::fence;
use super::{REAPER, RENDERER, Submitted, Waiter, give_back, is_forked, is_wanted, reaper::Reaper};
use crate::{clock, gate};

/// A group that the program's next call waits for, by its number.
#[derive(Debug)]
#[must_use = "nobody else looks for its end"]
pub(crate) struct Witnessed(u64);

/// Whether frames of a renderer on the CPU may be measured so: nobody waits for their end.
pub(crate) fn is_seen_when_shown() -> bool {
    is_wanted() && !gate::is_wanted() && RENDERER.is_known()
}

impl Witnessed {
    /// The group is with the driver, and a call that waits for it is next; none if its end is left to
    /// our thread. The context must be current in this thread, on this display.
    pub(crate) fn before_wait(
        display: usize,
        waiter: Option<&Arc<Waiter>>,
        submitted: Submitted,
    ) -> Option<Self> {
        // What several frames cost is estimated by somebody who has looked for their end more than once.
        if submitted.gathered.is_some() {
            super::submit(display, waiter, submitted);
            return None;
        }
        Self::begin(display, waiter, submitted, true)
    }

    /// The same where the call is `eglSwapBuffers` of a renderer on the CPU.
    pub(crate) fn before_show(display: usize, submitted: Submitted) -> Option<Self> {
        Self::begin(display, None, submitted, false)
    }

    fn begin(
        display: usize,
        waiter: Option<&Arc<Waiter>>,
        submitted: Submitted,
        in_order: bool,
    ) -> Option<Self> {
        if is_forked() || !is_wanted() {
            return None;
        }
        let reaper = REAPER.get_or_init(Reaper::start).as_ref();
        let Some((reaper, fence)) = reaper.zip(fence::insert(display, waiter)) else {
            give_back(&submitted);
            return None;
        };
        let group = Fenced { fence, submitted: Box::new(submitted), inserted_ns: clock::now_ns() };
        reaper.keep(group, in_order).map(Self)
    }

    /// The call is over: if the group is, too, its end is told. The context must still be current.
    pub(crate) fn waited(self) {
        if let Some((reaper, at_ns, group)) = self.seen() {
            let renderer = group.submitted.software.then(|| RENDERER.reading()).flatten();
            reaper.hand_over_seen(group, at_ns, renderer);
        }
    }

    /// The same for `eglSwapBuffers`: the time if the group is complete.
    pub(crate) fn shown(self) -> Option<u64> {
        let (reaper, at_ns, group) = self.seen()?;
        let renderer = RENDERER.reading();
        reaper.hand_over_shown(Some(group.fence), group.submitted, at_ns, renderer);
        Some(at_ns)
    }

    /// Looks at the fence; if it is not passed, its group is left to our thread.
    fn seen(self) -> Option<(&'static Reaper, u64, Fenced)> {
        let reaper = REAPER.get()?.as_ref()?;
        let group = reaper.take(self.0)?;
        let at_ns = clock::now_ns();
        if group.fence.is_passed() {
            return Some((reaper, at_ns, group));
        }
        reaper.hand_over(group);
        None
    }
}

/// Has a swap measured that ended at that time, with everything before it.
pub(crate) fn shown(submitted: Submitted, at_ns: u64) {
    if let Some(reaper) = REAPER.get().and_then(Option::as_ref) {
        reaper.hand_over_shown(None, Box::new(submitted), at_ns, None);
    }
}
