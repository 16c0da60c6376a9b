//! Long answers: many apps, long names, many missed deadlines.

use std::time::{Duration, Instant};

use serde_json::Value;
use takt_core::GroupKind;
use takt_ipc::Reply;
use takt_ipc::client::{Joined, join};
use takt_ipc::message::{Hello, Message, NAME_MAX};
use takt_ipc::socket::Connection;
use takt_os::clock;

use crate::support::{Daemon, PATIENCE, await_reply, complete, granted, pace, submit};

const SUMMARY: &str = r#"{"ask": "summary", "window_s": 30}"#;
/// More than the system keeps for a socket.
const LONG: usize = 1 << 20;

fn name(n: u32) -> String {
    format!("{n:0>NAME_MAX$}")
}

/// Begins a frame and never ends it.
fn begin_frame(app: &mut Joined) {
    submit(app, 0, GroupKind::Draw);
    await_reply(app, granted);
    complete(app, 0);
}

fn missed(summary: &Value) -> Option<u64> {
    summary["is"]["apps"].as_array()?.iter().map(|app| app["missed"].as_u64()).min()?
}

#[test]
fn misses_of_the_client_before_at_the_slot_do_not_count() {
    let daemon = Daemon::start("before", "refresh_hz = 1000");
    let paced = |name: &str| Hello { fps_mhz: Some(1_000_000), ..crate::support::hello(name, 5) };
    let why =
        |name: &str| daemon.ask(&format!(r#"{{"ask": "why", "app": "{name}"}}"#))["is"]["misses"].clone();
    let mut late = join(&daemon.path, &paced("late"), PATIENCE).expect("joined");
    begin_frame(&mut late);
    daemon.await_answer(SUMMARY, |answer| missed(answer).is_some_and(|missed| missed > 20));
    assert!(why("late").as_array().is_some_and(|misses| !misses.is_empty()));
    drop(late);
    daemon.await_answer(r#"{"ask": "apps"}"#, |answer| answer["is"] == serde_json::json!([]));
    let now_s = clock::now().as_ns() as f64 / 1e9;
    let heir = join(&daemon.path, &paced("heir"), PATIENCE).expect("joined");
    assert_eq!(heir.welcome.app, 0, "the same slot");
    let misses = why("heir");
    let own = |miss: &Value| miss["deadline_s"].as_f64() > Some(now_s);
    assert!(misses.as_array().is_some_and(|misses| misses.iter().all(own)), "{misses}");
    let mut rest = daemon.join("rest", 7);
    begin_frame(&mut rest);
    assert_eq!(why("rest"), serde_json::json!([]), "without a frame rate it has no deadlines");
}

#[test]
fn misses_of_a_client_that_left_are_explained() {
    let daemon = Daemon::start("left", "refresh_hz = 1000");
    let paced = |name: &str| Hello { fps_mhz: Some(1_000_000), ..crate::support::hello(name, 5) };
    let why = |name: &str| daemon.ask(&format!(r#"{{"ask": "why", "app": "{name}"}}"#))["is"].clone();
    let mut late = join(&daemon.path, &paced("late"), PATIENCE).expect("joined");
    begin_frame(&mut late);
    daemon.await_answer(SUMMARY, |answer| missed(answer).is_some_and(|missed| missed > 20));
    assert_eq!(why("late")["left_s"], Value::Null);
    drop(late);
    daemon.await_answer(r#"{"ask": "apps"}"#, |answer| answer["is"] == serde_json::json!([]));
    let count = |known: &Value| known["misses"].as_array().map(Vec::len);
    let known = why("late");
    assert!(known["left_s"].as_f64().is_some_and(|left| left >= 0.0), "{known}");
    // Deadlines that pass while the daemon does not run are told at once, as one.
    assert!(count(&known) > Some(0), "{known}");
    assert!(known["misses"].as_array().is_some_and(|all| all.iter().all(|miss| miss["app"] == "late")));
    // Misses of the client that has its slot now do not count either.
    let mut heir = join(&daemon.path, &paced("heir"), PATIENCE).expect("joined");
    assert_eq!(heir.welcome.app, 0, "the same slot");
    begin_frame(&mut heir);
    daemon.await_answer(SUMMARY, |answer| missed(answer).is_some_and(|missed| missed > 20));
    assert_eq!(count(&why("late")), count(&known));
    assert_eq!(why("0")["left_s"], Value::Null, "the slot belongs to its new client");
}

#[test]
fn the_first_frame_in_time_is_known() {
    let daemon = Daemon::start("first", "");
    let paced = Hello { fps_mhz: Some(60_000), ..crate::support::hello("dial", 5) };
    let mut app = join(&daemon.path, &paced, PATIENCE).expect("joined");
    let mut frame = |group: u64, drawing: &dyn Fn()| {
        submit(&mut app, group, GroupKind::Swap);
        await_reply(&mut app, granted);
        drawing();
        complete(&mut app, group);
        pace(&mut app);
    };
    const WHY: &str = r#"{"ask": "why", "app": "dial"}"#;
    let known = || daemon.ask(WHY)["is"].clone();
    let misses_first = |answer: &Value| {
        let misses = answer["is"]["misses"].as_array();
        misses.is_some_and(|misses| misses.iter().any(|miss| miss["frame"] == 0))
    };
    // It compiles its shaders for longer than a frame.
    frame(0, &|| drop(daemon.await_answer(WHY, misses_first)));
    assert_eq!(known()["first_met"], Value::Null);
    let until = Instant::now() + PATIENCE;
    let mut group = 1;
    // On a busy machine some more may be late.
    let first = loop {
        frame(group, &|| {});
        group += 1;
        if let Some(first) = known()["first_met"].as_u64() {
            break first;
        }
        assert!(Instant::now() < until, "{}", known());
    };
    assert!((1..group).contains(&first), "{first} of {group}");
    frame(group, &|| {});
    assert_eq!(known()["first_met"], first, "the first one stays");
    let misses = known()["misses"].clone();
    assert!(misses.as_array().is_some_and(|misses| misses.iter().any(|miss| miss["frame"] == 0)), "{misses}");
}

#[test]
fn answers_may_be_long() {
    let daemon = Daemon::start("long", "refresh_hz = 1000");
    let paced = |n| Hello { fps_mhz: Some(1_000_000), ..crate::support::hello(&name(n), n) };
    let mut apps: Vec<_> =
        (0..64).map(|n| join(&daemon.path, &paced(n), PATIENCE).expect("joined")).collect();
    let listed = daemon.ask(r#"{"ask": "apps"}"#);
    assert_eq!(listed["is"].as_array().map(Vec::len), Some(64));
    apps.iter_mut().for_each(begin_frame);
    let summary = daemon.await_answer(SUMMARY, |answer| missed(answer).is_some_and(|missed| missed > 600));
    assert!(summary.to_string().len() > LONG, "{}", summary.to_string().len());

    let why = daemon.ask(&format!(r#"{{"ask": "why", "app": "{}"}}"#, name(7)));
    let misses = why["is"]["misses"].as_array().expect("a list");
    assert!(misses.len() > 600, "every one is listed: {}", misses.len());
    assert!(misses.iter().all(|miss| miss["app"] == name(7)));
    let frame = &misses[0]["frame"];
    let one = daemon.ask(&format!(r#"{{"ask": "why", "app": "7", "frame": {frame}}}"#));
    assert!(
        one["is"]["misses"]
            .as_array()
            .is_some_and(|misses| misses.iter().all(|miss| miss["frame"] == *frame))
    );
    let unknown = daemon.ask(r#"{"ask": "why", "app": "unknown"}"#);
    assert_eq!(unknown["is"], "no app unknown; takt list shows them");

    // Tools that ask and do not read keep no other tool from an answer.
    let ask = Message::Ask { text: SUMMARY.to_owned() };
    let connect = || Connection::connect(&daemon.path, PATIENCE).expect("connect");
    let deaf: Vec<_> = (0..8).map(|_| connect()).collect();
    deaf.iter().for_each(|connection| connection.send(&ask, &[]).expect("sent"));
    assert_eq!(daemon.ask(r#"{"ask": "apps"}"#)["is"].as_array().map(Vec::len), Some(64));
    assert_eq!(daemon.ask(SUMMARY)["answer"], "summary");
    // A tool that reads slowly loses nothing either.
    let slow = connect();
    slow.send(&ask, &[]).expect("sent");
    let mut answer = String::new();
    while let Message::Answer { text, more } = slow.receive().expect("whole").expect("there").message {
        answer.push_str(&text);
        if !more {
            break;
        }
        // The others are answered meanwhile.
        assert_eq!(daemon.ask(r#"{"ask": "apps"}"#)["answer"], "apps");
    }
    serde_json::from_str::<Value>(&answer).expect("all of it");
    // The first tool that did not read has made room.
    let until = Instant::now() + PATIENCE;
    while !deaf[0].is_hung_up() {
        assert!(Instant::now() < until, "it is still waited for");
        assert_eq!(daemon.ask(r#"{"ask": "apps"}"#)["answer"], "apps");
    }
}

#[test]
fn a_client_with_many_messages_takes_turns_with_others() {
    let daemon = Daemon::start("turns", "");
    let app = daemon.join("talker", 1);
    let connect = || Connection::connect(&daemon.path, PATIENCE).expect("connect");
    let tools: [_; 3] = std::array::from_fn(|_| connect());
    // Each has been accepted once it was answered.
    let ask = |tool: &Connection, text: &str| {
        tool.send(&Message::Ask { text: text.to_owned() }, &[]).expect("sent");
    };
    let answered = |connection: &Connection| connection.wait(Duration::ZERO).expect("asked");
    for tool in &tools {
        ask(tool, r#"{"ask": "apps"}"#);
        tool.receive().expect("whole").expect("there");
    }
    daemon.with(move |server| {
        for _ in 0..5 {
            let hello = crate::support::hello("talker", 2);
            app.connection.send(&Message::Hello(hello), &[]).expect("sent");
        }
        ask(&tools[0], SUMMARY);
        ask(&tools[1], SUMMARY);
        ask(&tools[2], r#"{"ask": "apps"}"#);
        let mut turn_until = |done: &dyn Fn() -> bool| {
            let until = Instant::now() + PATIENCE;
            while !done() {
                server.turn().expect("served");
                assert!(Instant::now() < until, "not answered in time");
            }
        };
        // Turns are short: a busy machine may take several of them for one message of each.
        turn_until(&|| answered(&app.connection) && answered(&tools[2]));
        app.connection.receive().expect("whole").expect("an answer");
        turn_until(&|| answered(&app.connection));
        turn_until(&|| answered(&tools[0]) && answered(&tools[1]));
    });
}

#[test]
fn a_busy_tool_keeps_its_connection() {
    let daemon = Daemon::start("room", "");
    let connect = || Connection::connect(&daemon.path, PATIENCE).expect("connect");
    let ask = |tool: &Connection| {
        tool.send(&Message::Ask { text: r#"{"ask": "apps"}"#.to_owned() }, &[]).expect("sent");
        tool.receive().expect("whole").is_some()
    };
    let tool = connect();
    assert!(ask(&tool), "it is the first");
    // As many as there is room for; they say nothing.
    let silent: Vec<_> = (0..255).map(|_| connect()).collect();
    assert!(ask(&tool));
    let late = connect();
    assert!(ask(&late), "it came last");
    assert!(ask(&tool), "it was heard since the others");
    assert!(silent[0].is_hung_up() && !silent[254].is_hung_up());
}

#[test]
fn an_app_that_waits_behind_a_more_important_one_is_told_why_and_for_how_long() {
    let daemon = Daemon::start("behind", "mpcg = 1");
    let (mut high, mut low) = (daemon.join("high", 6), daemon.join("low", 5));
    submit(&mut high, 0, GroupKind::Draw);
    assert_eq!(await_reply(&mut high, granted), 0);
    let (mut ours, mut theirs) = (0, 0);
    submit(&mut low, 0, GroupKind::Draw);
    let held = |answer: &Value| answer["is"][1]["held"].clone();
    let mut crowd_until = |wanted: &dyn Fn(&Value) -> bool| {
        let until = Instant::now() + PATIENCE;
        loop {
            // There is always more of it.
            submit(&mut high, ours + 1, GroupKind::Draw);
            complete(&mut high, ours);
            ours = await_reply(&mut high, granted);
            // On a slow machine a group is late, and the other's turn has come; then it waits again.
            while let Some(reply) = low.receiver.next_reply().expect("whole") {
                if matches!(reply, Reply::Grant { .. }) {
                    complete(&mut low, theirs);
                    theirs += 1;
                    submit(&mut low, theirs, GroupKind::Draw);
                }
            }
            let held = held(&daemon.ask(r#"{"ask": "apps"}"#));
            if wanted(&held) {
                return held;
            }
            assert!(Instant::now() < until, "{held}");
        }
    };
    let first = crowd_until(&|held| held["why"] == "behind high")["for_s"].as_f64().expect("a time");
    crowd_until(&|held| held["for_s"].as_f64() > Some(first));
    complete(&mut high, ours);
    daemon.await_answer(r#"{"ask": "apps"}"#, |answer| held(answer).is_null());
}
