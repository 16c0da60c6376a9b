//! The modelled GPU: a bounded queue in front of one unit that executes in order and never
//! preempts.
//!
//! It is a state machine of its own: [`Gpu::dispatch`] puts work in, [`Gpu::next_at`] says when
//! something happens, [`Gpu::step`] lets the next thing happen. Work may also be driven by hand,
//! without the scheduling core (the tests of other schedulers do).

use std::collections::VecDeque;

use takt_core::{AppId, GroupId, Span, Time};

use crate::model::{ClockChange, GpuSpec, Stall};

/// Nominal clock.
const NOMINAL: u32 = 1000;

/// What happened on the GPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GpuEvent {
    /// A job reached the queue.
    Queued(Job),
    /// A job began to execute.
    Started(Job),
    /// A job ended.
    Finished {
        /// Which one.
        job: Job,
        /// When it began.
        started: Time,
    },
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
    /// Execution time at nominal clock.
    pub cost: Span,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    started: Time,
    ends: Time,
}

/// The GPU.
#[derive(Clone, Debug)]
pub struct Gpu {
    capacity: usize,
    /// Dispatched jobs in order, with the time each reaches the queue.
    jobs: VecDeque<(Time, Job)>,
    /// How many of them are in the queue; the first of these is running, if any runs.
    queued: usize,
    running: Option<Running>,
    permille: u32,
    stalled_until: Time,
    clock: VecDeque<ClockChange>,
    stalls: VecDeque<Stall>,
}

impl Gpu {
    /// An idle GPU.
    pub fn new(spec: &GpuSpec) -> Self {
        Self {
            capacity: spec.queue.max(1) as usize,
            jobs: VecDeque::new(),
            queued: 0,
            running: None,
            permille: NOMINAL,
            stalled_until: Time::ZERO,
            clock: spec.clock.iter().copied().collect(),
            stalls: spec.stalls.iter().copied().collect(),
        }
    }

    /// Hands a job over; it reaches the queue at `arrives`, after all jobs before it, and when
    /// the queue has room.
    pub fn dispatch(&mut self, arrives: Time, job: Job) {
        let after = self.jobs.back().map_or(Time::ZERO, |(time, _)| *time);
        self.jobs.push_back((arrives.max(after), job));
    }

    /// When the next thing happens.
    #[inline]
    pub fn next_at(&self) -> Time {
        let mut at = self.running.map_or(Time::NEVER, |running| running.ends);
        if self.queued < self.capacity
            && let Some((arrives, _)) = self.jobs.get(self.queued)
        {
            at = at.min(*arrives);
        }
        if self.running.is_none() && self.queued > 0 {
            at = at.min(self.stalled_until);
        }
        if let Some(change) = self.clock.front() {
            at = at.min(change.at);
        }
        if let Some(stall) = self.stalls.front() {
            at = at.min(stall.at);
        }
        at
    }

