//! Which jobs of a server were in time.
//!
//! An app with a [server](AppParams::server) has jobs: each is the work from its first group to the end of a
//! frame. So has an app that shares the server of another one, or produces for an app that has one. A job is released
//! when it begins, but no earlier than a period of the server after the job before it, and it is due a period later.
//! Jobs are only judged here. No policy sees them, and when the app may start its next frame does not depend on them.

use alloc::collections::VecDeque;

use super::lane::Lane;
use super::queue::Waiting;
use super::{Scheduler, Slot};

use crate::app::AppId;
use crate::event::{Action, FrameDone};
use crate::limits::{FRAMES_PER_GROUP_MAX, JOBS_MAX};
use crate::refresh::Period;
use crate::service::Reservation;
use crate::time::{Span, Time};

/// The jobs of one app.
#[derive(Debug)]
pub(super) struct Jobs {
    /// Period of the server; `None` if the app has none, and nothing is judged here.
    period: Option<Span>,
    /// When the jobs that have begun and are not done were released, in order.
    released: VecDeque<Time>,
    /// How many of those were told to be late.
    told: usize,
    /// When the next job is released at the earliest.
    next: Time,
    /// The last job has not come to its end.
    open: bool,
}

impl Jobs {
    pub(super) fn new() -> Self {
        let released = VecDeque::with_capacity(JOBS_MAX);
        Self { period: None, released, told: 0, next: Time::ZERO, open: false }
    }

    /// The app has joined.
    pub(super) fn reset(&mut self) {
        self.released.clear();
        (self.period, self.told, self.next, self.open) = (None, 0, Time::ZERO, false);
    }

    /// The period of its server is this from `now` on, and so many jobs are under way.
    fn changed(&mut self, period: Option<Span>, under_way: usize, now: Time) {
        let before = core::mem::replace(&mut self.period, period);
        if before.is_some() != self.period.is_some() {
            self.released.clear();
            (self.told, self.next) = (0, now);
            for _ in 0..under_way {
                self.release(now);
            }
        }
    }

    /// The app does something for its open job, which may begin with it.
    pub(super) fn begin(&mut self, now: Time) {
        if !core::mem::replace(&mut self.open, true) {
            self.release(now);
        }
    }

    /// The open job ends here.
    pub(super) fn close(&mut self) {
        self.open = false;
    }

    fn release(&mut self, now: Time) {
        if let Some(period) = self.period.filter(|_| self.released.len() < JOBS_MAX) {
            let release = self.next.max(now);
            self.released.push_back(release);
            self.next = release + period;
        }
    }

    /// When the first job is due of which nothing was told.
    pub(super) fn next_due(&self) -> Option<Time> {
        Some(*self.released.get(self.told)? + self.period?)
    }

    /// Counts the jobs that were due by `heard` and of which nothing was told: the place of the first one, its
    /// deadline, and how many there are.
    fn overdue(&mut self, heard: Time) -> Option<(u64, Time, u64)> {
        let deadline = self.next_due().filter(|due| *due <= heard)?;
        let first = self.told;
        while self.next_due().is_some_and(|due| due <= heard) {
            self.told += 1;
        }
        Some((first as u64, deadline, (self.told - first) as u64))
    }

    /// The oldest job is over, with the frame that is `done`.
    fn finish(&mut self, done: &mut FrameDone) {
        let (Some(period), Some(release)) = (self.period, self.released.pop_front()) else {
            return;
        };
        self.told = self.told.saturating_sub(1);
        (done.release, done.deadline) = (release, release + period);
        done.desired = Period(done.frame);
        done.met = done.finished < done.deadline;
    }

    /// The same, inside of a group: what is left of the job is the next one.
    fn finish_within(&mut self, done: &mut FrameDone) {
        let Some(period) = self.period.filter(|_| !self.released.is_empty()) else {
            return;
        };
        self.finish(done);
        self.released.push_front(done.release + period);
        for later in 1..self.released.len() {
            self.released[later] = self.released[later].max(self.released[later - 1] + period);
        }
        self.next = self.released.back().map_or(self.next, |last| *last + period);
    }

    /// Nothing is left of the open job: the next one has not begun.
    fn drop_open(&mut self) {
        if core::mem::take(&mut self.open)
            && let Some(release) = self.released.pop_back()
        {
            self.told = self.told.min(self.released.len());
            self.next = release;
        }
    }
}

