//! The cost of a scheduling decision.
//!
//! Every app always has a group waiting and everything fits, so each decision looks at every app:
//! the worst case for the policy. One iteration is a completion, one decision (which dispatches
//! a group) and the submission of a group in its place.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, ensure};
use hdrhistogram::Histogram;
use takt_core::{
    Action, AppId, AppParams, Config, Cost, Estimate, Event, GroupId, GroupKind, Hold, Margins, Priority,
    Scheduler, Span, Stride, Time, limits, policy,
};

use super::Measurement;

/// Strides of the apps: those of 60, 30 and 20 FPS on a 60 Hz display.
const STRIDES: [u32; 3] = [1, 2, 3];

pub(super) fn measure_all(apps: &[u32], iterations: u64) -> anyhow::Result<Vec<Measurement>> {
    let mut all = Vec::new();
    for &count in apps {
        all.push(measure("decision", count, &STRIDES, iterations)?);
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
    bench.iterate(iterations / 10 + 1);
    let mut elapsed = 0.0;
    let memory = allocation_counter::measure(|| {
        let start = Instant::now();
        bench.iterate(iterations);
        elapsed = start.elapsed().as_nanos() as f64;
    });
    let mut histogram = Histogram::<u64>::new(3)?;
    for _ in 0..iterations.min(100_000) {
        let start = Instant::now();
        bench.iterate(1);
        histogram.record(u64::try_from(start.elapsed().as_nanos())?)?;
    }
    bench.verify()?;
    Ok(Measurement {
        name: name.to_owned(),
        n: apps.into(),
        mean_ns: elapsed / iterations as f64,
        p50_ns: histogram.value_at_quantile(0.5) as f64,
        p99_ns: histogram.value_at_quantile(0.99) as f64,
        allocations: memory.count_total,
        per_second: None,
    })
}

/// A scheduler whose apps always have work.
struct Bench {
    scheduler: Scheduler,
    now: Time,
    groups: u64,
    in_flight: GroupId,
    passed_over: u64,
}

/// Execution time of every group: short, so that thousands of them fit into a period.
const COST: Span = Span::from_ns(10);

impl Bench {
    fn new(apps: u32, strides: &[u32]) -> anyhow::Result<Self> {
        let allowed = 1..=limits::APPS_MAX;
        ensure!(allowed.contains(&(apps as usize)), "--apps {apps}: use 1 to {}", limits::APPS_MAX);
        let config = Config { mpcg: 1, apps_max: apps, margins: Margins::NONE, ..Config::default() };
        let policy = policy::by_name("frame-deadline").context("the policy exists")?;
        let mut bench = Self {
            scheduler: Scheduler::new(config, policy),
            now: Time::ZERO,
            groups: 0,
            in_flight: GroupId(0),
            passed_over: 0,
        };
        for (slot, stride) in (0..apps).zip(strides.iter().cycle()) {
            let stride = Stride::new(*stride).context("strides are small")?;
            let params = AppParams { priority: Priority(slot), stride, etpf: COST.times(4) };
            bench.scheduler.handle_event(bench.now, Event::Join { app: AppId(slot), params, phase: 0 });
            bench.submit(AppId(slot));
            bench.submit(AppId(slot));
        }
        bench.drain();
        Ok(bench)
    }

    fn submit(&mut self, app: AppId) {
        let event = Event::Submit {
            app,
            group: GroupId(self.groups),
            kind: GroupKind::Draw,
            estimate: Estimate::new(COST),
        };
        self.groups += 1;
        self.scheduler.handle_event(self.now, event);
    }

    /// Fetches what was decided; says whose group was dispatched.
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
            self.scheduler
                .handle_event(self.now, Event::Complete { group, finished: self.now, cost: Cost::new(COST) });
            if let Some(app) = self.drain() {
                self.submit(app);
            }
        }
    }

    /// The measurement is only worth something if every decision looked at every app.
    fn verify(&self) -> anyhow::Result<()> {
        let waiting = self.scheduler.lanes().iter().filter(|lane| lane.head.is_some()).count();
        ensure!(waiting == self.scheduler.lanes().len(), "an app ran out of work");
        // At the very end of a period there is no time left for everybody; that must stay rare.
        let looked_at = self.scheduler.stats().runs * self.scheduler.lanes().len() as u64;
        ensure!(self.passed_over <= looked_at / 100, "apps were passed over {} times", self.passed_over);
        Ok(())
    }
}
