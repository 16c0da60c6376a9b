//! Apps that a tool pauses or evicts, and what it is told before.

use serde_json::{Value, json};
use takt_core::GroupKind;
use takt_ipc::Reply;
use takt_ipc::client::{Joined, join};
use takt_ipc::message::Hello;

use crate::support::{Daemon, PATIENCE, await_reply, await_turn, complete, granted, hello, submit};

const APPS: &str = r#"{"ask": "apps"}"#;

fn reserving(name: &str, priority: u32, etpf_ms: u64) -> Hello {
    Hello { etpf_ns: Some(etpf_ms * 1_000_000), fps_mhz: Some(60_000), ..hello(name, priority) }
}

fn is(daemon: &Daemon, name: &str) -> Value {
    let apps = daemon.ask(APPS);
    let all = apps["is"].as_array().expect("a list").clone();
    all.into_iter().find(|app| app["name"] == name).unwrap_or_default()
}

fn preview(daemon: &Daemon, order: &Value) -> Value {
    daemon.ask(&json!({ "ask": "preview", "order": order }).to_string())["is"].clone()
}

/// The replies that are there, without waiting.
fn replies(app: &mut Joined) -> Vec<Reply> {
    std::iter::from_fn(|| app.receiver.next_reply().expect("an honest daemon")).collect()
}

