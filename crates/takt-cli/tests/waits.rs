//! No program under a daemon waits for itself, however busy others keep the GPU.

mod support;
use support::daemon::{Background, Daemon, alone, assert_same, ended};
use support::{GL, app, text, trap};

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
