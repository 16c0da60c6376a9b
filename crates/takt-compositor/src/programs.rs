//! Programs that the cockpit starts: the `[[client]]` sections of its configuration.
//!
//! A thread starts each with the socket of its domain, under Takt where the `takt` command is found, and
//! starts it again when it ends if its section says so. Programs that end again and again are started less
//! and less often. Each has a process group of its own, which ends with the program, and all end with the
//! cockpit: by a signal that they may catch, and after `GRACE` by one that they may not.

mod start;

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use rustix::time::Timespec;
use takt_cockpit::config::{Client, Cockpit as Config};
use takt_cockpit::control::ProgramStatus;
use takt_daemon::control::rights::Domains;

use crate::cockpit::Controls;
use crate::mailbox::{Mailbox, Sender, mailbox};
use crate::records::{Journal, Line};

/// How long programs may take to end when the cockpit does.
const GRACE: Duration = Duration::from_secs(2);
/// How soon a program that ended is started again at first, and how late at last.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// A program that ran for so long is started again at once.
const WELL: Duration = Duration::from_secs(10);
/// How often to look where the kernel does not tell that a process has ended.
const LOOK: Duration = Duration::from_millis(200);
/// Longest sleep.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// What programs need.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Folder of the sockets of domains.
    pub folder: PathBuf,
    /// The socket of the daemon that schedules them.
    pub daemon: PathBuf,
    /// The `takt` command; without one, programs run unscheduled.
    pub takt: Option<PathBuf>,
    /// Names of displays.
    pub displays: Vec<String>,
}

/// The `takt` command: beside the file of this process, else in `PATH`.
pub fn takt() -> Option<PathBuf> {
    start::takt()
}

/// Programs that were started; they end when this is dropped.
#[derive(Debug)]
pub struct Programs {
    end: Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Programs {
    /// Whether programs can be started as their sections say; what is wrong, if they cannot.
    pub fn check(config: &Config, domains: &Domains) -> Result<(), String> {
        for client in &config.clients {
            start::account(client).map_err(|reason| format!("client {:?}: {reason}", client.name))?;
            let domain = &config.domains[client.domain].name;
            if let Some(user) = client.user.as_ref().filter(|_| domains.named(domain).is_none()) {
                return Err(format!(
                    "client {:?}: user = {user}: processes of another user may not use the socket of domain \
                     {domain}: give --rights FILE, a configuration of the daemon that says who belongs to it",
                    client.name
                ));
            }
        }
        Ok(())
    }

    /// Starts all programs.
    pub fn start(controls: Controls, surroundings: Surroundings, journal: Journal) -> std::io::Result<Self> {
        let (end, ended) = mailbox(1)?;
        let config = controls.config();
        let programs = config.clients.iter().map(|client| {
            Program::new(client.clone(), config.domains[client.domain].name.clone(), Instant::now())
        });
        let programs = programs.collect();
        let mut starter = Starter { programs, controls, surroundings, journal, ended };
        starter.tell();
        let run = move || starter.run();
        let thread = std::thread::Builder::new().name("takt-programs".to_owned()).spawn(run)?;
        Ok(Self { end, thread: Some(thread) })
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        // A thread that has ended already needs no word.
        self.end.send(()).unwrap_or_default();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap_or_default();
        }
    }
}

/// A program.
struct Program {
    section: Client,
    domain: String,
    running: Option<Running>,
    status: ProgramStatus,
    /// When it is to be started, if it does not run.
    due: Option<Instant>,
    pause: Duration,
}

/// A process.
struct Running {
    child: Child,
    /// Becomes readable when it ends, where the kernel can tell.
    end: Option<OwnedFd>,
    since: Instant,
}

/// The thread that starts programs, and waits for them.
struct Starter {
    programs: Vec<Program>,
    controls: Controls,
    surroundings: Surroundings,
    journal: Journal,
    ended: Mailbox<()>,
}

impl Starter {
    fn run(&mut self) {
        while self.ended.take().is_none() {
            let mut changed = false;
            for program in &mut self.programs {
                changed |= program.look(&self.journal);
                changed |= program.start(&self.surroundings, &self.journal);
            }
            if changed {
                self.tell();
            }
            let due = self.programs.iter().filter_map(|program| program.due).min();
            self.sleep(due.unwrap_or_else(|| Instant::now() + SLEEP_MAX));
            self.ended.heard();
        }
        self.end();
    }

