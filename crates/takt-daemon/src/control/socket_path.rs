//! The path of the control socket, and the lock beside it.
//!
//! The daemon locks a file beside its socket for as long as it lives. So of several daemons that start
//! at once exactly one serves, and a stale socket can be told from one in use.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use takt_ipc::socket::{Connection, Descriptors, Listener};

use super::socket_file::SocketFile;

/// How long a daemon that was killed may take to be gone.
const DYING_MAX: Duration = Duration::from_secs(2);
/// How often to try again meanwhile.
const RETRY: Duration = Duration::from_millis(5);

/// The control socket; dropping it removes it.
#[derive(Debug)]
pub struct ControlSocket {
    listener: Listener,
    file: SocketFile,
    /// Dropped last, when the socket is gone.
    _lock: Lock,
}

impl ControlSocket {
    /// Listens at `path`, in a folder that is made for the user alone if it does not exist. A stale
    /// socket is replaced; one in use is not.
    pub fn bind(path: PathBuf) -> Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            make(folder)?;
        }
        let lock = Lock::take(beside(&path, ".lock"), &path)?;
        let (listener, file) = SocketFile::bind(path, Listener::bind)?;
        // Where the kernel cannot, messages with descriptors are left unread.
        listener.set_descriptors(Descriptors::Refused);
        Ok(Self { listener, file, _lock: lock })
    }

    /// Accepts connections.
    pub fn listener(&self) -> &Listener {
        &self.listener
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.file.path()
    }
}

impl AsFd for ControlSocket {
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
        Ok(Self { path, _held: held })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // It may be gone already.
        std::fs::remove_file(&self.path).unwrap_or_default();
    }
}

/// The path with an ending added to its name.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Makes a folder for the user alone. In a directory that all users may write to, an existing folder
/// must be the user's own.
pub fn make(folder: &Path) -> Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if !takt_ipc::find::is_trustworthy(folder) {
                let what = format!("{} belongs to another user; use another path", folder.display());
                return Err(Error::new(ErrorKind::PermissionDenied, what));
            }
            Ok(())
        }
        made => made,
    }
}

/// Opens and locks the file beside the socket, again if its last holder removed it in the meantime. A
/// holder that does not answer either starts or is about to be gone, so this tries for a moment.
fn hold(path: &Path, socket: &Path) -> Result<File> {
    let until = Instant::now() + DYING_MAX;
    loop {
        let file = open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) if Instant::now() < until && !answers(socket) => {
                std::thread::sleep(RETRY);
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

/// Opens the lock, or makes it. Where all users may write to the folder, another one may have been first: a link is
/// not followed, a pipe not waited for, and the file of another user is no lock of ours.
fn open(path: &Path) -> Result<File> {
    let stays = |what: String| {
        let text = format!("{} {what}; use another socket path", path.display());
        Err(Error::new(ErrorKind::AlreadyExists, text))
    };
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) => {
            let is_file = std::fs::symlink_metadata(path).map_or(true, |found| found.is_file());
            return if is_file { Err(error) } else { stays("is no file, so it is no lock".to_owned()) };
        }
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return stays("is no file, so it is no lock".to_owned());
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return stays(format!("belongs to user {}", found.uid()));
    }
    // Locks are empty: any other file belongs to another program, and dropping the lock would remove it.
    if found.len() > 0 {
        return stays("is not empty, so it is no lock".to_owned());
    }
    Ok(file)
}

fn answers(socket: &Path) -> bool {
    Connection::connect_at_once(socket).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("takt-socket-{name}-{}", std::process::id()))
    }

    #[test]
    fn of_many_at_once_one_serves() {
        let path = path("race");
        let sockets: Vec<Result<ControlSocket>> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..16).map(|_| scope.spawn(|| ControlSocket::bind(path.clone()))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let (served, refused): (Vec<_>, Vec<_>) = sockets.into_iter().partition(Result::is_ok);
        assert_eq!((served.len(), refused.len()), (1, 15));
        for error in refused.into_iter().filter_map(Result::err) {
            assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
        }
        drop(served);
        assert!(!path.exists() && !beside(&path, ".lock").exists(), "no file is left");
        ControlSocket::bind(path).expect("unlocked");
    }

    #[test]
    fn folders_are_the_users_own() {
        let folder = path("folder");
        let socket = ControlSocket::bind(folder.join("deep/control")).expect("made");
        assert_eq!(folder.join("deep").metadata().expect("there").mode() & 0o777, 0o700);
        drop(socket);
        std::fs::remove_dir_all(folder).expect("removed");
    }

    /// Another user may have been first where all may write.
    #[test]
    fn a_link_or_a_pipe_in_the_place_of_the_lock_is_not_used() {
        let folder = path("planted");
        std::fs::create_dir_all(&folder).expect("made");
        let (lock, target) = (folder.join("control.lock"), folder.join("target"));
        let refused = || ControlSocket::bind(folder.join("control")).expect_err("it is no lock").to_string();
        std::os::unix::fs::symlink(&target, &lock).expect("linked");
        assert!(refused().contains("is no file, so it is no lock"), "{}", refused());
        assert!(!target.exists(), "nothing is made where it leads");
        std::fs::remove_file(&lock).expect("removed");
        let by_user = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &lock, rustix::fs::FileType::Fifo, by_user, 0).expect("made");
        assert!(refused().contains("is no file, so it is no lock"), "{}", refused());
        // With a reader it would open.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let _reader = rustix::fs::open(&lock, flags, rustix::fs::Mode::empty()).expect("opened");
        assert!(refused().contains("is no file, so it is no lock"), "{}", refused());
        std::fs::remove_file(&lock).expect("removed");
        std::fs::write(&lock, "").expect("written");
        if std::os::unix::fs::chown(&lock, Some(65_534), None).is_ok() {
            assert!(refused().contains("belongs to user 65534"), "{}", refused());
            assert!(lock.exists(), "and it stays");
        }
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_file_that_only_looks_like_a_lock_stays() {
        let folder = path("cargo");
        std::fs::create_dir_all(&folder).expect("made");
        let file = folder.join("Cargo.lock");
        std::fs::write(&file, "version = 4").expect("written");
        let error = ControlSocket::bind(folder.join("Cargo")).expect_err("it is no lock");
        assert!(error.to_string().contains("is not empty, so it is no lock"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).expect("there"), "version = 4");
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
