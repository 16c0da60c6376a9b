//! Limits that follow from the contracts: with the first one they are tight, and without any as they were.

use serde_json::Value;
use takt_core::Span;
use takt_ipc::Reply;
use takt_ipc::client::{Joined, join};
use takt_ipc::message::Hello;

use crate::support::{Daemon, PATIENCE, await_reply, hello};

const DAEMON: &str = r#"{"ask": "daemon"}"#;

fn dial(daemon: &Daemon, name: &str, priority: u32) -> Joined {
    let terms = Hello { fps_mhz: Some(60_000), etpf_ns: Some(3_000_000), ..hello(name, priority) };
    join(&daemon.path, &terms, PATIENCE).expect("joined")
}

/// `max_blocking_ms` and `max_stretch_ms` as they are now.
fn limits(answer: &Value) -> (Option<f64>, Option<f64>) {
    let limits = &answer["is"]["limits"];
    (limits["max_blocking_ms"].as_f64(), limits["max_stretch_ms"].as_f64())
}

fn await_limits(daemon: &Daemon, blocking: f64, stretch: f64) {
    daemon.await_answer(DAEMON, |answer| limits(answer) == (Some(blocking), Some(stretch)));
}

/// The length of groups that an app is told next.
fn told(app: &mut Joined, ms: u64) {
    await_reply(app, |reply| match reply {
        Reply::Limit { slice } if slice == Span::from_ms(ms) => Some(()),
        _ => None,
    });
}

#[test]
fn limits_follow_the_contracts() {
    let daemon = Daemon::start("limits-follow", "");
    await_limits(&daemon, 1.0, 0.0);
    let _plain = daemon.join("plain", 1);
    let first = dial(&daemon, "first", 9);
    await_limits(&daemon, 0.3, 8.0);
    drop(first);
    await_limits(&daemon, 1.0, 0.0);
}

#[test]
fn limits_of_the_file_and_of_tools_stay() {
    let daemon = Daemon::start("limits-stay", "max_blocking_ms = 2");
    let first = dial(&daemon, "first", 9);
    await_limits(&daemon, 2.0, 8.0);
    daemon.ask(r#"{"ask": "adjust", "max_stretch_ms": 1.5}"#);
    await_limits(&daemon, 2.0, 1.5);
    drop(first);
    let _second = dial(&daemon, "second", 8);
    await_limits(&daemon, 2.0, 1.5);
}

#[test]
fn the_only_app_with_a_contract_is_cut_for_no_other() {
    let daemon = Daemon::start("limits-only", "");
    let mut first = dial(&daemon, "first", 9);
    told(&mut first, 3);
    let mut second = dial(&daemon, "second", 8);
    told(&mut first, 1);
    told(&mut second, 1);
    drop(second);
    told(&mut first, 3);
    let short = Hello { max_slice_ns: Some(2_000_000), ..hello("short", 1) };
    let mut short = join(&daemon.path, &short, PATIENCE).expect("joined");
    told(&mut short, 2);
}
