//! Which frame an app is at, and which of its deadlines were met.
//!
//! Frames end in order. `desired` is the deadline of the oldest unfinished frame; it moves on when
//! that frame finishes. `due` is the next deadline to be judged: it equals `desired` until that
//! deadline passes, then walks on by strides, so that an app that is never served misses every
//! deadline it should have met and not just one.

use super::lane::Lane;
use crate::app::Stride;
use crate::event::{Action, FrameDone};
use crate::invariant::Invariant;
use crate::refresh::Period;
use crate::time::{Span, Time};

/// The frame account of one app.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Frames {
    /// Frames finished since joining; the number of the oldest unfinished one.
    finished: u64,
    /// Its deadline (`desired#`).
    desired: Period,
    /// The next deadline to judge.
    due: Period,
    /// Frames of which nothing is left to be dispatched, and that are not done.
    closing: u32,
    /// Whether the app has submitted anything; before that it owes nothing.
    wants: bool,
}

impl Frames {
    pub(super) fn starting_at(target: Period) -> Self {
        Self { desired: target, due: target, ..Self::default() }
    }

    /// The number of the oldest unfinished frame.
    pub(super) fn number(&self) -> u64 {
        self.finished
    }

    /// How many frames have nothing left to be dispatched and are not done.
    pub(super) fn closing(&self) -> usize {
        self.closing as usize
    }

    /// The app submitted a group at `now`, or ended its frame.
    pub(super) fn submitted(&mut self, lane: &mut Lane, now: Time) {
        let current = lane.period_at(now);
        if !self.wants {
            // The first frame counts from here: time before the first submission was not wanted.
            self.wants = true;
            let first_whole = lane.grid.period_from(now);
            let too_soon = lane.target < current + lane.stride.lead();
            if lane.clock.is_own() {
                // Its clock starts with it, in a period that no time before the clock's origin belongs to.
                lane.aim_at(current);
                lane.grid = lane.grid.starting(current, now);
            } else if too_soon {
                lane.aim_at(first_whole + lane.stride.lead());
            } else {
                lane.aim_at(lane.target);
            }
            self.desired = lane.target;
            self.due = lane.target;
        } else if lane.head.is_none() {
            // While nothing was there, the reservation may have been put off; now it is.
            let on_time = self.desired + lane.stride.periods() * u64::from(self.closing);
            let planned = if lane.clock.is_own() { on_time } else { on_time.max(current) };
            if lane.front.enqueued > Span::ZERO {
                // One more group of the same frame: what that was due at is still so.
                lane.target = planned;
            } else {
                lane.aim_at(planned);
                lane.due = if lane.has_budget() { lane.due.min(on_time) } else { lane.due };
                lane.begin(now);
            }
        }
    }

    /// The stride was `before` and is now the lane's: deadlines count from the last one on.
    pub(super) fn stride_changed(&mut self, lane: &mut Lane, before: Stride, current: Period) {
        let last = self.desired - before.periods();
        self.desired = (last + lane.stride.periods()).max(current);
        self.due = self.desired;
        lane.aim_at(self.desired + lane.stride.periods() * u64::from(self.closing));
    }

    /// Another clock releases its frames from `now` on.
    pub(super) fn restarted(&mut self, lane: &mut Lane, now: Time) {
        self.desired = lane.grid.period_from(now) + lane.stride.lead();
        self.due = self.desired;
        lane.aim_at(self.desired + lane.stride.periods() * u64::from(self.closing));
    }

    /// The last group of the front frame was dispatched, or it ended after that; the next one began at `next`,
    /// if it has.
    pub(super) fn closed(&mut self, lane: &mut Lane, now: Time, next: Option<Time>) {
        self.closing += 1;
        if lane.clock.is_own() {
            lane.aim_at(lane.target + 1);
            if let Some(next) = next {
                lane.begin(next);
            }
        } else {
            lane.aim_at(lane.target.max(lane.period_at(now)) + lane.stride.periods());
        }
    }

