//! A daemon with its threads, and apps that draw on no GPU.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use takt_core::{Estimate, GroupId, GroupKind, Span};
use takt_daemon::control::config::Settings;
use takt_daemon::control::server::Server;
use takt_daemon::observe::journal::Journal;
use takt_ipc::client::{Joined, join};
use takt_ipc::message::Hello;
use takt_ipc::{Reply, Request};
use takt_os::clock;

/// Long enough for any machine; nothing waits this long unless it is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon that ends with the test, and bears with apps that a busy machine delays.
pub(crate) struct Daemon {
    pub(crate) path: PathBuf,
    stop: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl Daemon {
    pub(crate) fn start(name: &str, settings: &str) -> Self {
        Self::at(std::env::temp_dir().join(format!("takt-web-{name}-{}", std::process::id())), settings)
    }

    pub(crate) fn at(path: PathBuf, settings: &str) -> Self {
        let settings =
            Settings::parse(&format!("completion_timeout_ms = 60000\n{settings}")).expect("settings");
        let mut server =
            Server::start(path.clone(), settings).expect("a daemon").with_journal(Journal::default());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let serving = std::thread::Builder::new().name("served".to_owned()).spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                server.turn().expect("served");
            }
            server.finish().expect("what it records is written");
        });
        Self { path, stop, serving: Some(serving.expect("a thread")) }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let served = self.serving.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            assert!(matches!(served, Some(Ok(()))), "it served to the end");
        }
    }
}

/// An app with a contract.
pub(crate) fn reserving(name: &str, priority: u32, etpf_ms: u64) -> Hello {
    let etpf_ns = Some(etpf_ms * 1_000_000);
    Hello {
        name: name.to_owned(),
        priority: Some(priority),
        fps_mhz: Some(60_000),
        etpf_ns,
        ..Hello::default()
    }
}

/// An app without one.
pub(crate) fn plain(name: &str, priority: u32) -> Hello {
    Hello { name: name.to_owned(), priority: Some(priority), ..Hello::default() }
}

/// Joins the daemon at `path`.
pub(crate) fn joined(path: &Path, hello: &Hello) -> Joined {
    join(path, hello, PATIENCE).expect("joined")
}

/// An app that draws frames on a thread of its own until it is dropped.
pub(crate) struct Drawing {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drawing {
    pub(crate) fn start(path: &Path, hello: &Hello) -> Self {
        let (mut app, stop) = (joined(path, hello), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("draws".to_owned()).spawn(move || {
            let mut group = 0;
            while !stopped.load(Ordering::Relaxed) {
                frame(&mut app, group, &stopped);
                group += 1;
            }
        });
        Self { stop, thread: Some(thread.expect("a thread")) }
    }
}

impl Drop for Drawing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// One frame: asks, waits for the grant, ends.
fn frame(app: &mut Joined, group: u64, stopped: &AtomicBool) {
    let (group, estimate) = (GroupId(group), Estimate::new(Span::from_us(500)));
    let submit = Request::Submit { group, kind: GroupKind::Swap, estimate };
    if app.sender.send(&submit).is_err() {
        return;
    }
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until && !stopped.load(Ordering::Relaxed) {
        match app.receiver.next_reply().expect("an honest daemon") {
            Some(Reply::Grant { group: granted, .. }) if granted == group => break,
            Some(_) => {}
            None => app.receiver.sleep(Duration::from_millis(20)),
        }
    }
    // A GPU that takes its time.
    std::thread::sleep(Duration::from_millis(2));
    let (finished, cost) = (clock::now(), Span::from_us(400));
    app.sender.send(&Request::Complete { group, finished, cost, frames: 0 }).unwrap_or_default();
    std::thread::sleep(Duration::from_millis(10));
}

/// Says why a test was not made.
#[expect(clippy::print_stderr, reason = "the log should say so")]
pub(crate) fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
}
