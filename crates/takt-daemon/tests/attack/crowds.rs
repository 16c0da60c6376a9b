//! Many connections, many slots, many names, and descriptors that do not close.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use takt_ipc::client::{Joined, NotScheduled, join};
use takt_ipc::message::{Hello, Message};
use takt_ipc::socket::Connection;

use crate::arena::{Arena, as_user, is_root, say, scale, withstand, withstand_with};
use crate::support::{PATIENCE, hello};

const MALLORY: u32 = 41_000;
/// The first of many users, none of which is listed.
const CROWD: u32 = 50_000;

#[test]
fn many_connections() {
    withstand("connections", |arena| {
        as_user(MALLORY, || {
            let mut made = 0;
            while made < scale(10_000, 225_000) || arena.goes_on() {
                // A daemon that is busy with others takes no more for now.
                drop(Connection::connect_at_once(arena.path()));
                made += 1;
            }
        });
    });
}

#[test]
fn silent_connections() {
    withstand("silent-connections", |arena| {
        let silent: Vec<Connection> = as_user(MALLORY, || {
            (0..400).filter_map(|_| Connection::connect_at_once(arena.path()).ok()).collect()
        });
        let visitors: Vec<TcpStream> =
            (0..100).map(|_| TcpStream::connect(arena.metrics()).expect("it answers")).collect();
        while arena.goes_on() {
            assert!(arena.scrape().contains("takt_apps "), "a scrape is answered");
        }
        drop((silent, visitors));
    });
}

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
    withstand_with("descriptors-older", "", |server| server.take_descriptors(), pass_lingering);
}

#[test]
fn squatters() {
    if !is_root() {
        say("squatters: SKIPPED, only root can be several users");
        return;
    }
    withstand("squatters", |arena| {
        let mut held: Vec<Joined> = Vec::new();
        let mut take = |uid: u32| -> bool {
            let asked = as_user(uid, || join(arena.path(), &hello("squatter", 95), PATIENCE));
            match asked {
                Ok(joined) => held.push(joined),
                Err(NotScheduled::NotNow { .. }) => return false,
                Err(other) => panic!("{other}"),
            }
            true
        };
        // Three users at once: what one may not have, the next one takes.
        for uid in MALLORY..MALLORY + 3 {
            while take(uid) {}
        }
        while arena.goes_on() {
            take(MALLORY);
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

#[test]
fn invented_names() {
    withstand("invented-names", |arena| {
        as_user(MALLORY, || {
            let mut joined = 0;
            while joined < scale(300, 5_000) || arena.goes_on() {
                let name = format!("invented-{joined}");
                drop(join(arena.path(), &hello(&name, 3), PATIENCE).expect("there is a slot"));
                joined += 1;
            }
        });
        let until = std::time::Instant::now() + PATIENCE;
        let counted = |page: &str| {
            ["victim", "listed"]
                .iter()
                .all(|name| page.contains(&format!("takt_frames_total{{app=\"{name}\",")))
        };
        while !counted(&arena.scrape()) {
            assert!(std::time::Instant::now() < until, "real apps are counted by name: {}", arena.scrape());
        }
    });
}

/// As user namespaces give one person many users: each connects, is silent, and asks for everything.
#[test]
fn many_users() {
    if !is_root() {
        say("users: SKIPPED, only root can be several users");
        return;
    }
    withstand("users", |arena| {
        let greedy = Hello { fps_mhz: Some(60_000), etpf_ns: Some(16_000_000), ..hello("greedy", u32::MAX) };
        let mut held = VecDeque::new();
        for (count, uid) in (CROWD..).enumerate() {
            if count >= scale(300, 3_000) && !arena.goes_on() {
                break;
            }
            held.push_back(as_user(uid, || {
                let silent: Vec<_> =
                    (0..4).filter_map(|_| Connection::connect_at_once(arena.path()).ok()).collect();
                // Some get a slot, and the others are to come back later.
                (silent, join(arena.path(), &greedy, PATIENCE).ok())
            }));
            if held.len() > 100 {
                held.pop_front();
            }
        }
    });
}

/// Clients with the names of listed apps, before and while those are there.
#[test]
fn impostors() {
    if !is_root() {
        say("impostors: SKIPPED, only root can be several users");
        return;
    }
    withstand_with(
        "impostors",
        "admission = 'refuse'\n",
        |_| {},
        |arena| {
            as_user(MALLORY, || {
                let names = ["victim", "listed"];
                let mut held: Vec<Joined> = Vec::new();
                while arena.goes_on() {
                    let claim = Hello { fps_mhz: Some(60_000), ..hello(names[held.len() % 2], 90) };
                    let impostor = join(arena.path(), &claim, PATIENCE).expect("best effort");
                    assert!(!impostor.welcome.standing.protected, "{:?}", impostor.welcome);
                    held.push(impostor);
                    if held.len() == 20 {
                        held.clear();
                    }
                }
            });
        },
    );
}

/// An unlisted user asks for the highest priority and the whole GPU.
#[test]
fn greedy_apps() {
    withstand("greedy", |arena| {
        let greedy = Hello { fps_mhz: Some(60_000), etpf_ns: Some(16_000_000), ..hello("greedy", u32::MAX) };
        as_user(MALLORY, || {
            while arena.goes_on() {
                let joined = join(arena.path(), &greedy, PATIENCE).expect("it is scheduled below the others");
                assert!(!joined.welcome.standing.protected || !is_root(), "{:?}", joined.welcome);
            }
        });
    });
}
