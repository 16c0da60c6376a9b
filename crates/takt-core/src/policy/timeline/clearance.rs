//! The clearance: by when work that is promised nothing must be off the GPU.
//!
//! Reservations keep deadlines, not responses short: a frame that comes just after a long group has
//! begun waits for the end of that group. With [`crate::Tuning::blocking`], a group of an app that
//! reserves nothing is dispatched only if it ends at most that long after the next work of each
//! more important app with a reservation is expected:
//!
//! * work that waits has come already, and so has a job whose server owes it a budget;
//! * while an app has work of an open frame on the GPU, more of it can come at any time;
//! * otherwise it comes when its next frame is released, or shortly after
//!   ([`crate::Tuning::clear_parts`]); an app that has not come by then is no longer waited for.
//!
//! Nor does a group get more than it asks for ([`crate::Tuning::stretch`]) while a frame of such an
//! app is open, or was released lately ([`crate::Tuning::unstretched_parts`]) and has not begun; an app
//! that never comes costs others that.
//!
//! Apps with reservations are never held back by this, so what they are promised stays true.

use super::board::ns;
use crate::app::AppId;
use crate::policy::Context;
use crate::scheduler::Lane;
use crate::time::{Span, Time};

/// What the apps visited so far expect of those below them. Times are nanoseconds since the clock's origin.
#[derive(Copy, Clone, Debug)]
pub(super) struct Clearance {
    /// How long work may be delayed; none if that is not limited.
    tolerated: Option<i64>,
    /// Whether groups may be longer than they ask to be.
    stretches: bool,
    now: i64,
    ready_c: i64,
    /// By when the GPU must be free, and for whom.
    until: Option<(i64, AppId)>,
    /// When the wait for an app that has not begun its frame ends.
    lapse: i64,
    /// Whether an app is in the middle of a frame, or late to begin one, so that its work can come
    /// at any time.
    due: bool,
}

impl Clearance {
    pub(super) fn new(context: &Context) -> Self {
        let blocking = context.config.tuning.blocking;
        Self {
            tolerated: (blocking < Span::FOREVER).then_some(blocking.as_signed_ns()),
            stretches: context.config.tuning.stretch > Span::ZERO,
            now: ns(context.now),
            ready_c: ns(context.ready_c),
            until: None,
            lapse: i64::MAX,
            due: false,
        }
    }

    /// Whom a group of `lane` that takes `length` would delay too much.
    pub(super) fn delayed(&self, lane: &Lane, length: Span) -> Option<AppId> {
        let (until, app) = self.until.filter(|_| !lane.has_budget())?;
        (self.ready_c + length.as_signed_ns() > until).then_some(app)
    }

    /// How long a group of `lane` may be before it delays another app too much; nothing beyond what it
    /// asks for as long as a frame is open or late, whose next group may be a moment away.
    pub(super) fn room(&self, lane: &Lane) -> i64 {
        let bounded = !lane.has_budget();
        if bounded && self.due {
            return 0;
        }
        self.until.filter(|_| bounded).map_or(i64::MAX, |(until, _)| until - self.ready_c)
    }

    /// When to look again, if a group was held.
    pub(super) fn lapse(&self) -> i64 {
        self.lapse
    }

    /// Whether it matters who is delayed.
    pub(super) fn is_bounded(&self) -> bool {
        self.tolerated.is_some()
    }

    /// Keeps the GPU clear for the next work of `lane`; a job of its server `came` then and waits.
    pub(super) fn keep(&mut self, lane: &Lane, context: &Context, came: Option<Time>) {
        if !lane.has_budget() {
            if let Some((came, tolerated)) = came.zip(self.tolerated) {
                self.keep_until(ns(came) + tolerated, lane.app);
            }
            return;
        }
        if self.stretches && !self.due {
            let (release, period) = release(lane);
            let late = period / parts(context.config.tuning.unstretched_parts);
            self.due = is_open(lane) || (release..release + late).contains(&self.now);
        }
        let Some(tolerated) = self.tolerated else {
            return;
        };
        let Some(expected) = self.expected(lane, context) else {
            return;
        };
        self.keep_until(expected + tolerated, lane.app);
    }

    fn keep_until(&mut self, until: i64, app: AppId) {
        if self.until.is_none_or(|(earliest, _)| until < earliest) {
            self.until = Some((until, app));
        }
    }

    /// When work of `lane` comes next; none if that is not known.
    fn expected(&mut self, lane: &Lane, context: &Context) -> Option<i64> {
        if let Some(head) = lane.head {
            // Without a bound it never runs, so there is nothing to wait for.
            return (head.conservative < Span::FOREVER).then(|| ns(head.submitted));
        }
        let open = is_open(lane);
        if open && lane.is_on_gpu() {
            // Its own work delays it anyway.
            return Some(if context.newest == Some(lane.app) { self.ready_c } else { self.now });
        }
        let (release, period) = release(lane);
        let lapse = release + period / parts(context.config.tuning.clear_parts);
        if open || lapse <= self.now {
            return None;
        }
        self.lapse = self.lapse.min(lapse);
        Some(release.max(self.now))
    }
}

/// When the next frame of `lane` is released, and how long a period is.
fn release(lane: &Lane) -> (i64, i64) {
    (ns(lane.release_of(lane.target)), lane.grid.period_span().as_signed_ns())
}

/// A number of parts that can divide something.
fn parts(tuned: u32) -> i64 {
    tuned.max(1).into()
}

/// Whether a frame has begun that is not all there.
fn is_open(lane: &Lane) -> bool {
    lane.front.enqueued > Span::ZERO && !lane.front.complete
}
