//! A daemon under attack, and how the apps that matter fare meanwhile.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use takt_core::Span;
use takt_daemon::control::server::Server;
use takt_daemon::observe::exporter::Address;
use takt_daemon::observe::journal::{Format, Journal};
use takt_ipc::client::join;
use takt_ipc::message::Hello;
use takt_os::clock;

use crate::support::{BEARS, Daemon, PATIENCE};
use crate::victim::Victim;

/// Frames that the victim draws at least in each attack.
const FRAMES: u64 = 90;
/// Time between two joins of the listed app.
const JOIN_PAUSE: Duration = Duration::from_millis(40);
/// The user of the listed app.
const LISTED: u32 = 42_000;

const CONFIG: &str = r#"
[[domain]]
name = "cluster"
user = 42000
level = "safety-critical"

[[app]]
name = "victim"
domain = "cluster"
priority = 90
fps = 60
etpf_ms = 2

[[app]]
name = "listed"
domain = "cluster"
priority = 80
fps = 60
etpf_ms = 1
"#;

/// So much of an attack, or all of it where there is time.
pub(crate) fn scale(few: usize, all: usize) -> usize {
    if std::env::var_os("TAKT_SLOW_TESTS").is_some() { all } else { few }
}

/// Runs on a thread of another user, if the system allows that.
pub(crate) fn as_user<T: Send>(uid: u32, act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            if is_root() {
                let user = rustix::process::Uid::from_raw(uid);
                rustix::thread::set_thread_uid(user).expect("root may be any user");
            }
            act()
        });
        thread.join().expect("no panic")
    })
}

/// Figures, and what was skipped.
#[expect(clippy::print_stdout, reason = "for people that ask for it with --nocapture")]
pub(crate) fn say(text: &str) {
    println!("{text}");
}

/// Whether attackers can be other users.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What is written to it.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no panic").clone()).expect("UTF-8")
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A daemon, and what the attack needs to know.
pub(crate) struct Arena {
    pub(crate) daemon: Daemon,
    pub(crate) log: Log,
    metrics: SocketAddr,
    victim: Victim,
    joins: AtomicU64,
}

impl Arena {
    fn start(name: &str, more: &str, prepare: impl FnOnce(&mut Server)) -> Self {
        let log = Log::default();
        let mut metrics = None;
        let daemon = Daemon::prepared(name, &format!("{BEARS}{more}{CONFIG}"), |server| {
            let journal = Journal::new(Box::new(log.clone()), Format::Text).expect("a thread");
            let mut server = server.with_journal(journal);
            server.serve_metrics("127.0.0.1:0".parse().expect("an address")).expect("a port");
            metrics = server.metrics_address().cloned();
            prepare(&mut server);
            server
        });
        // The daemon locks the memory of its process, which the attackers share here and may not lock.
        rustix::mm::munlockall().expect("that is always allowed");
        let anyone = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(&daemon.path, anyone).expect("our own socket");
        let joined = as_user(LISTED, || join(&daemon.path, &hello("victim"), PATIENCE)).expect("joined");
        assert!(joined.welcome.standing.protected || !is_root(), "{:?}", joined.welcome);
        let victim = Victim::start(joined);
        let Some(Address::Loopback(metrics)) = metrics else { panic!("it listens at a port") };
        let arena = Self { daemon, log, metrics, victim, joins: AtomicU64::new(0) };
        // Attacks begin when it draws.
        while arena.victim.drawn() == 0 && !arena.victim.is_over() {
            std::thread::yield_now();
        }
        arena
    }

    pub(crate) fn path(&self) -> &Path {
        &self.daemon.path
    }

    /// Whether the attack is to go on: until the victim has drawn enough, and the listed app has joined.
    pub(crate) fn goes_on(&self) -> bool {
        let enough = self.victim.drawn() >= FRAMES && self.joins.load(Ordering::Relaxed) > 0;
        !enough && !self.victim.is_over()
    }

    /// The page of metrics.
    pub(crate) fn scrape(&self) -> String {
        let mut server = TcpStream::connect(self.metrics).expect("it answers");
        server.set_read_timeout(Some(PATIENCE)).expect("set");
        server.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("sent");
        let mut page = String::new();
        server.read_to_string(&mut page).expect("a page");
        page
    }

    pub(crate) fn metrics(&self) -> SocketAddr {
        self.metrics
    }

    /// Joins as the listed app until `over`; returns how long that took at most.
    fn probe(&self, over: &AtomicBool) -> Span {
        let mut longest = Span::ZERO;
        while !over.load(Ordering::Relaxed) {
            let began = clock::now();
            match join(self.path(), &hello("listed"), PATIENCE) {
                Ok(joined) => drop(joined),
                Err(error) => panic!("a listed app is kept out: {error}"),
            }
            longest = longest.max(clock::now().since(began));
            self.joins.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(JOIN_PAUSE);
        }
        longest
    }
}

fn hello(name: &str) -> Hello {
    Hello { name: name.to_owned(), ..Hello::default() }
}

/// Plays an attack, and checks that the apps that matter do not notice.
pub(crate) fn withstand(name: &str, attack: impl FnOnce(&Arena)) {
    withstand_with(name, "", |_| {}, attack);
}

/// The same with more in the configuration, and a server that `prepare` changes.
pub(crate) fn withstand_with(
    name: &str,
    more: &str,
    prepare: impl FnOnce(&mut Server),
    attack: impl FnOnce(&Arena),
) {
    let _alone = one_at_a_time();
    let began = Instant::now();
    let mut arena = Arena::start(&format!("attack-{name}"), more, prepare);
    let over = AtomicBool::new(false);
    let join_max = std::thread::scope(|scope| {
        let probe = scope.spawn(|| as_user(LISTED, || arena.probe(&over)));
        // The probe must end even if the attack does not come to its end.
        let end = EndsProbe(&over);
        attack(&arena);
        while arena.goes_on() && !probe.is_finished() {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(end);
        probe.join().expect("the listed app always gets in")
    });
    let figures = arena.daemon.ask(r#"{"ask": "daemon"}"#);
    let stall = figures["is"]["control_stall_ms_max"].as_f64().expect("a figure");
    let frames = arena.victim.finish();
    let ms = |span: Span| span.as_ns() as f64 / 1e6;
    say(&format!(
        "{name}: {} frames, {} lost, {} starved by the machine, longest wait {:.1} ms; longest stall {stall:.1} ms; \
         {} joins, {:.1} ms at most; {:.1} s",
        frames.drawn,
        frames.lost,
        frames.starved,
        ms(frames.wait_max),
        arena.joins.load(Ordering::Relaxed),
        ms(join_max),
        began.elapsed().as_secs_f64(),
    ));
    if frames.is_urgent {
        assert_eq!(frames.lost, 0, "{name}: {frames:?}");
    } else {
        say(&format!("{name}: deadlines are not asserted without a real-time priority"));
    }
    assert!(stall < 5_000.0, "the control thread stood still for {stall} ms");
}

struct EndsProbe<'a>(&'a AtomicBool);

impl Drop for EndsProbe<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Attacks do not disturb each other.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
