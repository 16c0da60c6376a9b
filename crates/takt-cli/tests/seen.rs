//! What a daemon does with real programs can be captured, and played again.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

mod support;
use support::{products, takt, takt_command, text};

/// Long enough for any machine; nothing waits this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(90);

/// A daemon that is killed when the test ends.
struct Daemon {
    process: Child,
    socket: PathBuf,
    log: PathBuf,
}

impl Daemon {
    fn start(name: &str) -> Self {
        let socket = products().join(format!("seen-{name}.socket"));
        let log = products().join(format!("seen-{name}.jsonl"));
        std::fs::remove_file(&socket).unwrap_or_default();
        let mut command = takt_command("serve");
        command.arg("--socket").arg(&socket).arg("--record").arg(&log).stderr(Stdio::null());
        command.arg("--metrics").arg(format!("unix:{}", metrics(name).display()));
        let process = command.spawn().expect("takt starts");
        await_that("the daemon listens", || socket.exists());
        Self { process, socket, log }
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        let mut command = takt_command(arguments[0]);
        command.args(&arguments[1..]).arg("--socket").arg(&self.socket).output().expect("takt starts")
    }

    /// Ends it as Ctrl-C does; its log is complete then.
    fn end(mut self) -> PathBuf {
        interrupt(&self.process);
        assert!(end_of(&mut self.process).success());
        self.log.clone()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.process.kill().unwrap_or_default();
        self.process.wait().ok();
    }
}

/// Where a daemon hands out its counters.
fn metrics(name: &str) -> PathBuf {
    products().join(format!("seen-{name}.metrics"))
}

fn interrupt(process: &Child) {
    let order = format!("kill -INT {}", process.id());
    assert!(Command::new("sh").args(["-c", &order]).status().expect("a shell starts").success());
}

/// The counters of a daemon, as Prometheus fetches them.
fn counters(name: &str) -> String {
    let mut visitor = UnixStream::connect(metrics(name)).expect("it answers");
    visitor.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").expect("sent");
    let mut page = String::new();
    visitor.read_to_string(&mut page).expect("a page");
    let (head, body) = page.split_once("\r\n\r\n").expect("head and body");
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    body.to_owned()
}

