//! A daemon under attack, and how the apps that matter fare meanwhile.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use takt_audit::Event;
use takt_core::Span;
use takt_daemon::control::server::Server;
use takt_daemon::observe::exporter::Address;
use takt_daemon::observe::journal::{Format, Journal};
use takt_ipc::client::join;
use takt_ipc::message::Hello;
use takt_os::clock;

use crate::busy::{Busy, Took};
use crate::canary::Canaries;
use crate::evidence::Evidence;
use crate::player::Player;
use crate::setting::{Folder, GAME, LISTED, PLAYER, Setting};
use crate::support::{Daemon, PATIENCE};
use crate::victim::{Frames, Victim};

/// Frames that the victim draws at least in each attack, and where there is time.
const FRAMES: usize = 90;
const FRAMES_LONG: usize = 600;
/// Longest stall of the control thread, and longest join of the listed app, less the time for which the
/// machine stood still.
const STALL_MAX: Span = Span::from_ms(50);
const JOIN_MAX: Span = Span::from_ms(100);
/// The nice value of the listed app.
const PROBE_NICE: i32 = -15;
/// Where a session says how it stands among others, and what the suite says: what is measured is the daemon
/// among attackers, not beside other sessions. Nice values of threads count only within a session.
const SESSION: &str = "/proc/self/autogroup";
const FIRST: &str = "-20";
/// A machine on which one frame of so many is late because it stood still shows nothing.
const STARVED_SHARE: u64 = 10;
/// Time between two joins of the listed app.
const JOIN_PAUSE: Duration = Duration::from_millis(40);
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
    player: Player,
    /// Of the audit.
    folder: Folder,
    canaries: Arc<Canaries>,
    joins: AtomicU64,
}

impl Arena {
    fn start(name: &str, setting: Setting) -> Self {
        let (log, folder) = (Log::default(), Folder::new(name));
        let mut metrics = None;
        let daemon = Daemon::prepared(name, &setting.config(&folder.0), |server| {
            let journal = Journal::new(Box::new(log.clone()), Format::Text).expect("a thread");
            let mut server = server.with_journal(journal);
            server.serve_metrics("127.0.0.1:0".parse().expect("an address")).expect("a port");
            metrics = server.metrics_address().cloned();
            if let Some(prepare) = setting.prepare {
                prepare(&mut server);
            }
            server
        });
        // The daemon locks the memory of its process, which the attackers share here and may not lock.
        rustix::mm::munlockall().expect("that is always allowed");
        let by_all = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(&daemon.path, by_all).expect("our own socket");
        let joined = as_user(LISTED, || join(&daemon.path, &hello("victim"), PATIENCE)).expect("joined");
        assert!(joined.welcome.standing.protected || !is_root(), "{:?}", joined.welcome);
        let canaries = Arc::new(Canaries::start());
        let victim = Victim::start(joined, Arc::clone(&canaries));
        let player = as_user(PLAYER, || join(&daemon.path, &hello(GAME), PATIENCE)).expect("joined");
        let player = Player::start(player);
        let Some(Address::Loopback(metrics)) = metrics else { panic!("it listens at a port") };
        let joins = AtomicU64::new(0);
        let arena = Self { daemon, log, metrics, victim, player, folder, canaries, joins };
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
        let enough = self.victim.drawn() >= scale(FRAMES, FRAMES_LONG) as u64
            && self.joins.load(Ordering::Relaxed) > 0;
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

    /// Whether that text is in the audit by now.
    pub(crate) fn has_recorded(&self, text: &str) -> bool {
        let files = std::fs::read_dir(&self.folder.0).into_iter().flatten();
        let mut texts = files.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok());
        texts.any(|file| file.contains(text))
    }

    pub(crate) fn metrics(&self) -> SocketAddr {
        self.metrics
    }

    /// Joins as the listed app until `over`; returns when each attempt began and ended. It goes before ordinary
    /// programs as the daemon does: what is measured is the daemon, not how busy the machine is.
    fn probe(&self, over: &AtomicBool) -> Vec<Took> {
        let mut joins = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let (began, busy) = (clock::now(), Busy::now());
            match join(self.path(), &hello("listed"), PATIENCE) {
                Ok(joined) => drop(joined),
                Err(error) => panic!("a listed app is kept out: {error}"),
            }
            let until = clock::now();
            joins.push(Took { from: began, until, own: Busy::now().since(&busy) });
            self.joins.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(JOIN_PAUSE);
        }
        joins
    }

    /// The longest of these times, as it was and without what is excused: the time for which the machine
    /// stood still, or for which other programs had the processor of the app itself.
    fn longest(&self, times: &[Took]) -> Waited {
        let waited = times.iter().map(|Took { from, until, own }| {
            let all = until.since(*from);
            Waited { all, excused: self.canaries.stood_still(*from, *until).max(*own).min(all) }
        });
        waited.max_by_key(Waited::own).unwrap_or_default()
    }
}

/// How long something took.
#[derive(Clone, Copy, Default, Debug)]
struct Waited {
    all: Span,
    /// The machine stood still for so much of that, or other programs had the app's processor.
    excused: Span,
}

impl Waited {
    fn own(&self) -> Span {
        Span::from_ns(self.all.as_ns() - self.excused.as_ns())
    }
}

impl std::fmt::Display for Waited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} ms", ms(self.all))?;
        match self.excused {
            Span::ZERO => Ok(()),
            excused => write!(f, " (of these no processor for {:.1} ms)", ms(excused)),
        }
    }
}

fn ms(span: Span) -> f64 {
    span.as_ns() as f64 / 1e6
}

