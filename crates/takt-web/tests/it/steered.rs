//! Orders from a page: previewed, given, audited and undone.

use serde_json::{Value, json};

use crate::daemon::{Daemon, joined, plain, reserving};
use crate::http::Web;

fn app<'a>(now: &'a Value, name: &str) -> &'a Value {
    now["apps"]
        .as_array()
        .and_then(|apps| apps.iter().find(|app| app["name"] == name))
        .unwrap_or(&Value::Null)
}

#[test]
fn an_order_is_previewed_given_audited_and_undone() {
    let folder = std::env::temp_dir().join(format!("takt-web-audit-{}", std::process::id()));
    std::fs::remove_dir_all(&folder).unwrap_or_default();
    let daemon = Daemon::start("steered", &format!("[audit]\nfolder = \"{}\"\n", folder.display()));
    let web = Web::start(&daemon.path);
    let dial = joined(&daemon.path, &reserving("dial", 9, 4));
    let map = joined(&daemon.path, &reserving("map", 5, 8));
    let now = web.await_json("/api/v1/now", |now| now["apps"][1]["name"] == "map");
    let (slot, pid) = (app(&now, "dial")["app"].to_string(), app(&now, "dial")["pid"].clone());
    let of = json!({ "name": "dial", "pid": pid });

    let greedy = json!({ "order": { "ask": "set", "app": slot, "etpf_ms": 12.0 }, "of": of });
    let preview = web.post("/api/v1/preview", &greedy).json();
    assert_eq!((&preview["loses"], &preview["refused"]), (&json!(["map"]), &Value::Null), "{preview}");
    assert_eq!(app(&web.get("/api/v1/now").json(), "dial")["etpf_ms"], 4.0, "nothing changed");

    let order = json!({ "order": { "ask": "set", "app": slot, "priority": 7 }, "of": of });
    let done = web.post("/api/v1/order", &order);
    assert_eq!(done.status, 200, "{done:?}");
    let change = done.json()["change"].as_u64().expect("a number");
    assert_eq!(app(&web.get("/api/v1/now").json(), "dial")["priority"], 7, "at once");
    let changes = web.get("/api/v1/changes").json();
    assert_eq!((&changes[0]["text"], &changes[0]["undoable"]), (&json!("dial: priority 7"), &json!(true)));

    let undone = web.post("/api/v1/undo", &json!({ "change": change }));
    assert_eq!(undone.status, 200, "{undone:?}");
    assert_eq!(app(&web.get("/api/v1/now").json(), "dial")["priority"], 9);
    assert_eq!(web.post("/api/v1/undo", &json!({ "change": change })).status, 410, "once");

    // What the daemon refuses comes back in its words, and changes nothing.
    let taken = json!({ "order": { "ask": "set", "app": slot, "priority": 5 }, "of": of });
    let refused = web.post("/api/v1/order", &taken);
    assert_eq!((refused.status, &refused.json()["error"]), (409, &json!("priority 5 belongs to map")));
    drop((dial, map, daemon));
    let audit: String = std::fs::read_dir(&folder)
        .expect("an audit")
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path()).ok())
        .collect();
    assert!(audit.contains("priority=7") && audit.contains("priority=5"), "{audit}");
    std::fs::remove_dir_all(&folder).expect("our own folder");
}

