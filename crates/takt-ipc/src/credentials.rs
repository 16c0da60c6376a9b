//! What the kernel vouches for about the process on the other side of a socket, beyond its
//! [`Peer`](crate::socket::Peer).
//!
//! The kernel noted all of it when that process connected, so nothing that the process says or does
//! afterwards changes the answers.

use std::io::{Error, Result};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

/// Asks for a descriptor of the peer's process (Linux 6.5); the number is that of most architectures.
const SO_PEERPIDFD: libc::c_int = 77;
/// Most supplementary groups that are read; the kernel's own limit.
const GROUPS_MAX: usize = 65_536;

/// The groups of the process that connected: its own one first, then the supplementary ones.
pub fn groups(socket: &impl AsFd) -> Result<Vec<u32>> {
    let mut groups = vec![main_group(socket)?];
    groups.extend(supplementary_groups(socket)?);
    Ok(groups)
}

fn main_group(socket: &impl AsFd) -> Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    #[expect(clippy::cast_possible_truncation, reason = "a dozen bytes")]
    let mut size = size_of_val(&peer) as libc::socklen_t;
    let (fd, level) = (socket.as_fd().as_raw_fd(), libc::SOL_SOCKET);
    // SAFETY: there is room for the answer, and its size is told.
    let asked =
        unsafe { libc::getsockopt(fd, level, libc::SO_PEERCRED, (&raw mut peer).cast(), &raw mut size) };
    if asked == 0 { Ok(peer.gid) } else { Err(Error::last_os_error()) }
}

fn supplementary_groups(socket: &impl AsFd) -> Result<Vec<u32>> {
    let mut groups = vec![0u32; 64];
    loop {
        let mut size = libc::socklen_t::try_from(size_of_val(groups.as_slice())).map_err(Error::other)?;
        let (fd, level) = (socket.as_fd().as_raw_fd(), libc::SOL_SOCKET);
        let (option, into) = (libc::SO_PEERGROUPS, groups.as_mut_ptr().cast());
        // SAFETY: there is room for as many bytes as the size says.
        let asked = unsafe { libc::getsockopt(fd, level, option, into, &raw mut size) };
        let known = usize::try_from(size).map_err(Error::other)? / size_of::<u32>();
        if asked == 0 {
            groups.truncate(known);
            return Ok(groups);
        }
        let error = Error::last_os_error();
        // The kernel said how many there are.
        if error.raw_os_error() != Some(libc::ERANGE) || known <= groups.len() || known > GROUPS_MAX {
            return Err(error);
        }
        groups.resize(known, 0);
    }
}

/// The process that connected, however often its number has been given to others since. Kernels before
/// Linux 6.5 do not tell.
pub fn process(socket: &impl AsFd) -> Result<PeerProcess> {
    let mut pidfd: libc::c_int = -1;
    #[expect(clippy::cast_possible_truncation, reason = "four bytes")]
    let mut size = size_of_val(&pidfd) as libc::socklen_t;
    let (fd, level) = (socket.as_fd().as_raw_fd(), libc::SOL_SOCKET);
    // SAFETY: there is room for the answer, and its size is told.
    let asked = unsafe { libc::getsockopt(fd, level, SO_PEERPIDFD, (&raw mut pidfd).cast(), &raw mut size) };
    if asked != 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: the kernel made the descriptor for this call, so it has no other owner.
    Ok(PeerProcess(unsafe { OwnedFd::from_raw_fd(pidfd) }))
}

/// A process that cannot be mistaken for a later one with the same number.
#[derive(Debug)]
pub struct PeerProcess(OwnedFd);

impl PeerProcess {
    /// Whether it has not ended. As long as it has not, its number is not given to another process, so
    /// what `/proc` said about that number before was about this process.
    pub fn is_alive(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&at_once)).is_ok_and(|ready| ready == 0)
    }
}

impl AsFd for PeerProcess {
    /// Readable once it has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_kernel_tells_groups_and_process() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let own = rustix::process::getgroups().expect("known");
        let mut own: Vec<u32> = own.iter().map(|group| group.as_raw()).collect();
        let told = groups(&one).expect("known");
        assert_eq!(told[0], rustix::process::getegid().as_raw());
        let mut others = told[1..].to_vec();
        own.sort_unstable();
        others.sort_unstable();
        assert_eq!(others, own);
        match process(&one) {
            Ok(process) => assert!(process.is_alive(), "it is this process"),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOPROTOOPT), "before Linux 6.5"),
        }
    }

    /// Where the other process of the test below connects.
    const CONNECT_TO: &str = "TAKT_TEST_CONNECT_TO";

    #[test]
    fn a_process_that_ended_is_not_alive() {
        if let Some(path) = std::env::var_os(CONNECT_TO) {
            UnixStream::connect(path).expect("the test listens");
            return;
        }
        let path = std::env::temp_dir().join(format!("takt-credentials-{}", std::process::id()));
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("bound");
        let this = std::env::current_exe().expect("this test");
        let other = std::process::Command::new(this)
            .args(["--exact", "credentials::tests::a_process_that_ended_is_not_alive"])
            .env(CONNECT_TO, &path)
            .stdout(std::process::Stdio::null())
            .spawn();
        let (accepted, _) = listener.accept().expect("a connection");
        let process = process(&accepted);
        assert!(other.expect("started").wait().expect("ended").success());
        std::fs::remove_file(path).expect("removed");
        match process {
            Ok(process) => assert!(!process.is_alive()),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOPROTOOPT), "before Linux 6.5"),
        }
    }
}
