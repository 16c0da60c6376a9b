//! Real programs, on an X server and a Wayland compositor without screens.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

mod support;
use support::{GL, column, products, takt, text, trap};

/// A server of our own, which ends with the test.
struct Server {
    process: Child,
    variables: Vec<(&'static str, String)>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _gone = self.process.kill();
        let _gone = self.process.wait();
    }
}

impl Server {
    fn x11() -> Self {
        let mut process = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb starts; packages.txt lists it");
        let mut number = String::new();
        let output = process.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut number).expect("Xvfb says its number");
        Self { process, variables: vec![("DISPLAY", format!(":{}", number.trim()))] }
    }

    fn wayland(name: &str) -> Self {
        let folder = products().join(format!("wayland-{name}"));
        // What an earlier run left behind looks like a server that is ready.
        let _none = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("our own folder");
        let path = folder.display().to_string();
        let process = Command::new("weston")
            .args([
                "--backend=headless-backend.so",
                "--use-pixman",
                "--socket=takt",
                "--idle-time=0",
                "--no-config",
            ])
            .env("XDG_RUNTIME_DIR", &path)
            .env_remove("WAYLAND_DISPLAY")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("weston starts; packages.txt lists it");
        let server = Self {
            process,
            variables: vec![("XDG_RUNTIME_DIR", path), ("WAYLAND_DISPLAY", "takt".to_owned())],
        };
        let socket = folder.join("takt");
        for _ in 0..500 {
            if UnixStream::connect(&socket).is_ok() {
                return server;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("weston made no socket within 10 s");
    }
}

/// Runs a program that never ends by itself for two seconds, and counts the frames it swapped.
fn frames(server: &Server, way: &str, program: &str) -> usize {
    let table = products().join(format!("{program}-{way}.csv"));
    let output = takt()
        .args(["--hook", way, "--measure"])
        .arg(&table)
        .args(["--", "timeout", "--signal=TERM", "2", program])
        .envs(server.variables.iter().map(|(name, value)| (name, value)))
        .output()
        .expect("takt starts");
    assert_eq!(output.status.code(), Some(124), "{program}: {}", text(&output.stderr));
    column(&table, "kind").iter().filter(|kind| *kind == "swap").count()
}

#[test]
fn gears_turn_on_x11() {
    let server = Server::x11();
    for way in ["vendor", "preload"] {
        assert!(frames(&server, way, "es2gears_x11") > 0, "{way}");
        let table = products().join(format!("es2gears_x11-{way}.csv"));
        let draws = column(&table, "draws");
        assert!(draws.contains(&"280".to_owned()) || draws.iter().any(|draws| draws != "0"), "{draws:?}");
    }
}

#[test]
fn programs_run_on_wayland() {
    let server = Server::wayland("programs");
    for program in ["es2gears_wayland", "weston-simple-egl"] {
        assert!(frames(&server, "vendor", program) > 0, "{program}");
    }
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
fn wayland_programs_do_without_windows() {
    let server = Server::wayland("offscreen");
    let folder = products().join("wayland-frames");
    // What an earlier run left behind.
    let _none = std::fs::remove_dir_all(&folder);
    let output = takt()
        .args(["--offscreen", "--dump-frames"])
        .arg(&folder)
        .args(["--", "timeout", "2", "es2gears_wayland"])
        .envs(server.variables.iter().map(|(name, value)| (name, value)))
        .output()
        .expect("takt starts");
    assert_eq!(output.status.code(), Some(124), "{}", text(&output.stderr));
    let picture = std::fs::read(folder.join("0-000000.ppm")).expect("a picture of the first frame");
    assert!(picture.starts_with(b"P6\n300 300\n"), "{:?}", String::from_utf8_lossy(&picture[..20]));
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
    let few = ["build", "texture", "shading:shading=phong", "bump:bump-render=normals", "loop", "function"];
    let all: Vec<&str> =
        if std::env::var_os("TAKT_SLOW_TESTS").is_some() { Vec::new() } else { few.to_vec() };
    let alone = validate(&server, &mut Command::new("glmark2-es2"), &all);
    let file: PathBuf = products().join("validate.csv");
    let mut command = takt();
    command.arg("--compare").arg(&file).args(["--", "glmark2-es2"]);
    assert_eq!(validate(&server, &mut command, &all), alone);
    assert!(alone.iter().filter(|line| line.contains("Success")).count() >= 4, "{alone:?}");
    assert!(column(Path::new(&file), "draws").iter().any(|draws| draws != "0"));
}
