//! The modelled GPU: one unit that executes, and what decides whose turn it is.
//!
//! * [`Queue`]: in order, of dispatch or of arrival; a job can be taken back if the scheduler asks
//!   for it.
//! * [`Host`]: a runlist of channels, each served for a timeslice; or divisible work beside a queue.
//!
//! It is a state machine of its own: [`Gpu::dispatch`] puts work in, [`Gpu::next_at`] says when
//! something happens, [`Gpu::step`] lets the next thing happen. Work may also be driven by hand,
//! without the scheduling core (the tests of other schedulers do).

mod host;
mod queue;
#[cfg(test)]
mod tests;
mod unit;

pub use host::{Channel, Host};
pub use queue::Queue;

use std::collections::VecDeque;

use takt_core::{AppId, GroupId, Span, Time};

use crate::model::{GpuModel, GpuSpec};

/// What happened on the GPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GpuEvent {
    /// A job reached the queue.
    Queued(Job),
    /// A job began to execute, or went on.
    Started(Job),
    /// A job ended.
    Finished {
        /// Which one.
        job: Job,
        /// When it began, or went on the last time.
        started: Time,
    },
    /// A job's timeslice is over; it goes on in its channel's next turn.
    Suspended(Taken),
    /// The GPU stalls.
    Stalled {
        /// Until then.
        until: Time,
    },
    /// The clock changed.
    Clock {
        /// 1000 is nominal.
        permille: u32,
    },
}

/// A piece of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    /// Whose it is.
    pub app: AppId,
    /// Which one.
    pub group: GroupId,
    /// Gpu time at nominal clock, what is left of it.
    pub cost: Span,
}

/// A job that does not execute any more, although it is not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// The job, with what is left of it.
    pub job: Job,
    /// Since when it executed, if it had begun.
    pub started: Option<Time>,
}

/// Puts something among what is on its way after the first `fixed`, by when it arrives; those that
/// `stay` before it do, however late they are.
#[inline]
pub(crate) fn insert_by_arrival<T>(
    coming: &mut VecDeque<(Time, T)>,
    fixed: usize,
    (arrives, item): (Time, T),
    stay: impl Fn(&T) -> bool,
) {
    let before = coming.iter().rev().find(|(_, other)| stay(other));
    let arrives = arrives.max(before.map_or(Time::ZERO, |(time, _)| *time));
    let later = coming.iter().skip(fixed).position(|(time, _)| *time > arrives);
    coming.insert(later.map_or(coming.len(), |at| fixed + at), (arrives, item));
}

/// The GPU.
#[derive(Clone, Debug)]
pub enum Gpu {
    /// Executes in order, of dispatch or of arrival.
    Queue(Queue),
    /// Serves the channels of a runlist in turn.
    Host(Host),
}

impl Gpu {
    /// An idle GPU.
    pub fn new(spec: &GpuSpec) -> Self {
        match spec.model {
            GpuModel::InOrder if spec.divisible.is_some() => Self::Host(Host::new(spec)),
            GpuModel::InOrder | GpuModel::Preemptive | GpuModel::AnyOrder => Self::Queue(Queue::new(spec)),
            GpuModel::Runlist => Self::Host(Host::new(spec)),
        }
    }

    /// Hands a job over; it reaches the queue at `arrives`, after all jobs before it if those are
    /// executed in the order of dispatch, and when the queue has room.
    #[inline]
    pub fn dispatch(&mut self, arrives: Time, job: Job) {
        match self {
            Self::Queue(queue) => queue.dispatch(arrives, job),
            Self::Host(host) => host.dispatch(arrives, job),
        }
    }

    /// Takes back the job that was dispatched last; `None` if that is another one, since this one
    /// is done, or if the GPU cannot do that.
    pub fn take_back(&mut self, now: Time, group: GroupId) -> Option<Taken> {
        match self {
            Self::Queue(queue) => queue.take_back(now, group),
            Self::Host(_) => None,
        }
    }

    /// An app's channel is to be served like this from now on; matters on a runlist only.
    pub fn set_channel(&mut self, app: AppId, channel: Channel) {
        if let Self::Host(host) = self {
            host.set_channel(app, channel);
        }
    }

    /// When the next thing happens.
    #[inline]
    pub fn next_at(&self) -> Time {
        match self {
            Self::Queue(queue) => queue.next_at(),
            Self::Host(host) => host.next_at(),
        }
    }

    /// Lets one thing happen that is due at `now`, which must be [`Self::next_at`] or, for a job
    /// that waited for room in the queue, later.
    #[inline]
    pub fn step(&mut self, now: Time) -> Option<GpuEvent> {
        match self {
            Self::Queue(queue) => queue.step(now),
            Self::Host(host) => host.step(now),
        }
    }
}
