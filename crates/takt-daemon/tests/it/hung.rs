//! A loop that hangs in the middle of a decision, and a program that waits for it.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use takt_client::{Patience, Session};
use takt_core::policy::{Context, Policy};
use takt_core::{AppId, AppParams, Config, Gpu, GroupKind, Lane, Priority, Service, Span, Stride};
use takt_daemon::rt::endpoint::Endpoint;
use takt_daemon::rt::engine::Engine;
use takt_daemon::rt::queues::Order;
use takt_daemon::rt::thread::Loop;
use takt_ipc::message::{Hello, Message, Welcome};
use takt_ipc::socket::Listener;
use takt_os::clock;
use takt_policies::Fifo;

/// Decides nothing until its flag is set; sleeps or spins meanwhile.
#[derive(Debug)]
struct Stuck {
    spins: bool,
    over: Arc<AtomicBool>,
}

impl Policy for Stuck {
    fn name(&self) -> &'static str {
        "stuck"
    }

    fn choose(&mut self, _: &Context, _: &mut [Lane]) -> Option<usize> {
        while !self.over.load(Ordering::Acquire) {
            if self.spins {
                std::hint::spin_loop();
            } else {
                // Only the end of the test wakes it up.
                std::thread::park();
            }
        }
        None
    }
}

fn silent(_: &str) {}

fn params() -> AppParams {
    let (priority, service) = (Priority(1), Service::default());
    AppParams { priority, stride: Stride::ONE, etpf: Span::ZERO, clock: takt_core::Clock::default(), service }
}

/// A program waits for a grant while the loop hangs; returns its log.
fn waits_for_a_loop_that_hangs(name: &str, spins: bool) -> String {
    let path = std::env::temp_dir().join(format!("takt-hung-{name}-{}", std::process::id()));
    let listener = Listener::bind(&path).expect("bound");
    let config = Config { apps_max: 2, gpu: Gpu::TURNS, ..Config::default() };
    let (engine, mut queues) = Engine::new(config, Box::new(Fifo)).expect("an engine");
    let heart = engine.heart().as_fd().try_clone_to_owned().expect("a descriptor");
    let scheduling = Loop::new(engine, Span::ZERO).expect("a loop");
    let waker = scheduling.waker();
    let running = std::thread::Builder::new().name("loop".to_owned()).spawn(move || scheduling.run());
    let running = running.expect("a thread");
    let hello = Hello { name: name.to_owned(), ..Hello::default() };
    // Silence alone is borne for longer than the test takes.
    let patience = Patience { silence: Span::from_ms(60_000), ..Patience::default() };
    let session = Session::new(path.clone(), hello, silent, patience);
    let connection = std::thread::scope(|scope| {
        let joining = scope.spawn(|| session.join());
        let connection = loop {
            match listener.accept().expect("a socket") {
                Some((connection, _)) => break connection,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        assert!(connection.wait(Duration::from_secs(30)).expect("a socket"));
        assert!(
            matches!(connection.receive(), Ok(Some(received)) if matches!(received.message, Message::Hello(_)))
        );
        let (endpoint, ends) = Endpoint::new(AppId(0)).expect("shared memory");
        let welcome = Welcome { admission: "fine".to_owned(), ..Welcome::default() };
        let fds = [ends.region.as_fd(), ends.doorbell.as_fd(), heart.as_fd()];
        connection.send(&Message::Welcome(welcome), &fds).expect("sent");
        let order =
            Order::Join { endpoint: Box::new(endpoint), params: params(), max_slice: Span::from_ms(1) };
        queues.orders.push(order).expect("room");
        waker.wake();
        joining.join().expect("no panic");
        connection
    });
    // On a busy machine it may have given up already, which is as good.
    if let Some(pass) = session.ask(GroupKind::Swap, Span::from_us(100)) {
        session.complete(pass, clock::now(), Span::from_us(50));
    }
    let over = Arc::new(AtomicBool::new(false));
    queues.orders.push(Order::Policy(Box::new(Stuck { spins, over: Arc::clone(&over) }))).expect("room");
    waker.wake();
    // Until it is stuck a grant may still come; in the end none does.
    while let Some(pass) = session.ask(GroupKind::Swap, Span::from_us(100)) {
        session.complete(pass, clock::now(), Span::from_us(50));
    }
    let said = session.said();
    over.store(true, Ordering::Release);
    running.thread().unpark();
    queues.orders.push(Order::Stop).expect("room");
    waker.wake();
    running.join().expect("no panic");
    drop(connection);
    std::fs::remove_file(&path).unwrap_or_default();
    said
}

#[test]
fn programs_go_on_when_the_loop_sleeps_where_it_should_not() {
    let said = waits_for_a_loop_that_hangs("asleep", false);
    assert!(said.contains("the daemon hangs; the program runs on"), "{said}");
}

#[test]
fn programs_go_on_when_the_loop_runs_in_circles() {
    let said = waits_for_a_loop_that_hangs("spinning", true);
    assert!(said.contains("the daemon hangs; the program runs on"), "{said}");
}