fn await_that(what: &str, is: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < until, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn end_of(process: &mut Child) -> std::process::ExitStatus {
    let until = Instant::now() + PATIENCE;
    loop {
        match process.try_wait().expect("our child") {
            Some(status) => return status,
            None => assert!(Instant::now() < until, "it does not end"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// One of the apps, built once.
fn app(name: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    let folder = Path::new(env!("CARGO_BIN_EXE_takt")).parent().expect("a folder");
    BUILT.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--locked", "--package", "takt-apps", "--target-dir"]);
        let built = cargo.arg(folder.parent().expect("a target folder")).status().expect("cargo starts");
        assert!(built.success());
    });
    folder.join(name)
}

/// Starts an app under the daemon, unseen.
fn start(daemon: &Daemon, options: &[&str], program: &str, arguments: &[&str]) -> Child {
    let mut command = takt();
    command.args(options).arg("--socket").arg(&daemon.socket).arg("--").arg(app(program));
    command.args(["--platform", "off-screen"]).args(arguments);
    command.envs([("LIBGL_ALWAYS_SOFTWARE", "1"), ("LP_NUM_THREADS", "1")]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("takt starts")
}

fn replay(log: &Path, more: &[&str]) -> Output {
    takt_command("replay").arg(log).args(more).output().expect("takt starts")
}

#[test]
fn live_programs_come_go_and_change_and_all_of_it_happens_again() {
    let daemon = Daemon::start("apps");
    let mut dial = start(
        &daemon,
        &["--name", "dial", "--priority", "80", "--fps", "60", "--etpf-ms", "3"],
        "takt-speedometer",
        &["--frames", "90"],
    );
    let mut flood = start(
        &daemon,
        &["--name", "flood", "--priority", "3"],
        "takt-flood",
        &["--iterations", "1", "--frames", "300"],
    );
    await_that("both are scheduled", || {
        let list = text(&daemon.ask(&["list"]).stdout);
        list.contains("dial") && list.contains("flood")
    });
    let set = daemon.ask(&["set", "flood", "--priority", "90"]);
    assert!(set.status.success(), "{}", text(&set.stderr));
    let capture = products().join("seen-apps.csv");
    let trace = daemon.ask(&["trace", "-o", &capture.display().to_string(), "--seconds", "1"]);
    assert!(trace.status.success(), "{}", text(&trace.stderr));
    let top = daemon.ask(&["top", "--json", "-", "--span-ms", "500"]);
    let picture: serde_json::Value = serde_json::from_slice(&top.stdout).expect("JSON");
    assert_eq!(picture["daemon"]["policy"], "frame-deadline", "{picture}");
    assert!(picture["daemon"]["turns"].as_u64().is_some_and(|turns| turns > 0), "{picture}");
    assert!(picture["timeline"]["span_ms"] == 500.0, "{picture}");
    let mut menu = start(&daemon, &["--name", "menu", "--schedule"], "takt-menu", &["--frames", "10"]);
    for app in [&mut dial, &mut flood, &mut menu] {
        let status = end_of(app);
        assert!(status.success(), "{status}");
    }
    await_that("frames of all are counted", || {
        let page = counters("apps");
        ["dial", "flood", "menu"].iter().all(|app| {
            let frames = format!("takt_frames_total{{app=\"{app}\"}} ");
            page.lines().any(|line| line.strip_prefix(&frames).is_some_and(|count| count != "0"))
        })
    });
    let rows = std::fs::read_to_string(&capture).expect("a table");
    assert!(rows.lines().skip(1).any(|row| row.starts_with("dial,") || row.starts_with("flood,")), "{rows}");
    let log = daemon.end();
    assert_equal(&log);
    assert_differences_are_found(&log);
}

/// The log is what the core does, and can be looked at in Perfetto's UI.
fn assert_equal(log: &Path) {
    let perfetto = products().join("seen-apps.pftrace");
    let equal = replay(log, &["--trace", &perfetto.display().to_string()]);
    assert!(equal.status.success(), "{}{}", text(&equal.stdout), text(&equal.stderr));
    assert!(text(&equal.stdout).contains(": equal. "), "{}", text(&equal.stdout));
    let bytes = std::fs::read(&perfetto).expect("a trace");
    for name in ["dial (priority 80)", "flood (priority 3)", "menu (priority"] {
        assert!(bytes.windows(name.len()).any(|window| window == name.as_bytes()), "{name}");
    }
    let json = replay(log, &["--json", "-"]);
    let outcome: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(outcome["equal"], true, "{outcome}");
    assert_eq!(outcome["cut_off"], false, "{outcome}");
    // Each frame is at least a swap that is granted.
    assert!(outcome["actions"].as_u64().is_some_and(|actions| actions > 140), "{outcome}");
}

/// A log that was changed is found out, with the line; one that was cut off is equal up to there.
fn assert_differences_are_found(log: &Path) {
    let whole = std::fs::read_to_string(log).expect("a log");
    let (line, _) = whole
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains("\"record\":\"dispatch\""))
        .nth(20)
        .expect("a dispatch");
    let changed: String = whole
        .lines()
        .enumerate()
        .map(
            |(at, text)| {
                if at == line { text.replace("\"target\":", "\"target\":1") } else { text.to_owned() }
            },
        )
        .map(|line| line + "\n")
        .collect();
    let forged = products().join("seen-forged.jsonl");
    std::fs::write(&forged, changed).expect("written");
    let different = replay(&forged, &[]);
    assert_eq!(different.status.code(), Some(1), "{}", text(&different.stderr));
    assert!(
        text(&different.stdout).contains(&format!("line {}: different", line + 1)),
        "{}",
        text(&different.stdout)
    );
    let cut = products().join("seen-cut.jsonl");
    std::fs::write(&cut, &whole[..whole.len() * 2 / 3]).expect("written");
    assert!(replay(&cut, &[]).status.success());
}

#[test]
fn ctrl_c_leaves_a_whole_capture() {
    let daemon = Daemon::start("capture");
    let file = products().join("seen-captured.jsonl");
    std::fs::remove_file(&file).unwrap_or_default();
    let mut command = takt_command("trace");
    command.arg("-o").arg(&file).arg("--socket").arg(&daemon.socket).stdout(Stdio::piped());
    let mut capture = command.stderr(Stdio::null()).spawn().expect("takt starts");
    await_that("something is captured", || std::fs::metadata(&file).is_ok_and(|file| file.len() > 0));
    interrupt(&capture);
    assert!(end_of(&mut capture).success());
    let lines = std::fs::read_to_string(&file).expect("a log");
    assert!(lines.starts_with("{\"record\":\"run\"") && lines.ends_with('\n'), "{lines}");
    // It began in the middle, so it cannot be played again; that is said.
    let refused = replay(&file, &[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("does not begin with its daemon"), "{}", text(&refused.stderr));
    let once = daemon.ask(&["top", "--once"]);
    let text_once = text(&once.stdout);
    assert!(text_once.starts_with("takt: frame-deadline at 60 Hz, 0 apps by priority;"), "{text_once}");
    assert!(counters("capture").contains("\ntakt_apps 0\n"), "{}", counters("capture"));
    let why = daemon.ask(&["why", "nobody", "--json", "-"]);
    assert_eq!(why.status.code(), Some(2));
    for (arguments, why) in [
        (&["trace", "-o", "x.txt"][..], "the ending of the name tells the format"),
        (&["trace", "-o", "x.csv", "--seconds", "0"], "invalid value '0'"),
    ] {
        let refused = daemon.ask(arguments);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(why), "{}", text(&refused.stderr));
    }
    drop(daemon);
    let nobody =
        takt_command("trace").args(["-o", "x.csv", "--socket", "/nowhere"]).output().expect("starts");
    assert!(text(&nobody.stderr).contains("no daemon answers"), "{}", text(&nobody.stderr));
    let nobody = takt_command("top").args(["--once", "--socket", "/nowhere"]).output().expect("starts");
    assert_eq!(nobody.status.code(), Some(2));
    assert!(text(&nobody.stderr).contains("no daemon answers"), "{}", text(&nobody.stderr));
}
