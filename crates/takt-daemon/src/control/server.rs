//! The daemon: accepts clients and tools, keeps the list, and answers.
//!
//! One thread serves the control socket and reads what the scheduling loop tells. It may take its
//! time: apps draw on without it.

mod accept;
mod broken;
mod orders;
mod questions;
mod reload;
mod session;
mod watched;

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use rtrb::Consumer;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use takt_core::{Adjustable, AppId, Broken, Refresh, Span, Stats, Time};
use takt_ipc::message::{Hello, Message, Welcome};
use takt_ipc::socket::Peer;
use takt_os::clock;

use crate::control::closer::Closer;
use crate::control::config::Settings;
use crate::control::cpu_latency::Awake;
use crate::control::history::Departed;
use crate::control::members::Members;
use crate::control::quarantine::Quarantine;
use crate::control::socket_path::Place;
use crate::control::vsync::Follower;
use crate::observe::journal::{Entry, Journal, Who};
use crate::observe::recent::{Log, Scene};
use crate::observe::trace_stream::Feeds;
use crate::observe::waits::Waits;
use crate::rt::endpoint::{Fault, Seat};
use crate::rt::engine::{Engine, Note, Order, Turns};
use crate::rt::realtime::{self, Denied};
use crate::rt::thread::Loop;
use broken::FREE_PAUSE;
use orders::Orders;
use session::Session;

/// How often notes are read when nothing else happens.
const TURN: Duration = Duration::from_millis(20);

/// The daemon.
#[derive(Debug)]
pub struct Server {
    settings: Settings,
    place: Place,
    sessions: Vec<Session>,
    closer: Closer,
    /// Nothing is accepted before this.
    deaf_until: Time,
    members: Members,
    departed: Departed,
    quarantine: Quarantine,
    orders: Orders,
    notes: Consumer<Note>,
    heart: std::os::fd::OwnedFd,
    log: Log,
    journal: Journal,
    feeds: Feeds,
    awake: Awake,
    waits: Waits,
    monitor: Option<watched::Monitor>,
    /// Who listens to the display, if anybody does.
    follower: Option<Follower>,
    policy: String,
    /// When the display refreshes, as it tells; its rate may differ a little from the configured one.
    grid: Refresh,
    /// What the core runs with: from the file, or set by hand since.
    adjustable: Adjustable,
    scheduler: Option<std::thread::JoinHandle<Engine>>,
    own_uid: u32,
    stopping: bool,
    denied: Vec<Denied>,
    /// The core's counters since the start, a moment ago.
    stats: Stats,
    /// Those of the loop.
    turns: Turns,
    /// The core has contradicted itself: nothing is scheduled, and nobody let in.
    broken: Option<Broken>,
}

impl Server {
    /// Listens at `path` and starts the scheduling loop.
    pub fn start(path: PathBuf, settings: Settings) -> std::io::Result<Self> {
        let place = Place::take(path)?;
        let follower = Follower::start(&settings.vsync, settings.core.refresh)?;
        let Some(mut chosen) = takt_policies::by_name(&settings.policy) else {
            return Err(std::io::Error::new(
                ErrorKind::InvalidInput,
                format!("no policy {}", settings.policy),
            ));
        };
        chosen.prepare(&settings.core);
        let mut core = settings.core;
        let now = clock::now();
        core.refresh = core.refresh.with_origin(now);
        for (grid, display) in core.more_displays.iter_mut().zip(settings.displays.iter().skip(1)) {
            *grid = display.grid(now);
        }
        let (engine, office) = Engine::new(core, chosen)?;
        let heart = engine.heart().as_fd().try_clone_to_owned()?;
        let scheduling = Loop::new(engine, Span::from_us(settings.loop_spin_us.into()))?;
        let orders = Orders::new(office.orders, scheduling.waker());
        let (processor, wake_us) = (settings.processor, settings.wake_us);
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let scheduler = std::thread::Builder::new().name("takt-scheduler".to_owned()).spawn(move || {
            let denied = realtime::claim(processor, wake_us);
            // Nobody reads any more if the server gave up meanwhile.
            tell.send(denied).unwrap_or_default();
            scheduling.run()
        })?;
        let denied = told.recv().unwrap_or_default();
        Ok(Self {
            members: Members::new(settings.core.apps_max as usize),
            departed: Departed::default(),
            quarantine: Quarantine::default(),
            policy: settings.policy.clone(),
            grid: core.refresh,
            adjustable: core.adjustable(),
            settings: Settings { core, ..settings },
            place,
            sessions: Vec::new(),
            closer: Closer::start()?,
            deaf_until: Time::ZERO,
            orders,
            notes: office.notes,
            heart,
            log: Log::default(),
            journal: Journal::default(),
            feeds: Feeds::default(),
            awake: Awake::default(),
            waits: Waits::default(),
            monitor: None,
            follower,
            scheduler: Some(scheduler),
            own_uid: rustix::process::geteuid().as_raw(),
            stopping: false,
            denied,
            stats: Stats::default(),
            turns: Turns::default(),
            broken: None,
        })
    }

