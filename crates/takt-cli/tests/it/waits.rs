//! No program under a daemon waits for itself, however busy others keep the GPU.

use crate::support::daemon::{Background, Daemon, alone, assert_same, ended};
use crate::support::{GL, app, products, text, trap};

#[test]
fn every_way_to_wait_comes_to_an_end() {
    let daemon = Daemon::start("waits");
    let flood = ["--iterations", "100", "--size", "320x240"];
    let _greedy = Background::start(&mut daemon.run(&["--name", "greedy"], &app("takt-flood"), &flood));
    let program = trap("waits", &GL);
    for way in [
        "finish",
        "client-wait",
        "wait",
        "egl-client-wait",
        "map",
        "read",
        "swap",
        "turns",
        "shared",
        "held",
        "carried",
    ] {
        let output = ended(&mut daemon.run(&[], &program, &[way]), way);
        assert_same(&output, &alone(&program, &[way]), way);
        let said = text(&output.stderr);
        assert!(said.contains("takt: scheduled as trap-waits"), "{way}: {said}");
        // Losing patience would end any wait; it must not come to that.
        assert!(!said.contains("unscheduled"), "{way}: {said}");
    }
}

/// The program's own thread tells that what it has waited for is over, before it asks for anything
/// else: a thread of ours would have to be woken for that, and may be late.
#[test]
fn a_starved_thread_of_ours_delays_no_program() {
    let log = products().join("starved.jsonl");
    let daemon = Daemon::with("starved", "", &["--record", &log.display().to_string()]);
    let output = ended(&mut daemon.run(&[], &trap("starved", &GL), &["takt-measure"]), "starved");
    assert!(output.status.success(), "{}", text(&output.stderr));
    daemon.end();
    let log = std::fs::read_to_string(&log).expect("a log");
    let is_of = |line: &str, kind: &str| line.contains(&format!(r#""record":"{kind}""#));
    let kind_of = |line: &str| ["submit", "complete"].into_iter().find(|kind| is_of(line, kind));
    let told: Vec<&str> = log.lines().filter_map(kind_of).collect();
    let starved = &told[told.len().min(20)..];
    assert!(starved.len() >= 20, "{told:?}");
    assert!(starved.chunks_exact(2).all(|group| group == ["submit", "complete"]), "{told:?}");
}
