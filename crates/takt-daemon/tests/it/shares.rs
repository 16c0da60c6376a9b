//! Minimum shares of domains: the core keeps them, and the daemon says when it could not.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use takt_core::{Estimate, GroupId, GroupKind, Span};
use takt_daemon::control::config::Settings;
use takt_daemon::observe::journal::{Format, Journal};
use takt_ipc::client::Joined;
use takt_ipc::{Reply, Request};
use takt_os::clock;

use crate::support::{Daemon, PATIENCE, hello};
use crate::users::{daemon, join_as};

const DOMAINS: &str = r#"{"ask": "domains"}"#;

/// Domains of three users that no system has.
const THREE: &str = "[[domain]]\nname = 'half'\nuser = 64501\nshare_min = 0.5\nshare_window_ms = 500\n\
                     [[domain]]\nname = 'third'\nuser = 64502\nshare_min = 0.3\nshare_window_ms = 500\n\
                     [[domain]]\nname = 'fifth'\nuser = 64503\nshare_min = 0.2\nshare_window_ms = 500\n";

/// Asks for groups of that length without end, always two ahead, as a GPU that serves one at a time would end them.
fn flood(mut app: Joined, length: Span, over: &AtomicBool) {
    let (mut asked, mut ended) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        while asked < ended + 3 {
            let (group, estimate) = (GroupId(asked), Estimate::new(length));
            app.sender.send(&Request::Submit { group, kind: GroupKind::Draw, estimate }).expect("room");
            asked += 1;
        }
        match app.receiver.next_reply().expect("an honest daemon") {
            Some(Reply::Grant { group, .. }) => {
                std::thread::sleep(Duration::from_nanos(length.as_ns()));
                let finished = clock::now();
                app.sender
                    .send(&Request::Complete { group, finished, cost: length, frames: 0 })
                    .expect("room");
                ended += 1;
            }
            Some(_) => {}
            None => app.receiver.sleep(Duration::from_millis(10)),
        }
    }
}

fn domain<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let all = answer["is"]["domains"].as_array().expect("a list");
    all.iter().find(|domain| domain["name"] == name).expect("it is there")
}

#[test]
fn three_floods_have_the_shares_of_their_domains() {
    let Some(daemon) = daemon("shares", &format!("mpcg = 1\n{THREE}")) else { return };
    let apps = [(64501, "a"), (64502, "b"), (64503, "c")]
        .map(|(user, name)| *join_as(&daemon, user, &hello(name, 5)).expect("joined"));
    let contract = &daemon.ask(r#"{"ask": "apps"}"#)["is"][0]["contract"];
    assert_eq!(contract, "best effort, in the share of half");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for app in apps {
            let over = &over;
            scope.spawn(move || flood(app, Span::from_ms(1), over));
        }
        let had = |answer: &Value, name: &str| domain(answer, name)["share_had"].as_f64().unwrap_or_default();
        // How much of the GPU there is depends on the machine; how it is divided does not.
        let parts = |answer: &Value| {
            let all = ["half", "third", "fifth"].map(|name| had(answer, name));
            all.map(|part| part / all.iter().sum::<f64>().max(0.001))
        };
        let as_listed = |answer: &Value| {
            parts(answer).iter().zip([0.5, 0.3, 0.2]).all(|(part, share)| (part - share).abs() < 0.05)
        };
        let until = Instant::now() + PATIENCE;
        let mut answer = daemon.ask(DOMAINS);
        while !as_listed(&answer) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(200));
            answer = daemon.ask(DOMAINS);
        }
        over.store(true, Ordering::Relaxed);
        assert!(as_listed(&answer), "{:?}: {answer}", parts(&answer));
    });
}

/// A log that the test can read.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_domain_that_waits_in_vain_is_named() {
    let settings =
        "completion_timeout_ms = 60000\n[[domain]]\nname = 'own'\nshare_min = 0.4\nshare_window_ms = 200\n";
    let log = Log::default();
    let out = log.clone();
    let daemon = Daemon::prepared("short", settings, move |server| {
        server.with_journal(Journal::new(Box::new(out), Format::Text).expect("a thread"))
    });
    let said = |wanted: &str| {
        let until = Instant::now() + PATIENCE;
        while !String::from_utf8_lossy(&log.0.lock().expect("no panic")).contains(wanted) {
            assert!(
                Instant::now() < until,
                "{wanted}: {:?}",
                String::from_utf8_lossy(&log.0.lock().expect("no panic"))
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let mut app = daemon.join("app", 5);
    // They keep the GPU, and more of them wait.
    (0..6).for_each(|group| crate::support::submit_long(&mut app, group));
    let answer =
        daemon.await_answer(DOMAINS, |answer| domain(answer, "own")["share_missed"].as_u64() > Some(1));
    let own = domain(&answer, "own");
    assert_eq!((&own["share_short"], &own["share_had"]), (&true.into(), &0.0.into()), "{answer}");
    said("share-missed domain=own had=0.0 share_min=0.4 window_s=0.2");
    drop(app);
    daemon.await_answer(DOMAINS, |answer| domain(answer, "own")["share_short"] == false);
    said("share-kept domain=own");
}

#[test]
fn another_configuration_ends_shares_and_begins_others() {
    let of = |text: &str| Settings::parse(&format!("{}{text}", crate::support::BEARS)).expect("settings");
    let daemon = Daemon::start("reshared", "");
    let _app = daemon.join("app", 5);
    let contract = |wanted: &str| {
        daemon.await_answer(r#"{"ask": "apps"}"#, |apps| apps["is"][0]["contract"] == wanted);
    };
    contract("best effort");
    for (text, wanted) in [
        ("[[domain]]\nname = 'own'\nshare_min = 0.4\n", "best effort, in the share of own"),
        ("[[domain]]\nname = 'own'\nshare_min = 0.6\n", "best effort, in the share of own"),
        ("", "best effort"),
    ] {
        let settings = of(text);
        daemon.with(move |server| server.apply(settings));
        contract(wanted);
    }
}