    /// Tells from now on what happens.
    #[must_use]
    pub fn with_journal(mut self, mut journal: Journal) -> Self {
        let without = self.denied.iter().map(|right| format!("{} ({})", right.what, right.why));
        journal.tell(&Entry::Serving {
            socket: &self.place.path().to_string_lossy(),
            policy: &self.policy,
            refresh_hz: f64::from(self.settings.core.refresh.mhz()) / 1000.0,
            without: without.collect(),
        });
        self.journal = journal;
        self
    }

    /// Tells something that happened around the server.
    pub fn tell(&mut self, entry: &Entry<'_>) {
        self.journal.tell(entry);
    }

    /// For how long the scheduling loop has not turned; it does so all the time.
    pub fn silent_for(&self) -> std::io::Result<Span> {
        Ok(takt_ipc::beat::Pulse::open(self.heart.as_fd())?.silent_for(clock::now()))
    }

    /// Whether nobody is connected: neither apps nor tools.
    pub fn is_idle(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Whether a tool told it to stop.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Serves until told to stop by a tool or by `stop`.
    pub fn run(&mut self, stop: impl Fn() -> bool) -> std::io::Result<()> {
        while !self.stopping && !stop() {
            self.turn()?;
        }
        Ok(())
    }

    /// Waits for something to happen, for a short while, and serves it. It fails where there is
    /// nothing to serve: without the scheduling loop.
    pub fn turn(&mut self) -> std::io::Result<()> {
        self.check_loop()?;
        let open = self.is_open(clock::now());
        let mut fds = vec![PollFd::new(&self.place, if open { PollFlags::IN } else { PollFlags::empty() })];
        fds.extend(self.sessions.iter().map(|session| PollFd::new(&session.connection, session.interest())));
        let waits = self.sessions.iter().any(|session| session.question.is_some());
        let patience = if waits { Duration::ZERO } else { TURN };
        let timeout = Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().into() };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        self.read_notes();
        self.journal.sum_up(&self.members);
        self.follow_display();
        self.show();
        self.orders.send();
        self.orders.count();
        for (index, ready) in ready[1..].iter().enumerate() {
            // Whoever does not read is not waited for without end.
            let heard = self.sessions[index].flush(clock::now());
            if *ready && heard {
                self.serve(index);
            }
        }
        self.close_sessions();
        self.answer_one();
        if ready[0] {
            self.accept();
        }
        Ok(())
    }

    fn check_loop(&self) -> std::io::Result<()> {
        if self.scheduler.as_ref().is_some_and(std::thread::JoinHandle::is_finished) {
            // A panic has said what happened.
            Err(std::io::Error::other("the scheduling loop has ended, and nothing is scheduled any more"))
        } else if self.orders.are_stuck() {
            Err(std::io::Error::other("the scheduling loop hangs: it takes no orders any more"))
        } else {
            Ok(())
        }
    }

    /// Reads one message of a session: whoever has more to say takes turns with the others.
    fn serve(&mut self, index: usize) {
        let session = &mut self.sessions[index];
        match session.connection.receive_message() {
            Ok(Some(message)) => {
                session.heard = clock::now();
                self.handle(index, message);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::InvalidInput) => {
                self.refuse(index, error.to_string());
            }
            Ok(None) | Err(_) => session.closing = true,
        }
    }

    fn handle(&mut self, index: usize, message: Message) {
        match message {
            Message::Hello(hello) => self.welcome(index, &hello),
            Message::Ask { text } => self.asked(index, &text),
            _ => self.refuse(index, "only the daemon says that".to_owned()),
        }
    }

    fn welcome(&mut self, index: usize, hello: &Hello) {
        if let Some(app) = self.sessions[index].app {
            return self.renew(index, app, hello);
        }
        if let Some(reason) = self.why_free() {
            return self.hang_up(index, reason, Some(FREE_PAUSE));
        }
        let peer = self.sessions[index].peer;
        if let Some(pause) = self.quarantine.pause(peer, clock::now()) {
            return self.hang_up(
                index,
                "it was let go for a fault; it may come back later".to_owned(),
                Some(pause),
            );
        }
        let settings = self.current();
        let member = match self.members.admit(clock::now(), hello, peer, &settings) {
            Ok(member) => member,
            Err(reason) => return self.refuse(index, reason),
        };
        let (app, admission) = (member.app, member.admission.clone());
        let (params, max_slice, standing) = (member.params, member.max_slice, member.standing());
        let Ok((mut seat, ends)) = Seat::new(app) else {
            self.members.remove(app);
            return self.refuse(index, "the daemon has no memory or descriptors left".to_owned());
        };
        let welcome =
            Message::Welcome(Welcome { app: app.0, admission, standing, spin_us: self.settings.spin_us });
        let fds = [ends.region.as_fd(), ends.doorbell.as_fd(), self.heart.as_fd()];
        let session = &mut self.sessions[index];
        if session.connection.send(&welcome, &fds).is_err() {
            session.closing = true;
            self.members.remove(app);
            return;
        }
        session.app = Some(app);
        seat.welcomed(standing);
        self.meet(app);
        self.order(Order::Join { seat: Box::new(seat), params, max_slice });
        if let Some(member) = self.members.get(app) {
            self.journal.tell(&Entry::Joined {
                who: Who::of(member),
                priority: params.priority.0,
                fps: f64::from(member.fps_mhz) / 1000.0,
                admission: &member.admission,
            });
        }
        self.keep_awake();
    }

