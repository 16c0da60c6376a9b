//! The daemon's control thread: accepts clients and tools, keeps the list, and answers.
//!
//! It serves the control socket and reads the notes of the scheduling loop. It may be slow: apps draw
//! on without it.

mod accept;
mod broken;
mod loop_handle;
mod observers;
mod orders;
mod questions;
mod reload;
mod session;

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use takt_core::{Adjustable, AppId, Broken, Refresh, Span, Time};
use takt_ipc::message::{Hello, Message, Welcome};
use takt_ipc::socket::Peer;
use takt_os::clock;

use super::closer::Closer;
use super::config::Settings;
use super::cpu_latency::CpuLatency;
use super::history::ClientHistory;
use super::members::{Members, Refusal};
use super::quarantine::{Origin, Quarantine};
use super::socket_path::ControlSocket;
use super::vsync::Follower;
use crate::observe::journal::{Entry, Journal, Who};
use crate::observe::recent::{RecentRecords, Scene};
use crate::observe::trace_stream::TraceStreams;
use crate::observe::waits::Waits;
use crate::rt::endpoint::{Endpoint, Fault};
use crate::rt::queues::{Note, Order};
use broken::UNSCHEDULED_PAUSE;
use loop_handle::LoopHandle;
use session::Session;

/// How often notes are read when nothing else happens.
const TURN: Duration = Duration::from_millis(20);

/// The daemon.
#[derive(Debug)]
pub struct Server {
    settings: Settings,
    socket: ControlSocket,
    sessions: Vec<Session>,
    closer: Closer,
    /// No connection is accepted before this.
    accept_from: Time,
    members: Members,
    history: ClientHistory,
    quarantine: Quarantine,
    scheduling: LoopHandle,
    recent: RecentRecords,
    journal: Journal,
    streams: TraceStreams,
    waits: Waits,
    monitor: Option<observers::Monitor>,
    cpu_latency: CpuLatency,
    /// Follows the display, if it reports its refreshes.
    follower: Option<Follower>,
    policy: String,
    /// The grid of the display; its rate may differ a little from the configured one.
    grid: Refresh,
    /// The parameters of the core: from the file, or set by a tool since.
    adjustable: Adjustable,
    own_uid: u32,
    stopping: bool,
    /// The broken invariant of the core, if one broke: nothing is scheduled and no client is admitted.
    broken: Option<Broken>,
}

impl Server {
    /// Listens at `path` and starts the scheduling loop.
    pub fn start(path: PathBuf, settings: Settings) -> std::io::Result<Self> {
        let socket = ControlSocket::bind(path)?;
        let follower = Follower::start(&settings.vsync, settings.core.refresh)?;
        let Some(mut chosen) = takt_policies::by_name(&settings.policy) else {
            let what = format!("no policy {}", settings.policy);
            return Err(std::io::Error::new(ErrorKind::InvalidInput, what));
        };
        chosen.prepare(&settings.core);
        let mut core = settings.core;
        let now = clock::now();
        core.refresh = core.refresh.with_origin(now);
        for (grid, display) in core.more_displays.iter_mut().zip(settings.displays.iter().skip(1)) {
            *grid = display.grid(now);
        }
        Ok(Self {
            scheduling: LoopHandle::start(core, chosen, &settings)?,
            members: Members::new(settings.core.apps_max as usize),
            history: ClientHistory::default(),
            quarantine: Quarantine::default(),
            policy: settings.policy.clone(),
            grid: core.refresh,
            adjustable: core.adjustable(),
            settings: Settings { core, ..settings },
            socket,
            sessions: Vec::new(),
            closer: Closer::start()?,
            accept_from: Time::ZERO,
            recent: RecentRecords::default(),
            journal: Journal::default(),
            streams: TraceStreams::default(),
            waits: Waits::default(),
            monitor: None,
            cpu_latency: CpuLatency::default(),
            follower,
            own_uid: rustix::process::geteuid().as_raw(),
            stopping: false,
            broken: None,
        })
    }

