//! The life of each command group, pieced together from the records.
//!
//! Four records tell one story: a group is submitted, dispatched, begun and finished, and its
//! measured cost arrives with the completion event, late or never. [`Lives`] joins them. It holds
//! only groups whose story has not ended, and hands out each executed one exactly once.

use std::collections::{BTreeMap, VecDeque};

use takt_core::event::Refusal;
use takt_core::limits::FRAMES_PER_GROUP_MAX;
use takt_core::{Action, AppId, Cost, Estimate, Event, FrameDone, GroupId, GroupKind, Span, Time};

use crate::record::{GpuRecord, Record};

/// What is known of a group so far.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Life {
    /// Whose it is.
    pub app: AppId,
    /// Which one.
    pub group: GroupId,
    /// What it is to its frame.
    pub kind: GroupKind,
    /// Frame of the app it belongs to, counted from 0 since joining.
    pub frame: u64,
    /// How long it was predicted to run.
    pub predicted: Estimate,
    /// When it was submitted.
    pub submitted: Time,
    /// When it was handed to the GPU, the first time.
    pub dispatched: Option<Time>,
    /// Gpu time reserved for all of it.
    pub reserved: Option<Span>,
    /// The GPU gave it back, and it was not handed over again.
    pub taken_back: bool,
    /// When the GPU began it.
    pub started: Option<Time>,
    /// When the GPU went on with it, if it was preempted.
    pub resumed: Option<Time>,
    /// How long it ran before it was preempted the last time.
    pub ran: Span,
    /// How often it was preempted.
    pub preemptions: u32,
    /// When the GPU finished it.
    pub finished: Option<Time>,
    /// Its measured execution time, as the scheduler learnt it.
    pub cost: Option<Cost>,
    /// Whether its completion was given up.
    pub lost: bool,
}

/// Joins records to lives.
#[derive(Clone, Debug, Default)]
pub struct Lives {
    open: BTreeMap<GroupId, Life>,
    /// The frame that the next group of an app belongs to.
    frames: BTreeMap<AppId, u64>,
    /// Frames that ended without a group, and may not be done yet.
    bare: BTreeMap<AppId, VecDeque<u64>>,
}

impl Lives {
    /// Knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a record; returns the group whose story it ended, if that group was executed.
    pub fn see(&mut self, at: Time, record: &Record) -> Option<Life> {
        match record {
            Record::In(event) => self.event(at, event),
            Record::Out(action) => self.action(at, action),
            Record::Gpu(gpu) => self.gpu(at, gpu),
            Record::Gap { .. } => {
                // How these went on was not told.
                self.open.clear();
                None
            }
            Record::Vsync(_) | Record::Turn | Record::Policy(_) => None,
        }
    }

    /// A group whose story has not ended.
    pub fn get(&self, group: GroupId) -> Option<&Life> {
        self.open.get(&group)
    }

    /// Whether the frame that is done ended without a group.
    pub fn is_bare(&self, done: &FrameDone) -> bool {
        self.bare.get(&done.app).is_some_and(|frames| frames.front() == Some(&done.frame))
    }

    /// The groups whose story has not ended, by identity.
    pub fn open(&self) -> impl Iterator<Item = &Life> {
        self.open.values()
    }

    fn event(&mut self, at: Time, event: &Event) -> Option<Life> {
        match *event {
            Event::Join { app, .. } => {
                self.frames.insert(app, 0);
                self.bare.remove(&app);
                None
            }
            Event::EndFrame { app } => {
                // Of an app that is not attached, it is refused.
                if let Some(next) = self.frames.get_mut(&app) {
                    self.bare.entry(app).or_default().push_back(*next);
                    *next += 1;
                }
                None
            }
            Event::Submit { app, group, kind, estimate } => {
                let frame = self.frame_of(app, kind);
                let life = Life::new(app, group, kind, frame, estimate, at);
                self.open.insert(group, life);
                None
            }
            Event::Complete { group, finished, cost, frames } => {
                let life = self.complete(group, finished, cost)?;
                // As in the core, they are frames that nothing else ended.
                *self.frames.entry(life.app).or_insert(0) += u64::from(frames.min(FRAMES_PER_GROUP_MAX));
                Some(life)
            }
            Event::Leave { .. }
            | Event::Change { .. }
            | Event::Refresh { .. }
            | Event::Adjust(_)
            | Event::Revise { .. }
            | Event::Focus { .. } => None,
        }
    }

