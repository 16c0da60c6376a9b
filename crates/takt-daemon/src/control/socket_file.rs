//! The file of a socket: replaced only where that harms no other program.
//!
//! A daemon that was killed leaves its socket behind, and the next one must replace it. Any other file
//! at that path stays: a regular file, a link, a socket that a program still serves, and a socket of
//! another user.

use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use takt_ipc::socket::Connection;

/// The file of a socket that this process has bound; dropping it removes the file, unless the path has
/// another one by then.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    id: (u64, u64),
}

impl SocketFile {
    /// Makes room at `path` and binds there.
    pub fn bind<L>(path: PathBuf, bind: impl FnOnce(&Path) -> Result<L>) -> Result<(L, Self)> {
        clear(&path)?;
        let listener = bind(&path)?;
        let id = identity(&path)?;
        Ok((listener, Self { path, id }))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|id| id == self.id) {
            // The folder may be read-only by now; the next daemon replaces the file.
            std::fs::remove_file(&self.path).unwrap_or_default();
        }
    }
}

fn identity(path: &Path) -> Result<(u64, u64)> {
    let file = std::fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino()))
}

/// Removes a socket that a process of this user left behind; fails if there is anything else.
fn clear(path: &Path) -> Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        // Usually there is no file; any other error comes back from bind.
        return Ok(());
    };
    let stays = |what: &str| {
        let text = format!("{} {what}; use another path", path.display());
        Err(Error::new(ErrorKind::AlreadyExists, text))
    };
    if !found.file_type().is_socket() {
        return stays("exists and is no socket");
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return stays(&format!("is a socket of user {}", found.uid()));
    }
    // Only a socket without a process behind it refuses; one of another type answers otherwise.
    match Connection::connect_at_once(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        Ok(_) | Err(_) => stays("is a socket that a program serves"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixDatagram, UnixListener};

    /// An empty folder of that name.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("takt-socket-file-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("made");
        folder
    }

    fn bind(path: &Path) -> Result<(UnixListener, SocketFile)> {
        SocketFile::bind(path.to_owned(), |path| UnixListener::bind(path))
    }

    #[test]
    fn only_sockets_that_were_left_behind_are_replaced() {
        let folder = folder("replaced");
        let (file, link) = (folder.join("notes.txt"), folder.join("link"));
        std::fs::write(&file, "precious").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        for path in [&file, &link, &folder] {
            let error = bind(path).expect_err("it is no socket");
            assert!(error.to_string().contains("is no socket; use another path"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&file).expect("there"), "precious");

        let (served, datagrams) = (folder.join("served"), folder.join("datagrams"));
        let _listener = UnixListener::bind(&served).expect("bound");
        let _datagrams = UnixDatagram::bind(&datagrams).expect("bound");
        for path in [&served, &datagrams] {
            let error = bind(path).expect_err("a program serves it");
            assert!(error.to_string().contains("that a program serves"), "{error}");
        }
        let left = folder.join("left");
        drop(UnixListener::bind(&left).expect("bound"));
        drop(bind(&left).expect("it replaces a stale socket"));
        assert!(!left.exists(), "and removes its own");
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_file_that_replaced_it_stays() {
        let folder = folder("replaced-by");
        let path = folder.join("socket");
        let bound = bind(&path).expect("bound");
        std::fs::remove_file(&path).expect("removed");
        std::fs::write(&path, "precious").expect("written");
        drop(bound);
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "precious");
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "says that it was skipped")]
    fn sockets_of_other_users_stay() {
        let folder = folder("others");
        let path = folder.join("socket");
        drop(UnixListener::bind(&path).expect("bound"));
        if std::os::unix::fs::chown(&path, Some(65_534), None).is_err() {
            eprintln!("skipped: only root can give a file to another user");
        } else {
            let error = bind(&path).expect_err("it is another user's");
            assert!(error.to_string().contains("is a socket of user 65534"), "{error}");
            assert!(path.exists());
        }
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
