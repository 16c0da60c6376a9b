//! Many connections: none keeps others out.

use std::io::Write;
use std::net::TcpStream;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::daemon::{Daemon, PATIENCE};
use crate::http::Web;

const CROWD: usize = 1000;

#[test]
fn a_thousand_connections_that_send_nothing_keep_no_visitor_out() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Some(CROWD as u64 * 2 + 200);
    if limit.maximum.is_none_or(|most| Some(most) >= wanted) {
        setrlimit(Resource::Nofile, Rlimit { current: wanted, maximum: limit.maximum })
            .expect("within the limit");
    }
    let daemon = Daemon::start("crowd", "");
    let web = Web::start(&daemon.path);
    let mut silent: Vec<TcpStream> = Vec::new();
    for number in 0..CROWD {
        let mut stream = TcpStream::connect(web.address).expect("it listens");
        if number % 2 == 0 {
            // It has begun, and says no more.
            stream.write_all(b"GET /api/v1/now HTT").ok();
        }
        silent.push(stream);
        if number % 100 == 99 {
            assert_eq!(web.get("/api/v1/me").status, 200, "after {number}");
        }
    }
    assert_eq!(web.get("/api/v1/me").status, 200);
    // Pages that are open stay, however many others come.
    let mut page = web.events("/api/v1/events");
    page.await_event("now", |now| now["daemon"].is_object());
    for _ in 0..CROWD / 2 {
        silent.push(TcpStream::connect(web.address).expect("it listens"));
    }
    for _ in 0..2 {
        page.await_event("now", |now| now["daemon"].is_object());
    }
    drop(silent);
}

#[test]
fn so_many_pages_may_be_open_and_no_more() {
    let daemon = Daemon::start("pages", "");
    let web = Web::start(&daemon.path);
    let mut pages: Vec<_> = (0..64).map(|_| web.events("/api/v1/events")).collect();
    for page in &mut pages {
        page.await_event("now", |_| true);
    }
    assert_eq!(web.get("/api/v1/events").status, 503);
    assert_eq!(web.get("/api/v1/me").status, 200, "questions are answered beside them");
    pages.pop();
    let until = std::time::Instant::now() + PATIENCE;
    while web.head("/api/v1/events").contains(" 503 ") {
        assert!(std::time::Instant::now() < until, "a page that is closed makes room");
    }
}
