//! Where daemons listen, and which one to turn to.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::socket::Connection;

/// Where the machine's own daemon listens, unless `TAKT_SYSTEM_SOCKET` names another place.
const SYSTEM: &str = "/run/takt/control";
/// Where the machine's own cockpit has its sockets.
const SYSTEM_COCKPIT: &str = "/run/takt-cockpit";

/// Where a daemon listens unless told otherwise: in the user's run-time folder; without one, the
/// superuser's where the machine's is, and others' in a folder of their own among temporary files.
pub fn own_path() -> PathBuf {
    match (variable("XDG_RUNTIME_DIR"), rustix::process::geteuid()) {
        (Some(folder), _) => PathBuf::from(folder).join("takt/control"),
        (None, uid) if uid.is_root() => system_path(),
        (None, uid) => std::env::temp_dir().join(format!("takt-{}/control", uid.as_raw())),
    }
}

/// Folder of the sockets of a cockpit unless told otherwise, by the same rule.
pub fn cockpit_folder() -> PathBuf {
    match (variable("XDG_RUNTIME_DIR"), rustix::process::geteuid()) {
        (Some(folder), _) => PathBuf::from(folder).join("takt-cockpit"),
        (None, uid) if uid.is_root() => PathBuf::from(SYSTEM_COCKPIT),
        (None, uid) => std::env::temp_dir().join(format!("takt-cockpit-{}", uid.as_raw())),
    }
}

/// Where to look for a daemon unless told otherwise: the user's own if it answers, else the
/// machine's if that one does. If neither does, where the user's own would be.
pub fn default_path() -> PathBuf {
    first_to_answer(own_path(), system_path())
}

fn system_path() -> PathBuf {
    variable("TAKT_SYSTEM_SOCKET").map_or_else(|| PathBuf::from(SYSTEM), PathBuf::from)
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn first_to_answer(own: PathBuf, system: PathBuf) -> PathBuf {
    let is_ours = own.parent().is_none_or(is_trustworthy);
    if is_ours && (answers(&own) || !answers(&system)) { own } else { system }
}

/// Whether no other user can have put something there. Where all users may make folders, an existing one
/// must be the user's own or the superuser's.
pub fn is_trustworthy(folder: &Path) -> bool {
    let owned = |uid| uid == rustix::process::geteuid().as_raw() || uid == 0;
    let is_shared = |above: Metadata| above.mode() & 0o002 != 0;
    match std::fs::symlink_metadata(folder) {
        Ok(found) => {
            owned(found.uid()) || !folder.parent().is_some_and(|above| above.metadata().is_ok_and(is_shared))
        }
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Whether a daemon serves there that we may talk to: sockets are left behind by daemons that were
/// killed, and the machine's may be closed to us.
fn answers(path: &Path) -> bool {
    match Connection::connect_at_once(path) {
        Ok(_) => true,
        // So many want to talk to it that they queue.
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::Listener;

    fn path(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("takt-find-{name}-{}", std::process::id()));
        std::fs::remove_file(&path).unwrap_or_default();
        path
    }

    #[test]
    fn the_users_own_comes_first_and_the_dead_do_not_count() {
        let (own, system) = (path("own"), path("system"));
        let found = || first_to_answer(own.clone(), system.clone());
        assert_eq!(found(), own, "there is none");
        let machines = Listener::bind(&system).expect("bind");
        assert_eq!(found(), system);
        let users = Listener::bind(&own).expect("bind");
        assert_eq!(found(), own);
        drop(users);
        assert!(own.exists(), "it was left behind");
        assert_eq!(found(), system);
        drop(machines);
        assert_eq!(found(), own, "both were left behind");
        for path in [&own, &system] {
            std::fs::remove_file(path).expect("removed");
        }
    }

    #[test]
    fn folders_of_others_are_not_looked_into() {
        let folder = path("folder");
        assert!(is_trustworthy(&folder), "it is not there");
        std::fs::create_dir(&folder).expect("made");
        assert!(is_trustworthy(&folder), "it is ours");
        // Only the superuser can give folders away.
        if rustix::process::geteuid().is_root() {
            let (own, system) = (folder.join("control"), path("folder-system"));
            let found = || first_to_answer(own.clone(), system.clone());
            let trap = Listener::bind(&own).expect("bind");
            assert_eq!(found(), own);
            std::os::unix::fs::chown(&folder, Some(12_345), None).expect("given away");
            assert!(!is_trustworthy(&folder));
            assert_eq!(found(), system, "another user listens there");
            drop(trap);
        }
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_busy_daemon_is_there() {
        let path = path("busy");
        let listener = Listener::bind(&path).expect("bind");
        let mut crowd = Vec::new();
        while let Ok(connection) = Connection::connect_at_once(&path) {
            crowd.push(connection);
        }
        assert!(answers(&path), "after {} connections", crowd.len());
        drop(listener);
        assert!(!answers(&path));
        std::fs::remove_file(&path).expect("removed");
    }
}
