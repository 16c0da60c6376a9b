//! What a daemon did, played again: the same core must do the very same.

use std::io::Write;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use takt_core::{
    AppId, AppParams, Config, Divisible, Estimate, Event, Gpu, GroupId, GroupKind, Priority, Service, Span,
    Stride, Time,
};
use takt_daemon::control::config::Settings;
use takt_daemon::control::server::Server;
use takt_daemon::rt::endpoint::Endpoint;
use takt_daemon::rt::engine::Engine;
use takt_daemon::rt::queues::{LoopQueues, Note, Order};
use takt_ipc::client::{Joined, Receiver, Sender, join};
use takt_ipc::message::{Hello, Message};
use takt_ipc::socket::Connection;
use takt_ipc::{Reply, Request, client};
use takt_os::clock;
use takt_rng::Rng;
use takt_trace::Record;
use takt_trace::export::json::{Entry, Reader};
use takt_trace::replay::{Replay, Replayed};

/// Long enough for any machine; nothing waits this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(30);

struct App {
    sender: Sender,
    receiver: Receiver,
    next: u64,
    granted: Vec<u64>,
}

/// A loop in made-up time with clients that act at random.
struct Rig {
    engine: Engine,
    queues: LoopQueues,
    apps: Vec<Option<App>>,
    rng: Rng,
    now: Time,
    log: Vec<(Time, Record)>,
}

impl Rig {
    fn new(policy: &str, seed: u64) -> Self {
        let policy = takt_policies::by_name(policy).expect("it exists");
        let (engine, queues) = Engine::new(config(), policy).expect("an engine");
        let apps = (0..config().apps_max).map(|_| None).collect();
        Self { engine, queues, apps, rng: Rng::seeded(seed), now: Time::from_ms(5_000), log: Vec::new() }
    }

    fn params(&mut self, slot: usize) -> AppParams {
        AppParams {
            // Sometimes taken already, which the core refuses.
            priority: Priority(u32::try_from(slot).expect("small") + 10 * u32::from(self.rng.below(8) > 0)),
            stride: Stride::new(1 + self.rng.below(3)).expect("in range"),
            etpf: Span::from_us(self.rng.between(0, 2) * 1_500),
            clock: takt_core::Clock::default(),
            service: Service { divisible: self.rng.below(2) == 0, ..Service::default() },
        }
    }

    fn step(&mut self) {
        let slot = self.rng.index(self.apps.len());
        let app = AppId(u32::try_from(slot).expect("small"));
        let what = self.rng.between(0, 99);
        match (&mut self.apps[slot], what) {
            (None, _) => self.join(slot),
            (Some(_), 0) => self.order(Order::Leave { app }),
            (Some(_), 1..4) => {
                let params = self.params(slot);
                self.order(Order::Change { app, params });
            }
            (Some(_), 4) => {
                let name = takt_policies::NAMES[self.rng.index(10)];
                self.order(Order::Policy(takt_policies::by_name(name).expect("it exists")));
            }
            (Some(_), 5) => {
                let focus = (self.rng.between(0, 1) == 0).then_some(app);
                self.order(Order::Focus(focus));
            }
            (Some(_), 6) => {
                let mut adjustable = config().adjustable();
                adjustable.mpcg = 1 + self.rng.below(5);
                adjustable.margins.completion_upper = Span::from_us(self.rng.between(0, 499));
                adjustable.margins.fixed = Span::from_us(self.rng.between(0, 199));
                adjustable.blocking = Span::from_us(self.rng.between(0, 1_999));
                adjustable.stretch = Span::from_us(self.rng.between(0, 2_999));
                let us = Span::from_us(self.rng.between(100, 2_000));
                let turn = Divisible { slice: us, quantum: Span::ZERO, own_slice: us, switch: Span::ZERO };
                adjustable.divisible = (self.rng.below(2) == 0).then_some(turn);
                self.order(Order::Adjust(adjustable));
            }
            (Some(app), 7) => {
                // A false report, for which it is evicted.
                let lie = Request::Complete {
                    group: GroupId(77_777),
                    finished: self.now,
                    cost: Span::ZERO,
                    frames: 0,
                };
                app.sender.send(&lie).ok();
            }
            (Some(app), 8..55) => {
                let kind = if self.rng.between(0, 3) == 0 { GroupKind::Swap } else { GroupKind::Draw };
                let estimate = Estimate::new(Span::from_us(50 + self.rng.between(0, 1_999)));
                let group = GroupId(app.next);
                app.next += 1;
                app.sender.send(&Request::Submit { group, kind, estimate }).ok();
            }
            (Some(app), _) => {
                if let Some(group) = app.granted.pop() {
                    let cost = Span::from_us(self.rng.between(0, 1_499));
                    let request =
                        Request::Complete { group: GroupId(group), finished: self.now, cost, frames: 0 };
                    app.sender.send(&request).ok();
                }
            }
        }
        if self.rng.between(0, 2) > 0 {
            self.turn();
        }
    }

