//! Sockets of domains, and who may connect to them.

use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use takt_daemon::control::identity::Identity;
use takt_daemon::control::rights::{Domains, OWN};
use takt_daemon::control::socket_file::SocketFile;
use takt_ipc::socket::Peer as Connected;

use super::{Connection, Entry, Manager};
use crate::client::Peer;

/// Connections that are accepted in one turn.
const ACCEPT_MAX: usize = 16;
/// Who may open a socket at all: every user where the kernel's word decides, else its owner.
const MODE_LISTED: u32 = 0o666;
const MODE_OWN: u32 = 0o600;

/// Sockets of domains.
#[derive(Debug, Default)]
pub struct Listening {
    sockets: Vec<(usize, UnixListener, SocketFile)>,
    /// Who belongs to which domain, as the daemon's configuration says.
    domains: Domains,
}

impl Listening {
    /// Listens in a folder, on one socket for each domain.
    pub fn begin(folder: &Path, names: &[&str], domains: Domains) -> std::io::Result<Self> {
        use std::os::unix::fs::PermissionsExt;
        let mut sockets = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let (listener, file) = SocketFile::bind(folder.join(name), |path| UnixListener::bind(path))?;
            listener.set_nonblocking(true)?;
            let mode = if domains.named(name).is_some() { MODE_LISTED } else { MODE_OWN };
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode))?;
            sockets.push((index, listener, file));
        }
        Ok(Self { sockets, domains })
    }

    /// What to wait for.
    pub(super) fn listeners(&self) -> impl Iterator<Item = &UnixListener> {
        self.sockets.iter().map(|(_, listener, _)| listener)
    }

    /// Whether a process may connect to the socket of a domain, by the kernel's word.
    fn admit(&self, name: &str, identity: &Identity) -> Result<(), String> {
        let expected = if self.domains.named(name).is_some() { name } else { OWN };
        let found = &self.domains.of(identity).name;
        match found == expected {
            true => Ok(()),
            false => Err(format!("it is of domain {found:?}, and this is the socket of {expected:?}")),
        }
    }
}

impl Manager {
    /// Accepts connections.
    pub(super) fn accept(&mut self) {
        for _ in 0..ACCEPT_MAX {
            let accept = |(domain, listener, _): &(usize, UnixListener, SocketFile)| {
                listener.accept().ok().map(|(stream, _)| (*domain, stream))
            };
            let Some((domain, stream)) = self.listening.sockets.iter().find_map(accept) else {
                return;
            };
            self.admit(domain, stream);
        }
    }

    fn admit(&mut self, domain: usize, stream: UnixStream) {
        let name = self.config.domains[domain].name.clone();
        let Ok(connected) = Connected::of(&stream) else {
            return;
        };
        let identity = Identity::of(&stream, connected, |path| self.listening.domains.names(path));
        let executable = identity.executable.as_ref().map(|found| found.path.display().to_string());
        let peer = Peer { pid: identity.pid, uid: identity.uid, executable };
        if let Err(reason) = self.listening.admit(&name, &identity) {
            let what = Connection::Refused("domain", reason);
            (self.recorder)(&Entry::Client { domain, peer, what });
            return;
        }
        self.connect(domain, peer, stream);
        self.carry_out();
    }
}
