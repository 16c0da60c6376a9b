//! Contracts of live apps: requested by the app, by a tool or by the file, and reported to all of them.

use serde_json::Value;
use takt_core::{GroupKind, Span};
use takt_daemon::control::config::Settings;
use takt_ipc::Reply;
use takt_ipc::client::{NotScheduled, join, renew};
use takt_ipc::message::Hello;

use crate::support::{BEARS, Daemon, PATIENCE, await_reply, granted, hello, submit};

const APPS: &str = r#"{"ask": "apps"}"#;
const DISPLAYS: &str = "[[display]]\nname='hud'\n[[display]]\nname='cluster'\nrefresh_hz=30\n";

fn of<'a>(apps: &'a Value, name: &str) -> &'a Value {
    apps["is"].as_array().and_then(|apps| apps.iter().find(|app| app["name"] == name)).expect("it is there")
}

fn contract(daemon: &Daemon, name: &str) -> String {
    of(&daemon.ask(APPS), name)["contract"].as_str().unwrap_or_default().to_owned()
}

fn ns(ms: u64) -> Option<u64> {
    Some(ms * 1_000_000)
}

fn refusal(daemon: &Daemon, hello: &Hello) -> String {
    match join(&daemon.path, hello, PATIENCE) {
        Err(NotScheduled::Refused(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn apps_ask_for_contracts_of_their_own() {
    let daemon = Daemon::start("contracts", DISPLAYS);
    let camera = Hello { period_ns: ns(40), deadline_ns: ns(20), etpf_ns: ns(4), ..hello("camera", 9) };
    let mut camera = join(&daemon.path, &camera, PATIENCE).expect("joined");
    assert!(camera.welcome.standing.paced && camera.welcome.standing.protected, "{:?}", camera.welcome);
    assert_eq!(contract(&daemon, "camera"), "own clock 40.0 ms, due after 20 ms, 4.0 ms");
    submit(&mut camera, 0, GroupKind::Swap);
    assert_eq!(await_reply(&mut camera, granted), 0);
    let dial = Hello { display: Some("cluster".to_owned()), etpf_ns: ns(2), ..hello("dial", 8) };
    let _dial = join(&daemon.path, &dial, PATIENCE).expect("joined");
    assert_eq!(contract(&daemon, "dial"), "30 fps on cluster, 2.0 ms");
    let server = Hello { runtime_ns: ns(3), period_ns: ns(40), hard: true, ..hello("detector", 7) };
    let detector = join(&daemon.path, &server, PATIENCE).expect("joined");
    assert!(detector.welcome.standing.protected && !detector.welcome.standing.paced);
    assert_eq!(contract(&daemon, "detector"), "hard server 3 ms in 40 ms");
    let softer = Hello { hard: false, ..server };
    renew(&detector.connection, &softer, PATIENCE).expect("renewed");
    assert_eq!(contract(&daemon, "detector"), "server 3 ms in 40 ms");
    let _other = daemon.join("other", 1);
    assert_eq!(contract(&daemon, "other"), "best effort");
}

#[test]
fn contracts_that_make_no_sense_are_refused() {
    let daemon = Daemon::start("no-sense", DISPLAYS);
    let late = Hello { period_ns: ns(10), deadline_ns: ns(20), ..hello("a", 1) };
    assert_eq!(refusal(&daemon, &late), "deadline_ms = 20: use more than 0, and no more than period_ms (10)");
    let elsewhere = Hello { display: Some("door".to_owned()), ..hello("a", 1) };
    assert_eq!(refusal(&daemon, &elsewhere), "there is no display door; there are hud, cluster");
    let strange = Hello { display: Some("\u{1b}[2J".to_owned()), ..hello("a", 1) };
    assert!(refusal(&daemon, &strange).contains("use letters, digits"));
    let tiny = Hello { period_ns: Some(1), ..hello("a", 1) };
    assert_eq!(refusal(&daemon, &tiny), "period_ms = 0.000001: use 1 to 4000 ms");
    let without_end = Hello { runtime_ns: Some(1), period_ns: Some(u64::MAX), ..hello("a", 1) };
    assert!(refusal(&daemon, &without_end).ends_with("use 1 to 60000 ms"));
}

#[test]
fn tools_change_contracts() {
    let daemon = Daemon::start("tools", DISPLAYS);
    let _dial = daemon.join("dial", 5);
    for (keys, then) in [
        (r#""fps": 30, "etpf_ms": 2"#, "30 fps, 2.0 ms"),
        (r#""display": "cluster""#, "30 fps on cluster, 2.0 ms"),
        (r#""period_ms": 50"#, "own clock 50.0 ms, 2.0 ms"),
        (r#""runtime_ms": 3, "period_ms": 40"#, "server 3 ms in 40 ms"),
        (r#""priority": 7"#, "server 3 ms in 40 ms"),
        (r#""fps": 60, "etpf_ms": 1"#, "60 fps, 1.0 ms"),
    ] {
        let answer = daemon.ask(&format!(r#"{{"ask": "set", "app": "dial", {keys}}}"#));
        assert_eq!(answer["answer"], "apps", "{answer}");
        assert_eq!(contract(&daemon, "dial"), then);
    }
    let wrong = daemon.ask(r#"{"ask": "set", "app": "dial", "runtime_ms": 3}"#);
    assert_eq!(wrong["is"], "runtime_ms = 3: add period_ms, the time in which it has that");
}

#[test]
fn a_display_in_use_stays() {
    let daemon = Daemon::start("needed", DISPLAYS);
    let dial = Hello { display: Some("cluster".to_owned()), ..hello("dial", 8) };
    let _dial = join(&daemon.path, &dial, PATIENCE).expect("joined");
    let settings = Settings::parse(&format!("{BEARS}[[display]]\nname='hud'\n")).expect("settings");
    let changes = daemon.with(move |server| server.apply(settings));
    let stays = "displays and vsync stay: app dial: there is no display cluster; there are hud";
    assert!(changes.len() == 1 && changes[0].starts_with(stays), "{changes:?}");
    assert_eq!(daemon.ask(r#"{"ask": "set", "app": "dial", "fps": 15}"#)["answer"], "apps");
    assert_eq!(contract(&daemon, "dial"), "15 fps on cluster");
}

#[test]
fn who_is_protected_is_what_the_core_says() {
    let daemon = Daemon::start("protected", "");
    let protected = |name: &'static str, wanted: bool| {
        let is = move |apps: &Value| of(apps, name)["protected"] == wanted;
        let apps = daemon.await_answer(APPS, is);
        of(&apps, name)["admission"].as_str().unwrap_or_default().to_owned()
    };
    let low = Hello { etpf_ns: ns(9), ..hello("low", 1) };
    let _low = join(&daemon.path, &low, PATIENCE).expect("joined");
    assert!(protected("low", true).starts_with("protected, not guaranteed: the GPU was not measured"));
    let high = Hello { etpf_ns: ns(9), ..hello("high", 9) };
    let high = join(&daemon.path, &high, PATIENCE).expect("joined");
    assert!(protected("low", false).starts_with("not protected: it and the more important apps reserve"));
    protected("high", true);
    drop(high);
    protected("low", true);
    let settings = Settings::parse(&format!("{BEARS}refresh_hz = 120")).expect("settings");
    daemon.with(move |server| server.apply(settings));
    protected("low", false);
}

#[test]
fn switches_of_the_gpu_are_no_credit() {
    let daemon = Daemon::start("switches", "[gpu]\nslice_us = 1000\nswitch_us = 100");
    let mut app = daemon.join("dial", 5);
    submit(&mut app, 0, GroupKind::Draw);
    let credit = await_reply(&mut app, |reply| match reply {
        Reply::Grant { credit, .. } => Some(credit),
        _ => None,
    });
    let asked = Span::from_us(100);
    assert!(credit <= asked && credit + Span::from_ns(1) >= asked, "{credit:?}");
    let settings = Settings::parse(&format!("{BEARS}gpu = {{ switch_us = 5 }}")).expect("settings");
    assert_eq!(daemon.with(move |server| server.apply(settings)), ["gpu holds after a restart"]);
}

/// A program of two processes: the first one has the contract, the other one shares it.
#[test]
fn clients_share_the_contract_of_another_one() {
    let daemon = Daemon::start("sources", "");
    let worker = Hello { shares: Some("game".to_owned()), ..hello("worker", 3) };
    let mut worker = join(&daemon.path, &worker, PATIENCE).expect("joined");
    assert_eq!(contract(&daemon, "worker"), "shares game, which is not there");
    let mut game =
        join(&daemon.path, &Hello { etpf_ns: ns(4), ..hello("game", 9) }, PATIENCE).expect("joined");
    for number in 0..3 {
        submit(&mut worker, number, GroupKind::Draw);
        assert_eq!(await_reply(&mut worker, granted), number);
        submit(&mut game, number, GroupKind::Swap);
        assert_eq!(await_reply(&mut game, granted), number);
    }
    let both = Hello { shares: Some("game".to_owned()), etpf_ns: ns(1), ..hello("both", 2) };
    let reason = "etpf_ms = 1: an app that shares a contract has none of its own: remove this, or shares";
    assert_eq!(refusal(&daemon, &both), reason);
    drop(game);
    let _heir = join(&daemon.path, &Hello { etpf_ns: ns(2), ..hello("heir", 8) }, PATIENCE).expect("joined");
    submit(&mut worker, 3, GroupKind::Draw);
    assert_eq!(await_reply(&mut worker, granted), 3);
    let set = |name: &str| daemon.ask(&format!(r#"{{"ask": "set", "app": "worker", "shares": "{name}"}}"#));
    assert_eq!(set("heir")["answer"], "apps");
    assert_eq!(contract(&daemon, "worker"), "shares heir");
    assert_eq!(set("")["answer"], "apps");
    assert_eq!(contract(&daemon, "worker"), "best effort");
}
