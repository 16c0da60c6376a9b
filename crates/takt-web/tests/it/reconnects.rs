//! Daemons and consoles that come and go.

use takt_web::access::Tokens;

use crate::daemon::{Daemon, Drawing, reserving};
use crate::http::Web;

#[test]
fn a_page_goes_on_when_the_daemon_comes_back() {
    let daemon = Daemon::start("again", "");
    let path = daemon.path.clone();
    let web = Web::start(&path);
    let mut page = web.events("/api/v1/events?timeline=1");
    page.await_event("now", |now| now["daemon"].is_object());
    drop(daemon);
    let gone = page.await_event("now", |now| now["error"].is_string());
    assert!(gone["error"].as_str().is_some_and(|error| error.contains("takt serve")), "{gone}");
    assert_eq!(web.get("/metrics").status, 502);
    let daemon = Daemon::at(path, "");
    let dial = Drawing::start(&daemon.path, &reserving("dial", 9, 4));
    page.await_event("now", |now| now["error"].is_null() && now["apps"][0]["name"] == "dial");
    page.await_event("timeline", |event| {
        event["items"].as_array().is_some_and(|items| items.iter().any(|item| item[0] == "run"))
    });
    drop(dial);
}

#[test]
fn links_stay_good_when_the_console_comes_back() {
    let daemon = Daemon::start("links", "");
    let file = std::env::temp_dir().join(format!("takt-web-tokens-{}", std::process::id()));
    std::fs::remove_file(&file).unwrap_or_default();
    let web = Web::with(&daemon.path, Tokens::of_file(&file).expect("made"));
    let (address, token) = (web.address, web.view.clone());
    assert_eq!(web.get("/api/v1/me").status, 200);
    drop(web);
    let web = Web::at(&address.to_string(), &daemon.path, Tokens::of_file(&file).expect("read"));
    assert_eq!(web.send("GET /api/v1/me", &[("x-takt-token", &token)], "").status, 200);
    std::fs::remove_file(&file).expect("our own file");
}