#[test]
fn a_paused_app_is_granted_nothing_until_it_is_resumed() {
    let daemon = Daemon::start("paused", "");
    let mut app = join(&daemon.path, &reserving("dial", 9, 4), PATIENCE).expect("joined");
    submit(&mut app, 0, GroupKind::Draw);
    assert_eq!(await_reply(&mut app, granted), 0);
    assert_eq!(daemon.ask(r#"{"ask": "pause", "app": "dial"}"#)["is"][0]["paused"], true);
    // Its end counts, however long the pause lasts: nothing is overdue.
    complete(&mut app, 0);
    submit(&mut app, 1, GroupKind::Draw);
    submit(&mut app, 2, GroupKind::Swap);
    let aside = daemon.await_answer(APPS, |answer| answer["is"][0]["protected"] == false);
    assert_eq!(aside["is"][0]["reason"], "paused", "{aside}");
    await_turn(&app);
    assert!(!replies(&mut app).iter().any(|reply| matches!(reply, Reply::Grant { .. })));
    let again = daemon.ask(r#"{"ask": "pause", "app": "dial"}"#);
    assert_eq!(again["is"], "dial is paused already");

    // Another app has the whole GPU meanwhile, and terms may change.
    let other = join(&daemon.path, &reserving("map", 5, 14), PATIENCE).expect("joined");
    assert!(other.welcome.standing.protected, "{}", other.welcome.admission);
    drop(other);
    daemon.await_answer(APPS, |answer| answer["is"][1].is_null());
    daemon.ask(r#"{"ask": "set", "app": "dial", "priority": 7}"#);
    assert_eq!(daemon.ask(r#"{"ask": "resume", "app": "dial"}"#)["is"][0]["paused"], false);
    assert_eq!(await_reply(&mut app, granted), 1, "in order");
    complete(&mut app, 1);
    assert_eq!(await_reply(&mut app, granted), 2);
    complete(&mut app, 2);
    let back = daemon.await_answer(APPS, |answer| answer["is"][0]["protected"] == true);
    assert_eq!(back["is"][0]["priority"], 7, "{back}");
    assert_eq!(daemon.ask(r#"{"ask": "resume", "app": "dial"}"#)["is"], "dial is not paused");
}

#[test]
fn a_paused_app_may_leave_and_a_log_of_it_replays() {
    use std::sync::{Arc, Mutex};
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let log = Shared::default();
    let out = log.clone();
    let daemon = Daemon::prepared("paused-log", crate::support::BEARS, |mut server| {
        server.record_to(out, "this").expect("a thread");
        server
    });
    let mut app = join(&daemon.path, &reserving("dial", 9, 4), PATIENCE).expect("joined");
    for round in 0..3 {
        daemon.ask(r#"{"ask": "pause", "app": "dial"}"#);
        submit(&mut app, round, GroupKind::Draw);
        daemon.await_answer(APPS, |answer| answer["is"][0]["protected"] == false);
        daemon.ask(r#"{"ask": "resume", "app": "dial"}"#);
        assert_eq!(await_reply(&mut app, granted), round);
        complete(&mut app, round);
    }
    daemon.ask(r#"{"ask": "pause", "app": "dial"}"#);
    drop(app);
    daemon.await_answer(APPS, |answer| answer["is"] == json!([]));
    daemon.with(|server| server.finish().expect("written"));
    let bytes = log.0.lock().expect("no panic").clone();
    let mut reader = takt_trace::export::json::Reader::new(&bytes[..]).expect("a log");
    let config = *reader.config().expect("the core's parameters");
    let mut replay = takt_trace::replay::Replay::new(config, "timeline").expect("a policy");
    let mut played = 0;
    while let Some((at, entry)) = reader.next_entry().expect("whole lines") {
        if let takt_trace::export::json::Entry::Record(record) = entry {
            replay.play(at, &record).unwrap_or_else(|difference| panic!("{difference:?}"));
            played += 1;
        }
    }
    assert!(played > 10, "{played}");
}

#[test]
fn an_evicted_app_runs_on_and_stays_away_until_it_is_readmitted() {
    let daemon = Daemon::start("evicted", "");
    let mut app = daemon.join("game", 3);
    let answer = daemon.ask(r#"{"ask": "evict", "app": "game", "for_s": 600}"#);
    assert_eq!(answer["answer"], "apps", "{answer}");
    await_reply(&mut app, |reply| matches!(reply, Reply::Farewell).then_some(()));
    daemon.await_answer(APPS, |answer| answer["is"] == json!([]));
    let refused = join(&daemon.path, &hello("game", 3), PATIENCE).map(|_| ()).expect_err("evicted");
    assert!(refused.to_string().contains("a tool evicted it"), "{refused}");
    drop(daemon.join("map", 3));
    let away = daemon.ask(r#"{"ask": "daemon"}"#)["is"]["evicted"].clone();
    assert_eq!((&away[0]["name"], away[1].is_null()), (&json!("game"), true), "{away}");
    assert!(away[0]["for_s"].as_f64().is_some_and(|left| left > 100.0), "{away}");
    let unknown = daemon.ask(r#"{"ask": "readmit", "app": "map"}"#);
    assert_eq!(unknown["is"], "no tool evicted map; takt list --json - names those that one did");
    daemon.ask(r#"{"ask": "readmit", "app": "game"}"#);
    drop(daemon.join("game", 3));
    let long = daemon.ask(r#"{"ask": "evict", "app": "game", "for_s": 100000}"#);
    assert_eq!(long["answer"], "refused", "{long}");
}

#[test]
fn a_preview_says_whose_contract_would_break_and_changes_nothing() {
    let daemon = Daemon::start("preview", "");
    let dial = join(&daemon.path, &reserving("dial", 9, 4), PATIENCE).expect("joined");
    let map = join(&daemon.path, &reserving("map", 5, 8), PATIENCE).expect("joined");
    let rest = daemon.join("rest", 1);
    daemon.await_answer(APPS, |answer| answer["is"][1]["protected"] == true);
    let before = daemon.ask(APPS);

    let more = preview(&daemon, &json!({ "ask": "set", "app": "dial", "etpf_ms": 12.0 }));
    assert_eq!((&more["loses"], &more["refused"]), (&json!(["map"]), &Value::Null), "{more}");
    assert_eq!(more["apps"][0]["after"]["contract"], "60 fps, 12.0 ms");
    let why = more["apps"][1]["after"]["why_not"].as_str().unwrap_or_default();
    assert!(!why.is_empty(), "{more}");
    assert_eq!(more["apps"][2]["before"]["covered"], Value::Null, "it has no contract");
    let gives = preview(&daemon, &json!({ "ask": "set", "app": "rest", "fps": 60.0, "etpf_ms": 1.0 }));
    assert_eq!((&gives["loses"], &gives["gains"]), (&json!([]), &json!(["rest"])), "{gives}");
    let fifo = preview(&daemon, &json!({ "ask": "policy", "name": "fifo" }));
    assert_eq!(fifo["loses"], json!(["dial", "map"]), "{fifo}");
    let paused = preview(&daemon, &json!({ "ask": "pause", "app": "dial" }));
    assert_eq!(paused["loses"], json!(["dial"]), "{paused}");
    let evicted = preview(&daemon, &json!({ "ask": "evict", "app": "dial" }));
    assert_eq!((&evicted["loses"], &evicted["apps"][0]["after"]), (&json!(["dial"]), &Value::Null));
    assert!(evicted["notes"][0].as_str().is_some_and(|note| note.contains("unscheduled")), "{evicted}");

    daemon.ask(r#"{"ask": "set", "app": "dial", "gaps": 1, "gap_ms": 0.5}"#);
    let shared = preview(&daemon, &json!({ "ask": "set", "app": "rest", "shares": "dial" }));
    assert_eq!(shared["loses"], json!(["dial"]), "{shared}");
    let why = shared["apps"][0]["after"]["why_not"].as_str().unwrap_or_default();
    assert!(why.contains("both gaps and sources"), "{shared}");
    daemon.ask(r#"{"ask": "set", "app": "dial", "gaps": 0, "gap_ms": 0.0}"#);

    let taken = preview(&daemon, &json!({ "ask": "set", "app": "dial", "priority": 5 }));
    assert_eq!(taken["refused"], "priority 5 belongs to map");
    let odd = preview(&daemon, &json!({ "ask": "set", "app": "dial", "fps": 59.0 }));
    assert!(odd["refused"].is_string(), "{odd}");
    for (order, part) in [
        (json!({ "ask": "set", "app": "none", "fps": 60.0 }), "no app none"),
        (json!({ "ask": "policy", "name": "x" }), "no policy x"),
        (json!({ "ask": "adjust", "mpcg": 0 }), "mpcg"),
        (json!({ "ask": "resume", "app": "dial" }), "not paused"),
        (json!({ "ask": "apps" }), "nothing to preview"),
    ] {
        let refused = preview(&daemon, &order)["refused"].clone();
        assert!(refused.as_str().is_some_and(|said| said.contains(part)), "{refused}");
    }
    assert_eq!(daemon.ask(APPS)["is"], before["is"], "nothing changed");
    drop((dial, map, rest));
}

#[test]
fn terms_can_be_set_back_to_what_they_were() {
    let daemon = Daemon::start("undo", "");
    let app = daemon.join("game", 3);
    let terms = || is(&daemon, "game")["terms"].clone();
    let set = |terms: &Value| {
        let mut order = json!({ "ask": "set", "app": "game" });
        order.as_object_mut().expect("an object").extend(terms.as_object().expect("an object").clone());
        let answer = daemon.ask(&order.to_string());
        assert_eq!(answer["answer"], "apps", "{answer}");
    };
    let original = (terms(), is(&daemon, "game")["contract"].clone());
    assert_eq!(original.1, "best effort");
    for (changed, contract) in [
        (json!({ "fps": 30.0, "etpf_ms": 2.0, "gaps": 2, "gap_ms": 0.5 }), "30 fps, 2.0 ms"),
        (json!({ "period_ms": 20.0, "deadline_ms": 10.0 }), "own clock 20.0 ms, due after 10 ms"),
        (json!({ "runtime_ms": 3.0, "period_ms": 40.0, "hard": true }), "hard server 3 ms in 40 ms"),
        (json!({ "max_slice_ms": 0.0, "priority": 8 }), "best effort"),
    ] {
        set(&changed);
        assert_eq!(is(&daemon, "game")["contract"], contract);
        let (between, shown) = (terms(), is(&daemon, "game")["contract"].clone());
        set(&original.0);
        assert_eq!((terms(), is(&daemon, "game")["contract"].clone()), original, "after {changed}");
        set(&between);
        assert_eq!((terms(), is(&daemon, "game")["contract"].clone()), (between, shown), "{changed} again");
        set(&original.0);
    }
    let limits = daemon.ask(r#"{"ask": "daemon"}"#)["is"]["limits"].clone();
    daemon.ask(r#"{"ask": "adjust", "mpcg": 7, "max_blocking_ms": "inf"}"#);
    let mut order = limits.clone();
    order["ask"] = json!("adjust");
    assert_eq!(daemon.ask(&order.to_string())["answer"], "done");
    assert_eq!(daemon.ask(r#"{"ask": "daemon"}"#)["is"]["limits"], limits);
    drop(app);
}

#[test]
fn no_deadline_is_called_guaranteed_under_a_policy_that_keeps_none() {
    let daemon =
        Daemon::start("lax", "[gpu]\nslice_us = 1000\nswitch_us = 0\nunseen = 'ignore'\ndevices = []");
    let app = join(&daemon.path, &reserving("dial", 9, 4), PATIENCE).expect("joined");
    assert_ne!(is(&daemon, "dial")["reason"], "policy");
    daemon.ask(r#"{"ask": "policy", "name": "fifo"}"#);
    let said = daemon.await_answer(APPS, |answer| answer["is"][0]["reason"] == "policy");
    assert_eq!(said["is"][0]["guaranteed"], false, "{said}");
    drop(app);
}