    fn join(&mut self, slot: usize) {
        let app = AppId(u32::try_from(slot).expect("small"));
        let (endpoint, ends) = Endpoint::new(app).expect("shared memory");
        let beat = self.engine.heart().as_fd().try_clone_to_owned().expect("a descriptor");
        let (sender, receiver) = client::ends(&ends.region, ends.doorbell, &beat).expect("mapped");
        let params = self.params(slot);
        self.apps[slot] = Some(App { sender, receiver, next: 0, granted: Vec::new() });
        self.order(Order::Join { endpoint: Box::new(endpoint), params, max_slice: Span::from_ms(1) });
    }

    fn order(&mut self, order: Order) {
        self.queues.orders.push(order).expect("room");
    }

    fn turn(&mut self) {
        // Mostly soon, now and then after a time-out.
        let wait = if self.rng.between(0, 299) == 0 { 700_000 } else { self.rng.between(0, 899) };
        self.now += Span::from_us(wait);
        self.engine.turn(self.now, |_| {});
        while let Ok(note) = self.queues.notes.pop() {
            match note {
                Note::Record(at, record) => self.log.push((at, record)),
                Note::Gone { endpoint, .. } => self.apps[endpoint.app.index()] = None,
                _ => {}
            }
        }
        for app in self.apps.iter_mut().flatten() {
            while let Ok(Some(reply)) = app.receiver.next_reply() {
                if let Reply::Grant { group, .. } = reply {
                    app.granted.push(group.0);
                }
            }
        }
    }
}

fn config() -> Config {
    Config { mpcg: 3, apps_max: 6, gpu: Gpu::TURNS, ..Config::default() }
}

#[test]
fn whatever_clients_do_happens_again() {
    for (seed, name) in (1..).zip(takt_policies::NAMES) {
        let mut rig = Rig::new(name, seed);
        (0..4_000).for_each(|_| rig.step());
        rig.turn();
        let mut replay = Replay::new(config(), name).expect("it exists");
        for (index, (at, record)) in rig.log.iter().enumerate() {
            if let Err(difference) = replay.play(*at, record) {
                panic!("{name}, record {index}: {}\n{:#?}", difference.kind, difference.before);
            }
        }
        let replayed = replay.finish();
        assert!(!replayed.unfinished, "{name}");
        assert!(replayed.actions > 1_000, "{name}: {replayed:?}");
        assert_eq!(rig.engine.dropped(), 0);
    }
}

/// A file that is looked at when it is complete.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn frames(app: &mut Joined, count: u64) {
    for group in 0..count {
        let kind = if group % 3 == 2 { GroupKind::Swap } else { GroupKind::Draw };
        let estimate = Estimate::new(Span::from_us(100));
        app.sender.send(&Request::Submit { group: GroupId(group), kind, estimate }).expect("room");
        let until = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < until, "no grant");
            match app.receiver.next_reply().expect("an honest daemon") {
                Some(Reply::Grant { group: granted, .. }) if granted.0 == group => break,
                Some(_) => {}
                None => app.receiver.sleep(Duration::from_millis(100)),
            }
        }
        let complete = Request::Complete {
            group: GroupId(group),
            finished: clock::now(),
            cost: Span::from_us(40),
            frames: 0,
        };
        app.sender.send(&complete).expect("room");
    }
}

fn ask(path: &std::path::Path, text: &str) {
    let connection = Connection::connect(path, PATIENCE).expect("connect");
    connection.send(&Message::Ask { text: text.to_owned() }, &[]).expect("send");
    connection.receive().expect("whole").expect("there");
}

fn hello(name: &str, priority: u32) -> Hello {
    Hello { name: name.to_owned(), priority: Some(priority), etpf_ns: Some(900_000), ..Hello::default() }
}

/// The records of a log that another process wrote, and the result of its replay.
fn replayed(bytes: &[u8]) -> (Vec<Entry>, Replayed) {
    let mut reader = Reader::new(bytes).expect("a log");
    let config = *reader.config().expect("from the start");
    let mut replay = Replay::new(config, &reader.meta().policy).expect("a policy");
    let mut entries = Vec::new();
    while let Some((at, entry)) = reader.next_entry().expect("whole lines") {
        if let Entry::Record(record) = &entry
            && let Err(difference) = replay.play(at, record)
        {
            panic!("line {}: {}\n{:#?}", reader.line(), difference.kind, difference.before);
        }
        entries.push(entry);
    }
    (entries, replay.finish())
}

