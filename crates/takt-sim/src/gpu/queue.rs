//! A bounded queue in front of the unit: in order, of dispatch or of arrival, and unless a job is
//! taken back, to its end.

use std::collections::VecDeque;

use takt_core::{GroupId, Time};

use super::unit::Unit;
use super::{GpuEvent, Job, Taken, insert_by_arrival};
use crate::model::{GpuModel, GpuSpec};

/// Executes in order.
#[derive(Clone, Debug)]
pub struct Queue {
    unit: Unit,
    capacity: usize,
    /// Jobs reach the queue in the order of their own times, not in that of dispatch.
    any_order: bool,
    /// Dispatched jobs in order, with the time each reaches the queue.
    jobs: VecDeque<(Time, Job)>,
    /// How many of them are in the queue; the first of these is running, if any runs.
    queued: usize,
}

impl Queue {
    pub(super) fn new(spec: &GpuSpec) -> Self {
        let capacity = spec.queue.max(1) as usize;
        let any_order = spec.model == GpuModel::AnyOrder;
        Self { unit: Unit::new(spec), capacity, any_order, jobs: VecDeque::new(), queued: 0 }
    }

    #[inline]
    pub(super) fn dispatch(&mut self, arrives: Time, job: Job) {
        if self.any_order {
            // A process hands over one after the other, independently of others.
            return insert_by_arrival(&mut self.jobs, self.queued, (arrives, job), |other| {
                other.app == job.app
            });
        }
        let after = self.jobs.back().map_or(Time::ZERO, |(time, _)| *time);
        self.jobs.push_back((arrives.max(after), job));
    }

    pub(super) fn take_back(&mut self, now: Time, group: GroupId) -> Option<Taken> {
        let (_, job) = self.jobs.pop_back_if(|(_, job)| job.group == group)?;
        self.queued = self.queued.min(self.jobs.len());
        if self.unit.running() == Some(group) {
            return self.unit.interrupt(now);
        }
        Some(Taken { job, started: None })
    }

    #[inline]
    pub(super) fn next_at(&self) -> Time {
        let mut at = self.unit.next_at();
        if self.queued < self.capacity
            && let Some((arrives, _)) = self.jobs.get(self.queued)
        {
            at = at.min(*arrives);
        }
        if self.queued > 0 {
            at = at.min(self.unit.free_at());
        }
        at
    }

    #[inline]
    pub(super) fn step(&mut self, now: Time) -> Option<GpuEvent> {
        if let Some(event) = self.unit.step(now) {
            if let GpuEvent::Finished { .. } = event {
                self.jobs.pop_front();
                self.queued -= 1;
            }
            return Some(event);
        }
        if self.queued > 0
            && self.unit.free_at() <= now
            && let Some((_, job)) = self.jobs.front().copied()
            && let Some(event) = self.unit.begin(now, job)
        {
            return Some(event);
        }
        if self.queued < self.capacity
            && let Some((arrives, job)) = self.jobs.get(self.queued).copied()
            && arrives <= now
        {
            self.queued += 1;
            return Some(GpuEvent::Queued(job));
        }
        None
    }
}
