//! Requests that get nothing: without a token, from other pages, without the right.

use serde_json::{Value, json};
use takt_web::access::Tokens;

use crate::daemon::{Daemon, joined, plain};
use crate::http::Web;

const API: [&str; 8] = ["me", "now", "events", "history", "why?app=dial", "changes", "trace", "schema"];

fn pause() -> Value {
    json!({ "order": { "ask": "pause", "app": "dial" } })
}

fn is_paused(web: &Web) -> bool {
    web.get("/api/v1/now").json()["apps"][0]["state"] == "paused"
}

#[test]
fn without_a_token_there_is_nothing() {
    let daemon = Daemon::start("token", "");
    let web = Web::start(&daemon.path);
    for path in API.map(|path| format!("/api/v1/{path}")).iter().chain(["/metrics".to_owned()].iter()) {
        for headers in
            [&[][..], &[("x-takt-token", "")], &[("x-takt-token", "guess")], &[("cookie", &web.view)]]
        {
            assert_eq!(web.send(&format!("GET {path}"), headers, "").status, 401, "{path} {headers:?}");
        }
        // Nor in the address, where it would be logged.
        let token = &web.view;
        assert_eq!(web.send(&format!("GET {path}?token={token}"), &[], "").status, 401);
    }
    let order = web.send("POST /api/v1/order", &[("content-type", "application/json")], &pause().to_string());
    assert_eq!(order.status, 401);
}

#[test]
fn other_pages_and_other_names_of_this_machine_are_refused() {
    let daemon = Daemon::start("origin", "");
    let web = Web::start(&daemon.path);
    let dial = joined(&daemon.path, &plain("dial", 9));
    web.await_json("/api/v1/now", |now| now["apps"][0]["name"] == "dial");
    let (host, own) = (web.address.to_string(), format!("http://{}", web.address));
    let order = |headers: &[(&str, &str)]| {
        let mut all = vec![("x-takt-token", web.steer.as_str()), ("content-type", "application/json")];
        all.extend(headers);
        web.send("POST /api/v1/order", &all, &pause().to_string()).status
    };
    // Even a page that has the token.
    for headers in [
        &[("origin", "http://evil.example")][..],
        &[("origin", "null")],
        &[("origin", "http://127.0.0.1:1")],
        &[("sec-fetch-site", "cross-site")],
        &[("host", "evil.example"), ("origin", "http://evil.example")],
        &[("host", "rebound.example:9550")],
        &[("host", "car.example"), ("origin", &own)],
    ] {
        assert_eq!(order(headers), 403, "{headers:?}");
    }
    // What a form can send without being asked.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let headers = [("x-takt-token", web.steer.as_str()), ("content-type", kind)];
        assert_eq!(web.send("POST /api/v1/order", &headers, &pause().to_string()).status, 415);
    }
    // A browser asks before it sends the token's header from elsewhere, and gets no permission.
    let asked = [("origin", "http://evil.example"), ("access-control-request-method", "POST")];
    let preflight = web.send("OPTIONS /api/v1/order", &asked, "");
    assert!(preflight.status == 403 && !preflight.head.contains("access-control-allow"), "{preflight:?}");
    let preflight = web.send("OPTIONS /api/v1/order", &[], "");
    assert!(preflight.status == 405 && !preflight.head.contains("access-control-allow"), "{preflight:?}");
    assert!(!is_paused(&web), "none of them did anything");
    assert_eq!(order(&[("origin", &own), ("host", &host), ("sec-fetch-site", "same-origin")]), 200);
    assert!(is_paused(&web));
    drop(dial);
}

