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
use super::reaper::Reaper;
use super::{REAPER, RENDERER, Submitted, Waiter, fenced, is_wanted};
use crate::clock;
use crate::session::session;

/// A group that the program's next call waits for, by its number.
#[derive(Debug)]
#[must_use = "nobody else looks for its end"]
pub(crate) struct Witnessed(u64);

/// Whether frames of a renderer on the CPU may be measured so: nobody waits for their end.
pub(crate) fn is_seen_when_shown() -> bool {
    is_wanted() && !session().is_wanted() && RENDERER.is_known()
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
        if submitted.submission.gathered.is_some() {
            super::submit(display, waiter, submitted);
            return None;
        }
        let (reaper, group) = fenced(display, waiter, submitted)?;
        reaper.keep(group, true).map(Self)
    }

    /// The same where the call is `eglSwapBuffers` of a renderer on the CPU.
    pub(crate) fn before_show(display: usize, submitted: Submitted) -> Option<Self> {
        let (reaper, group) = fenced(display, None, submitted)?;
        reaper.keep(group, false).map(Self)
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
