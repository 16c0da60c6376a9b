//! Frames that end without a group: the app says so, and waits for no grant.
//!
//! Such a frame is closed with the last group before its end: when that one is dispatched, or at once if it
//! was. It is done when no group of the app that came before its end waits or is in flight.

use alloc::collections::VecDeque;

use super::Scheduler;
use super::frames::Frames;
use super::lane::Lane;

use crate::app::AppId;
use crate::event::{Action, Refusal};
use crate::limits::FRAME_ENDS_MAX;
use crate::time::Time;

/// An end of a frame that waits for groups of its app.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct FrameEnd {
    /// Order of the last group that the app submitted before.
    behind: u64,
    /// When the app said so.
    since: Time,
    /// When the frame is due; set when it is closed.
    due: Time,
    /// A group that it is behind waits.
    open: bool,
}

/// The ends of one app's frames that wait, in order.
#[derive(Debug)]
pub(super) struct FrameEnds {
    waiting: VecDeque<FrameEnd>,
    /// Ends that waited for nothing, and between which decisions that was.
    at_once: u32,
    round: u64,
}

impl FrameEnds {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::with_capacity(FRAME_ENDS_MAX), at_once: 0, round: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Whether no further frame may end now. Clients may not make an endless list of frames without groups.
    pub(super) fn is_full(&self, round: u64) -> bool {
        let at_once = if self.round == round { self.at_once as usize } else { 0 };
        self.waiting.len() >= FRAME_ENDS_MAX || at_once >= FRAME_ENDS_MAX
    }

    fn count_at_once(&mut self, round: u64) {
        self.at_once = if self.round == round { self.at_once + 1 } else { 1 };
        self.round = round;
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// How many frames of those are not closed.
    pub(super) fn open(&self) -> usize {
        self.waiting.iter().filter(|end| end.open).count()
    }

    /// Order of the group that the end at that index is behind, if its frame is not closed.
    pub(super) fn open_at(&self, index: usize) -> Option<u64> {
        self.waiting.get(index).filter(|end| end.open).map(|end| end.behind)
    }

    /// The same of the first one that is not closed.
    pub(super) fn first_open(&self) -> Option<u64> {
        self.waiting.iter().find(|end| end.open).map(|end| end.behind)
    }

    /// The same of the last one.
    pub(super) fn last_open(&self) -> Option<u64> {
        self.waiting.back().filter(|end| end.open).map(|end| end.behind)
    }

    /// The end at that index is behind the group of that order now.
    pub(super) fn put_behind(&mut self, index: usize, order: u64) {
        if let Some(end) = self.waiting.get_mut(index) {
            end.behind = order;
        }
    }

    /// The frame of the end at that index is closed now; the next one began at `next`, if it has.
    pub(super) fn close_at(
        &mut self,
        index: usize,
        frames: &mut Frames,
        lane: &mut Lane,
        (now, next): (Time, Option<Time>),
    ) {
        if let Some(end) = self.waiting.get_mut(index) {
            (end.due, end.open) = (lane.due_of(lane.target), false);
            frames.closed(lane, now, next);
        }
    }

    /// The group of that order waits again, and so do the ends behind it.
    pub(super) fn reopen(&mut self, order: u64) {
        let behind = self.waiting.iter_mut().filter(|end| end.behind == order);
        behind.for_each(|end| end.open = true);
    }

    /// How many frames ended behind the group of that order and before the next one.
    pub(super) fn behind(&self, order: u64) -> u32 {
        let behind = self.waiting.iter().filter(|end| end.behind == order).count();
        u32::try_from(behind).unwrap_or(u32::MAX)
    }

    /// When the first of the frames ended that did so behind the group of that order.
    pub(super) fn first_behind(&self, order: u64) -> Option<Time> {
        self.waiting.iter().find(|end| end.behind == order).map(|end| end.since)
    }

    /// The group of that order was dispatched: frames that ended behind it are closed.
    /// What waits behind came at `last`, if there is anything.
    pub(super) fn close(
        &mut self,
        order: u64,
        frames: &mut Frames,
        lane: &mut Lane,
        (now, last): (Time, Option<Time>),
    ) {
        for index in 0..self.waiting.len() {
            if self.waiting[index].behind != order {
                continue;
            }
            // A frame without any group begins when it ends.
            let next = self.waiting.get(index + 1).filter(|end| end.behind == order);
            let next = next.map(|end| end.since).or(last);
            self.close_at(index, frames, lane, (now, next));
        }
    }

    /// Whether no more ends wait than may, and frames end in order.
    pub(super) fn are_sound(&self) -> bool {
        self.waiting.len() <= FRAME_ENDS_MAX && self.waiting.iter().map(|end| end.behind).is_sorted()
    }
}

impl Scheduler {
    /// The open frame of the app ends here.
    pub(super) fn end_frame(&mut self, app: AppId) {
        let Some(index) = self.lane_of(app) else {
            return self.refuse(app, None, Refusal::UnknownApp);
        };
        let slot = &self.slots[app.index()];
        if slot.exiting {
            return self.refuse(app, None, Refusal::Exited);
        }
        if slot.ends.is_full(self.round) {
            return self.refuse(app, None, Refusal::TooManyFrames);
        }
        // It may be the beginning of the frame as well.
        self.begin(index);
        let slot = &mut self.slots[app.index()];
        let lane = &mut self.lanes[index];
        let behind = slot.last;
        slot.jobs.close();
        slot.open = false;
        slot.ends.waiting.push_back(FrameEnd { behind, since: self.now, due: Time::NEVER, open: true });
        if let Some(last) = slot.queue.back_mut().filter(|last| last.head.order == behind) {
            lane.batches += u32::from(!last.ends_batch());
            last.ends_frame = true;
        }
        // What waits last may be a group of a source.
        if slot.queue.back_mut().is_some() || lane.head.is_some() {
            self.account_again(index);
            return;
        }
        lane.front = slot.queue.front_ledger(self.config.per_group());
        slot.ends.close_at(slot.ends.len() - 1, &mut slot.frames, lane, (self.now, None));
        if self.tell_done(index, Some(self.now)) {
            self.slots[app.index()].ends.count_at_once(self.round);
        }
        self.release(index);
    }

    /// Tells of the frames of the lane at `index` that are done because what they waited for ended at
    /// `finished`; says whether there were any. If it is not known when that was, they were not in time.
    pub(super) fn tell_done(&mut self, index: usize, finished: Option<Time>) -> bool {
        let at = finished.unwrap_or(self.now);
        let app = self.lanes[index].app;
        let mut any = false;
        while let Some(end) = self.slots[app.index()].ends.waiting.front().copied() {
            let slot = &mut self.slots[app.index()];
            let waits = slot.queue.front().is_some_and(|first| first.head.order <= end.behind);
            if waits || end.open || self.in_flight.has_until(app, slot.generation, end.behind) {
                break;
            }
            slot.ends.waiting.pop_front();
            let mut done = self.finish_frame(index, at.max(end.since), end.due);
            done.met &= finished.is_some();
            self.actions.push(Action::FrameDone(done));
            any = true;
        }
        any
    }
}
