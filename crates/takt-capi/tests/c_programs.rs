//! C programs with libtakt: with a daemon and without one.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use takt_daemon::control::config::Settings;
use takt_daemon::control::server::Server;

#[path = "../../takt-cli/tests/support/built.rs"]
mod built;

/// Folder of the built libraries.
fn libraries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = built::packages(&["takt-capi"]);
        // Programs look for the name that the library says it has.
        let named = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libtakt.so.0");
        std::fs::remove_file(&named).unwrap_or_default();
        std::os::unix::fs::symlink(folder.join("libtakt.so"), named).expect("our own folder");
        folder
    })
}

/// Compiles a program as strictly as gcc can.
fn compile(source: &Path, name: &str, link: &[&str]) -> PathBuf {
    // Tests of other packages use the same folder.
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("capi-{name}"));
    let output = Command::new("gcc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-I"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"))
        .arg("-o")
        .arg(&program)
        .arg(source)
        .arg("-L")
        .arg(libraries())
        .args(link)
        .output()
        .expect("gcc starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(program: &Path, socket: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env("TAKT_SOCKET", socket).env("LD_LIBRARY_PATH", env!("CARGO_TARGET_TMPDIR"));
    // A busy machine may starve either side for longer than the other usually bears.
    command.env("TAKT_PATIENCE_MS", "60000");
    command.output().expect("the program starts")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A daemon on a thread of this process.
struct Daemon {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    socket: PathBuf,
}

impl Daemon {
    fn start(name: &str) -> Self {
        let socket = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.socket"));
        std::fs::remove_file(&socket).unwrap_or_default();
        let settings = Settings::parse("completion_timeout_ms = 60000").expect("settings");
        let mut server = Server::start(socket.clone(), settings).expect("a daemon");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let serve = move || server.run(|| stopped.load(Ordering::Relaxed)).expect("it serves");
        let thread = std::thread::Builder::new().name("daemon".to_owned()).spawn(serve).expect("a thread");
        Self { stop, thread: Some(thread), socket }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()));
    }
}

#[test]
fn the_example_is_scheduled_and_changes_its_target() {
    let program = compile(&root().join("examples/c/frames.c"), "frames", &["-ltakt"]);
    let daemon = Daemon::start("capi-example");
    let output = run(&program, &daemon.socket, &["60", "1.0", "20"]);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.starts_with("scheduled: scheduled as frames: protected"), "{text}");
    for part in ["\nhalf the rate: scheduled as frames: protected", "\n20 frames, "] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn without_a_daemon_the_example_runs_on() {
    let source = root().join("examples/c/frames.c");
    let statically = ["-l:libtakt.a", "-lpthread", "-ldl", "-lm"];
    let program = compile(&source, "frames-static", &statically);
    let output = run(&program, Path::new("/nonexistent/socket"), &["60", "0.1", "10"]);
    assert!(output.status.success(), "{}", said(&output));
    let text = said(&output);
    assert!(text.contains("on my own: not scheduled: no daemon answers at /nonexistent/socket"), "{text}");
    assert!(text.contains("10 frames, 0 of 0 deadlines met"), "{text}");
}

#[test]
fn jobs_of_one_program_have_deadlines_of_their_own() {
    let program = compile(&root().join("examples/c/jobs.c"), "jobs", &["-ltakt", "-lpthread"]);
    let daemon = Daemon::start("capi-jobs");
    let output = run(&program, &daemon.socket, &["8"]);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    for name in ["brake", "map"] {
        let said = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
        assert!(said.contains(": 8 jobs, 8 scheduled, "), "{said}");
        assert!(said.contains(&format!("scheduled as {name}: protected")), "{said}");
    }
    let alone = said(&run(&program, Path::new("/nonexistent/socket"), &["2"]));
    assert!(alone.contains("brake: 2 jobs, 0 scheduled, "), "{alone}");
}

#[test]
fn a_compositor_sees_the_frames_of_others() {
    let app = compile(&root().join("examples/c/frames.c"), "frames-composed", &["-ltakt"]);
    let compositor = compile(&root().join("examples/c/compose.c"), "compose", &["-ltakt"]);
    let daemon = Daemon::start("capi-compose");
    let text = std::thread::scope(|scope| {
        let composed = scope.spawn(|| run(&compositor, &daemon.socket, &["60", "50"]));
        let drawn = run(&app, &daemon.socket, &["30", "0.5", "20"]);
        assert!(drawn.status.success(), "{}", said(&drawn));
        let composed = composed.join().expect("no panic");
        assert!(composed.status.success(), "{}", said(&composed));
        said(&composed)
    });
    assert!(text.contains(": frames has finished ") && text.contains("\n60 refreshes, "), "{text}");
    let alone = run(&compositor, Path::new("/nonexistent/socket"), &["3", "0"]);
    assert!(said(&alone).contains("3 without a daemon; 0 new frames"), "{}", said(&alone));
}

#[test]
fn mistakes_are_answered_with_a_status() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes.c");
    let program = compile(&source, "mistakes", &["-ltakt", "-lpthread"]);
    let daemon = Daemon::start("capi-mistakes");
    let output = run(&program, &daemon.socket, &[]);
    assert!(output.status.success(), "{}", said(&output));
}
