//! Groups with wrong estimates beside an app with reserved time, simulated: the daemon's loop, a GPU
//! that executes in order, and made-up time.

use std::os::fd::AsFd;

use takt_core::belief::Uncut;
use takt_core::policy::Timeline;
use takt_core::{
    Action, AppId, AppParams, Config, Estimate, Event, Gpu, GroupId, GroupKind, Priority, Service, Span,
    Stride, Time,
};
use takt_daemon::rt::endpoint::Endpoint;
use takt_daemon::rt::engine::Engine;
use takt_daemon::rt::queues::{LoopQueues, Note, Order};
use takt_ipc::client::{Receiver, Sender};
use takt_ipc::{Command, Reply, Request, Standing, client};
use takt_trace::Record;
use takt_trace::replay::Replay;

/// An app whose frames are one group each.
struct App {
    sender: Sender,
    receiver: Receiver,
    next: u64,
    /// When its next frame begins, if it is not at one.
    begins: Option<Time>,
    /// Whether it waits for its release after each frame.
    paced: bool,
    /// What it predicts of its next frame.
    estimate: Span,
    /// What its frames take.
    cost: Span,
    /// Whether it predicts what was measured.
    learns: bool,
    ran: u64,
    missed: u64,
    /// Work that it was told to be stuck.
    stuck: Vec<Span>,
}

struct World {
    engine: Engine,
    queues: LoopQueues,
    now: Time,
    gpu_free: Time,
    /// What runs: when it ends, whose it is, and its number.
    running: Vec<(Time, usize, u64)>,
    apps: Vec<App>,
    log: Vec<(Time, Record)>,
    /// Work that the daemon was told to be stuck.
    noted: Vec<(AppId, Span)>,
    /// What the daemon was told that this is.
    named: Vec<(AppId, String)>,
}

const DIAL: usize = 0;
const OTHER: usize = 1;

fn config() -> Config {
    let mut config = Config { mpcg: 2, apps_max: 2, gpu: Gpu::TURNS, ..Config::default() };
    config.singly = true;
    config.tuning.blocking = Span::from_ms(1);
    config
}

impl World {
    /// A dial of 60 FPS that reserves 8 ms and takes 7, and another app that reserves nothing.
    fn new(predicted: Span, cost: Span, learns: bool) -> Self {
        Self::beside(Span::from_ms(8), predicted, cost, learns)
    }

    /// The same where the dial reserves so much.
    fn beside(reserved: Span, predicted: Span, cost: Span, learns: bool) -> Self {
        let (engine, queues) = Engine::new(config(), Box::new(Timeline::new())).expect("an engine");
        let now = Time::from_ms(100_000);
        let (gpu_free, running, apps, log) = (now, Vec::new(), Vec::new(), Vec::new());
        let mut world =
            Self { engine, queues, now, gpu_free, running, apps, log, noted: Vec::new(), named: Vec::new() };
        let dial = Span::from_ms(7);
        world.join(9, reserved, dial, dial, false);
        world.join(1, Span::ZERO, predicted, cost, learns);
        world
    }

    fn join(&mut self, priority: u32, etpf: Span, estimate: Span, cost: Span, learns: bool) {
        let app = AppId(u32::try_from(self.apps.len()).expect("small"));
        let (endpoint, ends) = Endpoint::new(app).expect("shared memory");
        let beat = self.engine.heart().as_fd().try_clone_to_owned().expect("a descriptor");
        let (sender, receiver) = client::ends(&ends.region, ends.doorbell, &beat).expect("mapped");
        let priority = Priority(priority);
        let params = AppParams {
            priority,
            stride: Stride::ONE,
            etpf,
            clock: takt_core::Clock::default(),
            service: Service::default(),
        };
        let order = Order::Join { endpoint: Box::new(endpoint), params, max_slice: Span::from_ms(1) };
        self.queues.orders.push(order).expect("room");
        let (begins, paced) = (Some(self.now), etpf > Span::ZERO);
        let app = App {
            sender,
            receiver,
            next: 0,
            begins,
            paced,
            estimate,
            cost,
            learns,
            ran: 0,
            missed: 0,
            stuck: Vec::new(),
        };
        self.apps.push(app);
    }

    /// The user lets uncut work of an app run.
    fn let_run(&mut self, app: usize) {
        let app = AppId(u32::try_from(app).expect("small"));
        let (max_slice, standing, uncut) = (Span::from_ms(1), Standing::default(), Uncut::Run);
        self.queues.orders.push(Order::Limit { app, max_slice, standing, uncut }).expect("room");
    }

    fn run(&mut self, seconds: u64) {
        let until = self.now + Span::from_ms(1_000 * seconds);
        while self.now < until {
            let timeout = self.engine.turn(self.now, |_| {});
            self.read_notes();
            (0..self.apps.len()).for_each(|app| self.hear(app));
            // The loop turns at least this often.
            let beat = Some(self.now + Span::from_ms(10));
            let ends = self.running.iter().map(|(end, _, _)| *end);
            let begins = self.apps.iter().filter_map(|app| app.begins);
            let next = timeout.into_iter().chain(beat).chain(ends).chain(begins).min();
            self.now = next.expect("a beat").max(self.now + Span::from_us(1));
            self.act();
        }
    }

    /// Time passes without a turn of the loop; apps do what they would.
    fn stand_still(&mut self, seconds: u64) {
        self.now += Span::from_ms(1_000 * seconds);
        self.act();
    }

