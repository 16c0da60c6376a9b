//! What is left of the gap of a frame.
//!
//! While an app waits for its own groups, its frame is owed the rest of the gap as if the gap were work, and its
//! promise binds others as if its next group waited. As long as the gap lasts, what is owed falls with the time, just
//! as if the GPU worked for it: then promises that could be kept before can be kept after.
//!
//! All is counted from when the GPU is free for a group that is picked now. So the time that groups in flight take is
//! part of the gap as well, and the way of the next group to an idle GPU is over when the gap is.

use super::Ready;
use super::board::{FOREVER, ns};
use super::promises::Sizes;
use crate::scheduler::Lane;
use crate::service::Gaps;
use crate::time::Span;

/// What a lane is owed less than what its account says, because a gap lasts or is over.
#[derive(Copy, Clone, Debug)]
pub(super) struct Pausing {
    /// Its frame is in a gap, or may be in one as soon as its groups are over.
    pub(super) now: bool,
    /// How much of the gap and of the way behind it is over.
    pub(super) over: i64,
    /// When the gap is longer than declared.
    pub(super) lapses: i64,
    /// From when on the GPU may work for a frame that has begun; `None` if no gaps are declared.
    from: Option<i64>,
}

impl Pausing {
    const NONE: Self = Self { now: false, over: 0, lapses: FOREVER, from: None };

    /// How the front frame of a lane waits.
    #[inline]
    pub(super) fn of(lane: &Lane, ready: &Ready, sizes: &Sizes) -> Self {
        if lane.service.gaps.count == 0 {
            return Self::NONE;
        }
        let begun = lane.front.dispatched > Span::ZERO;
        let none = Self { from: begun.then_some(ready.free), ..Self::NONE };
        // Where later work delays what is in flight, the way of a group may begin when others are off the GPU.
        let on_the_way = |way: i64| if sizes.later_work_delays { 0 } else { way };
        if let Some(head) = lane.head {
            let over = head.gap.as_signed_ns() + on_the_way(head.way.as_signed_ns());
            return Self { over, ..none };
        }
        let Gaps { length, .. } = lane.service.gaps;
        let length = length.as_signed_ns();
        let lapses = if lane.is_on_gpu() { FOREVER } else { ns(lane.pause.since) + length + 1 };
        if !lane.may_pause() || lapses <= ready.now {
            return none;
        }
        let reserved = length + on_the_way(sizes.per_frame.as_signed_ns());
        // What goes beside its groups may end before them: then none of the gap is over by its end.
        let delayed = sizes.later_work_delays && lane.is_on_gpu();
        let left = if delayed { reserved } else { ns_until_next(lane, ready, sizes) - ready.conservative };
        Self { now: true, over: reserved - left.clamp(0, reserved), lapses, ..none }
    }

    /// A frame that has begun is owed no more than the time until it is due: what is left of its account is the most
    /// that it may need, and rarely what it needs. If groups ran longer than predicted, it is still promised that time.
    pub(super) fn time_left(&self, due: i64) -> i64 {
        self.from.map_or(i64::MAX, |from| (due - from).max(0))
    }
}

/// By when the next group of a lane with a gap gets to the GPU, if nothing else delays it.
fn ns_until_next(lane: &Lane, ready: &Ready, sizes: &Sizes) -> i64 {
    let known = if lane.is_on_gpu() {
        (ns(lane.pause.ends_by).min(ready.over) + sizes.completion).max(ready.now)
    } else {
        ns(lane.pause.since)
    };
    known + lane.service.gaps.length.as_signed_ns() + sizes.dispatch
}
