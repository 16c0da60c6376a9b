//! Groups on their way: submitted and not finished, by app.

use std::collections::VecDeque;

use takt_core::{Action, AppId, AppParams, Estimate, Event, GroupId, Span, Time};

use crate::record::{GpuRecord, Record};

/// A group between submission and end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct LiveGroup {
    pub(crate) group: GroupId,
    pub(crate) estimate: Estimate,
    pub(crate) submitted: Time,
    /// Execution time set aside for it when it was dispatched.
    pub(crate) reserved: Option<Span>,
    pub(crate) started: Option<Time>,
}

/// An app and its groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveApp {
    pub(crate) params: Option<AppParams>,
    /// Unfinished groups in submission order; the started and dispatched ones come first.
    pub(crate) groups: VecDeque<LiveGroup>,
    /// How many of them have started.
    started: usize,
}

impl LiveApp {
    /// Importance; apps that left have none and come last.
    pub(crate) fn rank(&self) -> Option<u32> {
        self.params.map(|params| params.priority.0)
    }

    /// The first group that has not started.
    pub(crate) fn ready(&self) -> Option<&LiveGroup> {
        self.groups.get(self.started)
    }

    fn find(&mut self, group: GroupId) -> Option<(usize, &mut LiveGroup)> {
        self.groups.iter_mut().enumerate().find(|(_, live)| live.group == group)
    }
}

/// All apps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    pub(crate) apps: Vec<LiveApp>,
}

/// A group that ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Ended {
    pub(crate) app: AppId,
    pub(crate) started: Time,
    pub(crate) ended: Time,
    pub(crate) reserved: Span,
    pub(crate) estimate: Estimate,
}

impl Ended {
    /// Measured length.
    pub(crate) fn cost(&self) -> Span {
        self.ended.since(self.started)
    }

    /// By how much it ran longer than was set aside for it.
    pub(crate) fn overrun(&self) -> Span {
        self.cost().saturating_sub(self.reserved)
    }
}

impl Live {
    /// The app's state, made on first sight.
    pub(crate) fn app(&mut self, app: AppId) -> &mut LiveApp {
        if self.apps.len() <= app.index() {
            self.apps.resize_with(app.index() + 1, LiveApp::default);
        }
        &mut self.apps[app.index()]
    }

    /// Follows a record; reports a group that ended.
    pub(crate) fn follow(&mut self, at: Time, record: &Record) -> Option<Ended> {
        match *record {
            Record::In(Event::Submit { app, group, estimate, .. }) => {
                let live = LiveGroup { group, estimate, submitted: at, reserved: None, started: None };
                self.app(app).groups.push_back(live);
            }
            Record::Out(Action::Dispatch { app, group, reserved, .. }) => {
                if let Some((_, live)) = self.app(app).find(group) {
                    live.reserved = Some(reserved);
                }
            }
            Record::Gpu(GpuRecord::Started { app, group }) => {
                let state = self.app(app);
                if let Some((position, live)) = state.find(group) {
                    live.started = Some(at);
                    state.started = position + 1;
                }
            }
            Record::Gpu(GpuRecord::Finished { app, group, started }) => {
                return self.finish(at, app, group, started);
            }
            Record::In(Event::Join { app, params, .. } | Event::Change { app, params }) => {
                self.app(app).params = Some(params);
            }
            Record::In(Event::Leave { app }) => {
                let state = self.app(app);
                state.params = None;
                state.groups.retain(|live| live.reserved.is_some());
            }
            Record::Out(Action::Refused { app, group: Some(group), .. }) => {
                if let Some(state) = self.apps.get_mut(app.index()) {
                    state.groups.retain(|live| live.group != group);
                }
            }
            _ => {}
        }
        None
    }

    fn finish(&mut self, at: Time, app: AppId, group: GroupId, started: Time) -> Option<Ended> {
        let state = self.app(app);
        let (position, _) = state.find(group)?;
        let live = state.groups.remove(position)?;
        state.started = state.started.saturating_sub(1);
        let reserved = live.reserved.unwrap_or_else(|| live.estimate.span());
        Some(Ended { app, started, ended: at, reserved, estimate: live.estimate })
    }
}
