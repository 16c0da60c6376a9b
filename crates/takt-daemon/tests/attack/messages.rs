//! What can be said to the daemon.

use rustix::net::SendFlags;
use takt_ipc::message::{Hello, Message, Welcome};
use takt_ipc::socket::Connection;
use takt_rng::Rng;
use takt_trace::visible::is_hidden;

use crate::arena::{Arena, as_user, scale, withstand};
use crate::support::{PATIENCE, hello};

const MALLORY: u32 = 41_000;

/// One of each kind, as correct clients and daemons say them.
fn messages() -> Vec<Vec<u8>> {
    let full = Hello {
        fps_mhz: Some(60_000),
        etpf_ns: Some(1_000_000),
        max_slice_ns: Some(500_000),
        display: Some("left".to_owned()),
        period_ns: Some(40_000_000),
        deadline_ns: Some(30_000_000),
        runtime_ns: Some(3_000_000),
        hard: true,
        ..hello("mallory", 99)
    };
    let ask = |text: &str| Message::Ask { text: text.to_owned() };
    let all = [
        Message::Hello(hello("mallory", u32::MAX)),
        Message::Hello(full),
        ask(r#"{"ask": "apps"}"#),
        ask(r#"{"ask": "summary", "window_s": 30}"#),
        ask(r#"{"ask": "set", "app": "victim", "priority": 1, "etpf_ms": 0}"#),
        ask(r#"{"ask": "policy", "name": "fifo"}"#),
        ask(r#"{"ask": "stop"}"#),
        Message::Welcome(Welcome::default()),
        Message::Refused { reason: "no".to_owned(), again_ms: Some(1) },
        Message::Answer { text: "{}".to_owned(), more: true },
    ];
    all.iter().map(Message::encode).collect()
}

/// Some bytes of a message changed, cut off, doubled or added.
fn mutated(rng: &mut Rng, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = rng.pick(messages).cloned().unwrap_or_default();
    for _ in 0..rng.between(1, 8) {
        let at = rng.index(bytes.len().max(1));
        match rng.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at.min(bytes.len()), rng.next_u64().to_le_bytes()[0]),
            2 => bytes.extend_from_within(at.min(bytes.len())..),
            3 if !bytes.is_empty() => bytes[at] = [0, 0xff, 0x7f, 0x80][rng.index(4)],
            _ if !bytes.is_empty() => bytes[at] ^= 1 << rng.below(8),
            _ => {}
        }
    }
    bytes
}

/// Sends bytes as they are; the daemon may hang up at any time.
fn send(connection: &Connection, bytes: &[u8]) {
    let _gone = rustix::net::send(connection, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

fn connect(arena: &Arena) -> Connection {
    Connection::connect(arena.path(), PATIENCE).expect("connect")
}

/// Sends mutated messages, `count` at least.
pub(crate) fn mutate(arena: &Arena, user: u32, count: usize) {
    as_user(user, || {
        let (mut rng, messages) = (Rng::new(26, 0), messages());
        let mut sent = 0;
        while sent < count || arena.goes_on() {
            let connection = connect(arena);
            for _ in 0..rng.between(1, 4) {
                send(&connection, &mutated(&mut rng, &messages));
                sent += 1;
            }
        }
    });
}

#[test]
fn mutated_messages() {
    withstand("mutated-messages", |arena| {
        mutate(arena, MALLORY, scale(3_000, 100_000));
        let policy = &arena.daemon.ask(r#"{"ask": "daemon"}"#)["is"]["policy"];
        assert_eq!(policy, "timeline", "another user changes nothing");
    });
}

/// Asks for slots with names that terminals obey.
pub(crate) fn steer_terminals(arena: &Arena, user: u32) {
    let bad =
        ["", "a\nb", "\u{1b}[2J", "a\u{9b}1m", "a\u{202e}b", "a b", "\u{2066}x", "é", "(others)", "a/b"];
    as_user(user, || {
        let mut refused = 0;
        while refused < bad.len() || arena.goes_on() {
            let name = bad[refused % bad.len()];
            let connection = connect(arena);
            connection.send(&Message::Hello(hello(name, 5)), &[]).expect("sent");
            let answer = connection.receive().expect("whole").expect("an answer").message;
            let Message::Refused { reason, .. } = answer else { panic!("{name:?}: {answer:?}") };
            assert!(!reason.contains(is_hidden), "{reason:?}");
            refused += 1;
        }
    });
}

#[test]
fn names_that_steer_terminals() {
    withstand("names", |arena| {
        steer_terminals(arena, MALLORY);
        let log = arena.log.text();
        assert!(!log.replace('\n', "").contains(is_hidden), "{log:?}");
        assert!(!arena.scrape().replace(['\n', '\r'], "").contains(is_hidden));
    });
}

/// Causes lines in the log, `count` at least.
pub(crate) fn flood_log(arena: &Arena, user: u32, count: usize) {
    as_user(user, || {
        let mut sent = 0;
        while sent < count || arena.goes_on() {
            let connection = connect(arena);
            for _ in 0..20 {
                send(&connection, b"rubbish");
                sent += 1;
            }
        }
    });
}

#[test]
fn floods_of_log_lines() {
    withstand("log-flood", |arena| {
        flood_log(arena, MALLORY, scale(5_000, 200_000));
        let joined = |log: &str| log.lines().any(|line| line.contains(" joined ") && line.contains("listed"));
        let until = std::time::Instant::now() + PATIENCE;
        while !joined(&arena.log.text()) {
            assert!(std::time::Instant::now() < until, "listed apps are missing in the log");
            std::thread::yield_now();
        }
        let lines = arena.log.text().lines().filter(|line| line.contains(" refused ")).count();
        assert!(lines < 5_000, "{lines} lines about one user");
    });
}