#[test]
fn pauses_evictions_policies_and_limits_are_undone_too() {
    let daemon = Daemon::start("undone", "");
    let web = Web::start(&daemon.path);
    let game = joined(&daemon.path, &plain("game", 3));
    web.await_json("/api/v1/now", |now| now["apps"][0]["name"] == "game");
    let give = |order: Value| {
        let done = web.post("/api/v1/order", &json!({ "order": order }));
        assert_eq!(done.status, 200, "{order}: {done:?}");
        done.json()["change"].clone()
    };
    let undo = |change: Value| {
        let done = web.post("/api/v1/undo", &json!({ "change": change }));
        assert_eq!(done.status, 200, "{done:?}");
    };
    let now = || web.get("/api/v1/now").json();
    let paused = give(json!({ "ask": "pause", "app": "game" }));
    assert_eq!(now()["apps"][0]["state"], "paused");
    undo(paused);
    assert_ne!(now()["apps"][0]["state"], "paused");
    let before = now()["daemon"]["policy"].clone();
    let policy = give(json!({ "ask": "policy", "name": "fifo" }));
    assert_eq!(now()["daemon"]["policy"], "fifo");
    undo(policy);
    assert_eq!(now()["daemon"]["policy"], before);
    let limits = now()["daemon"]["limits"].clone();
    let adjusted = give(json!({ "ask": "adjust", "mpcg": 5 }));
    assert_eq!(now()["daemon"]["limits"]["mpcg"], 5);
    undo(adjusted);
    assert_eq!(now()["daemon"]["limits"], limits);
    let evicted = give(json!({ "ask": "evict", "app": "game", "for_s": 600 }));
    web.await_json("/api/v1/now", |now| now["evicted"][0]["name"] == "game" && now["apps"] == json!([]));
    undo(evicted);
    web.await_json("/api/v1/now", |now| now["evicted"] == json!([]));
    drop(game);
}

#[test]
fn the_example_in_python_shows_apps_and_changes_one() {
    let daemon = Daemon::start("python", "");
    let web = Web::start(&daemon.path);
    let dial = joined(&daemon.path, &reserving("dial", 9, 4));
    let map = joined(&daemon.path, &reserving("map", 5, 8));
    web.await_json("/api/v1/now", |now| now["apps"][1]["name"] == "map");
    let example = |arguments: &[&str]| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/python/console.py");
        let mut python = std::process::Command::new("python3");
        python.arg(script).args(arguments).env("TAKT_TOKEN", &web.steer);
        let output =
            python.env("TAKT_WEB", format!("http://{}", web.address)).output().expect("python3 starts");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    };
    let (shown, said) = example(&["once"]);
    assert!(shown && said.contains("dial") && said.contains("60 fps, 8.0 ms"), "{said}");
    let (refused, said) = example(&["set", "dial", "etpf_ms", "12"]);
    assert!(!refused && said.contains("it would break the contract of map"), "{said}");
    let (done, said) = example(&["set", "dial", "priority", "7"]);
    assert!(done, "{said}");
    assert_eq!(app(&web.get("/api/v1/now").json(), "dial")["priority"], 7);
    drop((dial, map));
}

#[test]
fn an_order_never_reaches_another_app_that_took_the_slot() {
    let daemon = Daemon::start("slots", "");
    let web = Web::start(&daemon.path);
    let first = joined(&daemon.path, &plain("first", 3));
    let now = web.await_json("/api/v1/now", |now| now["apps"][0]["name"] == "first");
    let slot = now["apps"][0]["app"].to_string();
    let order = json!({ "ask": "set", "app": slot, "priority": 8 });
    let done = web.post("/api/v1/order", &json!({ "order": order })).json();
    drop(first);
    web.await_json("/api/v1/now", |now| now["apps"] == json!([]));
    let second = joined(&daemon.path, &plain("second", 4));
    web.await_json("/api/v1/now", |now| now["apps"][0]["name"] == "second");
    let of = json!({ "name": "first", "pid": now["apps"][0]["pid"] });
    for path in ["/api/v1/order", "/api/v1/preview"] {
        let late = web.post(path, &json!({ "order": order, "of": of }));
        assert_eq!(late.status, 410, "{late:?}");
    }
    let undo = web.post("/api/v1/undo", &json!({ "change": done["change"] }));
    assert_eq!(undo.status, 410, "{undo:?}");
    assert_eq!(web.get("/api/v1/now").json()["apps"][0]["priority"], 4);
    drop(second);
}
