//! A daemon with its threads, and clients over its socket, in real time.

use std::time::{Duration, Instant};

use takt_core::{GroupKind, Span};
use takt_daemon::control::config::Settings;
use takt_daemon::control::server::Server;
use takt_ipc::Reply;
use takt_ipc::client::{NotScheduled, join};
use takt_ipc::message::Message;
use takt_ipc::socket::{Connection, Listener};
use takt_os::clock;

use crate::support::{Daemon, PATIENCE, ask, await_reply, complete, granted, hello, hold, pace, submit};

/// Runs `test` against a daemon.
fn with_daemon(name: &str, settings: &str, test: impl FnOnce(&std::path::Path)) {
    let daemon = Daemon::start(name, settings);
    test(&daemon.path);
}

#[test]
fn frames_are_granted_released_and_judged() {
    with_daemon("frames", "mpcg = 1", |path| {
        let mut app = join(path, &hello("dial", 5), PATIENCE).expect("joined");
        for frame in 0..20 {
            submit(&mut app, 2 * frame, GroupKind::Draw);
            assert_eq!(await_reply(&mut app, granted), 2 * frame);
            complete(&mut app, 2 * frame);
            submit(&mut app, 2 * frame + 1, GroupKind::Swap);
            assert_eq!(await_reply(&mut app, granted), 2 * frame + 1);
            complete(&mut app, 2 * frame + 1);
            pace(&mut app);
        }
        assert!(app.receiver.pulse().silent_for(clock::now()) < Span::from_ms(5_000), "it beats");
        // Notes are read now and then; the figures follow.
        let until = Instant::now() + PATIENCE;
        loop {
            let summary = ask(path, r#"{"ask": "summary", "window_s": 30}"#);
            let dial = &summary["is"]["apps"][0];
            let dispatched = summary["is"]["scheduler"]["dispatched"].as_u64();
            if dial["frames"].as_u64().is_some_and(|frames| frames >= 19) && dispatched == Some(40) {
                assert_eq!(dial["name"], "dial");
                break;
            }
            assert!(Instant::now() < until, "{summary}");
        }
    });
}

#[test]
fn the_dead_make_room_at_once() {
    with_daemon("dead", "mpcg = 1\nloop_spin_us = 100", |path| {
        let mut dying = join(path, &hello("dying", 9), PATIENCE).expect("joined");
        let mut other = join(path, &hello("other", 1), PATIENCE).expect("joined");
        hold(&mut dying, 0);
        submit(&mut other, 0, GroupKind::Draw);
        drop(dying.connection);
        assert_eq!(await_reply(&mut other, granted), 0);
        let until = Instant::now() + PATIENCE;
        while dying.receiver.next_reply().expect("an honest daemon") != Some(Reply::Farewell) {
            assert!(Instant::now() < until, "no farewell");
            dying.receiver.sleep(Duration::from_millis(100));
        }
    });
}

#[test]
fn terms_policies_and_questions() {
    with_daemon("terms", "", |path| {
        let _first = join(path, &hello("first", 5), PATIENCE).expect("joined");
        let second = join(path, &hello("second", 5), PATIENCE).expect("joined");
        assert!(second.welcome.admission.contains("priority 5 is taken"), "{:?}", second.welcome);
        let apps = ask(path, r#"{"ask": "apps"}"#);
        assert_eq!(apps["is"][0]["name"], "first");
        assert_eq!(apps["is"][1]["pid"], std::process::id());
        let set = ask(path, r#"{"ask": "set", "app": "second", "priority": 50, "etpf_ms": 2.5}"#);
        assert_eq!(set["is"][0]["name"], "second");
        assert_eq!(set["is"][0]["protected"], true);
        for (wrong, why) in [
            (r#"{"ask": "set", "app": "unknown"}"#, "no app unknown"),
            (r#"{"ask": "set", "app": "first", "fps": 45}"#, "does not divide"),
            (r#"{"ask": "set", "app": "first", "etpf_ms": -1}"#, "use 0 to 60000 ms"),
            (r#"{"ask": "policy", "name": "x"}"#, "there are timeline, frame-deadline"),
            (r#"{"ask": "dance"}"#, "not understood"),
            ("rubbish", "not understood"),
        ] {
            let answer = ask(path, wrong);
            assert_eq!(answer["answer"], "refused", "{answer}");
            assert!(answer["is"].as_str().is_some_and(|is| is.contains(why)), "{answer}");
        }
        assert_eq!(ask(path, r#"{"ask": "policy", "name": "fifo"}"#)["answer"], "done");
        assert_eq!(ask(path, r#"{"ask": "summary", "window_s": 1}"#)["is"]["policy"], "fifo");
    });
}

#[test]
fn strangers_and_crowds_do_no_harm() {
    with_daemon("crowd", "", |path| {
        let mut app = join(path, &hello("app", 1), PATIENCE).expect("joined");
        let crowd: Vec<_> =
            (0..300).filter_map(|_| Connection::connect(path, Duration::from_secs(1)).ok()).collect();
        for stranger in crowd.iter().take(50) {
            rustix::net::send(stranger, b"rubbish", rustix::net::SendFlags::NOSIGNAL).unwrap_or_default();
        }
        submit(&mut app, 0, GroupKind::Draw);
        assert_eq!(await_reply(&mut app, granted), 0);
        drop(crowd);
        let slots = 64;
        let mut joined = Vec::new();
        let refused = loop {
            match join(path, &hello("many", 2), PATIENCE) {
                Ok(app) => joined.push(app),
                // Others may leave, so it may ask again.
                Err(NotScheduled::NotNow { reason, .. }) => break reason,
                Err(NotScheduled::Refused(reason)) => panic!("{reason}"),
                // The crowd is still leaving.
                Err(NotScheduled::Absent { .. } | NotScheduled::Nonsense) => {}
            }
        };
        assert_eq!(joined.len(), slots - 1);
        assert_eq!(refused, format!("all {slots} slots are taken"));
    });
}

#[test]
fn a_file_that_is_no_socket_is_left_alone() {
    let path = std::env::temp_dir().join(format!("takt-live-file-{}", std::process::id()));
    std::fs::write(&path, "precious").expect("a file");
    let error = Server::start(path.clone(), Settings::default()).expect_err("refused");
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists, "{error}");
    assert_eq!(std::fs::read_to_string(&path).expect("still there"), "precious");
    std::fs::remove_file(&path).expect("removed");
}

#[test]
fn a_daemon_is_not_pushed_aside() {
    with_daemon("twice", "", |path| {
        let error = Server::start(path.to_owned(), Settings::default()).expect_err("refused");
        assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse, "{error}");
        Connection::connect(path, PATIENCE).expect("the first one still answers");
    });
}

#[test]
fn a_socket_left_behind_is_replaced() {
    let path = std::env::temp_dir().join(format!("takt-live-stale-{}", std::process::id()));
    drop(Listener::bind(&path).expect("a socket"));
    assert!(path.exists(), "it is still there");
    drop(Server::start(path.clone(), Settings::default()).expect("a daemon"));
    assert!(!path.exists(), "the daemon's own socket is gone");
}

#[test]
fn a_client_that_hangs_is_named_and_comes_back_after_a_pause() {
    let daemon = Daemon::hasty("hangs", "mpcg = 1");
    let mut other = daemon.join("other", 1);
    let mut hanging = daemon.join("hanging", 9);
    submit(&mut hanging, 0, GroupKind::Draw);
    assert_eq!(await_reply(&mut hanging, granted), 0);
    submit(&mut other, 0, GroupKind::Draw);
    assert_eq!(await_reply(&mut other, granted), 0, "the others go on");
    await_reply(&mut hanging, |reply| (reply == Reply::Farewell).then_some(()));
    complete(&mut other, 0);
    let said = hanging.connection.receive().expect("whole").expect("there").message;
    let Message::Refused { reason, again_ms: Some(_) } = said else {
        panic!("{said:?}");
    };
    assert_eq!(reason, "it did not report the end of group 0 in time");
    drop(hanging);
    let NotScheduled::NotNow { again, .. } =
        join(&daemon.path, &hello("hanging", 9), PATIENCE).expect_err("too early")
    else {
        panic!("it is told when to come back");
    };
    std::thread::sleep(again);
    daemon.join("hanging", 9);
}
