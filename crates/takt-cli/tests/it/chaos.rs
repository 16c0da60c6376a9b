//! Clients and daemon are killed, stopped and continued at random. The others go on, and in the end
//! the daemon has kept nothing: no slot, no descriptor, no memory.
//!
//! `TAKT_SLOW_TESTS=1` plays a thousand rounds, `TAKT_CHAOS_SEED` other ones, and `TAKT_SOAK_S` says
//! how long the soak with 17 apps takes (30 minutes with slow tests).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use takt_client::Patience;
use takt_core::{GroupKind, Span};
use takt_gl::session::session;
use takt_gl::settings;
use takt_ipc::client::join;
use takt_ipc::message::{Hello, Message};
use takt_ipc::socket::Connection;
use takt_os::clock;
use takt_rng::Rng;

/// Long enough for any machine; nothing waits this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest that a client may wait for a grant, with all that happens to the daemon and to others, in
/// milliseconds: a frame at 60 Hz, and the time after which the daemon gives up on a group.
const BLOCKED_MAX: u64 = 17 + 500;
/// Tells a process of this program that it is a client, and where it shows how far it has come.
const PROGRESS: &str = "TAKT_CHAOS_PROGRESS";

/// What clients do: request grants as programs with Takt underneath do, until they are killed. As a
/// test of its own it has nothing to do.
#[test]
fn client() {
    let Some(path) = std::env::var_os(PROGRESS) else {
        return;
    };
    let progress = File::create(path).expect("made");
    let (session, work, time) = (session(), Span::from_us(100), Ticks::start());
    let mut longest = 0;
    for frame in 1u64.. {
        for kind in [GroupKind::Draw, GroupKind::Draw, GroupKind::Swap] {
            let (began, swap) = (time.now(), kind == GroupKind::Swap);
            let grant =
                if swap { session.ask(GroupKind::Swap, work) } else { session.ask_to_fill(work, work) };
            longest = longest.max(time.now() - began);
            std::thread::sleep(Duration::from_nanos(work.as_ns()));
            if let Some(grant) = grant {
                session.complete(grant, clock::now(), work);
            }
        }
        let shown = [frame.to_le_bytes(), longest.to_le_bytes()].concat();
        progress.write_all_at(&shown, 0).expect("written");
    }
}

/// Counts milliseconds in which this process could run: what it waits for the machine, or because
/// the test stopped it, is no time.
struct Ticks(Arc<AtomicU64>);

impl Ticks {
    fn start() -> Self {
        let count = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&count);
        let tick = move || {
            loop {
                std::thread::sleep(Duration::from_millis(1));
                counted.fetch_add(1, Ordering::Relaxed);
            }
        };
        std::thread::Builder::new().name("ticks".to_owned()).spawn(tick).expect("a thread");
        Self(count)
    }

    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A process that ends with the test.
struct Process {
    child: Child,
    stopped: bool,
}

