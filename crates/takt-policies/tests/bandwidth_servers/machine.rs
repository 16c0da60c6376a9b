//! The scheduler itself on a GPU that gives groups back at no cost.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use takt_core::policy::Policy;
use takt_core::service::{Reservation, Reserve};
use takt_core::{
    Action, AppId, AppParams, Config, Cost, Estimate, Event, Gpu, GroupId, GroupKind, Margins, Priority,
    Refresh, Scheduler, Service, Span, Stride, Time,
};

/// A job: when it arrives and what it costs.
pub(crate) type Job = (u64, u64);

/// An app and its jobs.
pub(crate) struct App {
    /// None: best effort.
    pub(crate) reserve: Option<Reserve>,
    pub(crate) feeds: Option<u32>,
    pub(crate) jobs: Vec<Job>,
}

/// A run: one job is one group, times are nanoseconds.
pub(crate) struct Machine {
    scheduler: Scheduler,
    arrivals: Vec<VecDeque<Job>>,
    /// Arrival and what is left, by group number, with the app.
    groups: Vec<(usize, u64, u64)>,
    running: Option<(usize, u64)>,
    /// Arrival and end of each job, by app.
    ends: Vec<Vec<(u64, u64)>>,
}

/// Plays all jobs; returns arrival and end of each, by app, in order.
pub(crate) fn play(apps: &[App], policy: Box<dyn Policy>) -> Vec<Vec<(u64, u64)>> {
    let config = Config {
        refresh: Refresh::from_period_ns(NonZeroU32::MAX),
        mpcg: 1,
        margins: Margins::NONE,
        apps_max: u32::try_from(apps.len()).expect("few"),
        completion_timeout: Span::FOREVER,
        gpu: Gpu::Preemptive,
        ..Config::default()
    };
    let mut machine = Machine {
        scheduler: Scheduler::new(config, policy),
        arrivals: apps.iter().map(|app| app.jobs.iter().copied().collect()).collect(),
        groups: Vec::new(),
        running: None,
        ends: vec![Vec::new(); apps.len()],
    };
    for (index, app) in (0u32..).zip(apps) {
        let reservation = app.reserve.map_or(Reservation::None, Reservation::Own);
        let feeds = app.feeds.map(AppId);
        let params = AppParams {
            priority: Priority(1000 - index),
            stride: Stride::ONE,
            etpf: Span::ZERO,
            clock: takt_core::Clock::default(),
            service: Service { reservation, feeds, ..Service::default() },
        };
        machine.scheduler.handle_event(Time::ZERO, Event::Join { app: AppId(index), params, phase: 0 });
    }
    while let Some(now) = machine.next() {
        machine.step(now);
    }
    machine.ends
}

impl Machine {
    fn next(&self) -> Option<u64> {
        let ends = self.running.map(|(group, since)| since + self.groups[group].2);
        // Who has no room for another group waits for a dispatch.
        let has_room = |app: &u32| self.scheduler.queue_room(AppId(*app)) > 0;
        let open = (0u32..).zip(&self.arrivals).filter(|(app, _)| has_room(app));
        let arrival = open.filter_map(|(_, jobs)| Some(jobs.front()?.0)).min();
        let event = ends.into_iter().chain(arrival).min();
        let waits = self.ends.iter().map(Vec::len).sum::<usize>() < self.groups.len();
        let timeout = self.scheduler.poll_timeout().map(Time::as_ns).filter(|_| waits);
        event.into_iter().chain(timeout).min()
    }

    fn step(&mut self, now: u64) {
        let at = Time::from_ns(now);
        if let Some((group, since)) = self.running
            && since + self.groups[group].2 == now
        {
            let (app, arrival, left) = self.groups[group];
            self.running = None;
            self.ends[app].push((arrival, now));
            let cost = Cost::new(Span::from_ns(left));
            let group = GroupId(group as u64);
            self.scheduler.handle_event(at, Event::Complete { group, finished: at, cost, frames: 0 });
        }
        self.scheduler.handle_timeout(at);
        for app in 0..self.arrivals.len() {
            let slot = AppId(u32::try_from(app).expect("few"));
            while self.scheduler.queue_room(slot) > 0
                && let Some((arrival, cost)) = self.arrivals[app].pop_front_if(|(due, _)| *due <= now)
            {
                let group = GroupId(self.groups.len() as u64);
                self.groups.push((app, arrival, cost));
                let estimate = Estimate::new(Span::from_ns(cost));
                let kind = GroupKind::Swap;
                self.scheduler.handle_event(at, Event::Submit { app: slot, group, kind, estimate });
            }
        }
        while let Some(action) = self.scheduler.poll_action() {
            match action {
                Action::Dispatch { group, .. } => {
                    assert!(self.running.is_none(), "one at a time");
                    self.running = Some((usize::try_from(group.0).expect("few"), now));
                }
                Action::Preempt { group, .. } => {
                    let (running, since) = self.running.take().expect("something runs");
                    assert_eq!(group.0, running as u64, "what runs comes back");
                    self.groups[running].2 -= now - since;
                }
                _ => {}
            }
        }
        self.scheduler.check_invariants();
    }
}