    fn action(&mut self, at: Time, action: &Action) -> Option<Life> {
        match *action {
            Action::Dispatch { group, reserved, .. } => {
                if let Some(life) = self.open.get_mut(&group) {
                    life.dispatched.get_or_insert(at);
                    life.reserved.get_or_insert(reserved);
                    life.taken_back = false;
                }
                None
            }
            Action::FrameDone(FrameDone { app, frame, .. }) => {
                if let Some(frames) = self.bare.get_mut(&app) {
                    frames.retain(|bare| *bare >= frame);
                }
                None
            }
            Action::Refused { app, group: None, reason: Refusal::TooManyFrames | Refusal::Exited } => {
                if let Some(frame) = self.bare.get_mut(&app).and_then(VecDeque::pop_back) {
                    self.frames.insert(app, frame);
                }
                None
            }
            Action::Left { app, .. } => {
                self.bare.remove(&app);
                self.open.retain(|_, life| life.app != app || !life.waits());
                None
            }
            Action::Refused { group: Some(group), reason, .. } => {
                self.refused(group, reason);
                None
            }
            Action::Lost { group, .. } => {
                let life = self.open.get_mut(&group)?;
                life.lost = true;
                life.finished.is_some().then(|| self.take(group)).flatten()
            }
            _ => None,
        }
    }

    fn gpu(&mut self, at: Time, record: &GpuRecord) -> Option<Life> {
        match *record {
            GpuRecord::Started { group, .. } => {
                let life = self.open.get_mut(&group)?;
                life.begins(at);
                None
            }
            GpuRecord::Preempted { group, started, stays, .. } => {
                let life = self.open.get_mut(&group)?;
                life.ran += started.map_or(Span::ZERO, |started| at.since(started));
                life.preemptions += 1;
                life.taken_back = !stays;
                None
            }
            GpuRecord::Finished { group, started, .. } => {
                let life = self.open.get_mut(&group)?;
                life.begins(started);
                life.finished = Some(at);
                // The completion was given up while the group still ran: none will come.
                life.lost.then(|| self.take(group)).flatten()
            }
            _ => None,
        }
    }

    /// A completion that the scheduler refuses never concerns a dispatched group, so only
    /// dispatched ones are believed.
    fn complete(&mut self, group: GroupId, finished: Time, cost: Cost) -> Option<Life> {
        let life = self.open.get_mut(&group)?;
        life.dispatched?;
        life.cost = Some(cost);
        // Without records of the GPU itself the completion is the best there is.
        life.finished.get_or_insert(finished);
        life.started.get_or_insert_with(|| finished - cost.span());
        self.take(group)
    }

    /// Takes back a refused submission; a refused completion changes nothing.
    fn refused(&mut self, group: GroupId, reason: Refusal) {
        if reason == Refusal::UnknownGroup {
            return;
        }
        if let Some(life) = self.take(group)
            && life.kind.ends_frame()
        {
            self.frames.insert(life.app, life.frame);
        }
    }

    fn take(&mut self, group: GroupId) -> Option<Life> {
        self.open.remove(&group)
    }

    fn frame_of(&mut self, app: AppId, kind: GroupKind) -> u64 {
        let next = self.frames.entry(app).or_insert(0);
        let frame = *next;
        if kind.ends_frame() {
            *next += 1;
        }
        frame
    }
}

impl Life {
    pub(crate) fn new(
        app: AppId,
        group: GroupId,
        kind: GroupKind,
        frame: u64,
        predicted: Estimate,
        submitted: Time,
    ) -> Self {
        Self {
            app,
            group,
            kind,
            frame,
            predicted,
            submitted,
            dispatched: None,
            reserved: None,
            taken_back: false,
            started: None,
            resumed: None,
            ran: Span::ZERO,
            preemptions: 0,
            finished: None,
            cost: None,
            lost: false,
        }
    }
}

impl Life {
    fn begins(&mut self, at: Time) {
        if self.ran > Span::ZERO {
            self.resumed = Some(at);
        } else {
            self.started = Some(at);
        }
    }

    /// Whether it waits to be handed to the GPU.
    pub fn waits(&self) -> bool {
        self.dispatched.is_none() || self.taken_back
    }

    /// Since when it is or was on the GPU without interruption.
    pub fn last_begun(&self) -> Option<Time> {
        self.resumed.or(self.started)
    }
}

