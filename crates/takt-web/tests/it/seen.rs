//! What pages and other programs see.

use serde_json::Value;
use takt_web::api;

use crate::daemon::{Daemon, Drawing, joined, plain, reserving};
use crate::http::Web;

#[test]
fn what_apps_do_is_seen_and_as_the_schema_says() {
    let daemon = Daemon::start("seen", "");
    let web = Web::start(&daemon.path);
    let dial = Drawing::start(&daemon.path, &reserving("dial", 9, 4));
    let game = joined(&daemon.path, &plain("game", 3));
    let is_drawing = |now: &Value| now["apps"][0]["fps"].as_f64().is_some_and(|fps| fps > 1.0);
    let now = web.await_json("/api/v1/now", is_drawing);
    let now: api::Now = serde_json::from_value(now).expect("as documented");
    let names: Vec<&str> = now.apps.iter().map(|app| app.name.as_str()).collect();
    assert_eq!(names, ["dial", "game"], "most important first");
    assert!(now.apps[0].met.is_some() && now.apps[0].contract.starts_with("60 fps"), "{now:?}");
    assert!(now.apps[1].met.is_none() && !now.apps[1].promised && now.guarantee.contracts == 1, "{now:?}");

    let me: api::Me = serde_json::from_value(web.get("/api/v1/me").json()).expect("as documented");
    assert!(!me.may_steer && me.may_change_others == Some(true) && me.version == api::VERSION);
    assert!(me.policies.iter().any(|name| name == "timeline") && !me.scenarios.is_empty());

    let why: api::Why =
        serde_json::from_value(web.get("/api/v1/why?app=dial").json()).expect("as documented");
    assert!(why.sentences.len() <= why.count);
    assert_eq!(web.get("/api/v1/why?app=none").status, 409, "the daemon knows no such app");
    assert_eq!(web.get("/api/v1/why").status, 422);
    assert_eq!(web.get("/api/v1/none").status, 404);
    drop((dial, game));
}

#[test]
fn events_tell_what_the_gpu_does_as_it_happens_and_the_history_grows() {
    let daemon = Daemon::start("events", "");
    let web = Web::start(&daemon.path);
    let dial = Drawing::start(&daemon.path, &reserving("dial", 9, 4));
    let mut events = web.events("/api/v1/events?timeline=1");
    let first = events.await_event("timeline", |event| event["reset"] == true && event["error"].is_null());
    serde_json::from_value::<api::TimelineEvent>(first).expect("as documented");
    let has = |event: &Value, kind: &str| {
        event["items"].as_array().is_some_and(|items| items.iter().any(|item| item[0] == kind))
    };
    for kind in ["run", "grant", "frame"] {
        events.await_event("timeline", |event| has(event, kind));
    }
    let run = events.await_event("timeline", |event| has(event, "run"));
    let items = run["items"].as_array().expect("a list");
    let run = items.iter().find(|item| item[0] == "run").expect("a run");
    assert!(run[3].as_u64() < run[4].as_u64(), "it ends after it began: {run}");
    events.await_event("now", |now| now["apps"][0]["name"] == "dial");
    // Samples are taken while a page is there.
    let history = web.await_json("/api/v1/history?span_s=60", |history| history["at_ms"][1].is_u64());
    let history: api::HistoryAnswer = serde_json::from_value(history).expect("as documented");
    assert_eq!(history.apps[0].fps.len(), history.at_ms.len());
    let trace = web.get("/api/v1/trace?seconds=5");
    assert!(trace.status == 200 && trace.head.contains("takt.pftrace"), "{}", trace.head);
    assert_eq!(web.get("/api/v1/history?span_s=0").status, 422);
    drop(dial);
}

#[test]
fn counters_are_those_of_the_daemon() {
    let daemon = Daemon::start("counters", "");
    let web = Web::start(&daemon.path);
    let dial = Drawing::start(&daemon.path, &reserving("dial", 9, 4));
    let until = std::time::Instant::now() + crate::daemon::PATIENCE;
    let page = loop {
        let token = format!("Bearer {}", web.view);
        let page = web.send("GET /metrics", &[("authorization", &token)], "");
        assert_eq!(page.status, 200, "{page:?}");
        if page.body.contains("takt_frames_total{app=\"dial\"") {
            break page;
        }
        assert!(std::time::Instant::now() < until, "{}", page.body);
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    assert!(page.head.contains("text/plain; version=0.0.4"), "{}", page.head);
    assert!(page.body.contains("takt_apps 1\n") && page.body.contains("# TYPE takt_turn_seconds summary"));
    drop(dial);
}

#[test]
fn the_page_is_served_with_a_policy_that_lets_nothing_else_in() {
    let daemon = Daemon::start("page", "");
    let web = Web::start(&daemon.path);
    let page = web.send("GET /", &[], "");
    assert!(page.status == 200 && page.body.contains("<title>Takt</title>"), "{page:?}");
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
    ] {
        assert!(page.head.contains(header), "{header}: {}", page.head);
    }
    for (path, kind) in
        [("/main.js", "text/javascript"), ("/console.css", "text/css"), ("/icon.svg", "image/svg")]
    {
        let file = web.send(&format!("GET {path}"), &[], "");
        assert!(file.status == 200 && file.head.contains(kind), "{path}: {}", file.head);
    }
    // Every file loads without the token, because none holds anything of this machine.
    assert_eq!(web.send("GET /../Cargo.toml", &[], "").status, 401);
}

#[test]
fn scenarios_are_simulated_and_the_schema_is_the_committed_one() {
    let daemon = Daemon::start("what-if", "");
    let web = Web::start(&daemon.path);
    let me: api::Me = serde_json::from_value(web.get("/api/v1/me").json()).expect("as documented");
    let (_, car) = &me.scenarios[0];
    let run = |policy: &str| {
        let request = serde_json::json!({ "scenario": car, "set": ["duration_s=2"], "policy": policy });
        web.post("/api/v1/simulate", &request).json()
    };
    let (ours, fifo) = (run("timeline"), run("fifo"));
    assert_eq!(ours["apps"][0]["missed"], 0, "{}", ours["apps"][0]);
    assert!(fifo["apps"][0]["missed"].as_u64() > Some(0), "{}", fifo["apps"][0]);
    let bad = web.post("/api/v1/simulate", &serde_json::json!({ "scenario": "x" }));
    assert!(bad.status == 422 && bad.json()["error"].is_string(), "{bad:?}");
    let schema = web.get("/api/v1/schema").body;
    let committed =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/web.schema.json");
    expect_test::expect_file![committed].assert_eq(&schema);
}
