//! What can be done with descriptors: those that clients pass, and those that they are given.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{FallocateFlags, OFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_setfl, ftruncate};
use rustix::net::{Shutdown, shutdown};
use takt_daemon::control::server::Server;
use takt_ipc::message::{Hello, Message};
use takt_ipc::socket::Connection;

use crate::arena::{Arena, as_user, scale, withstand, withstand_with};
use crate::clients::join_by_hand;
use crate::setting::Setting;
use crate::support::{PATIENCE, hello};

const MALLORY: u32 = 41_000;
/// Descriptors that are kept of clients which have left.
const KEPT_MAX: usize = 300;

/// As on kernels before 6.16, which do not refuse descriptors for the daemon.
const OLDER: Setting = Setting { more: "", audit: "", prepare: Some(Server::take_descriptors) };

/// A socket whose close blocks until the other end, which reads nothing, is dropped.
fn lingers() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut full = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
    let (deaf, _) = listener.accept().expect("accepted");
    full.set_nonblocking(true).expect("set");
    while full.write(&[0; 1 << 16]).is_ok() {}
    rustix::net::sockopt::set_socket_linger(&full, Some(Duration::from_secs(3600))).expect("set");
    (full.into(), deaf)
}

fn pass_lingering(arena: &Arena) {
    let (mut full, mut deaf) = (Vec::new(), Vec::new());
    as_user(MALLORY, || {
        // Where the daemon's kernel is old, more of them keep all others out (ADR 0051).
        for _ in 0..scale(20, 200) {
            let (socket, other_end) = lingers();
            deaf.push(other_end);
            let connection = Connection::connect(arena.path(), PATIENCE).expect("connect");
            let _refused = connection.send(&Message::Hello(hello("mallory", 9)), &[socket.as_fd()]);
            // Where the kernel refuses it, this is the last reference to it.
            full.push(socket);
        }
        while arena.goes_on() {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    // From now on they close at once.
    drop(deaf);
    drop(full);
}

#[test]
fn descriptors_that_linger() {
    withstand("descriptors", pass_lingering);
}

/// As on kernels before 6.16, which do not refuse descriptors for the daemon.
#[test]
fn descriptors_that_linger_on_older_kernels() {
    withstand_with("descriptors-older", OLDER, pass_lingering);
}

/// Shrinks, grows, seals and empties the shared memory, writes to the page that only the daemon may write to,
/// makes the doorbell block and fills it up.
fn abuse(fds: &[OwnedFd]) {
    let [region, doorbell, beat] = fds else { panic!("three descriptors") };
    for shared in [region, beat] {
        assert!(ftruncate(shared, 0).is_err() && ftruncate(shared, 1 << 30).is_err(), "its size stays");
        assert!(fcntl_add_seals(shared, SealFlags::WRITE).is_err(), "it can be sealed no further");
    }
    assert!(rustix::io::pwrite(beat, &[0xff; 8], 0).is_err(), "only the daemon beats");
    let again = format!("/proc/self/fd/{}", beat.as_raw_fd());
    if let Ok(again) = std::fs::OpenOptions::new().write(true).open(again) {
        assert!(rustix::io::pwrite(again, &[0xff; 8], 0).is_err(), "nor through another descriptor");
    }
    fcntl_setfl(doorbell, OFlags::empty()).expect("it is shared");
    rustix::io::write(doorbell, &(u64::MAX - 1).to_ne_bytes()).unwrap_or_default();
    fallocate(region, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 1 << 16).expect("its pages");
    // From now on it would block this client, and none of the daemon's threads.
    fcntl_setfl(doorbell, OFlags::NONBLOCK).expect("it is shared");
    for _ in 0..100 {
        rustix::io::write(doorbell, &1_u64.to_ne_bytes()).unwrap_or_default();
    }
}

/// Connections that hold each other, and half of one that is closed.
fn pass_connections(arena: &Arena) {
    let connect = || Connection::connect_at_once(arena.path()).ok();
    let (Some(one), Some(other)) = (connect(), connect()) else { return };
    let greeting = Message::Hello(Hello { name: "loop".to_owned(), ..Hello::default() });
    let _refused = one.send(&greeting, &[other.as_fd(), one.as_fd()]);
    let _refused = other.send(&greeting, &[one.as_fd()]);
    if let Some(half) = connect() {
        shutdown(&half, Shutdown::Read).unwrap_or_default();
        let _gone = half.send(&greeting, &[]);
    }
}

#[test]
fn games_with_descriptors() {
    withstand_with("descriptor-games", OLDER, |arena| {
        as_user(MALLORY, || {
            let mut kept = Vec::new();
            while arena.goes_on() {
                pass_connections(arena);
                match join_by_hand(arena) {
                    Some((_left, fds)) => {
                        abuse(&fds);
                        kept.extend(fds);
                    }
                    None => std::thread::sleep(Duration::from_millis(5)),
                }
                kept.truncate(KEPT_MAX);
            }
        });
    });
}
