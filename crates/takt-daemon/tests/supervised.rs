//! Listed apps that stop drawing, in real time.

use takt_core::GroupKind;
use takt_ipc::client::Joined;

mod support;
use support::{Daemon, await_reply, complete, granted, submit};

const SUPERVISED: &str =
    "[[app]]\nname = 'dial'\nfps = 60\nsilence_ms_max = 100\n[[app]]\nname = 'map'\nfps = 60";

fn draw(app: &mut Joined, group: u64) {
    submit(app, group, GroupKind::Swap);
    assert_eq!(await_reply(app, granted), group);
    complete(app, group);
}

#[test]
fn an_app_that_stops_drawing_is_named_until_it_draws_again() {
    let daemon = Daemon::start("supervised", SUPERVISED);
    let silent = |names: serde_json::Value| {
        daemon.await_answer(r#"{"ask": "daemon"}"#, |answer| answer["is"]["silent"] == names);
    };
    silent(serde_json::json!([]));
    let mut dial = daemon.join("dial", 5);
    let mut map = daemon.join("map", 4);
    draw(&mut dial, 0);
    draw(&mut map, 0);
    // Both stop; only one of them is supervised.
    silent(serde_json::json!(["dial"]));
    draw(&mut dial, 1);
    silent(serde_json::json!([]));
    silent(serde_json::json!(["dial"]));
    // One that is gone does not draw either.
    drop(dial);
    draw(&mut daemon.join("dial", 5), 0);
    silent(serde_json::json!([]));
    silent(serde_json::json!(["dial"]));
}

#[test]
fn supervision_that_makes_no_sense_is_a_mistake() {
    for (keys, remedy) in [
        ("on_silence = 'tell'", "add silence_ms_max"),
        ("silence_ms_max = 5", "use 100 or more"),
        ("silence_ms_max = 500\non_silence = 'restart'", "has no unit to restart"),
    ] {
        let text = format!("[[app]]\nname = 'dial'\n{keys}");
        let mistake = takt_daemon::control::config::Settings::parse(&text).expect_err("refused").to_string();
        assert!(mistake.contains(remedy) && mistake.contains("dial"), "{mistake}");
    }
}
