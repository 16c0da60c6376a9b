//! A turn of the daemon's loop: requests in, decision, grants out, without threads and sockets.

use std::os::fd::AsFd;

use takt_core::{
    AppId, AppParams, Config, Estimate, Gpu, GroupId, GroupKind, Priority, Service, Span, Stride, Time,
};
use takt_daemon::rt::endpoint::Endpoint;
use takt_daemon::rt::engine::Engine;
use takt_daemon::rt::queues::{LoopQueues, Order};
use takt_ipc::client::{self, Receiver, Sender};
use takt_ipc::{Reply, Request};

use super::Measurement;

/// Groups per frame, the swap included.
const GROUPS: u64 = 8;
/// Time between two turns.
const STEP: Span = Span::from_us(200);

/// A loop with `apps` clients, all of them busy.
struct Rig {
    engine: Engine,
    queues: LoopQueues,
    apps: Vec<App>,
    now: Time,
    turn: usize,
}

struct App {
    sender: Sender,
    receiver: Receiver,
    next: u64,
}

/// Turns with 17 clients, as many as the scenarios of the thesis have.
pub(super) fn measure_all(turns: u64) -> anyhow::Result<Vec<Measurement>> {
    [1, 17].into_iter().map(|apps| measure(apps, turns)).collect()
}

fn measure(apps: u32, turns: u64) -> anyhow::Result<Measurement> {
    let mut rig = Rig::new(apps)?;
    // Clients do their part between turns; only the daemon's is measured.
    let mut spent = hdrhistogram::Histogram::<u64>::new(3)?;
    for _ in 0..turns / 10 + 1 {
        rig.turn(&mut |turn| turn());
    }
    let mut allocations = 0;
    for _ in 0..turns {
        let mut ns = 0;
        rig.turn(&mut |turn| {
            let memory = allocation_counter::measure(|| {
                let start = std::time::Instant::now();
                turn();
                ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            });
            allocations += memory.count_total;
        });
        spent.record(ns)?;
    }
    Ok(Measurement {
        name: "turn".to_owned(),
        n: u64::from(apps),
        mean_ns: spent.mean(),
        p50_ns: spent.value_at_quantile(0.5) as f64,
        p99_ns: spent.value_at_quantile(0.99) as f64,
        allocations,
        per_second: None,
    })
}

impl Rig {
    fn new(count: u32) -> anyhow::Result<Self> {
        let config = Config { mpcg: 2, gpu: Gpu::TURNS, ..Config::default() };
        let policy = Box::new(takt_policies::FrameDeadline::new());
        let (engine, mut queues) = Engine::new(config, policy)?;
        let mut apps = Vec::new();
        for slot in 0..count {
            let (endpoint, ends) = Endpoint::new(AppId(slot))?;
            let beat = engine.heart().as_fd().try_clone_to_owned()?;
            let (sender, receiver) = client::ends(&ends.region, ends.doorbell, &beat)?;
            apps.push(App { sender, receiver, next: 0 });
            let params = AppParams {
                priority: Priority(slot),
                stride: if slot.is_multiple_of(3) {
                    Stride::ONE
                } else {
                    Stride::new(2).unwrap_or(Stride::ONE)
                },
                etpf: Span::from_us(400),
                clock: takt_core::Clock::default(),
                service: Service::default(),
            };
            let order = Order::Join { endpoint: Box::new(endpoint), params, max_slice: Span::from_ms(1) };
            anyhow::ensure!(queues.orders.push(order).is_ok(), "a fresh queue has room");
        }
        Ok(Self { engine, queues, apps, now: Time::from_ms(1_000), turn: 0 })
    }

    /// One client asks, finished ones report, and the loop turns once inside `around`.
    fn turn(&mut self, around: &mut dyn FnMut(&mut dyn FnMut())) {
        self.now += STEP;
        self.turn = (self.turn + 1) % self.apps.len();
        let now = self.now;
        let asking = self.turn;
        for (index, app) in self.apps.iter_mut().enumerate() {
            while let Ok(Some(reply)) = app.receiver.next_reply() {
                if let Reply::Grant { group, .. } = reply {
                    let complete =
                        Request::Complete { group, finished: now, cost: Span::from_us(90), frames: 0 };
                    // The daemon reads all of it each time.
                    app.sender.send(&complete).unwrap_or_default();
                }
            }
            if index == asking {
                let group = GroupId(app.next);
                let last = app.next % GROUPS == GROUPS - 1;
                let kind = if last { GroupKind::Swap } else { GroupKind::Draw };
                let estimate = Estimate::new(Span::from_us(100));
                if app.sender.send(&Request::Submit { group, kind, estimate }).is_ok() {
                    app.next += 1;
                }
            }
        }
        let engine = &mut self.engine;
        around(&mut || {
            engine.turn(now, |_| {});
        });
        // Notes are for the daemon's other thread, which would read them meanwhile.
        while self.queues.notes.pop().is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_stay_busy_and_nothing_is_allocated() {
        let mut rig = Rig::new(17).expect("a loop");
        for _ in 0..5_000 {
            rig.turn(&mut |turn| turn());
        }
        let stats = rig.engine.scheduler().stats();
        assert_eq!(rig.engine.scheduler().lanes().len(), 17, "no app was removed");
        assert!(stats.dispatched > 2_000, "{stats:?}");
        assert_eq!(measure(17, 1_000).expect("measured").allocations, 0);
    }
}
