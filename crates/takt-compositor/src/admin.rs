//! The socket for tools of the cockpit's own user, and of root.
//!
//! Requests and replies are those of [`takt_cockpit::control`]. Each connection has a thread, which asks the
//! manager as tools within this process do: what a tool sends, or does not take, costs that thread alone.
//! There are `TOOLS_MAX` of them at most, and each has `PATIENCE` for its next request.

mod shot;
mod tool;

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use takt_cockpit::control::{Reply, SOCKET};
use takt_daemon::control::socket_file::SocketFile;
use takt_ipc::socket::Peer;

use crate::cockpit::Controls;
use crate::mailbox::{Mailbox, Sender, mailbox};
use tool::Tool;

/// Most tools at once.
const TOOLS_MAX: usize = 8;
/// How long a tool may take for its next request, and to take a part of an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Who may open the socket at all.
const MODE: u32 = 0o600;

/// Connections of tools, by number.
type Connections = Arc<Mutex<BTreeMap<u64, UnixStream>>>;

/// The socket for tools; it is gone when this is dropped.
#[derive(Debug)]
pub struct Admin {
    end: Sender<()>,
    thread: Option<JoinHandle<()>>,
    connections: Connections,
}

impl Admin {
    /// Listens in a folder.
    pub fn start(folder: &Path, controls: Controls) -> std::io::Result<Self> {
        let (listener, file) = SocketFile::bind(folder.join(SOCKET), |path| UnixListener::bind(path))?;
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(MODE))?;
        listener.set_nonblocking(true)?;
        let (end, ended) = mailbox(1)?;
        let connections = Connections::default();
        let mut accepting = Accepting {
            listener,
            _file: file,
            ended,
            controls,
            connections: Arc::clone(&connections),
            next: 0,
        };
        let run = move || accepting.run();
        let thread = std::thread::Builder::new().name("takt-admin".to_owned()).spawn(run)?;
        Ok(Self { end, thread: Some(thread), connections })
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        // A thread that has ended already needs no word.
        self.end.send(()).unwrap_or_default();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap_or_default();
        }
        let connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in connections.values() {
            // A tool that has gone is as it should be.
            stream.shutdown(std::net::Shutdown::Both).unwrap_or_default();
        }
    }
}

/// The thread that accepts connections.
struct Accepting {
    listener: UnixListener,
    _file: SocketFile,
    ended: Mailbox<()>,
    controls: Controls,
    connections: Connections,
    next: u64,
}

impl Accepting {
    fn run(&mut self) {
        while self.ended.take().is_none() {
            let mut fds =
                [PollFd::new(&self.listener, PollFlags::IN), PollFd::new(&self.ended, PollFlags::IN)];
            // An interrupted sleep is a short one.
            poll(&mut fds, None).unwrap_or_default();
            self.ended.heard();
            while let Ok((stream, _)) = self.listener.accept() {
                if let Err(reason) = self.serve(&stream) {
                    refuse(&stream, reason);
                }
            }
        }
    }

    /// Serves a tool in a thread of its own.
    fn serve(&mut self, stream: &UnixStream) -> Result<(), String> {
        let said = |error: std::io::Error| error.to_string();
        let uid = Peer::of(stream).map_err(said)?.uid;
        if uid != 0 && uid != rustix::process::geteuid().as_raw() {
            return Err(format!("user {uid} may not control this cockpit: only its own user and root may"));
        }
        let (ours, theirs) = (stream.try_clone().map_err(said)?, stream.try_clone().map_err(said)?);
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if connections.len() >= TOOLS_MAX {
            return Err(format!("{TOOLS_MAX} tools are connected already"));
        }
        self.next += 1;
        let number = self.next;
        connections.insert(number, ours);
        drop(connections);
        let mut tool = Tool::new(theirs, self.controls.clone());
        let all = Arc::clone(&self.connections);
        let forget = move || {
            all.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        };
        let forget_unstarted = forget.clone();
        let run = move || {
            // A tool that goes away needs no answer.
            tool.serve().unwrap_or_default();
            forget();
        };
        let started = std::thread::Builder::new().name(format!("takt-tool-{number}")).spawn(run);
        started.map(drop).map_err(|error| {
            forget_unstarted();
            error.to_string()
        })
    }
}

/// Tells a tool why it is not served; one that does not listen hears nothing.
fn refuse(mut stream: &UnixStream, reason: String) {
    let line = serde_json::to_string(&Reply::Refused { reason }).unwrap_or_default() + "\n";
    // The socket is new, so there is room for a line.
    stream.write_all(line.as_bytes()).unwrap_or_default();
}
