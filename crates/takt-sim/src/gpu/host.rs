//! A host that serves the channels of a runlist in turn, each for a timeslice.
//!
//! A channel has its turn until it drains or its timeslice ends; work that comes when it has just
//! drained waits for its next turn. Nobody is interrupted for an idle GPU: at the end of a
//! timeslice without rivals the next one begins. A timeslice begins when the context is loaded.

use std::collections::VecDeque;

use takt_core::runlist::Runlist;
use takt_core::service::Level;
use takt_core::{AppId, Span, Time};

use super::unit::Unit;
use super::{GpuEvent, Job};
use crate::model::GpuSpec;

/// How a channel is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Channel {
    /// How often it occurs in the runlist.
    pub level: Level,
    /// Longest turn; at least a nanosecond.
    pub timeslice: Span,
    /// Its jobs cannot be interrupted: its turn ends with the job that runs.
    pub uninterruptible: bool,
}

impl Default for Channel {
    fn default() -> Self {
        Self { level: Level::default(), timeslice: Span::from_ms(1), uninterruptible: false }
    }
}

/// Serves the channels of a runlist in turn.
#[derive(Clone, Debug)]
pub struct Host {
    unit: Unit,
    capacity: usize,
    /// Dispatched jobs on their way to their channels.
    coming: VecDeque<(Time, Job)>,
    /// By slot number.
    channels: Vec<State>,
    runlist: Runlist,
    turn: Option<Turn>,
    /// Jobs in all channels.
    queued: usize,
}

#[derive(Clone, Debug, Default)]
struct State {
    channel: Channel,
    jobs: VecDeque<Job>,
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    app: AppId,
    /// When its timeslice ends; `NEVER` if that has been and the job that runs may not be
    /// interrupted.
    ends: Time,
}

impl Host {
    pub(super) fn new(spec: &GpuSpec) -> Self {
        Self {
            unit: Unit::new(spec),
            capacity: spec.queue.max(1) as usize,
            coming: VecDeque::new(),
            channels: Vec::new(),
            runlist: Runlist::default(),
            turn: None,
            queued: 0,
        }
    }

    pub(super) fn set_channel(&mut self, app: AppId, channel: Channel) {
        self.state(app).channel = channel;
        self.rebuild();
    }

    /// The state of a channel, made on first sight.
    fn state(&mut self, app: AppId) -> &mut State {
        if self.channels.len() <= app.index() {
            self.channels.resize_with(app.index() + 1, State::default);
            self.rebuild();
        }
        &mut self.channels[app.index()]
    }

    fn rebuild(&mut self) {
        let levels = self.channels.iter().map(|state| state.channel.level);
        self.runlist.replace((0..).map(AppId).zip(levels));
    }

    pub(super) fn dispatch(&mut self, arrives: Time, job: Job) {
        let after = self.coming.back().map_or(Time::ZERO, |(time, _)| *time);
        self.coming.push_back((arrives.max(after), job));
    }

    pub(super) fn next_at(&self) -> Time {
        let mut at = self.unit.next_at();
        if let Some((arrives, _)) = self.coming.front().filter(|_| self.queued < self.capacity) {
            at = at.min(*arrives);
        }
        if self.queued > 0 {
            at = at.min(self.unit.free_at());
        }
        match self.turn {
            Some(turn) if self.unit.running().is_some() => at.min(turn.ends),
            _ => at,
        }
    }

    pub(super) fn step(&mut self, now: Time) -> Option<GpuEvent> {
        let executes_from = self.unit.stalled_until().max(now);
        if let Some(event) = self.unit.step(now) {
            match (event, &mut self.turn) {
                (GpuEvent::Finished { job, .. }, _) => self.finished(now, job.app),
                // No time of a turn passes in a stall.
                (GpuEvent::Stalled { until }, Some(turn)) => turn.ends += until.since(executes_from),
                _ => {}
            }
            return Some(event);
        }
        if let Some((arrives, job)) = self.coming.front().copied()
            && arrives <= now
            && self.queued < self.capacity
        {
            self.coming.pop_front();
            self.state(job.app).jobs.push_back(job);
            self.queued += 1;
            return Some(GpuEvent::Queued(job));
        }
        self.end_turn(now).or_else(|| self.serve(now))
    }

    fn finished(&mut self, now: Time, app: AppId) {
        let jobs = &mut self.channels[app.index()].jobs;
        jobs.pop_front();
        self.queued -= 1;
        if jobs.is_empty() || self.turn.is_none_or(|turn| turn.ends <= now || turn.ends == Time::NEVER) {
            self.turn = None;
        }
    }

    /// Interrupts the job that runs if its timeslice is over and others wait.
    fn end_turn(&mut self, now: Time) -> Option<GpuEvent> {
        let turn = self.turn.as_mut().filter(|turn| turn.ends <= now)?;
        self.unit.running()?;
        let state = &mut self.channels[turn.app.index()];
        if self.queued == state.jobs.len() {
            turn.ends = now + state.channel.timeslice;
            return None;
        }
        if state.channel.uninterruptible {
            turn.ends = Time::NEVER;
            return None;
        }
        let taken = self.unit.interrupt(now)?;
        if let Some(first) = state.jobs.front_mut() {
            *first = taken.job;
        }
        self.turn = None;
        Some(GpuEvent::Suspended(taken))
    }

    /// Goes on in the turn, or with the next one.
    fn serve(&mut self, now: Time) -> Option<GpuEvent> {
        if self.queued == 0 || self.unit.free_at() > now {
            return None;
        }
        let app = match self.turn {
            Some(turn) => turn.app,
            None => {
                let channels = &self.channels;
                let app = self.runlist.advance(|app| !channels[app.index()].jobs.is_empty())?;
                let timeslice = channels[app.index()].channel.timeslice;
                self.turn = Some(Turn { app, ends: now + self.unit.loading(app) + timeslice });
                app
            }
        };
        let job = self.channels[app.index()].jobs.front().copied()?;
        self.unit.begin(now, job)
    }
}