    /// A group with which so many frames were closed was taken back before it ended: the first of them is the
    /// front again.
    pub(super) fn reopened(&mut self, lane: &mut Lane, frames: u32) {
        self.closing = self.closing.saturating_sub(frames);
        lane.aim_at((lane.target - lane.stride.periods() * u64::from(frames)).max(self.desired));
    }

    /// The oldest frame finished, which was due at `due`.
    pub(super) fn finished(&mut self, lane: &mut Lane, at: Time, due: Time) -> FrameDone {
        let own = lane.clock.is_own();
        let deadline = if own { due } else { lane.due_of(self.desired) };
        let release = if own {
            due - (lane.grid.period_span().saturating_sub(lane.tail))
        } else {
            lane.release_of(self.desired)
        };
        let met = at < deadline;
        let desired = self.desired;
        let done =
            FrameDone { app: lane.app, frame: self.finished, desired, release, deadline, finished: at, met };
        self.finished += 1;
        self.closing = self.closing.saturating_sub(1);
        // The next frame of a display is for a period that can be met; a clock of its own goes on.
        let ended_in = if own { self.desired } else { self.desired.max(lane.period_at(at)) };
        self.desired = ended_in + lane.stride.periods();
        self.due = if own { self.due.max(self.desired) } else { self.desired };
        // Later frames may be closing already; the front frame comes after them.
        lane.aim_at(self.desired + lane.stride.periods() * u64::from(self.closing));
        done
    }

    /// A frame ended inside of a group, so that no last group of it was ever dispatched.
    pub(super) fn ended_within(&mut self, lane: &mut Lane, at: Time) -> FrameDone {
        self.closing += 1;
        self.finished(lane, at, self.deadline(lane))
    }

    /// When the oldest unfinished frame is due.
    pub(super) fn deadline(&self, lane: &Lane) -> Time {
        lane.due_of(self.desired)
    }

    /// The oldest frame ends at `at`: reports the deadlines that it missed and that were not judged yet. It was due
    /// at `due` if its app has its own clock.
    pub(super) fn late(&mut self, lane: &Lane, at: Time, due: Time) -> Option<Action> {
        if !lane.clock.is_own() {
            return self.judge(lane, lane.period_at(at + lane.tail));
        }
        let missed = Action::Missed {
            app: lane.app,
            frame: self.finished,
            period: self.desired,
            deadline: due,
            count: 1,
        };
        (at >= due && self.due <= self.desired).then_some(missed)
    }

    /// Reports the deadlines before period `open` that passed unmet since the last call. A clock of its own
    /// makes a deadline for each frame that was begun, and no others.
    pub(super) fn judge(&mut self, lane: &Lane, open: Period) -> Option<Action> {
        let stride = lane.stride.periods();
        let begun = u64::from(self.closing) + u64::from(lane.front.enqueued > Span::ZERO);
        let open = if lane.clock.is_own() { open.min(self.desired + begun) } else { open };
        if !self.wants || self.due >= open {
            return None;
        }
        let count = (open.0 - 1 - self.due.0) / stride + 1;
        let missed = Action::Missed {
            app: lane.app,
            frame: self.finished,
            period: self.due,
            deadline: lane.due_of(self.due),
            count,
        };
        self.due = self.due + count * stride;
        Some(missed)
    }

    /// Periods are numbered anew.
    pub(super) fn rebase(&mut self, moved: impl Fn(Period) -> Period) {
        self.desired = moved(self.desired);
        self.due = moved(self.due);
    }

    /// What does not hold, if anything.
    #[inline]
    pub(super) fn fault(&self, lane: &Lane) -> Option<Invariant> {
        if self.due < self.desired {
            Some(Invariant::Judged)
        } else if lane.target < self.desired && self.wants && !lane.clock.is_own() {
            Some(Invariant::Target)
        } else {
            None
        }
    }
}
