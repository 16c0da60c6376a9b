//! Groups whose end the program's own thread sees.
//!
//! A thread that waits for the GPU knows when it is there; no other thread has to be woken to look at
//! the same time. So a group that the program is about to wait for is kept until the call has returned,
//! and its fence is looked at once, without waiting. A renderer on the CPU finishes a frame inside of
//! `eglSwapBuffers`, so the same holds for a frame's last group.
//!
//! One group is kept at a time. The measuring thread takes it over as soon as something comes that was
//! handed over later.

use std::sync::Arc;

use takt_client::ends::Seen;

use super::machine::{Machine, Stage, Tracked};
use super::{RENDERER, Submitted, Waiter, fenced, is_wanted, started};
use crate::clock;
use crate::session::session;

/// A group that the program's next call waits for, by its number.
#[derive(Debug)]
#[must_use = "no other thread looks for its end"]
pub(crate) struct Witnessed(u64);

/// Whether frames of a renderer on the CPU may be measured so: no daemon waits for their end.
pub(crate) fn is_seen_when_shown() -> bool {
    is_wanted() && !session().is_wanted() && RENDERER.is_known()
}

impl Witnessed {
    /// The group is with the driver, and a call that waits for it is next; none if its end is left to
    /// the measuring thread. The context must be current in this thread, on this display.
    pub(crate) fn before_wait(
        display: usize,
        waiter: Option<&Arc<Waiter>>,
        submitted: Submitted,
    ) -> Option<Self> {
        // The cost of several frames is estimated from more than one look for their end.
        if submitted.submission.gathered.is_some() {
            super::submit(display, waiter, submitted);
            return None;
        }
        let (machine, group) = fenced(display, waiter, submitted)?;
        machine.keep(group, true).map(Self)
    }

    /// The same where the call is `eglSwapBuffers` of a renderer on the CPU.
    pub(crate) fn before_show(
        display: usize,
        waiter: Option<&Arc<Waiter>>,
        submitted: Submitted,
    ) -> Option<Self> {
        let (machine, group) = fenced(display, waiter, submitted)?;
        machine.keep(group, false).map(Self)
    }

    /// The call is over: if the group is, too, its end is told. The context must still be current.
    pub(crate) fn waited(self) {
        if let Some((machine, at_ns, mut group)) = self.seen() {
            group.renderer = group.submitted.software.then(|| RENDERER.reading()).flatten();
            group.stage = Stage::Complete(machine.completed(&group.submitted, Seen::at(at_ns)));
            machine.settle(group);
        }
    }

    /// The same for `eglSwapBuffers`: the time if the group is complete.
    pub(crate) fn shown(self) -> Option<u64> {
        let (machine, at_ns, mut group) = self.seen()?;
        group.renderer = RENDERER.reading();
        group.stage = Stage::Shown { by_ns: at_ns };
        machine.settle(group);
        Some(at_ns)
    }

    /// Looks at the fence; if it is not passed, its group is left to the measuring thread.
    fn seen(self) -> Option<(&'static Machine, u64, Tracked)> {
        let machine = started()?;
        let group = machine.take(self.0)?;
        let at_ns = clock::now_ns();
        if group.fence.as_ref().is_some_and(|fence| fence.is_passed()) {
            return Some((machine, at_ns, group));
        }
        machine.track(group);
        None
    }
}

/// Has a swap measured that ended at that time, with everything before it.
pub(crate) fn shown(submitted: Submitted, by_ns: u64) {
    if let Some(machine) = started() {
        machine.settle(Tracked::new(submitted, None, Stage::Shown { by_ns }));
    }
}
