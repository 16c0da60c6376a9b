//! The daemon's control thread: accepts clients and tools, keeps the list, and answers.
//!
//! It serves the control socket and reads the notes of the scheduling loop. It may be slow: apps draw
//! on without it.

mod accept;
mod analysts;
mod audited;
mod broken;
mod displays;
mod distrust;
mod fair;
mod hashes;
mod joining;
mod kin;
mod limits;
mod loop_handle;
mod observers;
mod orders;
mod questions;
mod reload;
mod serving;
mod session;
mod shares;
mod stalls;
mod statements;
mod steering;
mod supervise;
mod vehicle;
mod verdict;

use std::io::ErrorKind;
use std::path::PathBuf;

use takt_audit::{Decision, Event};
use takt_core::belief::Uncut;
use takt_core::{Adjustable, AppId, Broken, Estimate, Refresh, Span, Time};
use takt_ipc::message::Message;
use takt_os::clock;

use super::closer::Closer;
use super::config::Settings;
use super::cpu_latency::CpuLatency;
use super::early_ends::EarlyEnds;
use super::evicted::Evicted;
use super::history::ClientHistory;
use super::limits::Given;
use super::members::Members;
use super::quarantine::Quarantine;
use super::restarter::Restarter;
use super::rights::ShareServer;
use super::shares::ShareAccounts;
use super::socket_path::ControlSocket;
use super::supervision::Supervisor;
use super::vsync::Follower;
use crate::observe::audit::Audit;
use crate::observe::journal::{Entry, Journal, Who};
use crate::observe::recent::{RecentRecords, Scene};
use crate::observe::trace_stream::TraceStreams;
use crate::observe::waits::Waits;
use crate::rt::endpoint::Fault;
use crate::rt::queues::{Note, Order};
use analysts::Analysts;
use broken::UNSCHEDULED_PAUSE;
use fair::Fair;
use hashes::Hashes;
use loop_handle::LoopHandle;
use session::Session;
use stalls::Stalls;
use statements::Surroundings;
use vehicle::Vehicle;

/// How long one turn serves connections; the rest waits for the next turn, which begins with those of
/// users on whom least time was spent.
const BUSY_MAX: Span = Span::from_ms(5);
/// Notes that are read between two looks at the clock.
const NOTES_AT_ONCE: usize = 64;

/// What an app is told that a tool sent away.
const EVICTED: &str = "a tool evicted it; it may come back later";

