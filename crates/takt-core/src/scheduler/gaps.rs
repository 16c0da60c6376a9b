//! Gaps that apps declare: within a frame, the app waits for its own groups before it submits more.
//!
//! A gap counts as use of the GPU. Its frame has reserved it, together with what its next group pays as the first of
//! a frame does, because other apps may have the GPU meanwhile ([`crate::Config::per_gap`]). Both are taken off the
//! account of the frame with that group. What is left of a gap that lasts is found by the policy, which knows the
//! time.

use super::Scheduler;

use crate::service::Gaps;
use crate::time::Span;

/// How a group comes to its frame.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Comes {
    /// It is the first one of the frame, or after a gap.
    pub(super) first: bool,
    /// What the frame has reserved for the gap before it.
    pub(super) gap: Span,
    /// What a frame with gaps has reserved for its way to the GPU.
    pub(super) way: Span,
}

impl Comes {
    /// Without a gap.
    pub(super) fn within(first: bool) -> Self {
        Self { first, ..Self::default() }
    }
}

impl Scheduler {
    /// How a group of the lane at `index` comes, with which a frame `begins` or not. More gaps than the app has
    /// declared are none: what comes after them pays for nothing but itself, and is promised no more for it.
    pub(super) fn comes(&mut self, index: usize, begins: bool) -> Comes {
        let way = self.config.per_frame();
        let lane = &mut self.lanes[index];
        let Gaps { count, length } = lane.service.gaps;
        if count == 0 || !lane.has_budget() {
            return Comes::within(begins);
        }
        if begins {
            lane.pause.left = count;
            return Comes { first: true, gap: Span::ZERO, way };
        }
        if !lane.may_pause() {
            return Comes::within(false);
        }
        lane.pause.left -= 1;
        Comes { first: true, gap: length, way }
    }
}
