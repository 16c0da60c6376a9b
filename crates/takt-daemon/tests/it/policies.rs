//! Policies by name, live: which app is granted first, and that all apps go on whatever changes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use takt_core::GroupKind;
use takt_ipc::Reply;
use takt_ipc::client::join;
use takt_ipc::message::Hello;

use crate::support::{
    Daemon, PATIENCE, await_reply, await_turn, complete, granted, hello, hold, pace, submit, submit_long,
};

const POLICIES: &[&str] = takt_policies::NAMES;

/// While another app has the GPU, `low` asks, then `high`: the policy decides which is next.
fn next_after(policy: &str) -> &'static str {
    let daemon = Daemon::start(&format!("next-{policy}"), &format!("policy = '{policy}'\nmpcg = 1"));
    let mut other = daemon.join("other", 5);
    // While it is the only one: some policies hold a group that might delay another app.
    hold(&mut other, 0);
    let mut low = daemon.join("low", 1);
    let mut high = daemon.join("high", 9);
    // Only one is granted, however long the test takes to look.
    submit_long(&mut low, 0);
    await_turn(&other);
    submit_long(&mut high, 0);
    await_turn(&other);
    complete(&mut other, 0);
    let until = Instant::now() + PATIENCE;
    let granted = |reply: Reply| granted(reply).is_some();
    while Instant::now() < until {
        for (app, name) in [(&mut low, "low"), (&mut high, "high")] {
            if app.receiver.next_reply().expect("an honest daemon").is_some_and(granted) {
                return name;
            }
        }
        std::thread::yield_now();
    }
    panic!("{policy}: neither is next");
}

#[test]
fn priorities_count_where_the_policy_knows_them() {
    // Under `timeline` and `frame-deadline` the app that asked in an earlier period may go first, and
    // how soon both ask is up to the machine; `priorities.rs` of the command looks at deadlines as
    // well.
    for policy in ["hpf", "timegraph", "edf-cbs", "edf-cbs-hard"] {
        assert_eq!(next_after(policy), "high", "{policy}");
    }
    for policy in ["fifo", "frrs"] {
        assert_eq!(next_after(policy), "low", "{policy}");
    }
}

/// Draws frames of three groups until told to stop; counts them.
fn draw(daemon: &Daemon, hello: &Hello, stop: &AtomicBool, frames: &AtomicU64) {
    let mut app = join(&daemon.path, hello, PATIENCE).expect("joined");
    let mut group = 0;
    while !stop.load(Ordering::Relaxed) {
        for kind in [GroupKind::Draw, GroupKind::Draw, GroupKind::Swap] {
            submit(&mut app, group, kind);
            assert_eq!(await_reply(&mut app, granted), group, "{}", hello.name);
            complete(&mut app, group);
            group += 1;
        }
        frames.fetch_add(1, Ordering::Relaxed);
        // The most important app leaves time for the others, or they would have none.
        if hello.fps_mhz.is_some() {
            pace(&mut app);
        }
    }
}

fn await_frames(frames: &AtomicU64, why: &str) {
    let wanted = frames.load(Ordering::Relaxed) + 5;
    let until = Instant::now() + PATIENCE;
    while frames.load(Ordering::Relaxed) < wanted {
        assert!(Instant::now() < until, "no frames: {why}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Three apps draw; one leaves, another comes, terms change, and at last the policy does.
fn all_apps_go_on(policy: &str) {
    let daemon = Daemon::start(&format!("load-{policy}"), &format!("policy = '{policy}'"));
    let reserved = Hello { fps_mhz: Some(30_000), etpf_ns: Some(3_000_000), ..hello("dial", 90) };
    let apps = [reserved, hello("game", 20), hello("map", 10)];
    let counts: [AtomicU64; 4] = Default::default();
    let (stop, stop_map) = (AtomicBool::new(false), AtomicBool::new(false));
    let ended = std::thread::scope(|scope| {
        let (daemon, counts, stop) = (&daemon, &counts, &stop);
        scope.spawn(|| draw(daemon, &apps[0], stop, &counts[0]));
        scope.spawn(|| draw(daemon, &apps[1], stop, &counts[1]));
        scope.spawn(|| draw(daemon, &apps[2], &stop_map, &counts[2]));
        let story = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let all = |why: &str, apps: &[usize]| {
                apps.iter().for_each(|at| await_frames(&counts[*at], &format!("{policy}, {at}: {why}")));
            };
            all("they joined", &[0, 1, 2]);
            stop_map.store(true, Ordering::Relaxed);
            scope.spawn(|| draw(daemon, &hello("late", 15), stop, &counts[3]));
            all("one left, one came", &[0, 1, 3]);
            let set = daemon.ask(r#"{"ask": "set", "app": "game", "priority": 95, "etpf_ms": 1}"#);
            assert_eq!(set["answer"], "apps", "{set}");
            all("terms changed", &[0, 1, 3]);
            for name in POLICIES {
                assert_eq!(
                    daemon.ask(&format!(r#"{{"ask": "policy", "name": "{name}"}}"#))["answer"],
                    "done"
                );
            }
            assert_eq!(daemon.ask(r#"{"ask": "policy", "name": "fifo"}"#)["answer"], "done");
            all("the policy changed", &[0, 1, 3]);
        }));
        stop.store(true, Ordering::Relaxed);
        stop_map.store(true, Ordering::Relaxed);
        story
    });
    if let Err(panic) = ended {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn apps_come_go_and_change_under_every_policy() {
    for policy in POLICIES {
        all_apps_go_on(policy);
    }
}
