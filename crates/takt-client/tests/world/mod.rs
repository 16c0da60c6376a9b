//! A daemon without a scheduler: it grants what it is asked for, and keeps what clients say.
//!
//! It speaks over a real socket and real shared memory, so everything of `takt-client` runs as it does
//! in a program.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use takt_client::{Patience, Session};
use takt_core::{GroupKind, Span};
use takt_ipc::beat::Heart;
use takt_ipc::message::{Hello, Message, Welcome};
use takt_ipc::region::Region;
use takt_ipc::socket::{Connection, Listener};
use takt_ipc::wake::Doorbell;
use takt_ipc::{Reply, Request};
use takt_os::clock;

/// Long enough for any machine.
const LONG: Duration = Duration::from_secs(60);

/// What the daemon heard.
#[derive(Default, Debug)]
pub(crate) struct Heard {
    /// Groups that were granted and are not complete.
    pub(crate) open: BTreeSet<u64>,
    /// Groups that were asked for.
    pub(crate) asked: u64,
    /// Frames that ended.
    pub(crate) frames: u64,
    /// Rules that the client broke.
    pub(crate) faults: Vec<String>,
}

/// What a test tells the daemon to do.
#[derive(Default, Debug)]
pub(crate) struct Orders {
    /// The client is the only one.
    pub(crate) alone: AtomicBool,
    /// Grants are that much longer than was asked for.
    pub(crate) extra_ns: AtomicU64,
    /// Evict the client.
    pub(crate) evict: AtomicBool,
    end: AtomicBool,
}

/// The daemon, which ends with the test.
pub(crate) struct World {
    pub(crate) path: PathBuf,
    pub(crate) orders: Arc<Orders>,
    pub(crate) heard: Arc<Mutex<Heard>>,
    serving: Option<JoinHandle<()>>,
}

impl World {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("takt-world-{name}-{}", std::process::id()));
        std::fs::remove_file(&path).unwrap_or_default();
        let listener = Listener::bind(&path).expect("bound");
        let (orders, heard) = (Arc::<Orders>::default(), Arc::<Mutex<Heard>>::default());
        let serve = {
            let (orders, heard) = (orders.clone(), heard.clone());
            move || serve(&listener, &orders, &heard)
        };
        let serving = std::thread::Builder::new().name("world".to_owned()).spawn(serve).expect("a thread");
        Self { path, orders, heard, serving: Some(serving) }
    }

    /// A program that bears with a busy machine.
    pub(crate) fn session(&self) -> Session {
        let silence = Span::from_ms(60_000);
        let patience = Patience { answer: LONG, greeting: silence, silence };
        let hello = Hello { name: "app".to_owned(), ..Hello::default() };
        let session = Session::new(self.path.clone(), hello, |_| {}, patience);
        session.join();
        session
    }

    /// Comes back when the daemon has heard that.
    pub(crate) fn await_heard(&self, is: impl Fn(&Heard) -> bool) {
        while !is(&self.heard.lock().expect("no panic")) {
            std::thread::yield_now();
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.orders.end.store(true, Ordering::Relaxed);
        let served = self.serving.take().map(JoinHandle::join);
        std::fs::remove_file(&self.path).unwrap_or_default();
        if !std::thread::panicking() {
            assert!(matches!(served, Some(Ok(()))), "it served to the end");
        }
    }
}

fn serve(listener: &Listener, orders: &Orders, heard: &Mutex<Heard>) {
    let heart = Heart::new().expect("memory");
    heart.belongs_here();
    while !orders.end.load(Ordering::Relaxed) {
        heart.beat(clock::now());
        match listener.accept().expect("a socket") {
            Some((connection, _)) => client(&connection, &heart, orders, heard),
            None => std::thread::yield_now(),
        }
    }
}

/// Serves a client until it leaves or is evicted.
fn client(connection: &Connection, heart: &Heart, orders: &Orders, heard: &Mutex<Heard>) {
    assert!(connection.wait(LONG).expect("a socket"), "it says hello");
    let Ok(Some(_hello)) = connection.receive() else {
        return;
    };
    let (region, fd) = Region::create().expect("memory");
    let doorbell = Doorbell::new().expect("eventfd");
    let (mut requests, mut replies) = region.daemon_ends();
    let welcome = Message::Welcome(Welcome { admission: "fine".to_owned(), ..Welcome::default() });
    connection.send(&welcome, &[fd.as_fd(), doorbell.as_fd(), heart.as_fd()]).expect("sent");
    replies.push(&Reply::Limit { slice: Span::from_ms(1) }.encode()).expect("room");
    heard.lock().expect("no panic").open.clear();
    while !orders.end.load(Ordering::Relaxed) && !connection.is_hung_up() {
        heart.beat(clock::now());
        region.solitude().set(orders.alone.load(Ordering::Relaxed));
        if orders.evict.swap(false, Ordering::Relaxed) {
            replies.push(&Reply::Farewell.encode()).expect("room");
            region.bell().ring();
            return;
        }
        let Some(words) = requests.pop().expect("an honest client") else {
            std::thread::yield_now();
            continue;
        };
        let extra = Span::from_ns(orders.extra_ns.load(Ordering::Relaxed));
        let request = Request::decode(&words).expect("an honest client");
        if let Some(reply) = heard.lock().expect("no panic").hear(request, extra) {
            replies.push(&reply.encode()).expect("room");
            region.bell().ring();
        }
    }
}

impl Heard {
    fn hear(&mut self, request: Request, extra: Span) -> Option<Reply> {
        match request {
            Request::Submit { group, kind, estimate } => {
                self.asked += 1;
                self.frames += u64::from(kind == GroupKind::Swap);
                if !self.open.insert(group.0) {
                    self.faults.push(format!("group {} was asked for twice", group.0));
                }
                Some(Reply::Grant { group, credit: estimate.span() + extra })
            }
            Request::Names { group, .. } => {
                self.faults.push(format!("group {} was named without a question", group.0));
                None
            }
            Request::Complete { group, frames, .. } => {
                self.frames += u64::from(frames);
                if !self.open.remove(&group.0) {
                    self.faults.push(format!("group {} ended without a grant", group.0));
                }
                None
            }
        }
    }
}
