//! Another configuration for a daemon that runs, with apps that stay.

use serde_json::Value;
use takt_core::{GroupKind, Span};
use takt_daemon::control::config::Settings;
use takt_ipc::Reply;

use crate::support::{BEARS, Daemon, await_reply, complete, granted, submit};

const APPS: &str = r#"{"ask": "apps"}"#;

fn apply(daemon: &Daemon, text: &str) -> Vec<String> {
    let settings = Settings::parse(&format!("{BEARS}{text}")).expect("settings");
    daemon.with(move |server| server.apply(settings))
}

fn of<'a>(apps: &'a Value, name: &str) -> &'a Value {
    apps["is"].as_array().and_then(|apps| apps.iter().find(|app| app["name"] == name)).expect("it is there")
}

#[test]
fn the_policy_and_the_terms_of_live_apps_change() {
    let daemon = Daemon::start("renewed", "mpcg = 1");
    let mut app = daemon.join("dial", 5);
    assert_eq!(await_reply(&mut app, Some), Reply::Limit { slice: Span::from_ms(1) });
    submit(&mut app, 0, GroupKind::Draw);
    assert_eq!(await_reply(&mut app, granted), 0);
    let changes = apply(
        &daemon,
        "mpcg = 1\npolicy = 'fifo'\nmax_slice_ms = 3\n[[app]]\nname = 'dial'\npriority = 7\netpf_ms = 2",
    );
    // Blocking is bounded by the length of a slice.
    assert_eq!(changes, ["max_blocking_ms = 3", "policy = fifo", "max_slice_ms = 3", "app dial"]);
    let limit = |reply| match reply {
        Reply::Limit { slice } => Some(slice),
        _ => None,
    };
    assert_eq!(await_reply(&mut app, limit), Span::from_ms(3));
    let apps = daemon.ask(APPS);
    assert_eq!((&of(&apps, "dial")["priority"], &of(&apps, "dial")["etpf_ms"]), (&7.into(), &2.0.into()));
    complete(&mut app, 0);
    submit(&mut app, 1, GroupKind::Draw);
    assert_eq!(await_reply(&mut app, granted), 1, "the app that holds a grant stays");
    assert_eq!(daemon.ask(r#"{"ask": "summary", "window_s": 1}"#)["is"]["policy"], "fifo");
    // Without its section it gets what it asked for.
    let changes = apply(&daemon, "mpcg = 1\npolicy = 'fifo'\nmax_slice_ms = 3");
    assert_eq!(changes, ["app dial"]);
    assert_eq!(of(&daemon.ask(APPS), "dial")["priority"], 5);
}

#[test]
fn apps_may_change_places() {
    let sections = |a: u32, b: u32, c: u32| {
        format!(
            "[[app]]\nname='a'\npriority={a}\n[[app]]\nname='b'\npriority={b}\n[[app]]\nname='c'\npriority={c}"
        )
    };
    let daemon = Daemon::start("priorities", &sections(1, 2, 3));
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
fn the_core_runs_with_the_new_parameters() {
    let daemon = Daemon::start("core", "mpcg = 1\nmax_slice_ms = 0");
    let mut app = daemon.join("dial", 5);
    submit(&mut app, 0, GroupKind::Draw);
    submit(&mut app, 1, GroupKind::Draw);
    assert_eq!(await_reply(&mut app, granted), 0, "the other one waits for its slot");
    let changes = apply(
        &daemon,
        "mpcg = 2\nmax_slice_ms = 0\nmax_blocking_ms = 2\nmax_stretch_ms = 4\nloop_spin_us = 7\n\
         spin_us = 3\nmargins = { fixed_us = 500 }",
    );
    let told = ["mpcg = 2", "max_blocking_ms = 2", "max_stretch_ms = 4", "margins"];
    let loops = ["spin_us = 3, for apps that join from now on", "loop_spin_us = 7"];
    assert_eq!(changes, [&told[..], &loops[..]].concat());
    assert_eq!(await_reply(&mut app, granted), 1, "it has its slot, with nothing else happening");
    complete(&mut app, 0);
    submit(&mut app, 2, GroupKind::Draw);
    let credit = |reply| match reply {
        Reply::Grant { credit, .. } => Some(credit),
        _ => None,
    };
    let granted = await_reply(&mut app, credit);
    assert_eq!(granted, Span::from_ns(3_309_523), "4 ms, of which the margins are no credit");
}

#[test]
fn limits_that_were_set_by_hand_stay_unless_the_file_changes() {
    let daemon = Daemon::start("limits", "mpcg = 1");
    let mut app = daemon.join("dial", 5);
    assert_eq!(daemon.ask(r#"{"ask": "adjust", "mpcg": 2, "max_blocking_ms": "inf"}"#)["answer"], "done");
    assert_eq!(daemon.ask(r#"{"ask": "adjust", "mpcg": 0}"#)["is"], "mpcg = 0: use 1 to 64");
    assert_eq!(apply(&daemon, "mpcg = 1\nmax_stretch_ms = 1"), ["max_stretch_ms = 1"]);
    submit(&mut app, 0, GroupKind::Draw);
    submit(&mut app, 1, GroupKind::Draw);
    assert_eq!(await_reply(&mut app, granted), 0);
    assert_eq!(await_reply(&mut app, granted), 1, "two slots, as set by hand");
    assert_eq!(apply(&daemon, "mpcg = 3\nmax_stretch_ms = 1"), ["mpcg = 3"]);
    submit(&mut app, 2, GroupKind::Draw);
    assert_eq!(await_reply(&mut app, granted), 2, "three, as in the file");
}

#[test]
fn apps_follow_another_refresh_rate() {
    let section = |fps: u32| format!("[[app]]\nname = 'dial'\nfps = {fps}");
    let daemon = Daemon::start("rate", &section(60));
    let mut dial = daemon.join("dial", 5);
    let _other = daemon.join("other", 3);
    let changes = apply(&daemon, "refresh_hz = 50");
    assert_eq!(changes, ["refresh_hz = 50", "app dial", "app other"], "no app asks for 60 any more");
    let apps = daemon.ask(APPS);
    assert_eq!((&of(&apps, "dial")["fps"], &of(&apps, "other")["fps"]), (&50.0.into(), &50.0.into()));
    assert_eq!(daemon.ask(r#"{"ask": "daemon"}"#)["is"]["refresh_hz"], 50.0);
    submit(&mut dial, 0, GroupKind::Swap);
    assert_eq!(await_reply(&mut dial, granted), 0, "it goes on");
    assert_eq!(daemon.ask(r#"{"ask": "set", "app": "dial", "fps": 25}"#)["answer"], "apps");
    assert_eq!(apply(&daemon, "refresh_hz = 100"), ["refresh_hz = 100", "app dial", "app other"]);
    assert_eq!(of(&daemon.ask(APPS), "dial")["fps"], 25.0, "every fourth refresh now");
    let stays = "displays and vsync stay: app dial: 25 FPS does not divide";
    let changes = apply(&daemon, "refresh_hz = 60");
    assert!(changes[0].starts_with(stays) && changes.len() == 1, "{changes:?}");
    let gone = apply(&daemon, "refresh_hz = 100\nvsync = 'drm:/no/such/display'");
    assert!(gone[0].contains("/no/such/display") && gone.len() == 1, "{gone:?}");
    assert_eq!(apply(&daemon, "refresh_hz = 100"), [""; 0], "the file is as the daemon is again");
}

#[test]
fn timegraph_treats_running_apps_as_the_file_says_now() {
    let daemon = Daemon::start("timegraph", "policy = 'timegraph'");
    let mut app = daemon.join("dial", 5);
    let changes = apply(&daemon, "policy = 'timegraph'\ntimegraph = { turns = 'following' }");
    assert_eq!(changes, ["timegraph", "app dial"]);
    submit(&mut app, 0, GroupKind::Draw);
    submit(&mut app, 1, GroupKind::Draw);
    assert_eq!(await_reply(&mut app, granted), 0);
    assert_eq!(await_reply(&mut app, granted), 1, "it follows itself on the GPU");
}

#[test]
fn displays_and_contracts_change_while_apps_run() {
    let displays =
        |hz: u32| format!("[[display]]\nname='hud'\n[[display]]\nname='cluster'\nrefresh_hz={hz}\n");
    let dial = "[[app]]\nname='dial'\ndisplay='cluster'\nfps=30\netpf_ms=2\n";
    let contract = |daemon: &Daemon| of(&daemon.ask(APPS), "dial")["contract"].clone();
    let daemon = Daemon::start("displays", &format!("{}{dial}", displays(60)));
    let mut app = daemon.join("dial", 5);
    assert_eq!(contract(&daemon), "30 fps on cluster, 2.0 ms");
    assert_eq!(
        apply(&daemon, &format!("{}{dial}", displays(90))),
        ["display cluster", "app dial"],
        "every third refresh"
    );
    let changes = apply(&daemon, "[[display]]\nname='hud'\n");
    assert_eq!(changes, ["app dial"], "without its section it draws for the first display");
    assert_eq!(contract(&daemon), "best effort");
    let server = "[[app]]\nname='dial'\nruntime_ms=3\nperiod_ms=40\n";
    assert_eq!(apply(&daemon, &format!("{}{server}", displays(90))), ["display cluster", "app dial"]);
    assert_eq!(contract(&daemon), "server 3 ms in 40 ms");
    let own = "[[app]]\nname='dial'\nperiod_ms=40\netpf_ms=3\n";
    assert_eq!(apply(&daemon, own), ["app dial"], "no app needs the other display any more");
    assert_eq!(contract(&daemon), "own clock 40.0 ms, 3.0 ms");
    submit(&mut app, 0, GroupKind::Swap);
    assert_eq!(await_reply(&mut app, granted), 0, "it goes on");
}