#[test]
fn looking_is_not_steering() {
    let daemon = Daemon::start("view", "");
    let web = Web::start(&daemon.path);
    let dial = joined(&daemon.path, &plain("dial", 9));
    web.await_json("/api/v1/now", |now| now["apps"][0]["name"] == "dial");
    let viewer = [("x-takt-token", web.view.as_str()), ("content-type", "application/json")];
    for (path, body) in [("order", pause()), ("undo", json!({ "change": 1 }))] {
        assert_eq!(web.send(&format!("POST /api/v1/{path}"), &viewer, &body.to_string()).status, 403);
    }
    assert_eq!(web.send("POST /api/v1/preview", &viewer, &pause().to_string()).status, 200, "it may ask");
    let none = Web::with(&daemon.path, Tokens::random().expect("random").read_only());
    assert_eq!(none.post("/api/v1/order", &pause()).status, 401, "there is no token for that");
    // Orders that are none of a page's.
    for order in
        [json!({ "ask": "stop" }), json!({ "ask": "state", "name": "parked" }), json!("stop"), json!(7)]
    {
        assert_eq!(web.post("/api/v1/order", &json!({ "order": order })).status, 422, "{order}");
    }
    assert_eq!(web.send("GET /api/v1/order", &[("x-takt-token", &web.steer)], "").status, 404);
    assert!(!is_paused(&web));
    drop(dial);
}

#[test]
fn the_daemon_decides_what_the_consoles_user_may() {
    let user = takt_os_user();
    let daemon =
        Daemon::start("rights", &format!("[[domain]]\nname = 'console'\nuser = {user}\nsee = true\n"));
    let web = Web::start(&daemon.path);
    let me = web.send("GET /api/v1/me", &[("x-takt-token", &web.steer)], "").json();
    assert_eq!((&me["may_change_others"], &me["domain"]), (&json!(false), &json!("console")), "{me}");
    let policy = json!({ "order": { "ask": "policy", "name": "fifo" } });
    let refused = web.post("/api/v1/order", &policy);
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(
        refused.json()["error"].as_str().is_some_and(|error| error.contains("rule change")),
        "{refused:?}"
    );
    let preview = web.post("/api/v1/preview", &policy).json();
    assert!(preview["refused"].is_string(), "{preview}");
    let blind = format!("[[domain]]\nname = 'console'\nuser = {user}\nsee = false\n");
    let daemon = Daemon::start("blind", &blind);
    let web = Web::start(&daemon.path);
    assert_eq!(web.get("/metrics").status, 409);
    let mut events = web.events("/api/v1/events?timeline=1");
    let told = events.await_event("timeline", |event| event["error"].is_string());
    assert!(told["error"].as_str().is_some_and(|error| error.contains("watch apps of others")), "{told}");
}

/// The user that runs the tests, as the kernel says.
fn takt_os_user() -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").expect("a process").uid()
}

#[test]
fn bodies_and_heads_are_bounded_and_nonsense_is_no_harm() {
    let daemon = Daemon::start("bounds", "");
    let web = Web::start(&daemon.path);
    let headers = [("x-takt-token", web.steer.as_str()), ("content-type", "application/json")];
    let (host, token, large) = (web.address, &web.steer, "x".repeat(600 << 10));
    let post = format!("POST /api/v1/simulate HTTP/1.1\r\nhost: {host}\r\nx-takt-token: {token}");
    let length = large.len();
    let body = web.too_much(&format!(
        "{post}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{large}"
    ));
    assert!(matches!(body, Some(413) | None), "{body:?}");
    let head = web.too_much(&format!("GET / HTTP/1.1\r\nhost: {host}\r\nx: {large}\r\n\r\n"));
    assert!(matches!(head, Some(431) | None), "{head:?}");
    for bad in ["\r\n\r\n", "GET\r\n\r\n", "\u{0}\u{1}\u{2}\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"] {
        let mut stream = std::net::TcpStream::connect(web.address).expect("it listens");
        std::io::Write::write_all(&mut stream, bad.as_bytes()).expect("sent");
    }
    for body in ["", "{", "null", "[]", "{\"order\":1}", "{\"order\":{\"ask\":\"set\"},\"more\":1}"] {
        let status = web.send("POST /api/v1/order", &headers, body).status;
        assert_eq!(status, 422, "{body:?}");
    }
    assert_eq!(web.get("/api/v1/me").status, 200, "it serves on");
}
