//! Apps whose work the GPU interrupts, and apps that produce for others.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use takt_core::{Event, GroupKind, Span};
use takt_ipc::client::{Joined, join};
use takt_ipc::message::Hello;
use takt_trace::Record;
use takt_trace::export::json::{Entry, Reader};

use crate::support::{
    Daemon, PATIENCE, await_reply, await_turn, complete, granted, hello, hold, submit, submit_long,
};

/// What the daemon records.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const APPS: &str = r#"{"ask": "apps"}"#;

fn of<'a>(apps: &'a Value, name: &str) -> &'a Value {
    apps["is"].as_array().and_then(|apps| apps.iter().find(|app| app["name"] == name)).expect("it is there")
}

fn ns(ms: u64) -> Option<u64> {
    Some(ms * 1_000_000)
}

fn compute(daemon: &Daemon, name: &str, priority: u32) -> Joined {
    join(&daemon.path, &Hello { divisible: true, ..hello(name, priority) }, PATIENCE).expect("joined")
}

/// Whether a grant waits for the app.
fn has_grant(app: &mut Joined) -> bool {
    await_turn(app);
    std::iter::from_fn(|| app.receiver.next_reply().expect("an honest daemon"))
        .any(|reply| granted(reply).is_some())
}

#[test]
fn one_compute_context_without_a_contract_is_on_the_gpu_at_a_time() {
    let daemon = Daemon::start("one-context", "");
    let job = Hello { runtime_ns: ns(3), period_ns: ns(40), ..hello("job", 9) };
    let mut job = join(&daemon.path, &job, PATIENCE).expect("joined");
    let (mut first, mut second) = (compute(&daemon, "first", 2), compute(&daemon, "second", 1));
    // A minute fits nowhere beside a contract, and need not.
    hold(&mut first, 0);
    submit_long(&mut second, 0);
    assert!(!has_grant(&mut second), "another one is on the GPU");
    submit(&mut job, 0, GroupKind::Draw);
    assert_eq!(await_reply(&mut job, granted), 0, "the job goes beside it");
    complete(&mut first, 0);
    assert_eq!(await_reply(&mut second, granted), 0);
    let mut other = daemon.join("other", 3);
    submit_long(&mut other, 0);
    assert!(!has_grant(&mut other), "work that is not interrupted waits for the contract");
}

#[test]
fn others_are_charged_for_such_work_while_it_may_come() {
    let log = Log::default();
    let file = log.clone();
    let daemon = Daemon::prepared("charged", "[gpu]\ndivisible_slice_us = 300\n", |mut server| {
        server.record_to(file, "this").expect("a thread");
        server
    });
    let there = |count: usize| {
        daemon.await_answer(APPS, |apps| apps["is"].as_array().is_some_and(|apps| apps.len() == count));
    };
    let _dial = daemon.join("dial", 9);
    let first = compute(&daemon, "first", 2);
    let second = compute(&daemon, "second", 1);
    drop(first);
    there(2);
    drop(second);
    there(1);
    // The list is shorter before the loop has carried out what follows.
    daemon.with(|server| server.finish()).expect("a whole recording");
    drop(daemon);
    let charged = |record: Entry| match record {
        Entry::Record(Record::In(Event::Adjust(adjustable))) => {
            Some(adjustable.divisible.map(|divisible| divisible.slice))
        }
        _ => None,
    };
    let bytes = log.0.lock().expect("written").clone();
    let mut reader = Reader::new(bytes.as_slice()).expect("a log");
    let mut slices = Vec::new();
    while let Some((_, record)) = reader.next_entry().expect("whole") {
        slices.extend(charged(record));
    }
    assert_eq!(slices, [Some(Span::from_us(300)), None], "with the first that comes until the last one goes");
}

#[test]
fn producers_find_their_consumer_whenever_it_comes() {
    let daemon = Daemon::start("producers", "");
    let camera = Hello { feeds: Some("detector".to_owned()), ..hello("camera", 2) };
    let _camera = join(&daemon.path, &camera, PATIENCE).expect("joined");
    let contract = |text: &str| {
        daemon.await_answer(APPS, |apps| of(apps, "camera")["contract"] == text);
    };
    contract("best effort, feeds detector, which is not there");
    let server = Hello { runtime_ns: ns(3), period_ns: ns(40), ..hello("detector", 7) };
    let detector = join(&daemon.path, &server, PATIENCE).expect("joined");
    contract("best effort, feeds detector");
    drop(detector);
    contract("best effort, feeds detector, which is not there");
    let set = daemon.ask(r#"{"ask": "set", "app": "camera", "feeds": ""}"#);
    assert_eq!(set["answer"], "apps", "{set}");
    contract("best effort");
    let strange = Hello { feeds: Some("\u{1b}[2J".to_owned()), ..hello("other", 1) };
    let refused = join(&daemon.path, &strange, PATIENCE).expect_err("refused").to_string();
    assert!(refused.contains(r#"feeds = "\u{1b}[2J": use letters, digits"#), "{refused}");
    for key in ["display", "feeds", "shares"] {
        let set = format!(r#"{{"ask": "set", "app": "camera", "{key}": "\u202e\u001b[2J"}}"#);
        let refused = daemon.ask(&set);
        let reason = refused["is"].as_str().unwrap_or_default();
        assert!(reason.starts_with(&format!(r#"{key} = "\u{{202e}}"#)), "{refused}");
    }
}

#[test]
fn a_runtime_with_an_earlier_deadline_is_a_clock_of_its_own() {
    let daemon = Daemon::start("earlier", "");
    let jobs = |deadline| Hello {
        period_ns: ns(40),
        runtime_ns: ns(3),
        deadline_ns: ns(deadline),
        ..hello("job", 9)
    };
    for (deadline, contract) in
        [(4, "own clock 40.0 ms, due after 4 ms, 3.0 ms"), (40, "server 3 ms in 40 ms")]
    {
        let job = join(&daemon.path, &jobs(deadline), PATIENCE).expect("joined");
        let apps =
            daemon.await_answer(APPS, |apps| apps["is"].as_array().is_some_and(|apps| apps.len() == 1));
        assert_eq!(of(&apps, "job")["contract"], contract);
        drop(job);
        daemon.await_answer(APPS, |apps| apps["is"].as_array().is_some_and(Vec::is_empty));
    }
}
