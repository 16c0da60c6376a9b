//! Real programs, on an X server and a Wayland compositor without screens.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::daemon::{Background, Daemon, await_that};
use crate::support::server::Server;
use crate::support::{GL, SOFTWARE, app, column, products, takt, text, trap};

/// Runs a program that never ends by itself until frames of it were measured; the draws of each frame.
fn frames(server: &Server, way: &str, program: &str) -> Vec<u64> {
    let table = products().join(format!("{program}-{way}.csv"));
    std::fs::remove_file(&table).unwrap_or_default();
    let mut command = takt();
    command.args(["--hook", way, "--measure"]).arg(&table).args(["--", program]);
    command.envs(server.variables.iter().map(|(name, value)| (name, value)));
    let program = Background::start(&mut command);
    // Rows are written whole, some at a time.
    let swaps = || std::fs::read_to_string(&table).unwrap_or_default().matches(",swap,").count();
    await_that(&format!("{command:?}: frames"), || swaps() > 5);
    drop(program);
    let mut frames = vec![0];
    for (kind, draws) in column(&table, "kind").iter().zip(column(&table, "draws")) {
        *frames.last_mut().expect("never empty") += draws.parse::<u64>().expect("a number");
        if kind == "swap" {
            frames.push(0);
        }
    }
    // The last one is not complete, and the first may contain what is drawn once.
    frames[1..frames.len() - 1].to_vec()
}

/// Three gears, all in each frame: drawn in one piece each, or in seven for each of their 40 teeth, as
/// older versions of the program do.
fn assert_gears(frames: &[u64], name: &str) {
    assert!(frames.iter().all(|draws| *draws == frames[0]), "{name}: {frames:?}");
    assert!([3, 280].contains(&frames[0]), "{name}: {frames:?}");
}

#[test]
fn gears_turn_on_x11() {
    let server = Server::x11();
    for way in ["vendor", "preload"] {
        assert_gears(&frames(&server, way, "es2gears_x11"), way);
    }
}

#[test]
fn programs_run_on_wayland() {
    let server = Server::wayland("programs");
    assert_gears(&frames(&server, "vendor", "es2gears_wayland"), "es2gears_wayland");
    let triangles = frames(&server, "vendor", "weston-simple-egl");
    assert!(triangles.iter().all(|draws| *draws == 1), "{triangles:?}");
}

#[test]
fn windows_are_done_without_and_keep_their_sizes() {
    let server = Server::x11();
    let program = trap("window", &GL);
    let run = |command: &mut Command| {
        let output = command.envs(server.variables.iter().map(|(name, value)| (name, value))).output();
        let output = output.expect("it starts");
        (text(&output.stdout), text(&output.stderr), output.status.code())
    };
    let alone = run(&mut Command::new(&program));
    assert!(alone.0.contains("size 200 116"), "{alone:?}");
    assert_eq!(run(takt().args(["--offscreen", "--"]).arg(&program)), alone);
    let fixed = run(takt().args(["--offscreen=64x32", "--"]).arg(&program)).0;
    assert_eq!(fixed.matches("size 64 32").count(), 3, "{fixed}");
}

#[test]
fn only_what_is_shown_follows_its_window() {
    let (server, daemon) = (Server::x11(), Daemon::start("surfaces"));
    let program = trap("surfaces", &GL);
    let run = |command: &mut Command| {
        let output = command.envs(server.variables.iter().map(|(name, value)| (name, value))).output();
        let output = output.expect("it starts");
        (text(&output.stdout), output.status.code())
    };
    let alone = run(&mut Command::new(&program));
    assert!(alone.0.contains("other: shown 0") && alone.0.contains("210x156"), "{alone:?}");
    assert_eq!(run(takt().args(["--offscreen", "--"]).arg(&program)), alone);
    assert_eq!(run(&mut daemon.run(&["--offscreen"], &program, &[])), alone, "scheduled");
}

#[test]
fn wayland_programs_do_without_windows() {
    let server = Server::wayland("offscreen");
    let folder = products().join("wayland-frames");
    // What an earlier run left behind.
    let _none = std::fs::remove_dir_all(&folder);
    let mut command = takt();
    command.args(["--offscreen", "--dump-frames"]).arg(&folder).args(["--", "es2gears_wayland"]);
    command.envs(server.variables.iter().map(|(name, value)| (name, value)));
    let program = Background::start(&mut command);
    let header = b"P6\n300 300\n255\n";
    // The compositor asks for the next frame when it has shown one.
    for frame in ["0-000000.ppm", "0-000010.ppm"] {
        let picture = || std::fs::read(folder.join(frame)).unwrap_or_default();
        await_that(&format!("{frame} is written"), || picture().len() >= header.len() + 300 * 300 * 3);
        assert!(picture().starts_with(header), "{:?}", String::from_utf8_lossy(&picture()[..20]));
    }
    drop(program);
}

