//! Where the daemon listens.
//!
//! A file beside the socket is locked for as long as the daemon lives, so that of several that are
//! started at once exactly one serves, and a socket that was left behind can be told from one that
//! is in use.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use takt_ipc::socket::{Connection, Listener};

use crate::control::socket_file::SocketFile;

/// How long a daemon that was killed may take to be gone.
const DYING_MAX: Duration = Duration::from_secs(2);
/// How often to look whether it is.
const LOOK: Duration = Duration::from_millis(5);

/// A socket that is ours; it is gone when this is dropped.
#[derive(Debug)]
pub struct Place {
    listener: Listener,
    file: SocketFile,
    /// Given up last, when the socket is gone.
    _lock: Lock,
}

impl Place {
    /// Listens at `path`, in a folder that is made for the user alone if it does not exist. A socket
    /// that a daemon left behind is replaced; one that is in use is not.
    pub fn take(path: PathBuf) -> Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            make(folder)?;
        }
        let lock = Lock::take(beside(&path, ".lock"), &path)?;
        let (listener, file) = SocketFile::bind(path, Listener::bind)?;
        // Where the kernel cannot, messages with descriptors are left unread.
        listener.refuse_descriptors();
        Ok(Self { listener, file, _lock: lock })
    }

    /// Who knocks.
    pub fn listener(&self) -> &Listener {
        &self.listener
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.file.path()
    }
}

impl AsFd for Place {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// The lock beside the socket; it is held for as long as its file is open, and gone when dropped.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    _held: File,
}

impl Lock {
    fn take(path: PathBuf, socket: &Path) -> Result<Self> {
        let held = hold(&path, socket)?;
        // Locks are empty: what is not belongs to another program, and would be removed at the end.
        if held.metadata()?.len() > 0 {
            let what = format!("{} is not empty, so it is no lock; name another socket", path.display());
            return Err(Error::new(ErrorKind::AlreadyExists, what));
        }
        Ok(Self { path, _held: held })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // It may be gone already.
        std::fs::remove_file(&self.path).unwrap_or_default();
    }
}

/// The file of that name with something added to it.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Makes a folder for the user alone. Where anybody may make folders, one that is there already must
/// be the user's.
pub fn make(folder: &Path) -> Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if !takt_ipc::find::is_trustworthy(folder) {
                let what = format!("{} belongs to somebody else; name another place", folder.display());
                return Err(Error::new(ErrorKind::PermissionDenied, what));
            }
            Ok(())
        }
        made => made,
    }
}

/// Opens and locks the file beside the socket. One that its last holder removed in the meantime is
/// not it. A holder that does not answer is about to: or it is dying, and gone in a moment.
fn hold(path: &Path, socket: &Path) -> Result<File> {
    let until = Instant::now() + DYING_MAX;
    loop {
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) if Instant::now() < until && !answers(socket) => {
                std::thread::sleep(LOOK);
                continue;
            }
            Err(Errno::WOULDBLOCK) => {
                let what = "a daemon serves there already; stop it, or give this one another socket";
                return Err(Error::new(ErrorKind::AddrInUse, what));
            }
            Err(error) => return Err(error.into()),
        }
        let is_it = |found: &std::fs::Metadata| file.metadata().is_ok_and(|own| own.ino() == found.ino());
        if std::fs::metadata(path).is_ok_and(|found| is_it(&found)) {
            return Ok(file);
        }
    }
}

fn answers(socket: &Path) -> bool {
    Connection::connect_at_once(socket).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("takt-place-{name}-{}", std::process::id()))
    }

    #[test]
    fn of_many_at_once_one_serves() {
        let path = path("race");
        let places: Vec<Result<Place>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| Place::take(path.clone()))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let (served, refused): (Vec<_>, Vec<_>) = places.into_iter().partition(Result::is_ok);
        assert_eq!((served.len(), refused.len()), (1, 15));
        for error in refused.into_iter().filter_map(Result::err) {
            assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
        }
        drop(served);
        assert!(!path.exists() && !beside(&path, ".lock").exists(), "nothing stays behind");
        Place::take(path).expect("free again");
    }

    #[test]
    fn folders_are_the_users_own() {
        let folder = path("folder");
        let place = Place::take(folder.join("deep/control")).expect("made");
        assert_eq!(folder.join("deep").metadata().expect("there").mode() & 0o777, 0o700);
        drop(place);
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_file_that_only_looks_like_a_lock_stays() {
        let folder = path("cargo");
        std::fs::create_dir_all(&folder).expect("made");
        let file = folder.join("Cargo.lock");
        std::fs::write(&file, "version = 4").expect("written");
        let error = Place::take(folder.join("Cargo")).expect_err("it is no lock");
        assert!(error.to_string().contains("is not empty, so it is no lock"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).expect("there"), "version = 4");
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