    fn tell(&self) {
        self.controls.tell_programs(self.programs.iter().map(|program| program.status.clone()).collect());
    }

    /// Sleeps until a program ended, or that time, or until it is told to end.
    fn sleep(&self, until: Instant) {
        let running = || self.programs.iter().filter_map(|program| program.running.as_ref());
        let blind = running().any(|running| running.end.is_none());
        let left = until.saturating_duration_since(Instant::now()).min(if blind { LOOK } else { SLEEP_MAX });
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        let ends = running().filter_map(|running| running.end.as_ref());
        let mut fds = vec![PollFd::new(&self.ended, PollFlags::IN)];
        fds.extend(ends.map(|end| PollFd::new(end, PollFlags::IN)));
        // An interrupted sleep is a short one.
        poll(&mut fds, Some(&timeout)).unwrap_or_default();
    }

    /// Ends all programs.
    fn end(&mut self) {
        for program in &mut self.programs {
            (program.section.restart, program.due) = (false, None);
            program.signal(Signal::TERM);
        }
        let until = Instant::now() + GRACE;
        while Instant::now() < until && self.programs.iter().any(|program| program.running.is_some()) {
            self.sleep(until);
            for program in &mut self.programs {
                program.look(&self.journal);
            }
        }
        for program in &mut self.programs {
            program.signal(Signal::KILL);
            program.bury(&self.journal);
        }
        self.tell();
    }
}

impl Program {
    fn new(section: Client, domain: String, due: Instant) -> Self {
        let status =
            ProgramStatus { name: section.name.clone(), domain: domain.clone(), ..ProgramStatus::default() };
        Self { section, domain, running: None, status, due: Some(due), pause: PAUSE_MIN }
    }

    /// Starts it if it is time; says whether it was.
    fn start(&mut self, surroundings: &Surroundings, journal: &Journal) -> bool {
        let now = Instant::now();
        if self.due.is_none_or(|due| due > now) {
            return false;
        }
        self.due = None;
        self.status.starts += 1;
        match start::start(&self.section, &self.domain, surroundings) {
            Ok(child) => {
                let pid = Pid::from_child(&child);
                self.status.pid = Some(child.id());
                let end = pidfd_open(pid, PidfdFlags::empty()).ok();
                self.running = Some(Running { child, end, since: now });
                journal.tell(self.line("program-started", self.section.command.join(" ")));
            }
            Err(error) => self.has_ended(error.to_string(), now, journal),
        }
        true
    }

    /// Whether it has ended since the last look.
    fn look(&mut self, journal: &Journal) -> bool {
        let Some(running) = &self.running else {
            return false;
        };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let ended = waitid(WaitId::Pid(Pid::from_child(&running.child)), options);
        if !matches!(ended, Ok(None)) {
            // While the process is not reaped, its number is that of its group, and of no other.
            self.signal(Signal::KILL);
            self.bury(journal);
            return true;
        }
        false
    }

    /// Waits for the end of the process.
    fn bury(&mut self, journal: &Journal) {
        if let Some(Running { mut child, since, .. }) = self.running.take() {
            let said = child.wait().map_or_else(|error| error.to_string(), described);
            self.has_ended(said, since, journal);
        }
    }

    /// Sends a signal to the process, and to those that it has started.
    fn signal(&self, signal: Signal) {
        if let Some(running) = &self.running {
            // A group that has ended needs none.
            kill_process_group(Pid::from_child(&running.child), signal).unwrap_or_default();
        }
    }

    fn has_ended(&mut self, said: String, since: Instant, journal: &Journal) {
        journal.tell(self.line("program-ended", said.clone()));
        (self.status.pid, self.status.ended) = (None, Some(said));
        if !self.section.restart {
            return;
        }
        if since.elapsed() >= WELL {
            self.pause = PAUSE_MIN;
        }
        self.due = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    fn line(&self, event: &'static str, asked: String) -> Line {
        let (domain, about) = (Some(self.domain.clone()), self.section.name.clone());
        Line { domain, about, pid: self.status.pid, ..Line::new(event, asked) }
    }
}

fn described(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}