/// What glmark2 says about scenes that validate themselves.
fn validate(server: &Server, command: &mut Command, scenes: &[&str]) -> Vec<String> {
    let mut arguments = vec!["--validate", "--size", "800x600"];
    scenes.iter().for_each(|scene| arguments.extend(["-b", scene]));
    let output = command
        .args(arguments)
        .envs(server.variables.iter().map(|(name, value)| (name, value)))
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).lines().filter(|line| line.contains("Validation")).map(str::to_owned).collect()
}

#[test]
fn a_benchmark_validates_its_scenes() {
    let server = Server::x11();
    // None are named, so all that it runs by default.
    let alone = validate(&server, &mut Command::new("glmark2-es2"), &[]);
    let file: PathBuf = products().join("validate.csv");
    let mut command = takt();
    command.arg("--compare").arg(&file).args(["--", "glmark2-es2"]);
    assert_eq!(validate(&server, &mut command, &[]), alone);
    assert_eq!(alone.len(), SCENES, "{alone:?}");
    assert!(alone.iter().filter(|line| line.contains("Success")).count() >= 20, "{alone:?}");
    assert!(!alone.iter().any(|line| line.contains("Failure")), "{alone:?}");
    assert!(column(Path::new(&file), "draws").iter().any(|draws| draws != "0"));
}

/// Scenes that the benchmark runs by default.
const SCENES: usize = 33;

#[test]
fn all_scenes_of_a_benchmark_run_to_the_end() {
    let server = Server::x11();
    let table = products().join("scenes.csv");
    let output = takt()
        .args(["--mode", "bb+mars", "--measure"])
        .arg(&table)
        .args(["--", "glmark2-es2", "--size", "96x72", "-b", ":duration=0.02"])
        .envs(SOFTWARE)
        .envs(server.variables.iter().map(|(name, value)| (name, value)))
        .output()
        .expect("takt starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert_eq!(said.matches("FPS:").count(), SCENES, "{said}");
    assert!(said.contains("glmark2 Score"), "{said}");
    let swaps = column(&table, "kind").iter().filter(|kind| *kind == "swap").count();
    assert!(swaps >= SCENES, "a frame of each scene is seen: {swaps}");
}

#[test]
fn our_apps_run_to_the_end_with_the_same_pixels() {
    let apps: [(&str, &[&str]); 6] = [
        ("takt-speedometer", &[]),
        ("takt-tachometer", &[]),
        ("takt-map", &[]),
        ("takt-menu", &["--dwell", "0.2"]),
        ("takt-scene", &["--shader", "marble", "--objects", "3"]),
        ("takt-flood", &["--iterations", "5", "--primitives", "100", "--draws", "2"]),
    ];
    let server = Server::x11();
    for (name, arguments) in apps {
        let hash = |command: &mut Command| {
            let output = command
                .args([
                    "--platform",
                    "x11",
                    "--size",
                    "96x72",
                    "--frames",
                    "6",
                    "--fps",
                    "0",
                    "--validate",
                    "--json",
                ])
                .args(arguments)
                .envs(SOFTWARE)
                .envs(server.variables.iter().map(|(name, value)| (name, value)))
                .output()
                .expect("it starts");
            assert!(output.status.success(), "{name}: {}", text(&output.stderr));
            let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert_eq!((&said["frames"], &said["gl_errors"]), (&6.into(), &0.into()), "{name}: {said}");
            said["hash"].to_string()
        };
        let table = products().join(format!("{name}.csv"));
        let alone = hash(&mut Command::new(app(name)));
        let with = hash(takt().arg("--compare").arg(&table).arg("--").arg(app(name)));
        assert_eq!(with, alone, "{name}");
        assert!(column(&table, "kind").iter().filter(|kind| *kind == "swap").count() >= 6, "{name}");
    }
}

#[test]
fn swaps_of_windows_that_are_not_there_wait_as_others_do() {
    let program = trap("backlog", &GL);
    for more in [&[][..], &["--measure=/dev/null"]] {
        let output =
            takt().arg("--offscreen=256x256").args(more).arg("--").arg(&program).envs(SOFTWARE).output();
        let output = output.expect("takt starts");
        let said = text(&output.stdout);
        let unfinished = said.strip_prefix("unfinished ").and_then(|rest| rest.split_once(", error 0\n"));
        let unfinished = unfinished.and_then(|(count, _)| count.parse::<u32>().ok());
        assert!(unfinished.is_some_and(|count| count <= 2), "{said}{}", text(&output.stderr));
    }
}