#[test]
fn a_recorded_daemon_is_the_simulator() {
    let path = std::env::temp_dir().join(format!("takt-recorded-{}", std::process::id()));
    let file = Shared::default();
    let settings = Settings::parse("mpcg = 2\ncompletion_timeout_ms = 60000").expect("settings");
    let mut server = Server::start(path.clone(), settings).expect("a daemon");
    server.record_to(file.clone(), "this").expect("a thread");
    std::thread::scope(|scope| {
        let clients = scope.spawn(|| {
            let mut first = join(&path, &hello("first", 9), PATIENCE).expect("joined");
            let mut second = join(&path, &hello("second", 5), PATIENCE).expect("joined");
            std::thread::scope(|both| {
                both.spawn(|| frames(&mut first, 90));
                both.spawn(|| frames(&mut second, 90));
                ask(&path, r#"{"ask": "set", "app": "second", "priority": 20, "etpf_ms": 2}"#);
                ask(&path, r#"{"ask": "adjust", "mpcg": 1, "max_blocking_ms": "inf", "max_stretch_ms": 2}"#);
                ask(&path, r#"{"ask": "policy", "name": "edf-cbs"}"#);
            });
            drop(first);
            let mut third = join(&path, &hello("third", 7), PATIENCE).expect("joined");
            frames(&mut third, 30);
        });
        while !clients.is_finished() {
            server.turn().expect("served");
        }
    });
    server.finish().expect("written");
    drop(server);
    let bytes = file.0.lock().expect("no panic").clone();
    let (entries, replayed) = replayed(&bytes);
    assert!(!replayed.unfinished, "{replayed:?}");
    assert!(replayed.actions >= 210, "{replayed:?}");
    let names: Vec<&str> = entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::App(_, meta) => Some(meta.name.as_str()),
            Entry::Record(_) => None,
        })
        .collect();
    assert_eq!(names, ["first", "second", "third"]);
    assert!(entries.contains(&Entry::Record(Record::Policy("edf-cbs"))));
    let adjusts = |entry: &&Entry| matches!(entry, Entry::Record(Record::In(Event::Adjust(_))));
    assert_eq!(entries.iter().filter(adjusts).count(), 2, "with the first contract, and by a tool");
}

#[test]
fn a_tool_sees_what_happens_from_now_on() {
    let path = std::env::temp_dir().join(format!("takt-watched-{}", std::process::id()));
    let settings = Settings::parse("completion_timeout_ms = 60000").expect("settings");
    let mut server = Server::start(path.clone(), settings).expect("a daemon");
    let seen = std::thread::scope(|scope| {
        let tool = scope.spawn(|| {
            let mut app = join(&path, &hello("dial", 9), PATIENCE).expect("joined");
            frames(&mut app, 6);
            let connection = Connection::connect(&path, PATIENCE).expect("connect");
            connection.send(&Message::Ask { text: r#"{"ask": "watch"}"#.to_owned() }, &[]).expect("send");
            let mut text = String::new();
            let mut next = || match connection.receive().expect("whole").expect("there").message {
                Message::Answer { text: piece, more: true } => text.push_str(&piece),
                other => panic!("{other:?}"),
            };
            next();
            let group = GroupId(6);
            let estimate = Estimate::new(Span::from_us(9));
            let submit = Request::Submit { group, kind: GroupKind::Swap, estimate };
            app.sender.send(&submit).expect("room");
            for _ in 0..20 {
                next();
            }
            text
        });
        while !tool.is_finished() {
            server.turn().expect("served");
        }
        tool.join().expect("no panic")
    });
    let whole = seen.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let mut reader = Reader::new(whole.as_bytes()).expect("a log");
    assert!(reader.config().is_none(), "the beginning was missed");
    let mut log = takt_trace::Log::new();
    reader.show(&mut log).expect("whole lines");
    let joins = |record: &Record| matches!(record, Record::In(Event::Join { .. }));
    assert!(
        log.records.first().is_some_and(|(_, record)| joins(record)),
        "the apps that were there come first"
    );
    let swap = |record: &Record| matches!(record, Record::Out(takt_core::Action::Dispatch { .. }));
    assert!(log.records.iter().any(|(_, record)| swap(record)));
}
