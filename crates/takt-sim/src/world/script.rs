//! What the scenario says will happen: apps join, change, crash or hang, and the focus moves.

use takt_core::{AppId, AppParams, Event, Service, Time};
use takt_trace::Observer;

use super::{APPS, SCRIPT, World, slot};
use crate::client::State;
use crate::gpu::Channel;
use crate::model::{End, Interrupts, Scenario};

/// Something the scenario says will happen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Join(usize),
    Change(usize, AppParams),
    /// The app stops; the scheduler does not know.
    Stop(usize),
    /// The scheduler hears of an app's death.
    Bury(usize),
    Focus(Option<AppId>),
    /// Something that no app does.
    Tell(Event),
}

/// Everything the scenario says will happen, in order.
pub(super) fn script(scenario: &Scenario) -> Vec<(Time, Step)> {
    let mut steps = Vec::new();
    for (index, app) in scenario.apps.iter().enumerate() {
        steps.push((app.join, Step::Join(index)));
        steps.extend(app.changes.iter().map(|change| (change.at, Step::Change(index, change.params))));
        match app.end {
            Some(End::Crash { at, notice }) => {
                steps.push((at, Step::Stop(index)));
                steps.push((at + notice, Step::Bury(index)));
            }
            Some(End::Hang(at)) => steps.push((at, Step::Stop(index))),
            Some(End::Leave(_)) | None => {}
        }
    }
    steps.extend(scenario.focus.iter().map(|change| (change.at, Step::Focus(change.app))));
    steps.sort_by_key(|(at, _)| *at);
    steps
}

impl<O: Observer> World<'_, O> {
    /// The scheduler is to be told these events as well.
    pub(super) fn add(&mut self, events: &[(Time, Event)]) {
        self.script.extend(events.iter().map(|(at, event)| (*at, Step::Tell(*event))));
        self.script.sort_by_key(|(at, _)| *at);
        self.schedule_script();
    }

    pub(super) fn schedule_script(&mut self) {
        self.next[SCRIPT] = self.script.get(self.scripted).map_or(Time::NEVER, |(at, _)| *at);
    }

    pub(super) fn step_script(&mut self) {
        let (_, step) = self.script[self.scripted];
        self.scripted += 1;
        match step {
            Step::Join(index) => self.join(index),
            Step::Change(index, params) => {
                self.clients[index].set_params(params);
                if self.clients[index].state != State::Away {
                    // Whether work is divisible changes when the app has nothing on the GPU.
                    if self.scenario.gpu.divisible.is_none() {
                        self.set_channel(index);
                    }
                    self.tell(Event::Change { app: slot(index), params });
                }
            }
            Step::Stop(index) => self.stop(index),
            Step::Bury(index) => {
                self.clients[index].submitted.clear();
                // Its waiting groups are dropped, so there is nothing to revise any more.
                self.clients[index].belief = None;
                self.tell(Event::Leave { app: slot(index) });
            }
            Step::Focus(app) => self.tell(Event::Focus { app }),
            Step::Tell(event) => self.tell(event),
        }
        self.schedule_script();
    }

    fn join(&mut self, index: usize) {
        self.set_channel(index);
        let client = &mut self.clients[index];
        self.next[APPS + index] = client.join(self.now);
        let event = Event::Join { app: slot(index), params: client.params, phase: client.spec().phase };
        self.tell(event);
    }

    pub(super) fn set_channel(&mut self, index: usize) {
        let app = slot(index);
        let Service { level, uninterruptible, .. } = self.clients[index].params.service;
        let timeslice =
            self.clients[index].params.service.timeslice_or(self.scenario.config.tuning.timeslice);
        let channel = Channel { level, timeslice, uninterruptible, ..Channel::default() };
        let divides = self.scheduler.lanes().iter().any(|lane| lane.app == app && lane.divisible);
        let channel = match self.scenario.gpu.divisible.filter(|_| divides) {
            Some(Interrupts { slice, quantum }) => {
                Channel { timeslice: slice, quantum, uninterruptible: false, divisible: true, ..channel }
            }
            None => channel,
        };
        self.gpu.set_channel(app, channel);
    }
}
