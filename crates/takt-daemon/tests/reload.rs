//! Another configuration for a daemon that runs, with apps that stay.

use serde_json::Value;
use takt_core::{GroupKind, Span};
use takt_daemon::config::Settings;
use takt_ipc::Reply;

mod support;
use support::{Daemon, await_reply, complete, granted, submit};

const APPS: &str = r#"{"ask": "apps"}"#;

fn apply(daemon: &Daemon, text: &str) -> Vec<String> {
    let settings = Settings::parse(text).expect("settings");
    daemon.with(move |server| server.apply(settings))
}

fn of<'a>(apps: &'a Value, name: &str) -> &'a Value {
    apps["is"].as_array().and_then(|apps| apps.iter().find(|app| app["name"] == name)).expect("it is there")
}

#[test]
fn the_policy_and_the_terms_of_live_apps_change() {
    let daemon = Daemon::start("renewed", "mpcg = 1");
    let mut app = daemon.join("dial", 5);
    assert_eq!(await_reply(&mut app, Some), Reply::Limit { slice: Span::from_ms(8) }, "alone");
    submit(&mut app, 0, GroupKind::Draw);
    assert_eq!(await_reply(&mut app, granted), 0);
    let changes = apply(
        &daemon,
        "mpcg = 1\npolicy = 'fifo'\nmax_slice_ms = 3\n[[app]]\nname = 'dial'\npriority = 7\netpf_ms = 2",
    );
    // Blocking is bounded by the length of a slice.
    let restart = "max_blocking_ms holds after a restart";
    assert_eq!(changes, [restart, "policy = fifo", "max_slice_ms = 3", "app dial"]);
    let limit = |reply| match reply {
        Reply::Limit { slice } => Some(slice),
        _ => None,
    };
    assert_eq!(await_reply(&mut app, limit), Span::from_ms(24));
    let apps = daemon.ask(APPS);
    assert_eq!((&of(&apps, "dial")["priority"], &of(&apps, "dial")["etpf_ms"]), (&7.into(), &2.0.into()));
    let mut other = daemon.join("other", 3);
    assert_eq!(await_reply(&mut other, limit), Span::from_ms(3), "it has its place");
    complete(&mut app, 0);
    submit(&mut app, 1, GroupKind::Draw);
    assert_eq!(await_reply(&mut app, limit), Span::from_ms(3), "it is no longer alone");
    assert_eq!(await_reply(&mut app, granted), 1, "the one who holds a grant stays");
    assert_eq!(daemon.ask(r#"{"ask": "summary", "window_s": 1}"#)["is"]["policy"], "fifo");
    // Without its section it gets what it asked for.
    let changes = apply(&daemon, "mpcg = 1\npolicy = 'fifo'\nmax_slice_ms = 3");
    assert_eq!(changes, [restart, "app dial"]);
    assert_eq!(of(&daemon.ask(APPS), "dial")["priority"], 5);
}

#[test]
fn apps_may_change_places() {
    let sections = |a: u32, b: u32, c: u32| {
        format!(
            "[[app]]\nname='a'\npriority={a}\n[[app]]\nname='b'\npriority={b}\n[[app]]\nname='c'\npriority={c}"
        )
    };
    let daemon = Daemon::start("places", &sections(1, 2, 3));
    let _apps: Vec<_> = ["a", "b", "c"].iter().map(|name| daemon.join(name, 0)).collect();
    apply(&daemon, &sections(3, 1, 2));
    let apps = daemon.ask(APPS);
    let order: Vec<_> = apps["is"].as_array().expect("a list").iter().map(|app| &app["name"]).collect();
    assert_eq!(order, ["a", "c", "b"]);
    let _other = daemon.join("other", 9);
    let changes = apply(&daemon, &sections(9, 1, 2));
    assert!(changes.contains(&"app a stays: priority 9 belongs to other".to_owned()), "{changes:?}");
}

#[test]
fn what_was_set_by_hand_stays_unless_the_file_changes() {
    let section = "[[app]]\nname='a'\npriority=5\nfps=30";
    let daemon = Daemon::start("hand", section);
    let _app = daemon.join("a", 1);
    assert_eq!(daemon.ask(r#"{"ask": "set", "app": "a", "priority": 50}"#)["answer"], "apps");
    assert_eq!(daemon.ask(r#"{"ask": "policy", "name": "hpf"}"#)["answer"], "done");
    assert_eq!(
        apply(&daemon, &format!("admission = 'refuse'\n{section}")),
        ["admission, for apps that join from now on"]
    );
    assert_eq!(of(&daemon.ask(APPS), "a")["priority"], 50);
    assert_eq!(daemon.ask(r#"{"ask": "summary", "window_s": 1}"#)["is"]["policy"], "hpf");
}

#[test]
fn what_needs_a_restart_says_so() {
    let daemon = Daemon::start("restart", "");
    let changes = apply(&daemon, "mpcg = 3\nrefresh_hz = 50\nmargins = { fixed_us = 1 }");
    let restart = ["refresh_hz", "mpcg", "margins"].map(|what| format!("{what} holds after a restart"));
    assert_eq!(changes, restart);
    assert_eq!(apply(&daemon, ""), [""; 0], "the file is as the daemon is again");
}
