//! Who a client is, by the kernel's word alone: nothing here comes from what the client says.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use takt_ipc::credentials;
use takt_ipc::socket::Peer;
use takt_os::{files, process};

/// Folders of control groups in which runtimes keep containers by name.
const CONTAINER_FOLDERS: [&str; 4] = ["docker", "lxc", "libpod_parent", "podman"];
/// What runtimes put in front of the name of a container, to name its control group.
const CONTAINER_PREFIXES: [&str; 6] =
    ["docker-", "libpod-", "crio-", "cri-containerd-", "lxc.payload.", "machine-"];

/// Who a client is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Identity {
    /// Its process when it connected; 0 if that is in a namespace that the daemon cannot see.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Its groups, its own one first.
    pub groups: Vec<u32>,
    /// The path of its control group, if that is certain.
    pub cgroup: Option<String>,
    /// What it executes, where the system tells.
    pub executable: Option<Executable>,
    /// Whether its executable has other contents than the configuration lists.
    pub tampered: bool,
}

/// What a client executes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Executable {
    /// Its path, as the system tells it.
    pub path: PathBuf,
    /// Whether the file at that path is certainly what it executes, and one that only root can replace. Only
    /// paths that the configuration names are looked at.
    pub trusted: bool,
}

impl Identity {
    /// The client on the other side of a socket.
    ///
    /// What `/proc` tells counts only if the process that connected is alive afterwards: its number cannot
    /// have been that of another process meanwhile. Kernels before Linux 6.5 do not tell which process
    /// connected; there, units and containers are not known, and an executable gives no right.
    ///
    /// Only executables that are `named` by the configuration are looked at: others may be on file systems
    /// that do not answer.
    pub fn of(socket: &impl AsFd, peer: Peer, named: impl Fn(&Path) -> bool) -> Self {
        let Peer { pid, uid } = peer;
        let connected = credentials::process(socket).ok();
        let (cgroup, executable) = (process::cgroup(pid), executable(pid, named));
        let is_alive = connected.map(|process| process.is_alive());
        let certain = is_alive == Some(true);
        // What another process executes that has its number by now is not for records either.
        let executable = executable.filter(|_| is_alive != Some(false));
        let executable = executable.map(|found| Executable { trusted: found.trusted && certain, ..found });
        Self {
            pid,
            uid,
            groups: credentials::groups(socket).unwrap_or_default(),
            cgroup: cgroup.filter(|_| certain),
            executable,
            tampered: false,
        }
    }

    /// The systemd unit of the system manager that it belongs to. Units below that, as users' own managers
    /// have them, do not count: a user can call those what it likes.
    pub fn unit(&self) -> Option<&str> {
        self.parts().find(|part| !part.ends_with(".slice")).filter(|part| part.contains('.'))
    }

    /// Whether it is in that systemd unit: a service or scope of the system manager, or a slice around it.
    pub fn is_in_unit(&self, unit: &str) -> bool {
        self.unit() == Some(unit)
            || self.parts().take_while(|part| part.ends_with(".slice")).any(|part| part == unit)
    }

