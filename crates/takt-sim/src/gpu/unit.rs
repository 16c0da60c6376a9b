//! The unit that executes one job at a time: its clock, its stalls and its context.

use std::collections::VecDeque;

use takt_core::{AppId, GroupId, Span, Time};

use super::{GpuEvent, Job, Taken};
use crate::model::{ClockChange, GpuSpec, Stall};

/// Nominal clock.
const NOMINAL: u32 = 1000;

#[derive(Clone, Copy, Debug)]
struct Running {
    job: Job,
    started: Time,
    ends: Time,
    /// Its context is loaded; before, `started` lies ahead.
    begun: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Unit {
    running: Option<Running>,
    /// Whose context is loaded.
    context: Option<AppId>,
    /// Cost of loading another one.
    switch: Span,
    permille: u32,
    stalled_until: Time,
    clock: VecDeque<ClockChange>,
    stalls: VecDeque<Stall>,
}

impl Unit {
    pub(super) fn new(spec: &GpuSpec) -> Self {
        Self {
            running: None,
            context: None,
            switch: spec.switch,
            permille: NOMINAL,
            stalled_until: Time::ZERO,
            clock: spec.clock.iter().copied().collect(),
            stalls: spec.stalls.iter().copied().collect(),
        }
    }

    /// The job that executes or whose context is being loaded.
    #[inline]
    pub(super) fn running(&self) -> Option<GroupId> {
        self.running.map(|running| running.job.group)
    }

    /// When the next job could begin; never, as long as one runs.
    #[inline]
    pub(super) fn free_at(&self) -> Time {
        if self.running.is_some() { Time::NEVER } else { self.stalled_until }
    }

    pub(super) fn stalled_until(&self) -> Time {
        self.stalled_until
    }

    #[inline]
    pub(super) fn next_at(&self) -> Time {
        let mut at = match &self.running {
            Some(running) if running.begun => running.ends,
            Some(running) => running.started,
            None => Time::NEVER,
        };
        if let Some(change) = self.clock.front() {
            at = at.min(change.at);
        }
        if let Some(stall) = self.stalls.front() {
            at = at.min(stall.at);
        }
        at
    }

    /// Lets one thing happen that is due at `now`.
    #[inline]
    pub(super) fn step(&mut self, now: Time) -> Option<GpuEvent> {
        if let Some(running) = &mut self.running {
            if running.begun && running.ends <= now {
                let Running { job, started, .. } = *running;
                self.running = None;
                return Some(GpuEvent::Finished { job, started });
            }
            if !running.begun && running.started <= now {
                running.begun = true;
                return Some(GpuEvent::Started(running.job));
            }
        }
        if let Some(change) = self.clock.front().copied().filter(|change| change.at <= now) {
            self.clock.pop_front();
            self.set_clock(now, change.permille.max(1));
            return Some(GpuEvent::Clock { permille: self.permille });
        }
        if let Some(stall) = self.stalls.front().copied().filter(|stall| stall.at <= now) {
            self.stalls.pop_front();
            return Some(self.stall(now, stall.length));
        }
        None
    }

    /// Begins a job, or the loading of its context: then nothing is to be told yet.
    #[inline]
    pub(super) fn begin(&mut self, now: Time, job: Job) -> Option<GpuEvent> {
        let load = self.loading(job.app);
        self.context = Some(job.app);
        let started = now + load;
        let begun = load == Span::ZERO;
        self.running = Some(Running { job, started, ends: started + self.at_clock(job.cost), begun });
        begun.then_some(GpuEvent::Started(job))
    }

    /// How long it takes to load the context of `app`.
    #[inline]
    pub(super) fn loading(&self, app: AppId) -> Span {
        if self.context == Some(app) { Span::ZERO } else { self.switch }
    }

    /// How long the job that runs has done so without an interruption.
    pub(super) fn ran(&self, now: Time) -> Span {
        self.running.map_or(Span::ZERO, |running| now.since(running.started))
    }

    /// Stops the job that runs.
    pub(super) fn interrupt(&mut self, now: Time) -> Option<Taken> {
        let running = self.running.take()?;
        let mut job = running.job;
        if !running.begun {
            // Half of a context is of no use.
            self.context = None;
            return Some(Taken { job, started: None });
        }
        let left = running.ends.since(now.max(self.stalled_until));
        job.cost = if self.permille == NOMINAL { left } else { left.scaled(self.permille, NOMINAL) };
        Some(Taken { job, started: Some(running.started) })
    }

    fn at_clock(&self, cost: Span) -> Span {
        if self.permille == NOMINAL { cost } else { cost.scaled(NOMINAL, self.permille) }
    }

    fn set_clock(&mut self, now: Time, permille: u32) {
        if let Some(running) = &mut self.running {
            let executes_from = now.max(self.stalled_until).max(running.started);
            let left = running.ends.since(executes_from);
            running.ends = executes_from + left.scaled(self.permille, permille);
        }
        self.permille = permille;
    }

    fn stall(&mut self, now: Time, length: Span) -> GpuEvent {
        self.stalled_until = self.stalled_until.max(now) + length;
        if let Some(running) = &mut self.running {
            running.ends += length;
            if !running.begun {
                running.started += length;
            }
        }
        GpuEvent::Stalled { until: self.stalled_until }
    }
}
