//! Five real programs outlive their daemon, and are scheduled again when it is back. With `TAKT_SLOW_TESTS=1`.

use std::path::Path;

use crate::support::daemon::{Daemon, Talking, await_that};
use crate::support::server::Server;
use crate::support::{is_slow_wanted, skipped, text};

/// Names and commands.
const PROGRAMS: [(&str, &[&str]); 5] = [
    ("es2gears", &["es2gears_x11"]),
    ("glxgears", &["glxgears"]),
    ("glmark2", &["glmark2-es2", "--size", "200x150", "--run-forever"]),
    (
        "weston",
        &["weston", "--backend=x11-backend.so", "--no-config", "--idle-time=0", "--socket=takt-survival"],
    ),
    ("map", &["takt-map", "--platform", "x11", "--size", "240x90"]),
];

struct Program {
    talking: Talking,
    name: &'static str,
}

impl Program {
    fn start(server: &Server, daemon: &Daemon, name: &'static str, words: &[&str]) -> Self {
        let program = match words[0].starts_with("takt-") {
            true => crate::support::app(words[0]),
            false => words[0].into(),
        };
        let mut command = daemon.run(&["--name", name, "--children", "own"], &program, &words[1..]);
        command.envs(server.variables.iter().map(|(name, value)| (name, value)));
        command.env("XDG_RUNTIME_DIR", std::env::temp_dir());
        Self { talking: Talking::start(&mut command), name }
    }

    /// Time that it had of processors, in ticks.
    fn ran(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.talking.id())).expect("it lives");
        let fields = stat.rsplit_once(')').expect("a name").1.split_ascii_whitespace();
        fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
    }
}

/// Frames of an app that the daemon has counted.
fn frames(daemon: &Daemon, name: &str) -> u64 {
    let told = text(&daemon.ask(&["list", "--json", "-"]).stdout);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap_or_default();
    let apps = told["summary"]["apps"].as_array().cloned().unwrap_or_default();
    let of_it = apps.iter().filter(|app| app["name"] == name);
    of_it.filter_map(|app| app["frames"].as_u64()).max().unwrap_or(0)
}

fn all_are_scheduled(programs: &mut [Program], daemon: &Daemon) {
    for program in programs {
        program.talking.says("scheduled as ");
        let before = frames(daemon, program.name);
        await_that(&format!("{} draws under the daemon", program.name), || {
            frames(daemon, program.name) > before + 2
        });
    }
}

fn all_run_on(programs: &mut [Program]) {
    for program in programs {
        program.talking.says("runs on unscheduled");
        let before = program.ran();
        await_that(&format!("{} runs on", program.name), || program.ran() > before + 5);
    }
}

#[test]
fn five_programs_outlive_a_killed_and_a_stopped_daemon() {
    if !is_slow_wanted() {
        return skipped("TAKT_SLOW_TESTS is not set");
    }
    let lacks = |program: &&str| !Path::new("/usr/bin").join(program).exists();
    let needed = ["es2gears_x11", "glxgears", "glmark2-es2", "weston"];
    if let Some(missing) = needed.iter().find(|program| lacks(program)) {
        return skipped(&format!("{missing} is not installed"));
    }
    let (server, mut daemon) = (Server::x11(), Daemon::start("survival"));
    let mut programs = PROGRAMS.map(|(name, words)| Program::start(&server, &daemon, name, words));
    all_are_scheduled(&mut programs, &daemon);
    daemon.signal("-STOP");
    all_run_on(&mut programs);
    daemon.signal("-CONT");
    all_are_scheduled(&mut programs, &daemon);
    daemon.signal("-KILL");
    all_run_on(&mut programs);
    daemon = Daemon::start("survival");
    all_are_scheduled(&mut programs, &daemon);
}
