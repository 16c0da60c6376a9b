//! The cost of a scheduling decision.
//!
//! `decision`: every app always has a group waiting and everything fits, so each decision visits
//! every app. One iteration is a completion, one decision (which dispatches a group) and the
//! submission of a group in its place.
//!
//! `decision-held`: the most important app is absent and nothing below it fits, so that each
//! decision tests every app against the reservations and dispatches nothing. One iteration is a
//! vsync: deadlines are judged and one decision is taken.

use std::hint::black_box;

use anyhow::{Context, ensure};
use takt_core::{
    Action, AppId, AppParams, Config, Cost, Estimate, Event, GroupId, GroupKind, Hold, Margins, Priority,
    Scheduler, Service, Span, Stride, Time, limits,
};

use super::{Measurement, time};

/// Strides of the apps: those of 60, 30 and 20 FPS on a 60 Hz display.
const STRIDES: [u32; 3] = [1, 2, 3];

pub(super) fn measure_all(apps: &[u32], iterations: u64) -> anyhow::Result<Vec<Measurement>> {
    let mut all = Vec::new();
    for &count in apps {
        all.push(measure("decision", count, &STRIDES, iterations)?);
    }
    for &count in apps.iter().filter(|count| **count > 1) {
        all.push(measure_held(count, (iterations / 10).max(1))?);
    }
    // Strides 1 to 7 repeat after 420 periods: the look-ahead must not cost as much.
    all.push(measure("decision-odd-strides", 20, &[1, 2, 3, 4, 5, 6, 7], iterations)?);
    Ok(all)
}

/// Takes decisions and measures nothing.
pub(super) fn take_only(apps: &[u32], iterations: u64) -> anyhow::Result<()> {
    for &count in apps {
        Bench::new(count, &STRIDES)?.iterate(iterations);
    }
    Ok(())
}

fn measure(name: &str, apps: u32, strides: &[u32], iterations: u64) -> anyhow::Result<Measurement> {
    let mut bench = Bench::new(apps, strides)?;
    let measurement = time(name, apps.into(), iterations, |count| bench.iterate(count))?;
    bench.verify()?;
    Ok(measurement)
}

fn measure_held(apps: u32, iterations: u64) -> anyhow::Result<Measurement> {
    let mut bench = Bench::held(apps, &STRIDES)?;
    let before = bench.scheduler.stats();
    let measurement = time("decision-held", apps.into(), iterations, |count| bench.pass_vsyncs(count))?;
    let after = bench.scheduler.stats();
    ensure!(after.runs > before.runs + iterations, "no decision was taken");
    ensure!(after.dispatched == before.dispatched && bench.passed_over == 0, "not everything was held");
    Ok(measurement)
}

/// A scheduler whose apps always have work.
struct Bench {
    scheduler: Scheduler,
    now: Time,
    groups: u64,
    in_flight: GroupId,
    passed_over: u64,
}

/// Gpu time of every group: short, so that thousands of them fit into a period.
const COST: Span = Span::from_ns(10);

impl Bench {
    fn new(apps: u32, strides: &[u32]) -> anyhow::Result<Self> {
        let allowed = 1..=limits::APPS_MAX;
        ensure!(allowed.contains(&(apps as usize)), "--apps {apps}: use 1 to {}", limits::APPS_MAX);
        let config = Config { mpcg: 1, apps_max: apps, margins: Margins::NONE, ..Config::default() };
        let policy = takt_policies::by_name("timeline").context("the policy exists")?;
        let mut bench = Self {
            scheduler: Scheduler::new(config, policy),
            now: Time::ZERO,
            groups: 0,
            in_flight: GroupId(0),
            passed_over: 0,
        };
        for (slot, stride) in (0..apps).zip(strides.iter().cycle()) {
            let stride = Stride::new(*stride).context("strides are small")?;
            let params = AppParams {
                priority: Priority(slot),
                stride,
                etpf: COST.times(4),
                clock: takt_core::Clock::default(),
                service: Service::default(),
            };
            bench.scheduler.handle_event(bench.now, Event::Join { app: AppId(slot), params, phase: 0 });
            bench.submit(AppId(slot));
            bench.submit(AppId(slot));
        }
        bench.drain();
        Ok(bench)
    }

    /// The most important app reserves most of each period and is absent; all others wait with
    /// groups that do not fit beside it.
    fn held(apps: u32, strides: &[u32]) -> anyhow::Result<Self> {
        let mut bench = Self::new(1, &[1])?;
        let config = Config { apps_max: apps, ..*bench.scheduler.config() };
        bench.scheduler =
            Scheduler::new(config, takt_policies::by_name("timeline").context("the policy exists")?);
        for (slot, stride) in (0..apps).zip([1].iter().chain(strides.iter().cycle())) {
            let stride = Stride::new(*stride).context("strides are small")?;
            let etpf = if slot == 0 { Span::from_ms(12) } else { COST };
            let params = AppParams {
                priority: Priority(apps - slot),
                stride,
                etpf,
                clock: takt_core::Clock::default(),
                service: Service::default(),
            };
            bench.scheduler.handle_event(bench.now, Event::Join { app: AppId(slot), params, phase: 0 });
            if slot > 0 {
                bench.submit_group(AppId(slot), Span::from_ms(200));
            }
        }
        bench.drain();
        Ok(bench)
    }

    fn pass_vsyncs(&mut self, count: u64) {
        for _ in 0..count {
            let next = self.scheduler.config().refresh.end(self.scheduler.current_period());
            self.now = next;
            self.scheduler.handle_timeout(self.now);
            self.drain();
        }
    }

    fn submit(&mut self, app: AppId) {
        self.submit_group(app, COST);
    }

    fn submit_group(&mut self, app: AppId, estimate: Span) {
        let event = Event::Submit {
            app,
            group: GroupId(self.groups),
            kind: GroupKind::Draw,
            estimate: Estimate::new(estimate),
        };
        self.groups += 1;
        self.scheduler.handle_event(self.now, event);
    }

    /// Fetches the decisions; says whose group was dispatched.
    fn drain(&mut self) -> Option<AppId> {
        let mut dispatched = None;
        while let Some(action) = self.scheduler.poll_action() {
            match black_box(action) {
                Action::Dispatch { app, group, .. } => {
                    dispatched = Some(app);
                    self.in_flight = group;
                }
                Action::Hold { reason: Hold::Exhausted { .. }, .. } => self.passed_over += 1,
                _ => {}
            }
        }
        dispatched
    }

    fn iterate(&mut self, iterations: u64) {
        for _ in 0..iterations {
            self.now += COST;
            let group = self.in_flight;
            self.scheduler.handle_event(
                self.now,
                Event::Complete { group, finished: self.now, cost: Cost::new(COST), frames: 0 },
            );
            if let Some(app) = self.drain() {
                self.submit(app);
            }
        }
    }

    /// The measurement is only worth something if every decision looked at every app.
    fn verify(&self) -> anyhow::Result<()> {
        let waiting = self.scheduler.lanes().iter().filter(|lane| lane.head.is_some()).count();
        ensure!(waiting == self.scheduler.lanes().len(), "an app ran out of work");
        // At the very end of a period there is no time left for any app; that must stay rare.
        let looked_at = self.scheduler.stats().runs * self.scheduler.lanes().len() as u64;
        ensure!(self.passed_over <= looked_at / 100, "apps were passed over {} times", self.passed_over);
        Ok(())
    }
}
