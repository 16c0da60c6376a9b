//! A daemon with its threads, and clients over its socket, in real time.

#![allow(dead_code, reason = "not every test needs all of it")]

use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use takt_core::{Estimate, GroupId, GroupKind, Span, Time};
use takt_daemon::control::config::Settings;
use takt_daemon::control::server::Server;
use takt_ipc::client::{Joined, join};
use takt_ipc::message::{Hello, Message};
use takt_ipc::socket::Connection;
use takt_ipc::{Reply, Request};
use takt_os::clock;

/// Long enough for any machine; nothing waits this long unless it is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// For daemons that bear with clients that a busy machine keeps from reporting.
pub(crate) const BEARS: &str = "completion_timeout_ms = 60000\n";

type Job = Box<dyn FnOnce(&mut Server) + Send>;

/// A daemon that ends with the test.
pub(crate) struct Daemon {
    pub(crate) path: PathBuf,
    jobs: Option<SyncSender<Job>>,
    serving: Option<JoinHandle<()>>,
}

impl Daemon {
    /// One that bears with clients that a busy machine keeps from reporting.
    pub(crate) fn start(name: &str, settings: &str) -> Self {
        Self::hasty(name, &format!("{BEARS}{settings}"))
    }

    /// One that bears no more than it is told to.
    pub(crate) fn hasty(name: &str, settings: &str) -> Self {
        Self::prepared(name, settings, |server| server)
    }

    /// The same, with what `prepare` attaches to it.
    pub(crate) fn prepared(name: &str, settings: &str, prepare: impl FnOnce(Server) -> Server) -> Self {
        let path = std::env::temp_dir().join(format!("takt-live-{name}-{}", std::process::id()));
        let settings = Settings::parse(settings).expect("settings");
        let mut server = prepare(Server::start(path.clone(), settings).expect("a daemon"));
        let (jobs, todo) = sync_channel::<Job>(1);
        let serving = std::thread::Builder::new().name("served".to_owned()).spawn(move || {
            loop {
                match todo.try_recv() {
                    Ok(job) => job(&mut server),
                    Err(TryRecvError::Empty) => server.turn().expect("served"),
                    Err(TryRecvError::Disconnected) => return,
                }
            }
        });
        Self { path, jobs: Some(jobs), serving: Some(serving.expect("a thread")) }
    }

    /// Does something to the server itself.
    pub(crate) fn with<T: Send + 'static>(&self, job: impl FnOnce(&mut Server) -> T + Send + 'static) -> T {
        let (tell, told) = sync_channel(1);
        let job: Job = Box::new(move |server| tell.send(job(server)).expect("the test waits"));
        self.jobs.as_ref().and_then(|jobs| jobs.send(job).ok()).expect("it serves");
        told.recv().expect("done")
    }

    pub(crate) fn join(&self, name: &str, priority: u32) -> Joined {
        join(&self.path, &hello(name, priority), PATIENCE).expect("joined")
    }

    pub(crate) fn ask(&self, text: &str) -> serde_json::Value {
        ask(&self.path, text)
    }

    /// Asks until the answer is as wanted: the daemon hears of things a moment later.
    pub(crate) fn await_answer(
        &self,
        text: &str,
        wanted: impl Fn(&serde_json::Value) -> bool,
    ) -> serde_json::Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask(text);
            if wanted(&answer) {
                return answer;
            }
            assert!(Instant::now() < until, "{answer}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.jobs.take());
        let served = self.serving.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            assert!(matches!(served, Some(Ok(()))), "it served to the end");
            assert!(!self.path.exists(), "the socket is gone");
        }
    }
}

pub(crate) fn hello(name: &str, priority: u32) -> Hello {
    Hello { name: name.to_owned(), priority: Some(priority), ..Hello::default() }
}

pub(crate) fn submit(app: &mut Joined, group: u64, kind: GroupKind) {
    submit_predicted(app, group, kind, Span::from_us(100));
}

/// Comes back when the loop has read all that was asked for before, by whomever, and has answered.
pub(crate) fn await_turn(app: &Joined) {
    let until = Instant::now() + PATIENCE;
    // It beats when a turn begins: wait for one that began after the order, and for the next.
    for _ in 0..2 {
        let asked = clock::now();
        let beat = |now: Time| now - app.receiver.pulse().silent_for(now);
        while beat(clock::now()) <= asked {
            assert!(Instant::now() < until, "the loop does not turn");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A group that keeps its slot on the GPU until it ends: nothing is late that is predicted to take
/// this long.
pub(crate) fn submit_long(app: &mut Joined, group: u64) {
    submit_predicted(app, group, GroupKind::Draw, Span::from_ms(60_000));
}

/// Such a group that has its slot.
pub(crate) fn hold(app: &mut Joined, group: u64) {
    submit_long(app, group);
    assert_eq!(await_reply(app, granted), group);
}

fn submit_predicted(app: &mut Joined, group: u64, kind: GroupKind, estimate: Span) {
    let estimate = Estimate::new(estimate);
    app.sender.send(&Request::Submit { group: GroupId(group), kind, estimate }).expect("room");
}

pub(crate) fn complete(app: &mut Joined, group: u64) {
    let request = Request::Complete {
        group: GroupId(group),
        finished: clock::now(),
        cost: Span::from_us(50),
        frames: 0,
    };
    app.sender.send(&request).expect("room");
}

/// Waits as an app does until its next frame may begin.
pub(crate) fn pace(app: &mut Joined) {
    let at = await_reply(app, |reply| match reply {
        Reply::Release { at } => Some(at),
        _ => None,
    });
    std::thread::sleep(Duration::from_nanos(at.since(clock::now()).as_ns()));
}

/// The next reply that is wanted.
pub(crate) fn await_reply<T>(app: &mut Joined, wanted: impl Fn(Reply) -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match app.receiver.next_reply().expect("an honest daemon") {
            Some(reply) => {
                if let Some(found) = wanted(reply) {
                    return found;
                }
            }
            None => app.receiver.sleep(Duration::from_millis(100)),
        }
    }
    panic!("no such reply");
}

pub(crate) fn granted(reply: Reply) -> Option<u64> {
    match reply {
        Reply::Grant { group, .. } => Some(group.0),
        _ => None,
    }
}

pub(crate) fn ask(path: &Path, text: &str) -> serde_json::Value {
    let connection = Connection::connect(path, PATIENCE).expect("connect");
    connection.send(&Message::Ask { text: text.to_owned() }, &[]).expect("send");
    let mut answer = String::new();
    loop {
        match connection.receive().expect("whole").expect("there").message {
            Message::Answer { text, more } => {
                answer.push_str(&text);
                if !more {
                    return serde_json::from_str(&answer).expect("JSON");
                }
            }
            other => panic!("{other:?}"),
        }
    }
}
