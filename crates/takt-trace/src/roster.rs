//! The attached apps, their parameters and their waiting groups, while records pass.

use std::collections::VecDeque;

use takt_core::{Action, AppId, AppParams, Event, Refusal, Time};

use crate::record::{GpuRecord, Record};

/// All apps by slot number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roster {
    members: Vec<Member>,
}

/// One app.
#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    /// Parameters in force; none if it is not attached.
    pub(crate) params: Option<AppParams>,
    /// When its groups that have not begun to run were submitted, oldest first.
    waiting: VecDeque<Time>,
    /// How many of them were dispatched.
    dispatched: usize,
    /// Groups that run or ran and are not known to be finished.
    running: usize,
}

impl Member {
    /// Importance; an app that is not attached has none and comes last.
    pub(crate) fn rank(&self) -> Option<u32> {
        self.params.map(|params| params.priority.0)
    }

    /// Since when its first group waits.
    pub(crate) fn ready_since(&self) -> Option<Time> {
        self.waiting.front().copied()
    }

    /// The first of its groups runs.
    fn start(&mut self) {
        self.waiting.pop_front();
        self.dispatched = self.dispatched.saturating_sub(1);
        self.running += 1;
    }

    /// Whether it has groups that are not finished.
    pub(crate) fn is_present(&self) -> bool {
        self.running > 0 || !self.waiting.is_empty()
    }
}

impl Roster {
    /// All of them by slot, gaps included.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.iter()
    }

    /// The app at a slot.
    pub(crate) fn member(&self, app: AppId) -> Option<&Member> {
        self.members.get(app.index())
    }

    /// Importance of the app at a slot.
    pub(crate) fn rank(&self, app: AppId) -> Option<u32> {
        self.member(app).and_then(Member::rank)
    }

    /// Takes in a record.
    pub(crate) fn see(&mut self, at: Time, record: &Record) {
        match *record {
            Record::In(Event::Join { app, params, .. } | Event::Change { app, params }) => {
                self.at(app).params = Some(params);
            }
            Record::Out(Action::Left { app, .. }) => {
                let member = self.at(app);
                member.params = None;
                member.waiting.truncate(member.dispatched);
            }
            Record::In(Event::Submit { app, .. }) => self.at(app).waiting.push_back(at),
            Record::Out(Action::Refused { app, group: Some(_), reason })
                if reason != Refusal::UnknownGroup =>
            {
                self.at(app).waiting.pop_back();
            }
            Record::Out(Action::Dispatch { app, .. }) => {
                let member = self.at(app);
                // A group that was taken back when it was done is dispatched, but does not wait.
                member.dispatched = member.waiting.len().min(member.dispatched + 1);
            }
            Record::Gpu(GpuRecord::Started { app, .. }) => self.at(app).start(),
            Record::Out(Action::Ranked { app, priority }) => {
                if let Some(params) = &mut self.at(app).params {
                    params.priority = priority;
                }
            }
            Record::Gpu(GpuRecord::Preempted { app, started, stays, .. }) => {
                let member = self.at(app);
                if started.is_some() {
                    member.running = member.running.saturating_sub(1);
                    member.waiting.push_front(at);
                    member.dispatched += usize::from(stays);
                } else {
                    member.dispatched = member.dispatched.saturating_sub(1);
                }
            }
            Record::Gpu(GpuRecord::Finished { app, started, .. }) => {
                let member = self.at(app);
                if member.running == 0 && started == at {
                    // It cost nothing, so it ended without a start.
                    member.start();
                }
                member.running = member.running.saturating_sub(1);
            }
            Record::Gap { .. } => {
                for member in &mut self.members {
                    *member = Member { params: member.params, ..Member::default() };
                }
            }
            _ => {}
        }
    }

    /// The app, made on first sight.
    fn at(&mut self, app: AppId) -> &mut Member {
        if self.members.len() <= app.index() {
            self.members.resize_with(app.index() + 1, Member::default);
        }
        &mut self.members[app.index()]
    }
}