    /// Turns somebody away.
    fn refuse(&mut self, index: usize, reason: String) {
        let Peer { pid, uid } = self.sessions[index].peer;
        self.journal.tell(&Entry::Refused { pid, uid, reason: &reason });
        self.hang_up(index, reason, None);
    }

    /// Says why, and when it may come back if it may.
    fn hang_up(&mut self, index: usize, reason: String, pause: Option<Span>) {
        let again_ms = pause.map(|pause| u32::try_from(pause.as_ns() / 1_000_000 + 1).unwrap_or(u32::MAX));
        let session = &mut self.sessions[index];
        // It is closed either way.
        session.connection.send(&Message::Refused { reason, again_ms }, &[]).unwrap_or_default();
        session.closing = true;
    }

    /// The settings as they are now: with what was set by hand since the file was read.
    fn current(&self) -> Settings {
        let core = self.settings.core.adjusted(self.adjustable);
        Settings { core, policy: self.policy.clone(), ..self.settings.clone() }
    }

    fn scene(&self) -> Scene<'_> {
        Scene { members: &self.members, policy: &self.policy, refresh: self.grid, stats: self.stats }
    }

    fn order(&mut self, order: Order) {
        self.orders.give(order);
    }

    fn read_notes(&mut self) {
        while let Ok(note) = self.notes.pop() {
            match note {
                Note::Record(at, record) => {
                    self.journal.watch(&record);
                    self.happened(at, record);
                }
                Note::Gone { seat, fault } => self.gone(seat.app, fault),
                Note::Protected { app, protected } => self.judged(app, protected),
                Note::Replaced(policy) => drop(policy),
                Note::Counted(stats) => self.stats = stats,
                Note::Turned(turns) => self.turns = turns,
            }
        }
    }

    /// A client is not scheduled any more.
    fn gone(&mut self, app: AppId, fault: Option<Fault>) {
        let mut pause = None;
        if let Some(member) = self.members.remove(app) {
            let who = Who::of(&member);
            match fault.map(|fault| fault.to_string()) {
                Some(fault) => {
                    let span = self.quarantine.blame(member.peer(), clock::now());
                    self.journal.tell(&Entry::Fault {
                        who,
                        fault: &fault,
                        pause_s: span.as_ns() / 1_000_000_000,
                    });
                    pause = Some(span);
                }
                None => self.journal.tell(&Entry::Left { who }),
            }
            self.departed.add(clock::now(), member);
        }
        if let Some(index) = self.sessions.iter().position(|session| session.app == Some(app)) {
            self.sessions[index].app = None;
            let free = self.why_free();
            pause = pause.or_else(|| free.is_some().then_some(FREE_PAUSE));
            let left = || free.unwrap_or_else(|| "it has left".to_owned());
            let reason = fault.map_or_else(left, |fault| fault.to_string());
            self.hang_up(index, reason, pause);
        }
        self.keep_awake();
    }

    fn close_sessions(&mut self) {
        let mut left = Vec::new();
        self.sessions.retain(|session| {
            if session.closing {
                left.extend(session.app);
            }
            !session.closing
        });
        for app in left {
            self.members.leaves(app);
            self.order(Order::Leave { app });
        }
    }
}

impl Server {
    /// Nobody is scheduled any more.
    fn end_loop(&mut self) {
        if let Some(scheduler) = self.scheduler.take() {
            self.order(Order::Stop);
            // One that takes no orders would be waited for without end.
            if self.orders.send() || scheduler.is_finished() {
                // A loop that panicked has said so itself.
                drop(scheduler.join());
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_does_not_outlive_its_loop() {
        let path = std::env::temp_dir().join(format!("takt-loopless-{}", std::process::id()));
        let mut server = Server::start(path, Settings::default()).expect("a daemon");
        server.turn().expect("it serves");
        server.order(Order::Stop);
        let error = loop {
            if let Err(error) = server.turn() {
                break error;
            }
        };
        assert!(error.to_string().starts_with("the scheduling loop has ended"), "{error}");
    }

    #[test]
    fn deadlines_are_judged_by_the_display() {
        let path = std::env::temp_dir().join(format!("takt-display-{}", std::process::id()));
        let mut server = Server::start(path, Settings::default()).expect("a daemon");
        let display = Refresh::from_mhz(59_940).expect("a rate").with_origin(clock::now());
        server.follow(display);
        assert_eq!(server.scene().refresh, display);
        let changes = server.apply(Settings::default());
        assert!(changes.is_empty(), "the file is the same: {changes:?}");
        assert_eq!(server.scene().refresh, display, "and so is the display");
    }
}