    /// Writes events to `journal` from now on.
    #[must_use]
    pub fn with_journal(mut self, mut journal: Journal) -> Self {
        let denied = self.scheduling.denied.iter();
        journal.tell(&Entry::Serving {
            socket: &self.socket.path().to_string_lossy(),
            policy: &self.policy,
            refresh_hz: f64::from(self.settings.core.refresh.mhz()) / 1000.0,
            without: denied.map(|denied| format!("{} ({})", denied.what, denied.why)).collect(),
        });
        self.journal = journal;
        self
    }

    /// Writes an event of the program around the server.
    pub fn tell(&mut self, entry: &Entry<'_>) {
        self.journal.tell(entry);
    }

    /// For how long the scheduling loop has not turned; it does so all the time.
    pub fn silent_for(&self) -> std::io::Result<Span> {
        self.scheduling.silent_for()
    }

    /// Whether there are no connections, neither of apps nor of tools.
    pub fn is_idle(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Whether a tool stopped it.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Serves until a tool or `stop` ends it.
    pub fn run(&mut self, stop: impl Fn() -> bool) -> std::io::Result<()> {
        while !self.stopping && !stop() {
            self.turn()?;
        }
        Ok(())
    }

    /// Waits for events for a short while and serves them. It fails if the scheduling loop has ended.
    pub fn turn(&mut self) -> std::io::Result<()> {
        self.scheduling.check()?;
        let ready = self.wait()?;
        self.read_notes();
        self.journal.sum_up(&self.members);
        self.follow_display();
        self.publish();
        self.scheduling.orders.send();
        self.scheduling.orders.count();
        for (index, ready) in ready[1..].iter().enumerate() {
            // A client that does not read is cut off after a while.
            let flushed = self.sessions[index].flush(clock::now());
            if *ready && flushed {
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

    /// Which descriptors are ready: the socket, then the sessions.
    fn wait(&self) -> std::io::Result<Vec<bool>> {
        let interest = if self.is_open(clock::now()) { PollFlags::IN } else { PollFlags::empty() };
        let mut fds = vec![PollFd::new(&self.socket, interest)];
        fds.extend(self.sessions.iter().map(|session| PollFd::new(&session.connection, session.interest())));
        let waits = self.sessions.iter().any(|session| session.question.is_some());
        let patience = if waits { Duration::ZERO } else { TURN };
        let timeout = Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().into() };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect())
    }

    /// Reads one message of a session, so that sessions with several take turns with the others.
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
            _ => self.refuse(index, "only the daemon sends that message".to_owned()),
        }
    }

    fn welcome(&mut self, index: usize, hello: &Hello) {
        if let Some(app) = self.sessions[index].app {
            return self.renew(index, app, hello);
        }
        if let Some(reason) = self.why_unscheduled() {
            return self.hang_up(index, reason, Some(UNSCHEDULED_PAUSE));
        }
        let peer = self.sessions[index].peer;
        let origin = Origin::of(peer);
        if let Some(pause) = self.quarantine.pause(&origin, clock::now()) {
            let reason = "it was evicted for a fault; it may come back later".to_owned();
            return self.hang_up(index, reason, Some(pause));
        }
        let settings = self.current();
        let app = match self.members.admit(clock::now(), hello, peer, &settings) {
            Ok(member) => member.app,
            Err(refusal) => return self.refuse_for(index, refusal),
        };
        let Ok((endpoint, fds)) = Endpoint::new(app) else {
            self.members.remove(app);
            let reason = "the daemon has no memory or descriptors left".to_owned();
            return self.refuse_for(index, Refusal::for_now(reason));
        };
        let welcome = self.welcome_message(app);
        let fds = [fds.region.as_fd(), fds.doorbell.as_fd(), self.scheduling.heart.as_fd()];
        let session = &mut self.sessions[index];
        if session.connection.send(&welcome, &fds).is_err() {
            session.closing = true;
            self.members.remove(app);
            return;
        }
        session.app = Some(app);
        self.members.runs(app, origin.executable);
        self.join(app, endpoint);
    }

    fn welcome_message(&self, app: AppId) -> Message {
        let member = self.members.get(app);
        Message::Welcome(Welcome {
            app: app.0,
            admission: member.map(|member| member.admission.clone()).unwrap_or_default(),
            standing: member.map(|member| member.standing()).unwrap_or_default(),
            spin_us: self.settings.spin_us,
        })
    }

