//! Many connections, many slots, many names and many users.

use std::collections::VecDeque;
use std::net::TcpStream;
use std::time::Duration;

use takt_audit::{Decision, Event};
use takt_ipc::client::{Joined, NotScheduled, join};
use takt_ipc::message::Hello;
use takt_ipc::socket::Connection;

use crate::arena::{Arena, as_user, is_root, say, scale, withstand};
use crate::support::{PATIENCE, hello};

const MALLORY: u32 = 41_000;
/// The first of many users, none of which is listed.
const CROWD: u32 = 50_000;

/// Connects and goes, `count` times at least.
pub(crate) fn connect_and_go(arena: &Arena, user: u32, count: usize) {
    as_user(user, || {
        let mut made = 0;
        while made < count || arena.goes_on() {
            // A daemon that is busy with others takes no more for now.
            drop(Connection::connect_at_once(arena.path()));
            made += 1;
        }
    });
}

#[test]
fn many_connections() {
    withstand("connections", |arena| connect_and_go(arena, MALLORY, scale(10_000, 225_000)));
}

/// Connections that say nothing, more than there may be.
pub(crate) fn keep_silent(arena: &Arena, user: u32) -> Vec<Connection> {
    as_user(user, || (0..400).filter_map(|_| Connection::connect_at_once(arena.path()).ok()).collect())
}

#[test]
fn silent_connections() {
    withstand("silent-connections", |arena| {
        let silent = keep_silent(arena, MALLORY);
        let visitors: Vec<TcpStream> =
            (0..100).map(|_| TcpStream::connect(arena.metrics()).expect("it answers")).collect();
        while arena.goes_on() {
            assert!(arena.scrape().contains("takt_apps "), "a scrape is answered");
        }
        drop((silent, visitors));
    });
}

/// Visitors of the metrics that come without end, more than are served at once, and say nothing.
pub(crate) fn visit(arena: &Arena, user: u32) {
    as_user(user, || {
        let mut silent = VecDeque::new();
        while arena.goes_on() {
            silent.extend(TcpStream::connect(arena.metrics()));
            if silent.len() > 200 {
                silent.pop_front();
            }
        }
    });
}

#[test]
fn visitors_without_end() {
    withstand("visitors", |arena| {
        std::thread::scope(|scope| {
            for visitor in 0..3 {
                scope.spawn(move || visit(arena, MALLORY + visitor));
            }
            while arena.goes_on() {
                assert!(arena.scrape().contains("takt_apps "), "a scrape is answered");
            }
        });
    });
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

/// Joins with another name each time, with `count` of them at least.
pub(crate) fn invent_names(arena: &Arena, user: u32, count: usize) {
    as_user(user, || {
        let mut joined = 0;
        while joined < count || arena.goes_on() {
            let name = format!("invented-{joined}");
            // Among others, it may have to come back later.
            match join(arena.path(), &hello(&name, 3), PATIENCE) {
                Ok(app) => drop(app),
                Err(NotScheduled::NotNow { .. }) => std::thread::sleep(Duration::from_millis(5)),
                Err(other) => panic!("{other}"),
            }
            joined += 1;
        }
    });
}

#[test]
fn invented_names() {
    withstand("invented-names", |arena| {
        invent_names(arena, MALLORY, scale(300, 5_000));
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

/// The highest priority, and the whole GPU.
fn greedy() -> Hello {
    Hello { fps_mhz: Some(60_000), etpf_ns: Some(16_000_000), ..hello("greedy", u32::MAX) }
}

/// As user namespaces give one person many users, `users` at least: each connects, is silent, and asks for
/// everything.
pub(crate) fn crowd(arena: &Arena, users: usize) {
    let mut held = VecDeque::new();
    for (count, uid) in (CROWD..).enumerate() {
        if count >= users && !arena.goes_on() {
            break;
        }
        held.push_back(as_user(uid, || {
            let silent: Vec<_> =
                (0..4).filter_map(|_| Connection::connect_at_once(arena.path()).ok()).collect();
            // Some get a slot, and the others are to come back later.
            (silent, join(arena.path(), &greedy(), PATIENCE).ok())
        }));
        if held.len() > 100 {
            held.pop_front();
        }
    }
}

#[test]
fn many_users() {
    if !is_root() {
        say("users: SKIPPED, only root can be several users");
        return;
    }
    withstand("users", |arena| crowd(arena, scale(300, 3_000)));
}

/// An unlisted user asks for the highest priority and the whole GPU.
#[test]
fn greedy_apps() {
    let evidence = withstand("greedy", |arena| {
        as_user(MALLORY, || {
            while arena.goes_on() {
                let joined = join(arena.path(), &greedy(), PATIENCE).expect("scheduled below the others");
                assert!(!joined.welcome.standing.protected || !is_root(), "{:?}", joined.welcome);
            }
        });
    });
    let Some(record) = evidence.unlisted.about(Event::Joined, "greedy") else {
        assert!(!is_root(), "what it asked for is recorded");
        return;
    };
    assert!(record.asked.contains("4294967295") && record.decision == Decision::Limited, "{record:?}");
}