impl Slot {
    /// The app is served by a server of that period from `now` on. Work that is there when a server comes counts as
    /// come then.
    fn served(&mut self, period: Option<Span>, now: Time) {
        if self.jobs.period != period {
            let under_way = self.frames_ended() + usize::from(self.jobs.open);
            self.jobs.changed(period, under_way, now);
        }
    }

    /// Whether as many jobs of a server are under way as there are frames.
    pub(super) fn jobs_are_sound(&self) -> bool {
        let Jobs { period, released, told, open, .. } = &self.jobs;
        period.is_none()
            || (*told <= released.len() && released.len() == self.frames_ended() + usize::from(*open))
    }

    /// Frames that have come to their end and are not done.
    fn frames_ended(&self) -> usize {
        let ends_frame = |waiting: &&Waiting| waiting.head.kind.ends_frame();
        self.frames.closing() + self.queue.iter().filter(ends_frame).count() + self.ends.open()
    }

    /// The deadlines that passed unmet since the last call: those before period `open`, or of jobs that were due
    /// by `heard`.
    pub(super) fn missed(&mut self, lane: &Lane, open: Period, heard: Time) -> Option<Action> {
        let missed = self.frames.judge(lane, open);
        if self.jobs.period.is_some() { self.missed_job(lane, heard) } else { missed }
    }

    fn missed_job(&mut self, lane: &Lane, heard: Time) -> Option<Action> {
        let (first, deadline, count) = self.jobs.overdue(heard)?;
        let frame = self.frames.number() + first;
        Some(Action::Missed { app: lane.app, frame, period: Period(frame), deadline, count })
    }
}

/// Which apps have jobs, and of which server.
impl Scheduler {
    /// Finds out anew which apps have jobs, after any change of apps.
    pub(super) fn find_jobs(&mut self) {
        for index in 0..self.lanes.len() {
            let period = self.job_period(index);
            self.slots[self.lanes[index].app.index()].served(period, self.now);
        }
    }

    /// The period of the server that the app of the lane at `index` has or shares, or that the first of its consumers
    /// has or shares that is served by one. An app with frames of its own has no jobs.
    fn job_period(&self, index: usize) -> Option<Span> {
        let attached = |app: AppId| self.lane_of(app).map(|index| &self.lanes[index]);
        let server = |lane: &Lane| match lane.service.reservation {
            Reservation::Shared(owner) => attached(owner)?.params().server(),
            _ => lane.params().server(),
        };
        let own = &self.lanes[index];
        let consumer = |lane: &&Lane| lane.service.feeds.and_then(attached);
        let mut chain = core::iter::successors(Some(own), consumer).take(self.lanes.len());
        let served = chain.find_map(server).filter(|_| !own.has_budget());
        served.map(|server| server.period)
    }
}

/// Frames end.
impl Scheduler {
    /// The oldest frame of the lane at `index` ended at `at`; it was due at `due` if its app has its own clock.
    pub(super) fn finish_frame(&mut self, index: usize, at: Time, due: Time) -> FrameDone {
        self.tell_late(index, at, due);
        let lane = &mut self.lanes[index];
        let slot = &mut self.slots[lane.app.index()];
        let mut done = slot.frames.finished(lane, at, due);
        slot.jobs.finish(&mut done);
        done
    }

    /// So many frames of the lane at `index` ended inside of a group, which ended at `at`.
    pub(super) fn finish_within(&mut self, index: usize, at: Time, frames: u32) {
        for _ in 0..frames.min(FRAMES_PER_GROUP_MAX) {
            let lane = &self.lanes[index];
            self.tell_late(index, at, self.slots[lane.app.index()].frames.deadline(lane));
            let lane = &mut self.lanes[index];
            let slot = &mut self.slots[lane.app.index()];
            let mut done = slot.frames.ended_within(lane, at);
            slot.jobs.finish_within(&mut done);
            self.actions.push(Action::FrameDone(done));
        }
        let lane = &self.lanes[index];
        if frames > 0 && lane.waiting == 0 && lane.in_flight == 0 {
            self.slots[lane.app.index()].jobs.drop_open();
        }
    }

    /// The oldest frame or job of the lane at `index` ended at `at`: deadlines that had passed by then were missed,
    /// also where their judgement is still to come.
    fn tell_late(&mut self, index: usize, at: Time, due: Time) {
        let lane = &self.lanes[index];
        let slot = &mut self.slots[lane.app.index()];
        let job = slot.jobs.period.is_some();
        let missed = if job { slot.missed_job(lane, at) } else { slot.frames.late(lane, at, due) };
        if let Some(missed) = missed {
            self.stats.untold += u64::from(!self.actions.report(missed));
        }
    }
}
