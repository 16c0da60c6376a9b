//! All threads of a cockpit together.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use takt_cockpit::config::Cockpit as Config;
use takt_cockpit::control::{ProgramStatus, Status};
use takt_cockpit::geometry::Rect;
use takt_cockpit::input::{ACTS_MAX, Act};
use takt_cockpit::windows::{ClientId, Motion, Order, Subject};
use takt_daemon::control::rights::Domains;

use crate::bell::Bell;
use crate::client::Peer;
use crate::input::Devices;
use crate::mailbox::{Sender, mailbox};
use crate::manager::{self, Answer, Ask, Listening, MESSAGES_MAX, Manager, Recorder, Teller, ToManager};
use crate::output::{self, Capture, Output};
use crate::sys::{DeviceChoice, NoGl};

/// How long tools wait for the manager, and for a capture.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a cockpit needs beside its rules.
pub struct Options {
    /// The socket of the daemon that schedules compositions.
    pub daemon: PathBuf,
    /// Which device draws.
    pub device: DeviceChoice,
    /// The folder of sockets; none has no sockets, and clients come by [`Controls::connect`].
    pub folder: Option<PathBuf>,
    /// Who belongs to which domain.
    pub domains: Domains,
    /// Takes records.
    pub recorder: Recorder,
}

/// Why a cockpit cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum NoCockpit {
    /// An output has no GL.
    #[error("output {0:?}: {1}")]
    Output(String, NoGl),
    /// A socket cannot be made.
    #[error("cannot listen in {0}: {1}")]
    Socket(PathBuf, std::io::Error),
    /// The system gives no more.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
}

/// A cockpit; it ends when this is dropped.
#[derive(Debug)]
pub struct Cockpit {
    controls: Controls,
    thread: Option<JoinHandle<()>>,
    /// Threads that read input devices.
    _devices: Devices,
}

/// What tools may want of a cockpit, from any thread. Without a cockpit, they hear that it has ended.
#[derive(Clone, Debug)]
pub struct Controls {
    config: Arc<Config>,
    sender: Sender<ToManager>,
    programs: Arc<Mutex<Vec<ProgramStatus>>>,
}

impl Cockpit {
    /// Starts all threads.
    pub fn start(config: Config, options: Options) -> Result<Self, NoCockpit> {
        let Options { daemon, device, folder, domains, recorder } = options;
        let config = Arc::new(config);
        let bell = Arc::new(Bell::default());
        let (sender, mailbox) = mailbox(MESSAGES_MAX)?;
        let start = |(index, settings): (usize, &takt_cockpit::config::Output)| {
            Output::start(output::OutputParts {
                settings: settings.clone(),
                daemon: daemon.clone(),
                device,
                bell: Arc::clone(&bell),
                seen: Teller::of_output(index, sender.clone()),
            })
            .map_err(|error| NoCockpit::Output(settings.name.clone(), error))
        };
        let outputs = config.outputs.iter().enumerate().map(start).collect::<Result<_, _>>()?;
        let names: Vec<&str> = config.domains.iter().map(|domain| domain.name.as_str()).collect();
        let listening = match folder {
            Some(folder) => Listening::begin(&folder, &names, domains)
                .map_err(|error| NoCockpit::Socket(folder.clone(), error))?,
            None => Listening::default(),
        };
        let beginning = manager::ManagerParts {
            config: Arc::clone(&config),
            outputs,
            listening,
            mailbox,
            sender: sender.clone(),
            recorder,
            bell,
        };
        let run = || Manager::new(beginning).run();
        let thread = std::thread::Builder::new().name("takt-manager".to_owned()).spawn(run)?;
        let _devices = Devices::start(&config, &sender)?;
        let controls = Controls { config, sender, programs: Arc::default() };
        Ok(Self { controls, thread: Some(thread), _devices })
    }

    /// What tools may want of it.
    pub fn controls(&self) -> &Controls {
        &self.controls
    }
}

impl Controls {
    /// Its rules.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// A connection for a client of a domain, in this process or handed to another one.
    pub fn connect(&self, domain: usize) -> std::io::Result<(UnixStream, ClientId)> {
        let (ours, theirs) = UnixStream::pair()?;
        let (pid, uid) = (std::process::id(), rustix::process::getuid().as_raw());
        let peer = Peer { pid, uid, executable: None };
        match self.ask(Ask::Connect(domain, peer, ours)) {
            Answer::Client(client) => Ok((theirs, client)),
            answer => Err(std::io::Error::other(format!("{answer:?}"))),
        }
    }

    /// Changes how a window is shown.
    pub fn order(&self, subject: Subject, order: Order) -> Result<(), String> {
        match self.ask(Ask::Order(subject, order)) {
            Answer::Refused(reason) => Err(reason),
            _ => Ok(()),
        }
    }

    /// The vehicle moves, or stands.
    pub fn set_motion(&self, motion: Motion) -> Result<(), String> {
        match self.ask(Ask::Move(motion)) {
            Answer::Refused(reason) => Err(reason),
            _ => Ok(()),
        }
    }

    /// An input device that has no file does something; an error says why it is not possible, or why a window
    /// may not have it.
    pub fn input(&self, device: &str, acts: Vec<Act>) -> Result<(), String> {
        let inputs = &self.config.inputs;
        let Some(index) = inputs.iter().position(|input| input.name == device) else {
            let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
            return Err(format!("there is no input {device:?}: use one of {}", names.join(", ")));
        };
        if let Some(path) = &inputs[index].device {
            return Err(format!(
                "input {device:?} is read from {path}: only sections without device are for tools"
            ));
        }
        if acts.len() > ACTS_MAX {
            return Err(format!("{} acts: use {ACTS_MAX} at most", acts.len()));
        }
        match self.ask(Ask::Input(index, acts)) {
            Answer::Refused(reason) => Err(reason),
            _ => Ok(()),
        }
    }

    /// How everything is.
    pub fn status(&self) -> Result<Status, String> {
        match self.ask(Ask::Status) {
            Answer::Status(status) => {
                let programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner).clone();
                Ok(Status { programs, ..status })
            }
            answer => Err(format!("{answer:?}")),
        }
    }

    /// Tells how the programs are that were started.
    pub(crate) fn tell_programs(&self, programs: Vec<ProgramStatus>) {
        *self.programs.lock().unwrap_or_else(PoisonError::into_inner) = programs;
    }

    /// What an output shows now.
    pub fn capture(&self, output: usize, part: Option<Rect>) -> Result<Capture, String> {
        let (to, captured) = sync_channel(1);
        match self.ask(Ask::Capture(output, part, to)) {
            Answer::Refused(reason) => Err(reason),
            _ => captured.recv_timeout(PATIENCE).map_err(|error| error.to_string()),
        }
    }

    fn ask(&self, ask: Ask) -> Answer {
        let (reply, answer) = sync_channel(1);
        match self.sender.send(ToManager::Tool(ask, reply)) {
            Ok(()) => {
                answer.recv_timeout(PATIENCE).unwrap_or_else(|error| Answer::Refused(error.to_string()))
            }
            Err(error) => Answer::Refused(error.to_string()),
        }
    }
}

impl Drop for Cockpit {
    fn drop(&mut self) {
        // One that has ended already needs no word.
        self.controls.sender.send(ToManager::End).unwrap_or_default();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap_or_default();
        }
    }
}