impl Process {
    fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: command.spawn().expect("it starts"), stopped: false }
    }

    fn signal(&mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is there");
        self.stopped = signal == Signal::STOP;
    }

    /// Kills it, and comes back when nothing of it is left: that takes long on a busy machine.
    fn kill(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().ok();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

struct Client {
    process: Process,
    progress: PathBuf,
}

impl Client {
    fn start(folder: &Path, socket: &Path, number: u64, patience_ms: &str) -> Self {
        let progress = folder.join(format!("client-{number}"));
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "chaos::client"]).env(PROGRESS, &progress).env(settings::SOCKET, socket);
        command
            .env(settings::NAME, format!("client{number}"))
            .env(settings::PRIORITY, (number % 50).to_string())
            .env(Patience::VARIABLE, patience_ms);
        Self { process: Process::start(&mut command), progress }
    }

    /// Frames so far, and the longest wait for a grant.
    fn shown(&self) -> (u64, u64) {
        let bytes = std::fs::read(&self.progress).unwrap_or_default();
        let word =
            |at: usize| bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map(u64::from_le_bytes);
        (word(0).unwrap_or(0), word(8).unwrap_or(0))
    }

    /// Waits until it has drawn some more frames.
    fn goes_on(&self, why: &str) {
        let (before, until) = (self.shown().0, Instant::now() + PATIENCE);
        while self.shown().0 < before + 3 {
            assert!(Instant::now() < until, "{} hangs: {why}", self.progress.display());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

struct World {
    folder: PathBuf,
    socket: PathBuf,
    daemon: Process,
    clients: Vec<Client>,
    started: u64,
    rng: Rng,
    /// The longest wait of a client for a grant.
    longest: u64,
    /// How long clients bear a silent daemon, if not as they usually do.
    patience_ms: &'static str,
    /// Frames of clients that are gone.
    frames_before: u64,
}

impl World {
    fn new(name: &str, seed: u64) -> Self {
        Self::of(name, seed, "")
    }

    /// One in which no side loses patience with another that a busy machine keeps from answering.
    fn patient(name: &str) -> Self {
        Self::of(name, 1, "60000")
    }

    fn of(name: &str, seed: u64, patience_ms: &'static str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chaos-{name}"));
        std::fs::remove_dir_all(&folder).unwrap_or_default();
        std::fs::create_dir_all(&folder).expect("a folder");
        let socket = folder.join("socket");
        let config = folder.join("takt.toml");
        let patience =
            if patience_ms.is_empty() { "" } else { &format!("completion_timeout_ms = {patience_ms}") };
        std::fs::write(config, patience).expect("our own file");
        let daemon = Self::start_daemon(&socket);
        let rng = Rng::seeded(seed);
        Self {
            folder,
            socket,
            daemon,
            clients: Vec::new(),
            started: 0,
            rng,
            longest: 0,
            patience_ms,
            frames_before: 0,
        }
    }

    fn start_daemon(socket: &Path) -> Process {
        let mut takt = Command::new(env!("CARGO_BIN_EXE_takt"));
        takt.arg("serve").arg("--config").arg(socket.with_file_name("takt.toml"));
        let mut daemon = Process::start(takt.arg("--socket").arg(socket));
        let until = Instant::now() + PATIENCE;
        while Connection::connect(socket, PATIENCE).is_err() {
            let ended = daemon.child.try_wait().expect("our child");
            assert!(ended.is_none(), "the daemon ended: {ended:?}");
            assert!(Instant::now() < until, "the daemon does not answer");
            std::thread::sleep(Duration::from_millis(2));
        }
        daemon
    }

    fn start_client(&mut self) {
        self.clients.push(Client::start(&self.folder, &self.socket, self.started, self.patience_ms));
        self.started += 1;
    }

    fn draw(&mut self, below: usize) -> usize {
        self.rng.index(below)
    }

    /// Something bad happens; what.
    fn strike(&mut self) -> String {
        let at = self.draw(self.clients.len());
        match self.draw(8) {
            0 | 1 => {
                let dead = self.clients.swap_remove(at);
                self.note(&dead);
                self.start_client();
                "a client was killed".to_owned()
            }
            2..=4 => {
                let client = &mut self.clients[at];
                let signal = if client.process.stopped { Signal::CONT } else { Signal::STOP };
                client.process.signal(signal);
                format!("a client got {signal:?}")
            }
            5 => {
                self.daemon.kill();
                self.daemon = Self::start_daemon(&self.socket);
                "the daemon was killed".to_owned()
            }
            6 => {
                self.daemon.kill();
                self.all_go_on("there is no daemon");
                self.daemon = Self::start_daemon(&self.socket);
                "the daemon came back".to_owned()
            }
            _ => {
                self.daemon.signal(Signal::STOP);
                self.all_go_on("the daemon is stopped");
                self.daemon.signal(Signal::CONT);
                "the daemon goes on".to_owned()
            }
        }
    }

    fn note(&mut self, client: &Client) {
        self.longest = self.longest.max(client.shown().1);
    }

    fn all_go_on(&self, why: &str) {
        for client in self.clients.iter().filter(|client| !client.process.stopped) {
            client.goes_on(why);
        }
    }

    /// What the daemon's process has open and mapped for clients, and the memory it uses in kB.
    fn belongings(&self) -> (usize, usize, u64) {
        let process = Path::new("/proc").join(self.daemon.child.id().to_string());
        let open = std::fs::read_dir(process.join("fd")).map_or(0, Iterator::count);
        let maps = std::fs::read_to_string(process.join("maps")).unwrap_or_default();
        (open, maps.matches("memfd:takt-client").count(), resident_kb(&self.daemon.child))
    }

    /// A client ends, and another one comes.
    fn replace_one(&mut self) {
        let old = self.clients.swap_remove(0);
        self.frames_before += old.shown().0;
        drop(old);
        self.start_client();
    }

    /// Frames of all clients so far.
    fn frames(&self) -> u64 {
        self.frames_before + self.clients.iter().map(|client| client.shown().0).sum::<u64>()
    }

    /// Memory of all clients together.
    fn clients_kb(&self) -> u64 {
        self.clients.iter().map(|client| resident_kb(&client.process.child)).sum()
    }

    /// How many apps are scheduled.
    fn scheduled(&self) -> usize {
        let connection = Connection::connect(&self.socket, PATIENCE).expect("connect");
        connection.send(&Message::Ask { text: r#"{"ask": "apps"}"#.to_owned() }, &[]).expect("sent");
        let Message::Answer { text, more: false } =
            connection.receive().expect("whole").expect("there").message
        else {
            panic!("a short answer");
        };
        let answer: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        answer["is"].as_array().expect("a list").len()
    }

    fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so(self) {
            let (open, mapped, _) = self.belongings();
            assert!(Instant::now() < until, "not {what}: {open} descriptors, {mapped} regions");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

fn is_slow() -> bool {
    std::env::var_os("TAKT_SLOW_TESTS").is_some()
}

#[test]
#[expect(clippy::print_stderr, reason = "how near it came is for those who want to know")]
fn the_others_go_on_and_nothing_is_left_behind() {
    let seed = number("TAKT_CHAOS_SEED").unwrap_or(42);
    let mut world = World::new("rounds", seed);
    // One that answers has opened all that it needs, and perhaps the connection of the tool that asked.
    assert_eq!(world.scheduled(), 0);
    let (open, mapped, _) = world.belongings();
    assert_eq!(mapped, 0);
    (0..5).for_each(|_| world.start_client());
    world.all_go_on("nothing has happened yet");
    for round in 0..if is_slow() { 1_000 } else { 25 } {
        let what = world.strike();
        world.all_go_on(&format!("seed {seed}, round {round}: {what}"));
    }
    // Stopped clients go on, too.
    for client in world.clients.iter_mut().filter(|client| client.process.stopped) {
        client.process.signal(Signal::CONT);
    }
    world.all_go_on("all were continued");
    for client in std::mem::take(&mut world.clients) {
        world.note(&client);
    }
    world.until("empty", |world| world.scheduled() == 0);
    world.until("as at the start", |world| {
        let (now_open, now_mapped, _) = world.belongings();
        now_open <= open && now_mapped == 0
    });
    eprintln!("longest wait for a grant: {} ms, of {BLOCKED_MAX} ms", world.longest);
    assert!(world.longest <= BLOCKED_MAX, "seed {seed}: a client waited {} ms for a grant", world.longest);
}

/// What joins leave behind would be seen in the end, whatever the machine does meanwhile.
#[test]
fn thousands_come_and_go_and_nothing_of_them_stays() {
    let world = World::new("guests", 1);
    let hello = Hello { name: "guest".to_owned(), ..Hello::default() };
    let come_and_go = |count: usize| {
        for _ in 0..count {
            drop(join(&world.socket, &hello, PATIENCE).expect("joined"));
        }
        world.until("empty", |world| world.scheduled() == 0 && world.belongings().1 == 0);
        world.belongings()
    };
    // Memory is taken once, for as many as are there at once and for what is remembered of them.
    let guests = 6_000;
    let (open, _, resident) = come_and_go(guests);
    let (now_open, _, now_resident) = come_and_go(guests);
    assert!(now_open <= open + 1, "{open} descriptors became {now_open}");
    // The records of the last 30 s take some 0.8 kB of each; its shared memory would be 32.
    let limit = resident + 2 * u64::try_from(guests).unwrap_or(0);
    assert!(now_resident <= limit, "{resident} kB became {now_resident} kB");
}

fn resident_kb(process: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    resident.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

/// What the daemon and its clients hold.
#[derive(Clone, Copy, Debug)]
struct Held {
    open: usize,
    daemon_kb: u64,
    clients_kb: u64,
    frames: u64,
}

impl Held {
    fn of(world: &World) -> Self {
        let (open, _, daemon_kb) = world.belongings();
        Self { open, daemon_kb, clients_kb: world.clients_kb(), frames: world.frames() }
    }
}

/// What the daemon's records of a frame take at most. Some 8 kB were measured: each group is submitted, held for
/// several reasons, dispatched and complete, in a buffer that doubles.
const FRAME_KB: u64 = 12;

#[test]
#[expect(clippy::print_stderr, reason = "for those who run it for long")]
fn seventeen_apps_for_a_long_time_take_no_more_memory() {
    let seconds = number("TAKT_SOAK_S").unwrap_or_else(|| if is_slow() { 1_800 } else { 3 });
    let mut world = World::patient("soak");
    (0..17).for_each(|_| world.start_client());
    world.all_go_on("they begin");
    let all = |world: &World| world.scheduled() == 17 && world.belongings().1 == 17;
    world.until("all there", all);
    let began = Instant::now();
    let (mut then, mut full, mut last) = (Held::of(&world), false, String::new());
    while began.elapsed() < Duration::from_secs(seconds) {
        world.replace_one();
        world.until("all there", all);
        world.all_go_on("they run");
        let now = Held::of(&world);
        // The daemon keeps the records of the last 30 seconds; then its memory must be flat.
        if !full && began.elapsed() > Duration::from_secs(120) {
            (then, full) = (now, true);
        }
        let records_kb = if full { 0 } else { (now.frames - then.frames) * FRAME_KB };
        // Connections of tools come and go; a fifth is what a busy allocator may keep.
        assert!(now.open.abs_diff(then.open) <= 2, "{then:?} became {now:?}");
        assert!(now.daemon_kb <= then.daemon_kb + then.daemon_kb / 5 + records_kb, "{then:?} became {now:?}");
        assert!(now.clients_kb <= then.clients_kb + then.clients_kb / 5, "{then:?} became {now:?}");
        last = format!("after {} s: {then:?} became {now:?}", began.elapsed().as_secs());
    }
    eprintln!("{last}");
}