    /// Whether it is in that control group or below it.
    pub fn is_in_cgroup(&self, path: &str) -> bool {
        let Some(own) = &self.cgroup else { return false };
        let below = own.strip_prefix(path.trim_end_matches('/'));
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The name or number of the container that it is in, as the runtime named its control group.
    pub fn container(&self) -> Option<&str> {
        let mut parts = self.parts().skip_while(|part| part.ends_with(".slice"));
        let first = parts.next()?;
        if CONTAINER_FOLDERS.contains(&first) {
            return parts.next();
        }
        let named = CONTAINER_PREFIXES.iter().find_map(|prefix| first.strip_prefix(prefix))?;
        Some(named.strip_suffix(".scope").unwrap_or(named))
    }

    /// The parts of the path of its control group.
    fn parts(&self) -> impl Iterator<Item = &str> {
        self.cgroup.iter().flat_map(|path| path.split('/')).filter(|part| !part.is_empty())
    }
}

/// What a process executes, where the system tells.
fn executable(pid: u32, named: impl Fn(&Path) -> bool) -> Option<Executable> {
    let path = process::executable(pid)?;
    let is_the_file = || {
        let running = process::running_file(pid);
        running.is_some() && files::only_roots(&path).ok() == running
    };
    let trusted = named(&path) && is_the_file();
    Some(Executable { path, trusted })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(cgroup: &str) -> Identity {
        Identity { cgroup: Some(cgroup.to_owned()), ..Identity::default() }
    }

    #[test]
    fn units_of_users_are_not_those_of_the_system() {
        let dial = within("/system.slice/dial.service");
        assert_eq!(dial.unit(), Some("dial.service"));
        assert!(dial.is_in_unit("dial.service") && dial.is_in_unit("system.slice"));
        let forged = within("/user.slice/user-1000.slice/user@1000.service/app.slice/dial.service");
        assert_eq!(forged.unit(), Some("user@1000.service"));
        assert!(!forged.is_in_unit("dial.service") && !forged.is_in_unit("app.slice"));
        assert!(forged.is_in_unit("user-1000.slice"));
        assert_eq!(within("/").unit(), None);
        assert_eq!(Identity::default().unit(), None);
    }

    #[test]
    fn control_groups_contain_those_below() {
        let dial = within("/car/cluster/dial");
        assert!(dial.is_in_cgroup("/car/cluster") && dial.is_in_cgroup("/car/cluster/dial"));
        assert!(dial.is_in_cgroup("/car/cluster/"));
        assert!(!dial.is_in_cgroup("/car/clu") && !dial.is_in_cgroup("/cluster"));
        assert!(!Identity::default().is_in_cgroup("/"));
    }

    #[test]
    fn containers_have_the_names_that_their_runtime_gave() {
        for (path, name) in [
            ("/system.slice/docker-0123456789ab.scope", "0123456789ab"),
            ("/docker/0123456789ab", "0123456789ab"),
            ("/machine.slice/libpod-fe.scope/container", "fe"),
            ("/machine.slice/machine-ivi.scope", "ivi"),
            ("/lxc.payload.ivi/init.scope", "ivi"),
        ] {
            assert_eq!(within(path).container(), Some(name), "{path}");
        }
        let forged = "/user.slice/user-1000.slice/user@1000.service/docker-0123456789ab.scope";
        assert_eq!(within(forged).container(), None);
    }

    /// Where the other process of the test below connects.
    const CONNECT_TO: &str = "TAKT_TEST_IDENTITY_OF";

    /// A connection may outlive the process that made it, whose number another process has by then.
    #[test]
    fn a_process_that_has_the_number_of_another_one_now_is_not_taken_for_it() {
        use std::os::unix::net::{UnixListener, UnixStream};
        if let Some(path) = std::env::var_os(CONNECT_TO) {
            UnixStream::connect(path).expect("the test listens");
            return;
        }
        let path = std::env::temp_dir().join(format!("takt-identity-{}", std::process::id()));
        let listener = UnixListener::bind(&path).expect("bound");
        let this = std::env::current_exe().expect("this test");
        let name =
            "control::identity::tests::a_process_that_has_the_number_of_another_one_now_is_not_taken_for_it";
        let mut other = std::process::Command::new(this);
        other.args(["--exact", name]).env(CONNECT_TO, &path).stdout(std::process::Stdio::null());
        let mut other = other.spawn().expect("started");
        let (accepted, _) = listener.accept().expect("a connection");
        assert!(other.wait().expect("ended").success());
        std::fs::remove_file(path).expect("removed");
        if credentials::process(&accepted).is_err() {
            // Linux before 6.5 does not tell.
            return;
        }
        // As if this process had been given the number.
        let (pid, uid) = (std::process::id(), rustix::process::geteuid().as_raw());
        let found = Identity::of(&accepted, Peer { pid, uid }, |_| true);
        assert_eq!((found.executable, found.cgroup), (None, None));
    }

    #[test]
    fn this_process_is_known() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let (pid, uid) = (std::process::id(), rustix::process::geteuid().as_raw());
        let own = Identity::of(&one, Peer { pid, uid }, |_| true);
        assert_eq!((own.pid, own.uid), (pid, uid));
        assert!(own.groups.contains(&rustix::process::getegid().as_raw()));
        let executable = own.executable.expect("known");
        assert_eq!(Some(executable.path), std::env::current_exe().ok());
    }
}