/// The name of a kind of group, as all formats spell it.
pub fn kind_name(kind: GroupKind) -> &'static str {
    match kind {
        GroupKind::Draw => "draw",
        GroupKind::Swap => "swap",
        GroupKind::Sync => "sync",
        GroupKind::Exit => "exit",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Pick, run};

    fn at(us: u64) -> Time {
        Time::from_us(us)
    }

    fn submit(group: u64, kind: GroupKind) -> Record {
        Record::In(Event::Submit {
            app: AppId(0),
            group: GroupId(group),
            kind,
            estimate: Estimate::new(Span::from_us(10)),
        })
    }

    fn dispatch(group: u64) -> Record {
        Record::Out(Action::Dispatch {
            app: AppId(0),
            group: GroupId(group),
            target: takt_core::Period(0),
            start: Time::ZERO,
            reserved: Span::from_us(12),
        })
    }

    fn complete(group: u64, finished: u64) -> Record {
        Record::In(Event::Complete {
            group: GroupId(group),
            finished: at(finished),
            cost: Cost::new(Span::from_us(7)),
            frames: 0,
        })
    }

    #[test]
    fn every_executed_group_comes_out_once_and_whole() {
        let mut lives = Lives::new();
        let mut seen = std::collections::BTreeSet::new();
        for (time, record) in run(Pick::Important, 20) {
            if let Some(life) = lives.see(time, &record) {
                assert!(seen.insert(life.group));
                let (Some(start), Some(end)) = (life.started, life.finished) else {
                    panic!("{life:?}");
                };
                assert_eq!(Some(end.since(start)), life.cost.map(Cost::span));
                assert!(life.submitted <= start);
            }
        }
        assert!(seen.len() > 100);
        assert_eq!(lives.open().count(), 0);
    }

    #[test]
    fn completions_stand_in_for_missing_gpu_records() {
        let mut lives = Lives::new();
        lives.see(at(1), &submit(1, GroupKind::Draw));
        assert_eq!(lives.see(at(2), &complete(1, 2)), None, "not dispatched");
        lives.see(at(3), &dispatch(1));
        let life = lives.see(at(20), &complete(1, 19)).unwrap();
        assert_eq!((life.started, life.finished), (Some(at(12)), Some(at(19))));
    }

    #[test]
    fn a_refused_swap_does_not_end_the_frame() {
        let mut lives = Lives::new();
        lives.see(at(1), &submit(1, GroupKind::Swap));
        let refused = Record::Out(Action::Refused {
            app: AppId(0),
            group: Some(GroupId(1)),
            reason: Refusal::QueueFull,
        });
        lives.see(at(1), &refused);
        lives.see(at(2), &submit(2, GroupKind::Swap));
        lives.see(at(3), &submit(3, GroupKind::Draw));
        let frames: Vec<_> = lives.open().map(|life| life.frame).collect();
        assert_eq!(frames, [0, 1]);
    }

    #[test]
    fn frames_that_end_without_a_group_are_counted_unless_that_is_refused() {
        let (mut lives, app) = (Lives::new(), AppId(0));
        let ends = Record::In(Event::EndFrame { app });
        lives.see(at(0), &ends);
        lives.see(at(1), &submit(1, GroupKind::Draw));
        lives.see(at(2), &ends);
        lives.see(at(3), &ends);
        let reason = Refusal::TooManyFrames;
        lives.see(at(3), &Record::Out(Action::Refused { app, group: None, reason }));
        lives.see(at(4), &submit(2, GroupKind::Swap));
        lives.see(at(5), &submit(3, GroupKind::Draw));
        let frames: Vec<_> = lives.open().map(|life| life.frame).collect();
        assert_eq!(frames, [0, 1, 2]);
        let bare = |lives: &mut Lives, frame| {
            let done = frame_done(frame);
            lives.see(at(6), &Record::Out(Action::FrameDone(done)));
            lives.is_bare(&done)
        };
        assert_eq!([0, 1].map(|frame| bare(&mut lives, frame)), [true, false]);
    }

    fn frame_done(frame: u64) -> FrameDone {
        let (desired, release, deadline) = (takt_core::Period(0), Time::ZERO, at(9));
        FrameDone { app: AppId(0), frame, desired, release, deadline, finished: at(6), met: true }
    }

    #[test]
    fn a_lost_group_comes_out_when_the_gpu_is_done_with_it() {
        let mut lives = Lives::new();
        let (app, group, started) = (AppId(0), GroupId(1), at(3));
        lives.see(at(1), &submit(1, GroupKind::Draw));
        lives.see(at(2), &dispatch(1));
        let by = takt_core::event::LostBy::Timeout;
        let lost = Record::Out(Action::Lost { app, group, by });
        assert_eq!(lives.see(at(9), &lost), None);
        let finished = Record::Gpu(GpuRecord::Finished { app, group, started });
        let life = lives.see(at(10), &finished).unwrap();
        assert_eq!((life.cost, life.lost), (None, true));
        assert_eq!(lives.see(at(11), &complete(1, 10)), None, "only once");
    }
}
