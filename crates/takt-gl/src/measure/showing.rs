//! Groups whose end the program's own thread sees.
//!
//! A renderer on the CPU finishes a frame inside of `eglSwapBuffers`, which the program waits for
//! in any case. So after the call its thread knows that the frame's last group is complete and how
//! long the renderer's threads have worked by then, and nobody has to be woken to see it.

use super::fence::{self, Fence, Waited};
use super::processor::Reading;
use super::{REAPER, RENDERER, Submitted, give_back, is_forked, is_wanted, reaper::Reaper};
use crate::{clock, gate, quiet};

/// The last group of a frame that is being shown.
#[derive(Debug)]
pub(crate) struct Showing {
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
pub(crate) fn is_seen_by_program() -> bool {
    is_wanted() && !gate::is_wanted() && RENDERER.is_known()
}

impl Showing {
    /// The group is with the driver and `eglSwapBuffers` is next. The context must be current in
    /// this thread, on this display.
    pub(crate) fn begin(display: usize, submitted: Submitted) -> Option<Self> {
        if is_forked() {
            return None;
        }
        let Some(fence) = fence::insert(display, None) else {
            give_back(&submitted);
            return None;
        };
        Some(Self { fence, submitted: Box::new(submitted), inserted_ns: clock::now_ns() })
    }

    /// The call is over: the time if the group is complete. If it is not, it is left to the thread
    /// that waits for fences.
    pub(crate) fn end(self) -> Option<u64> {
        let reaper = REAPER.get_or_init(Reaper::start).as_ref()?;
        let at_ns = clock::now_ns();
        let complete = quiet::egl(|| self.fence.wait(0)) == Waited::Passed;
        match RENDERER.reading().filter(|_| complete) {
            Some(renderer) => {
                let witness = Witness { at_ns, renderer: Some(renderer) };
                reaper.hand_over_seen(Some(self.fence), self.submitted, witness);
                Some(at_ns)
            }
            None => {
                reaper.hand_over(self.fence, self.submitted, self.inserted_ns);
                None
            }
        }
    }
}

/// Has a swap measured that ended at that time, with everything before it.
pub(crate) fn shown(submitted: Submitted, at_ns: u64) {
    if let Some(reaper) = REAPER.get().and_then(Option::as_ref) {
        reaper.hand_over_seen(None, Box::new(submitted), Witness { at_ns, renderer: None });
    }
}