/// The daemon.
#[derive(Debug)]
pub struct Server {
    settings: Settings,
    socket: ControlSocket,
    sessions: Vec<Session>,
    /// Connections that were accepted since the start.
    accepted: u64,
    fair: Fair,
    analysts: Analysts,
    closer: Closer,
    /// No connection is accepted before this.
    accept_from: Time,
    members: Members,
    history: ClientHistory,
    quarantine: Quarantine,
    evicted: Evicted,
    supervisor: Supervisor,
    restarter: Restarter,
    early_ends: EarlyEnds,
    /// Contradictions since the start.
    early_ends_found: u64,
    /// Origins of apps whose ends are not believed.
    distrusted: Quarantine,
    /// The name and domain of the app that does not draw while others stand still for it.
    degraded: Option<(String, String)>,
    /// The minimum shares that the core has servers for, and what their domains had.
    share_servers: Vec<ShareServer>,
    shares: ShareAccounts,
    scheduling: LoopHandle,
    recent: RecentRecords,
    journal: Journal,
    audit: Audit,
    streams: TraceStreams,
    waits: Waits,
    monitor: observers::Monitor,
    cpu_latency: CpuLatency,
    /// Follows the display, if it reports its refreshes.
    follower: Option<Follower>,
    /// Displays whose owner reports when they refresh.
    reported: Vec<displays::Reported>,
    policy: String,
    /// The grid of the display; its rate may differ a little from the configured one.
    grid: Refresh,
    /// The parameters of the core: from the file, set by a tool since, or as they follow from the contracts.
    adjustable: Adjustable,
    /// Which of them a tool set.
    given: Given,
    stopping: bool,
    vehicle: Vehicle,
    hashes: Hashes,
    stalls: Stalls,
    /// Its thread goes before ordinary ones, or may not.
    hurried: bool,
    /// The broken invariant of the core, if one broke: nothing is scheduled and no client is admitted.
    broken: Option<Broken>,
    /// What "guaranteed" depends on beyond the core.
    surroundings: Surroundings,
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
        let surroundings = Surroundings::new(&settings);
        let mut core = settings.core;
        let now = clock::now();
        core.refresh = core.refresh.with_origin(now);
        for (grid, display) in core.more_displays.iter_mut().zip(settings.displays.iter().skip(1)) {
            *grid = display.grid(now);
        }
        let mut server = Self {
            scheduling: LoopHandle::start(core, chosen, &settings)?,
            members: Members::new(settings.slots()),
            history: ClientHistory::default(),
            quarantine: Quarantine::default(),
            evicted: Evicted::default(),
            supervisor: supervised(&settings),
            restarter: Restarter::start(settings.systemctl.clone())?,
            early_ends: EarlyEnds::default(),
            early_ends_found: 0,
            distrusted: Quarantine::default(),
            degraded: None,
            share_servers: Vec::new(),
            shares: ShareAccounts::default(),
            policy: settings.policy.clone(),
            grid: core.refresh,
            adjustable: core.adjustable(),
            given: Given::default(),
            settings: Settings { core, ..settings },
            socket,
            sessions: Vec::new(),
            accepted: 0,
            fair: Fair::default(),
            analysts: Analysts::start()?,
            closer: Closer::start()?,
            accept_from: Time::ZERO,
            recent: RecentRecords::default(),
            journal: Journal::default(),
            audit: Audit::default(),
            streams: TraceStreams::default(),
            waits: Waits::default(),
            monitor: observers::Monitor::default(),
            cpu_latency: CpuLatency::default(),
            follower,
            reported: Vec::new(),
            stopping: false,
            vehicle: Vehicle::default(),
            hashes: Hashes::default(),
            stalls: Stalls::default(),
            hurried: false,
            broken: None,
            surroundings,
        };
        server.show_displays();
        server.renew_shares();
        Ok(server)
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
        self.begin_audit();
        self
    }

    /// Writes an event of the program around the server.
    pub fn tell(&mut self, entry: &Entry<'_>) {
        self.journal.tell(entry);
        match entry {
            Entry::Unreadable { reason } => self.audit_own(Event::Reloaded, Decision::Refused, reason),
            Entry::Stopping { reason } => self.audit_own(Event::Stopped, Decision::Noted, reason),
            _ => {}
        }
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

    /// Waits for events for a short while and serves them; always on the same thread. It fails if the
    /// scheduling loop has ended.
    pub fn turn(&mut self) -> std::io::Result<()> {
        self.scheduling.check()?;
        self.hurry();
        let ready = self.wait()?;
        ready.ended.iter().for_each(|index| self.sessions[*index].closing = true);
        self.read_notes(clock::now() + BUSY_MAX);
        self.journal.sum_up(&self.members);
        self.state();
        self.look_after_audit();
        self.supervise();
        self.look_at_shares();
        self.follow_display();
        self.publish();
        self.scheduling.orders.send();
        self.scheduling.orders.count();
        let until = clock::now() + BUSY_MAX;
        self.serve_ready(ready.sessions, until);
        self.close_sessions(until);
        self.study();
        if ready.is_called {
            self.accept(clock::now());
        }
        Ok(())
    }

    fn handle(&mut self, index: usize, message: Message) {
        match message {
            Message::Hello(hello) => self.welcome(index, &hello),
            Message::Ask { text } => self.asked(index, &text),
            _ => self.refuse(index, "only the daemon sends that message".to_owned()),
        }
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

    fn scene(&self) -> Scene {
        let (members, stats) = (self.members.clone(), self.scheduling.stats);
        Scene { members, policy: self.policy.clone(), refresh: self.grid, stats }
    }

    fn order(&mut self, order: Order) {
        self.scheduling.orders.give(order);
    }

    /// Reads notes of the loop until `until`; returns whether more are there.
    fn read_notes(&mut self, until: Time) -> bool {
        while !self.scheduling.notes.is_empty() {
            for _ in 0..NOTES_AT_ONCE {
                let Ok(note) = self.scheduling.notes.pop() else {
                    return false;
                };
                self.read_note(note);
            }
            if clock::now() >= until {
                return true;
            }
        }
        false
    }

    fn read_note(&mut self, note: Note) {
        self.streams.note();
        match note {
            Note::Record(at, record) => {
                self.journal.watch(&record);
                self.happened(at, record);
            }
            Note::Gone { endpoint, fault } => self.gone(endpoint.app, fault),
            Note::Protected { app, protected } => self.judged(app, protected),
            Note::Stuck { app, estimate } => self.stuck(app, estimate),
            Note::Named { app, command } => self.waits.named(app, command),
            Note::Replaced(policy) => drop(policy),
            Note::Counted(stats) => self.scheduling.stats = stats,
            Note::Turned(stats) => self.scheduling.loop_stats = stats,
        }
    }

    /// Work of a client cannot be cut and has fitted nowhere for long.
    fn stuck(&mut self, app: AppId, estimate: Estimate) {
        self.waits.stuck(app, estimate);
        if let Some(member) = self.members.get(app) {
            let runs = member.uncut == Uncut::Run;
            let ms = (estimate < Estimate::UNBOUNDED).then(|| estimate.span().as_ns() as f64 / 1e6);
            self.journal.tell(&Entry::Uncut { who: Who::of(member), ms, runs });
        }
    }

    /// A client is not scheduled any more.
    fn gone(&mut self, app: AppId, fault: Option<Fault>) {
        let (rule, fault) = (fault.map_or("", Fault::name), fault.map(|fault| fault.to_string()));
        let (mut pause, mut is_evicted) = (None, false);
        self.audit.watch.forget(app);
        self.scheduling.frames.set_app(app, None, "");
        if let Some(member) = self.members.remove(app) {
            let who = Who::of(&member);
            if let Some(fault) = &fault {
                let span = self.quarantine.blame(member.origin(), clock::now());
                self.journal.tell(&Entry::Fault { who, fault, pause_s: span.as_ns() / 1_000_000_000 });
                self.audit.quarantined(&member, rule, fault);
                pause = Some(span);
            } else {
                self.audit.about(Event::Left, &member, "");
                self.journal.tell(&Entry::Left { who });
                pause = self.evicted.pause(&member.name, &member.origin(), clock::now());
                is_evicted = pause.is_some();
            }
            self.history.add(clock::now(), member);
        }
        if let Some(index) = self.sessions.iter().position(|session| session.app == Some(app)) {
            self.sessions[index].app = None;
            let unscheduled = self.why_unscheduled();
            pause = pause.or_else(|| unscheduled.is_some().then_some(UNSCHEDULED_PAUSE));
            let left = if is_evicted { EVICTED } else { "it has left" };
            let reason = fault.or(unscheduled).unwrap_or_else(|| left.to_owned());
            self.hang_up(index, reason, pause);
        }
        self.limit_cpu_latency();
        self.link();
        self.renew_limits();
    }

    /// Closes sessions that are to be closed, until `until`; the rest follows with the next turn.
    fn close_sessions(&mut self, until: Time) {
        let now = clock::now();
        self.sessions.iter_mut().for_each(|session| session.expire(now));
        let closing = self.sessions.iter_mut().filter(|session| session.closing);
        let apps: Vec<AppId> = closing.filter_map(|session| session.app.take()).collect();
        for app in apps {
            self.members.leaves(app);
            self.order(Order::Leave { app });
        }
        while let Some(index) = self.sessions.iter().position(|session| session.closing) {
            self.sessions.remove(index);
            if clock::now() >= until {
                return;
            }
        }
    }
}

fn supervised(settings: &Settings) -> Supervisor {
    let mut supervisor = Supervisor::default();
    supervisor.watch(&settings.apps);
    supervisor
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