    /// Hands a client that was welcomed to the scheduling loop.
    fn join(&mut self, app: AppId, mut endpoint: Endpoint) {
        self.observe_join(app);
        if let Some(member) = self.members.get(app) {
            let (params, max_slice) = (member.params, member.max_slice);
            endpoint.welcomed(member.standing());
            self.scheduling.orders.give(Order::Join { endpoint: Box::new(endpoint), params, max_slice });
            self.journal.tell(&Entry::Joined {
                who: Who::of(member),
                priority: params.priority.0,
                fps: f64::from(member.fps_mhz) / 1000.0,
                admission: &member.admission,
            });
        }
        self.limit_cpu_latency();
    }

    /// Refuses a connection, and says why.
    fn refuse(&mut self, index: usize, reason: String) {
        self.refuse_for(index, Refusal::from(reason));
    }

    /// The same, with when the client may ask again.
    fn refuse_for(&mut self, index: usize, refusal: Refusal) {
        let Peer { pid, uid } = self.sessions[index].peer;
        self.journal.tell(&Entry::Refused { pid, uid, reason: &refusal.reason });
        self.hang_up(index, refusal.reason, refusal.again);
    }

    /// Closes a connection; says why, and when the client may come back if it may.
    fn hang_up(&mut self, index: usize, reason: String, pause: Option<Span>) {
        let again_ms = pause.map(|pause| u32::try_from(pause.as_ns() / 1_000_000 + 1).unwrap_or(u32::MAX));
        let session = &mut self.sessions[index];
        // It is closed either way.
        session.connection.send(&Message::Refused { reason, again_ms }, &[]).unwrap_or_default();
        session.closing = true;
    }

    /// The settings with the changes that tools made since the file was read.
    fn current(&self) -> Settings {
        let core = self.settings.core.adjusted(self.adjustable);
        Settings { core, policy: self.policy.clone(), ..self.settings.clone() }
    }

    fn scene(&self) -> Scene<'_> {
        let stats = self.scheduling.stats;
        Scene { members: &self.members, policy: &self.policy, refresh: self.grid, stats }
    }

    fn order(&mut self, order: Order) {
        self.scheduling.orders.give(order);
    }

    fn read_notes(&mut self) {
        while let Ok(note) = self.scheduling.notes.pop() {
            match note {
                Note::Record(at, record) => {
                    self.journal.watch(&record);
                    self.happened(at, record);
                }
                Note::Gone { endpoint, fault } => self.gone(endpoint.app, fault),
                Note::Protected { app, protected } => self.judged(app, protected),
                Note::Replaced(policy) => drop(policy),
                Note::Counted(stats) => self.scheduling.stats = stats,
                Note::Turned(stats) => self.scheduling.loop_stats = stats,
            }
        }
    }

    /// A client is not scheduled any more.
    fn gone(&mut self, app: AppId, fault: Option<Fault>) {
        let fault = fault.map(|fault| fault.to_string());
        let mut pause = None;
        if let Some(member) = self.members.remove(app) {
            let who = Who::of(&member);
            if let Some(fault) = &fault {
                let span = self.quarantine.blame(member.origin(), clock::now());
                self.journal.tell(&Entry::Fault { who, fault, pause_s: span.as_ns() / 1_000_000_000 });
                pause = Some(span);
            } else {
                self.journal.tell(&Entry::Left { who });
            }
            self.history.add(clock::now(), member);
        }
        if let Some(index) = self.sessions.iter().position(|session| session.app == Some(app)) {
            self.sessions[index].app = None;
            let unscheduled = self.why_unscheduled();
            pause = pause.or_else(|| unscheduled.is_some().then_some(UNSCHEDULED_PAUSE));
            let reason = fault.or(unscheduled).unwrap_or_else(|| "it has left".to_owned());
            self.hang_up(index, reason, pause);
        }
        self.limit_cpu_latency();
    }

    fn close_sessions(&mut self) {
        let closed: Vec<Session> = self.sessions.extract_if(.., |session| session.closing).collect();
        for app in closed.iter().filter_map(|session| session.app) {
            self.members.leaves(app);
            self.order(Order::Leave { app });
        }
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
