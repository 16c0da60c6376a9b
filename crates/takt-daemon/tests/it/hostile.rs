//! Clients that mean harm. Whatever they do, an honest one is served, and the daemon keeps nothing.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use takt_core::{Estimate, GroupId, GroupKind, Span, Time};
use takt_ipc::client::{Joined, NotScheduled, join};
use takt_ipc::message::{Hello, Invalid, Message};
use takt_ipc::socket::{Connection, FDS_MAX};
use takt_ipc::{Reply, Request};

use crate::support::{Daemon, PATIENCE, await_reply, await_turn, complete, granted, hello, hold, submit};

/// A correct client: a group is granted, however busy the daemon is.
struct Honest {
    app: Joined,
    group: u64,
}

impl Honest {
    fn join(daemon: &Daemon) -> Self {
        Self { app: daemon.join("honest", 1), group: 0 }
    }

    fn is_served(&mut self) {
        submit(&mut self.app, self.group, GroupKind::Draw);
        assert_eq!(await_reply(&mut self.app, granted), self.group);
        complete(&mut self.app, self.group);
        self.group += 1;
    }
}

/// Joins by hand, and keeps what it gets: connection, region, doorbell, beat page.
fn join_by_hand(daemon: &Daemon) -> (Connection, Vec<OwnedFd>) {
    loop {
        let connection = Connection::connect(&daemon.path, PATIENCE).expect("connect");
        connection.send(&Message::Hello(hello("hostile", 9)), &[]).expect("sent");
        let received = connection.receive().expect("whole").expect("there");
        match received.message {
            Message::Welcome(_) => return (connection, received.fds),
            // All clients of this test are one process to the daemon.
            Message::Refused { again_ms: Some(ms), .. } => {
                std::thread::sleep(Duration::from_millis(ms.into()));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Why the daemon hung up.
fn reason(connection: &Connection) -> String {
    match connection.receive().expect("whole").expect("a reason comes first").message {
        Message::Refused { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn ten_thousand_connections_keep_no_client_out() {
    let daemon = Daemon::start("crowd", "");
    let mut honest = Honest::join(&daemon);
    let mut crowd = std::collections::VecDeque::new();
    for n in 0..10_000 {
        crowd.extend(Connection::connect(&daemon.path, PATIENCE));
        if crowd.len() > 300 {
            crowd.pop_front();
        }
        if n % 1_000 == 0 {
            honest.is_served();
            // Beside hundreds of silent connections, a client that says hello gets in.
            drop(join(&daemon.path, &hello("another", 2), PATIENCE).expect("joined"));
        }
    }
    honest.is_served();
}

#[test]
fn a_tool_that_does_not_read_keeps_no_client_waiting() {
    let daemon = Daemon::start("unread", "");
    let mut honest = Honest::join(&daemon);
    let deaf = Connection::connect_at_once(&daemon.path).expect("connect");
    let ask = Message::Ask { text: r#"{"ask": "apps"}"#.to_owned() };
    let mut sent = 0;
    // Until the daemon hangs up, or takes no more.
    while sent < 100_000 && deaf.send(&ask, &[]).is_ok() {
        sent += 1;
    }
    assert!(sent < 100_000, "the daemon keeps unread answers");
    honest.is_served();
    drop(deaf);
    honest.is_served();
}

#[test]
fn a_ring_is_corrupted_at_every_word() {
    let daemon = Daemon::start("corrupt", "");
    let mut honest = Honest::join(&daemon);
    // Positions of both rings; a record, with the position that makes the daemon read it.
    let cases: [(&[(u64, u64)], &str); 4] = [
        (&[(0, 0xffff_fff0)], "the other side of a ring claims an impossible position"),
        (&[(64, 77), (128, 99), (0, 1)], "it sent words that are no request: 99 is no kind of record"),
        (&[(128, 1), (136, 1 << 60), (0, 1)], "its group 1152921504606846976 is out of order"),
        (&[(128, 2), (136, 3), (0, 1)], "it finished group 3, which was not granted"),
    ];
    for (writes, expected) in cases {
        let (connection, fds) = join_by_hand(&daemon);
        for (offset, value) in writes {
            rustix::io::pwrite(&fds[0], &value.to_le_bytes(), *offset).expect("it is shared");
        }
        rustix::io::write(&fds[1], &1u64.to_ne_bytes()).expect("rung");
        assert_eq!(reason(&connection), expected);
        honest.is_served();
        // It may scribble on: the daemon does not read it any more.
        rustix::io::pwrite(&fds[0], &[0xff; 33_152], 0).expect("it is still shared");
        honest.is_served();
    }
}

/// Whether it is evicted depends on how often the machine wakes the daemon for it; `turns.rs` has
/// that in made-up time. Others are served all along.
#[test]
fn a_storm_on_the_doorbell_keeps_no_client_waiting() {
    let daemon = Daemon::start("storm", "");
    let mut honest = Honest::join(&daemon);
    let (connection, fds) = join_by_hand(&daemon);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                rustix::io::write(&fds[1], &1u64.to_ne_bytes()).expect("rung");
            }
        });
        (0..300).for_each(|_| honest.is_served());
        over.store(true, Ordering::Relaxed);
    });
    // Only the client that rang may be gone, and it was told why.
    if daemon.ask(r#"{"ask": "apps"}"#)["is"].as_array().map(Vec::len) != Some(2) {
        assert_eq!(reason(&connection), "it wakes the daemon all the time without a request");
    }
    honest.is_served();
}

/// Each client numbers its own groups: a client that names the group of another is evicted, and the
/// grant of the other stays, as do the clients that wait for it.
#[test]
fn leave_of_others_cannot_be_used_or_ended() {
    let daemon = Daemon::start("theft", "mpcg = 1");
    let mut owner = daemon.join("owner", 1);
    let mut next = daemon.join("next", 5);
    hold(&mut owner, 7);
    submit(&mut next, 0, GroupKind::Draw);
    let mut thief = daemon.join("thief", 9);
    submit(&mut thief, 7, GroupKind::Draw);
    complete(&mut thief, 7);
    await_reply(&mut thief, |reply| {
        assert_eq!(granted(reply), None, "it takes what it was not given");
        (reply == Reply::Farewell).then_some(())
    });
    assert_eq!(reason(&thief.connection), "it finished group 7, which was not granted");
    await_turn(&owner);
    while let Some(reply) = next.receiver.next_reply().expect("an honest daemon") {
        assert_eq!(granted(reply), None, "the GPU is still its owner's");
    }
    complete(&mut owner, 7);
    assert_eq!(await_reply(&mut next, granted), 0);
    complete(&mut next, 0);
    let apps = daemon.ask(r#"{"ask": "apps"}"#);
    let names: Vec<_> = apps["is"].as_array().expect("a list").iter().map(|app| &app["name"]).collect();
    assert_eq!(names, ["next", "owner"], "no other client is blamed");
}

/// Many times as often as a client may ring in a second.
const RINGS: usize = 1_000_000;

#[test]
fn a_client_is_not_blamed_for_the_one_before_at_its_slot() {
    let daemon = Daemon::start("heir", "");
    let (connection, fds) = join_by_hand(&daemon);
    drop(connection);
    daemon.await_answer(r#"{"ask": "apps"}"#, |answer| answer["is"] == serde_json::json!([]));
    let mut heir = Honest::join(&daemon);
    std::thread::scope(|scope| {
        // A storm, wherever the loop can be woken so often.
        let ringing = scope.spawn(|| {
            for _ in 0..RINGS {
                rustix::io::write(&fds[1], &1u64.to_ne_bytes()).expect("rung");
            }
        });
        while !ringing.is_finished() {
            heir.is_served();
        }
    });
    assert_eq!(daemon.ask(r#"{"ask": "apps"}"#)["is"].as_array().map(Vec::len), Some(1));
}

/// Every turn of the daemon sends the loop an order, and a client that joins meanwhile is scheduled, too.
#[test]
fn questions_without_end_keep_no_client_from_its_grant() {
    let daemon = Daemon::start("questions", "");
    let ask = Message::Ask { text: r#"{"ask": "daemon"}"#.to_owned() };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let tool = Connection::connect(&daemon.path, PATIENCE).expect("connect");
                while !over.load(Ordering::Relaxed) {
                    tool.send(&ask, &[]).expect("sent");
                    tool.receive().expect("whole").expect("there");
                }
            });
        }
        for _ in 0..200 {
            Honest::join(&daemon).is_served();
        }
        over.store(true, Ordering::Relaxed);
    });
    daemon.await_answer(r#"{"ask": "apps"}"#, |answer| answer["is"] == serde_json::json!([]));
}

#[test]
fn descriptors_are_not_taken() {
    let daemon = Daemon::start("fds", "");
    let mut honest = Honest::join(&daemon);
    let file = |path: &str| OwnedFd::from(std::fs::File::open(path).expect("there"));
    let odd = [file("/"), file("/dev/null"), file("/dev/zero"), file("/proc/self/stat")];
    let odd: Vec<_> = odd.iter().map(AsFd::as_fd).collect();
    assert_eq!(odd.len(), FDS_MAX);
    // The daemon runs in this process, as do other tests: what it leaves is many of those.
    let open = || std::fs::read_dir("/proc/self/fd").expect("there").count();
    let before = open();
    for _ in 0..500 {
        let connection = Connection::connect(&daemon.path, PATIENCE).expect("connect");
        // Newer kernels refuse for the daemon.
        if connection.send(&Message::Hello(hello("hostile", 9)), &odd).is_ok() {
            assert_eq!(reason(&connection), "it passes descriptors, which the daemon does not take");
        }
        drop(connection);
        let (_joined, fds) = join_by_hand(&daemon);
        assert_eq!(fds.len(), 3);
        assert!(rustix::fs::ftruncate(&fds[0], 1).is_err(), "sealed");
        assert!(rustix::io::pwrite(&fds[2], &[1; 8], 0).is_err(), "sealed");
    }
    honest.is_served();
    daemon.await_answer(r#"{"ask": "apps"}"#, |answer| answer["is"].as_array().map(Vec::len) == Some(1));
    let now = open();
    assert!(now < before + 250, "{before} descriptors became {now}");
}

#[test]
fn lies_about_time_cost_the_liar_alone() {
    let daemon = Daemon::start("lies", "mpcg = 1");
    let mut honest = Honest::join(&daemon);
    let mut liar = daemon.join("liar", 9);
    let hour = takt_ipc::record::SPAN_MAX;
    for (group, (estimate, finished, cost)) in [
        (Span::ZERO, Time::ZERO, hour),
        (hour, Time::from_ns(u64::MAX / 4), Span::ZERO),
        (Span::ZERO, Time::from_ns(1), Span::ZERO),
        (hour, Time::ZERO, hour),
    ]
    .into_iter()
    .enumerate()
    {
        let group = GroupId(group as u64);
        let request = Request::Submit { group, kind: GroupKind::Draw, estimate: Estimate::new(estimate) };
        liar.sender.send(&request).expect("room");
        assert_eq!(await_reply(&mut liar, granted), group.0);
        liar.sender.send(&Request::Complete { group, finished, cost, frames: 0 }).expect("room");
        honest.is_served();
    }
}

#[test]
fn a_flood_of_groups_is_cut_off() {
    let daemon = Daemon::start("flood", "mpcg = 1");
    let mut honest = Honest::join(&daemon);
    let mut flood = daemon.join("flood", 9);
    let request = |group| Request::Submit {
        group: GroupId(group),
        kind: GroupKind::Draw,
        estimate: Estimate::default(),
    };
    for group in 0..100_000 {
        if flood.sender.send(&request(group)).is_err() {
            break;
        }
    }
    await_reply(&mut flood, |reply| (reply == Reply::Farewell).then_some(()));
    honest.is_served();
}

#[test]
fn names_that_were_not_asked_for_are_not_heard() {
    let daemon = Daemon::start("names", "mpcg = 1");
    let mut honest = Honest::join(&daemon);
    let mut talker = daemon.join("talker", 9);
    let command = takt_ipc::Command::new("glDrawArrays");
    talker.sender.send(&Request::Names { group: GroupId(0), command }).expect("room");
    await_reply(&mut talker, |reply| (reply == Reply::Farewell).then_some(()));
    honest.is_served();
}

#[test]
fn other_versions_and_roles_are_refused_by_name() {
    let daemon = Daemon::start("roles", "");
    let mut newer = Message::Hello(Hello::default()).encode();
    newer[4] = 9;
    let welcome = Message::Refused { reason: String::new(), again_ms: None };
    for (bytes, expected) in [
        (newer, Invalid::Version(9).to_string()),
        (b"GET / HTTP/1.1".to_vec(), Invalid::Foreign.to_string()),
        (welcome.encode(), "only the daemon sends that message".to_owned()),
    ] {
        let connection = Connection::connect(&daemon.path, PATIENCE).expect("connect");
        rustix::net::send(&connection, &bytes, rustix::net::SendFlags::NOSIGNAL).expect("sent");
        assert_eq!(reason(&connection), expected);
        assert!(connection.receive().expect("whole").is_none(), "and hung up on");
    }
    // A client that has joined may say hello again, with other terms; it gets no second slot.
    let twice = daemon.join("twice", 1);
    twice.connection.send(&Message::Hello(hello("twice", 2)), &[]).expect("sent");
    let again = twice.connection.receive().expect("whole").expect("there");
    assert!(matches!(again.message, Message::Welcome(welcome) if welcome.app == twice.welcome.app));
    assert_eq!(daemon.ask(r#"{"ask": "apps"}"#)["is"].as_array().map(Vec::len), Some(1));
}

#[test]
fn other_terms_are_given_but_not_without_end() {
    let daemon = Daemon::start("terms", "");
    let app = daemon.join("restless", 1);
    let more = Hello { fps_mhz: Some(30_000), ..hello("another", 7) };
    for _ in 0..100 {
        app.connection.send(&Message::Hello(more.clone()), &[]).expect("sent");
    }
    let first = app.connection.receive().expect("whole").expect("an answer");
    assert!(matches!(&first.message, Message::Welcome(welcome) if welcome.standing.paced), "{first:?}");
    assert!(first.fds.is_empty(), "it has them");
    let refused = (1..100).any(|_| {
        let answer = app.connection.receive().expect("whole").expect("an answer");
        matches!(&answer.message, Message::Refused { reason, .. } if reason.contains("too often"))
    });
    assert!(refused, "a hundred at once are too many");
    daemon.await_answer(r#"{"ask": "apps"}"#, |answer| {
        let app = &answer["is"][0];
        app["name"] == "restless" && app["priority"] == 7 && app["fps"] == 30.0
    });
}

#[test]
fn all_slots_may_be_taken() {
    let daemon = Daemon::start("full", "");
    let apps: Vec<_> = (0..64).map(|n| daemon.join("many", n)).collect();
    let refused = join(&daemon.path, &hello("late", 1), PATIENCE).expect_err("full");
    assert!(
        matches!(&refused, NotScheduled::NotNow { reason, .. } if reason == "all 64 slots are taken"),
        "{refused}"
    );
    drop(apps);
    daemon.await_answer(r#"{"ask": "apps"}"#, |answer| answer["is"] == serde_json::json!([]));
    daemon.join("late", 1);
}