fn hello(name: &str) -> Hello {
    Hello { name: name.to_owned(), ..Hello::default() }
}

/// How the apps that matter fared.
struct Outcome {
    frames: Frames,
    stall: Waited,
    joins: u64,
    join: Waited,
    /// Apps that are supervised, and did not draw for too long.
    silent: serde_json::Value,
    /// Windows in which the game had less than its share.
    shares_missed: u64,
    evidence: Evidence,
}

impl Outcome {
    /// Ends the arena.
    fn of(mut arena: Arena, joins: &[Took]) -> Self {
        let stall = arena.daemon.with(|server| server.longest_stall());
        // What the daemon's own thread waits for counts: it goes before ordinary ones.
        let stall = stall.map(|(from, until)| Took { from, until, own: Span::ZERO });
        let silent = arena.daemon.ask(r#"{"ask": "daemon"}"#)["is"]["silent"].take();
        let domains = arena.daemon.ask(r#"{"ask": "domains"}"#);
        let domains = domains["is"]["domains"].as_array().expect("a list");
        let game = domains.iter().find(|domain| domain["name"] == GAME).expect("it is configured");
        let shares_missed = game["share_missed"].as_u64().expect("it is counted");
        let (stall, join) = (arena.longest(stall.as_slice()), arena.longest(joins));
        let frames = arena.victim.finish();
        arena.player.finish();
        let Arena { daemon, folder, .. } = arena;
        // The rest of the audit is written, as at the end of `takt serve`.
        daemon.with(Server::finish).expect("no recording");
        drop(daemon);
        let evidence = Evidence::read(&folder.0);
        Self { frames, stall, joins: joins.len() as u64, join, silent, shares_missed, evidence }
    }

    fn tell(&self, name: &str, took: Duration) {
        let Self { frames, stall, joins, join, shares_missed, evidence, .. } = self;
        say(&format!(
            "{name}: {} frames, {} lost, {} late while the machine stood still, longest wait {:.1} ms; \
             longest stall {stall}; {joins} joins, {join} at most; {shares_missed} windows below the share; \
             audit {} + {} KiB; {:.1} s",
            frames.drawn,
            frames.lost,
            frames.starved,
            ms(frames.wait_max),
            evidence.main.bytes >> 10,
            evidence.unlisted.bytes >> 10,
            took.as_secs_f64(),
        ));
    }

    /// The apps that matter did not notice.
    fn judge(&self, name: &str) {
        let Self { frames, stall, join, .. } = self;
        if frames.is_urgent {
            assert_eq!(frames.lost, 0, "{name}: {frames:?}");
            let most = frames.drawn / STARVED_SHARE;
            assert!(frames.starved <= most, "{name}: the machine stands still too often: {frames:?}");
            assert_eq!(self.shares_missed, 0, "{name}: the game had less than its share");
        } else {
            say(&format!("{name}: deadlines are not asserted without a real-time priority"));
        }
        assert_eq!(self.silent, serde_json::json!([]), "{name}: supervised apps draw");
        assert!(stall.own() < STALL_MAX, "{name}: the control thread did not look for {stall}");
        assert!(join.own() < JOIN_MAX, "{name}: the listed app waited for {join}");
        self.judge_audit(name);
    }

    /// Everything about listed clients was recorded, whatever the attackers caused.
    fn judge_audit(&self, name: &str) {
        let main = &self.evidence.main;
        assert!(main.about(Event::Joined, "victim").is_some(), "{name}: the first joins are recorded");
        let lost = main.records.iter().find(|record| record.event == Event::Lost);
        assert!(lost.is_none(), "{name}: {lost:?}");
        if is_root() {
            assert_eq!(main.times(Event::Joined, LISTED), 1 + self.joins, "{name}: all joins are recorded");
        }
    }
}

/// Plays an attack, and checks that the apps that matter do not notice.
pub(crate) fn withstand(name: &str, attack: impl FnOnce(&Arena)) -> Evidence {
    withstand_with(name, Setting::default(), attack)
}

/// The same with another setting.
pub(crate) fn withstand_with(name: &str, setting: Setting, attack: impl FnOnce(&Arena)) -> Evidence {
    let (_alone, _first) = (one_at_a_time(), Session::first());
    let began = Instant::now();
    let arena = Arena::start(&format!("attack-{name}"), setting);
    let over = AtomicBool::new(false);
    let joins = std::thread::scope(|scope| {
        let probe = scope.spawn(|| {
            // Where that is denied, it waits longer.
            rustix::process::setpriority_process(None, PROBE_NICE).unwrap_or_default();
            as_user(LISTED, || arena.probe(&over))
        });
        // The probe must end even if the attack does not come to its end.
        let end = EndsProbe(&over);
        attack(&arena);
        while arena.goes_on() && !probe.is_finished() {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(end);
        probe.join().expect("the listed app always gets in")
    });
    let outcome = Outcome::of(arena, &joins);
    outcome.tell(name, began.elapsed());
    outcome.judge(name);
    outcome.evidence
}

struct EndsProbe<'a>(&'a AtomicBool);

impl Drop for EndsProbe<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The session of the suite, which goes before others until this is dropped, where the system allows that.
struct Session {
    /// How it stood before; none if it stays as it is.
    before: Option<String>,
}

impl Session {
    fn first() -> Self {
        let said = std::fs::read_to_string(SESSION).unwrap_or_default();
        let before = said.trim().rsplit_once("nice ").map(|(_, nice)| nice.to_owned());
        Self { before: before.filter(|_| std::fs::write(SESSION, FIRST).is_ok()) }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            std::fs::write(SESSION, before).unwrap_or_default();
        }
    }
}

/// Attacks do not disturb each other.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
