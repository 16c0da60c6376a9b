//! Daemons that clients of several users reach, and those clients.

use std::os::unix::fs::PermissionsExt;

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use takt_ipc::client::{Joined, Joining, NotScheduled, Progress};
use takt_ipc::message::Hello;

use crate::support::{Daemon, PATIENCE};

/// A group in which all other users are.
const PLAYERS: u32 = 64_003;

/// A daemon to which all users may connect; none if this test may not become another user.
#[expect(clippy::print_stderr, reason = "says what was skipped")]
pub(crate) fn daemon(name: &str, settings: &str) -> Option<Daemon> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can become another user");
        return None;
    }
    let daemon = Daemon::start(name, settings);
    std::fs::set_permissions(&daemon.path, PermissionsExt::from_mode(0o666)).expect("its socket");
    Some(daemon)
}

/// Does something as another user; the kernel knows users by thread.
pub(crate) fn as_user<T: Send>(user: u32, act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new().name("another user".to_owned()).spawn_scoped(scope, || {
            let (user, group) = (Uid::from_raw(user), Gid::from_raw(user));
            set_thread_groups(&[Gid::from_raw(PLAYERS)]).expect("root may");
            set_thread_res_gid(group, group, group).expect("root may");
            set_thread_res_uid(user, user, user).expect("root may");
            act()
        });
        other.expect("a thread").join().expect("no panic")
    })
}

/// Joins as another user. The kernel notes the user when it connects; this user maps the memory, since the
/// daemon in this process locks what is mapped, which others may not.
pub(crate) fn join_as(daemon: &Daemon, user: u32, hello: &Hello) -> Result<Box<Joined>, NotScheduled> {
    let joining = as_user(user, || Joining::begin(&daemon.path, hello))?;
    match joining.finish(PATIENCE)? {
        Progress::Joined(joined) => Ok(joined),
        Progress::NotYet(_) => panic!("no answer"),
    }
}