    /// Groups end and frames begin.
    fn act(&mut self) {
        let now = self.now;
        self.running.sort_unstable();
        while self.running.first().is_some_and(|(end, _, _)| *end <= now) {
            let (finished, app, group) = self.running.remove(0);
            let app = &mut self.apps[app];
            let (group, cost) = (GroupId(group), app.cost);
            app.sender.send(&Request::Complete { group, finished, cost, frames: 0 }).expect("room");
            app.ran += 1;
            if app.learns {
                app.estimate = cost;
            }
            if !app.paced {
                app.begins = Some(now);
            }
        }
        for app in self.apps.iter_mut().filter(|app| app.begins.is_some_and(|at| at <= now)) {
            app.begins = None;
            let (group, kind, estimate) = (GroupId(app.next), GroupKind::Swap, Estimate::new(app.estimate));
            app.sender.send(&Request::Submit { group, kind, estimate }).expect("room");
            app.next += 1;
        }
    }

    fn hear(&mut self, index: usize) {
        let app = &mut self.apps[index];
        while let Some(reply) = app.receiver.next_reply().expect("an honest daemon") {
            match reply {
                Reply::Grant { group, .. } => {
                    self.gpu_free = self.gpu_free.max(self.now) + app.cost;
                    self.running.push((self.gpu_free, index, group.0));
                }
                Reply::Stuck { group, estimate } => {
                    app.stuck.push(estimate.span());
                    let command = Command::new("glBlitFramebuffer");
                    app.sender.send(&Request::Names { group, command }).expect("room");
                }
                Reply::Release { at } if app.paced => app.begins = Some(at.max(self.now)),
                _ => {}
            }
        }
    }

    fn read_notes(&mut self) {
        while let Ok(note) = self.queues.notes.pop() {
            match note {
                Note::Record(at, record) => {
                    if let Record::Out(Action::Missed { app, count, .. }) = record {
                        self.apps[app.index()].missed += count;
                    }
                    self.log.push((at, record));
                }
                Note::Stuck { app, estimate } => self.noted.push((app, estimate.span())),
                Note::Named { app, command } => self.named.push((app, command.to_string())),
                Note::Gone { endpoint, fault } => panic!("{:?} was evicted: {fault:?}", endpoint.app),
                _ => {}
            }
        }
    }

    fn revisions(&self) -> usize {
        let revises = |(_, record): &&(Time, Record)| matches!(record, Record::In(Event::Revise { .. }));
        self.log.iter().filter(revises).count()
    }

    fn replay(&self) {
        let mut replay = Replay::new(config(), "timeline").expect("it exists");
        for (at, record) in &self.log {
            if let Err(difference) = replay.play(*at, record) {
                panic!("{}\n{:#?}", difference.kind, difference.before);
            }
        }
    }
}

#[test]
fn work_that_fits_nowhere_waits_and_is_told_once() {
    let long = Span::from_ms(159);
    for cost in [long, Span::from_us(500)] {
        let mut world = World::new(long, cost, true);
        world.run(30);
        let (dial, other) = (&world.apps[DIAL], &world.apps[OTHER]);
        assert_eq!((other.ran, other.stuck.as_slice()), (0, &[long][..]), "whatever it would take");
        assert_eq!(world.noted, [(AppId(1), long)]);
        assert_eq!(world.named, [(AppId(1), "glBlitFramebuffer".to_owned())]);
        assert!(dial.ran >= 1_799 && dial.missed == 0, "{} frames, {} missed", dial.ran, dial.missed);
        assert_eq!(world.revisions(), 0);
        world.replay();
    }
}

#[test]
fn work_that_may_run_does_so_after_two_seconds() {
    let long = Span::from_ms(159);
    let mut world = World::new(long, long, true);
    world.let_run(OTHER);
    world.run(30);
    let (ran, missed) = (world.apps[OTHER].ran, world.apps[DIAL].missed);
    assert!((10..=15).contains(&ran), "{ran}");
    assert!(missed >= ran * 8, "its user accepted that: {missed}");
    world.replay();
    // One that was predicted wrongly costs nothing.
    let mut world = World::new(long, Span::from_us(500), true);
    world.let_run(OTHER);
    world.run(10);
    let (dial, other) = (&world.apps[DIAL], &world.apps[OTHER]);
    assert!(other.ran > 1_000, "it runs as soon as it was measured: {}", other.ran);
    assert_eq!((world.revisions(), dial.missed), (1, 0));
    world.replay();
}

#[test]
fn work_of_unknown_length_waits_for_contracts_only() {
    let mut world = World::new(Span::FOREVER, Span::from_ms(3), false);
    world.run(5);
    assert_eq!(world.apps[OTHER].ran, 0, "a contract is there");
    let mut world = World::beside(Span::ZERO, Span::FOREVER, Span::from_ms(3), false);
    world.run(5);
    let (dial, other) = (&world.apps[DIAL], &world.apps[OTHER]);
    assert!(dial.ran > 100 && other.ran > 100, "{} and {}", dial.ran, other.ran);
    assert!(other.stuck.is_empty());
    world.replay();
}

#[test]
fn a_loop_that_stood_still_evicts_no_client() {
    let mut world = World::new(Span::from_us(500), Span::from_us(500), true);
    for _ in 0..3 {
        world.run(2);
        // `read_notes` panics if a client is evicted.
        world.stand_still(7);
    }
    world.run(2);
    assert!(world.apps[DIAL].ran >= 4 * 2 * 59, "{}", world.apps[DIAL].ran);
    world.replay();
}