    /// Lets one thing happen that is due at `now`, which must be [`Self::next_at`] or, for a job
    /// that waited for room in the queue, later.
    pub fn step(&mut self, now: Time) -> Option<GpuEvent> {
        if let Some(running) = self.running
            && running.ends <= now
        {
            return self.finish(running);
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
        if self.running.is_none() && self.queued > 0 && self.stalled_until <= now {
            let (_, job) = self.jobs[0];
            self.running = Some(Running { started: now, ends: now + self.at_clock(job.cost) });
            return Some(GpuEvent::Started(job));
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

    fn finish(&mut self, running: Running) -> Option<GpuEvent> {
        self.running = None;
        self.queued -= 1;
        let (_, job) = self.jobs.pop_front()?;
        Some(GpuEvent::Finished { job, started: running.started })
    }

    fn at_clock(&self, cost: Span) -> Span {
        if self.permille == NOMINAL { cost } else { cost.scaled(NOMINAL, self.permille) }
    }

    fn set_clock(&mut self, now: Time, permille: u32) {
        if let Some(running) = &mut self.running {
            let left = running.ends.since(now);
            running.ends = now + left.scaled(self.permille, permille);
        }
        self.permille = permille;
    }

    fn stall(&mut self, now: Time, length: Span) -> GpuEvent {
        self.stalled_until = self.stalled_until.max(now) + length;
        if let Some(running) = &mut self.running {
            running.ends += length;
        }
        GpuEvent::Stalled { until: self.stalled_until }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(group: u64, cost_us: u64) -> Job {
        Job { app: AppId(0), group: GroupId(group), cost: Span::from_us(cost_us) }
    }

    /// Runs the GPU until it is idle and prints what happened.
    fn play(gpu: &mut Gpu) -> String {
        let mut out = String::new();
        while gpu.next_at() < Time::NEVER {
            let now = gpu.next_at();
            while let Some(event) = gpu.step(now) {
                let us = now.as_ns() / 1000;
                match event {
                    GpuEvent::Queued(job) => out += &format!("{us} queued {}\n", job.group.0),
                    GpuEvent::Started(job) => out += &format!("{us} started {}\n", job.group.0),
                    GpuEvent::Finished { job, .. } => out += &format!("{us} finished {}\n", job.group.0),
                    GpuEvent::Stalled { until } => {
                        out += &format!("{us} stalled until {}\n", until.as_ns() / 1000);
                    }
                    GpuEvent::Clock { permille } => out += &format!("{us} clock {permille}\n"),
                }
            }
        }
        out
    }

    #[test]
    fn executes_in_order_without_preemption() {
        let mut gpu = Gpu::new(&GpuSpec::default());
        gpu.dispatch(Time::from_us(10), job(1, 100));
        gpu.dispatch(Time::from_us(5), job(2, 10));
        expect_test::expect![[r#"
            10 queued 1
            10 started 1
            10 queued 2
            110 finished 1
            110 started 2
            120 finished 2
        "#]]
        .assert_eq(&play(&mut gpu));
    }

    #[test]
    fn a_full_queue_makes_jobs_wait_outside() {
        let mut gpu = Gpu::new(&GpuSpec { queue: 1, ..GpuSpec::default() });
        gpu.dispatch(Time::ZERO, job(1, 100));
        gpu.dispatch(Time::ZERO, job(2, 10));
        expect_test::expect![[r#"
            0 queued 1
            0 started 1
            100 finished 1
            100 queued 2
            100 started 2
            110 finished 2
        "#]]
        .assert_eq(&play(&mut gpu));
    }

    #[test]
    fn clock_changes_stretch_what_is_left() {
        let clock = vec![ClockChange { at: Time::from_us(50), permille: 500 }];
        let mut gpu = Gpu::new(&GpuSpec { clock, ..GpuSpec::default() });
        gpu.dispatch(Time::ZERO, job(1, 100));
        gpu.dispatch(Time::ZERO, job(2, 10));
        expect_test::expect![[r#"
            0 queued 1
            0 started 1
            0 queued 2
            50 clock 500
            150 finished 1
            150 started 2
            170 finished 2
        "#]]
        .assert_eq(&play(&mut gpu));
    }

    #[test]
    fn stalls_delay_the_running_job_and_the_next_start() {
        let stalls = vec![
            Stall { at: Time::from_us(50), length: Span::from_us(30) },
            Stall { at: Time::from_us(200), length: Span::from_us(40) },
        ];
        let mut gpu = Gpu::new(&GpuSpec { stalls, ..GpuSpec::default() });
        gpu.dispatch(Time::ZERO, job(1, 100));
        gpu.dispatch(Time::from_us(210), job(2, 10));
        expect_test::expect![[r#"
            0 queued 1
            0 started 1
            50 stalled until 80
            130 finished 1
            200 stalled until 240
            210 queued 2
            240 started 2
            250 finished 2
        "#]]
        .assert_eq(&play(&mut gpu));
    }
}
