//! Who is connected to a server of this machine: the kernel lists sockets with the names of those that accepted
//! (`sock_diag(7)`).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST` and `NLM_F_DUMP`.
const REQUEST_DUMP: u16 = 0x301;
/// `AF_UNIX`.
const FAMILY: u8 = 1;
/// `UDIAG_SHOW_NAME` and `UDIAG_SHOW_PEER`.
const SHOW: u32 = 1 | 4;
/// `UNIX_DIAG_NAME` and `UNIX_DIAG_PEER`.
const NAME: u16 = 0;
const PEER: u16 = 2;
/// Of a message, of an answer about a socket, and of each attribute behind it.
const HEADER_BYTES: usize = 16;
const ANSWER_BYTES: usize = 16;
const ATTRIBUTE_BYTES: usize = 4;

/// The other end of a connection that a server of this machine accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Number of the client's socket, as links in `/proc/PID/fd` have it.
    pub socket: u32,
    /// The address where the server listens; one that is no path begins with `@`.
    pub server: String,
}

/// Clients of all servers that listen at addresses of the file system, or at abstract ones of this network name space.
pub fn peers() -> io::Result<Vec<Peer>> {
    // SAFETY: makes a descriptor, or says -1.
    let file = unsafe {
        libc::socket(libc::AF_NETLINK, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, libc::NETLINK_SOCK_DIAG)
    };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, and no other code knows it.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    let request = request();
    // SAFETY: so many bytes are there.
    if unsafe { libc::send(file.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut peers, mut room) = (Vec::new(), vec![0_u8; 1 << 16]);
    loop {
        // SAFETY: there is room for so many bytes.
        let count = unsafe { libc::recv(file.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), 0) };
        let Ok(count) = usize::try_from(count) else {
            return Err(io::Error::last_os_error());
        };
        if count == 0 || !take(room.get(..count).unwrap_or_default(), &mut peers) {
            return Ok(peers);
        }
    }
}

/// Asks for all sockets of the family, with their names and peers.
fn request() -> Vec<u8> {
    const BYTES: u32 = 40;
    let mut request = Vec::new();
    request.extend(BYTES.to_ne_bytes());
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend(REQUEST_DUMP.to_ne_bytes());
    // Numbers of the message and of who asks: the kernel fills them in where they matter.
    request.extend([0; 8]);
    request.extend([FAMILY, 0, 0, 0]);
    // In all states, of all numbers.
    request.extend(u32::MAX.to_ne_bytes());
    request.extend(0_u32.to_ne_bytes());
    request.extend(SHOW.to_ne_bytes());
    request.extend([0; 8]);
    request
}

/// Takes what one packet says; false if it is the last.
fn take(packet: &[u8], peers: &mut Vec<Peer>) -> bool {
    let mut rest = packet;
    while let (Some(length), Some(kind)) = (word(rest, 0), half(rest, 4)) {
        let length = length as usize;
        if kind != BY_FAMILY || length < HEADER_BYTES + ANSWER_BYTES {
            return false;
        }
        let attributes = rest.get(HEADER_BYTES + ANSWER_BYTES..length).unwrap_or_default();
        peers.extend(peer(attributes));
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    true
}

/// A connection with a name and a peer: the name is that of the server which accepted it.
fn peer(mut attributes: &[u8]) -> Option<Peer> {
    let (mut server, mut socket) = (None, None);
    while let (Some(length), Some(kind)) = (half(attributes, 0), half(attributes, 2)) {
        let length = usize::from(length).max(ATTRIBUTE_BYTES);
        match kind {
            NAME => server = attributes.get(ATTRIBUTE_BYTES..length).map(address),
            PEER => socket = word(attributes, ATTRIBUTE_BYTES).filter(|socket| *socket != 0),
            _ => {}
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(Peer { socket: socket?, server: server? })
}

fn address(bytes: &[u8]) -> String {
    let text = match bytes.split_first() {
        Some((0, rest)) => format!("@{}", String::from_utf8_lossy(rest)),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    text.trim_end_matches('\0').to_owned()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn clients_of_a_server_are_found() {
        let path = std::env::temp_dir().join(format!("takt-peers-{}", std::process::id()));
        let server = UnixListener::bind(&path).expect("a socket");
        let client = UnixStream::connect(&path).expect("a server listens");
        let accepted = server.accept().expect("a client");
        let link = format!("/proc/self/fd/{}", client.as_raw_fd());
        let number = std::fs::metadata(link).expect("our own").ino();
        let name = path.display().to_string();
        let found: Vec<Peer> =
            peers().expect("the kernel tells").into_iter().filter(|peer| peer.server == name).collect();
        assert_eq!(found, [Peer { socket: u32::try_from(number).expect("small"), server: name }]);
        drop(accepted);
        std::fs::remove_file(&path).expect("our own");
    }

    #[test]
    fn nonsense_is_no_peer() {
        let mut peers = Vec::new();
        for bytes in [&[][..], &[1; 7], &[255; 64], &[0; 64]] {
            take(bytes, &mut peers);
            assert_eq!(peer(bytes), None);
        }
        assert_eq!(peers, []);
    }
}
