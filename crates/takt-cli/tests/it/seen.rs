//! What a daemon does with real programs can be captured, and played again.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::support::daemon::{Daemon, await_that, end_of};
use crate::support::{app, products, takt_command, text};

/// A daemon that records what it does, and hands out its counters.
fn recording(name: &str) -> (Daemon, PathBuf) {
    let log = products().join(format!("seen-{name}.jsonl"));
    let record = log.display().to_string();
    let metrics = format!("unix:{}", metrics(name).display());
    (Daemon::with(&format!("seen-{name}"), "", &["--record", &record, "--metrics", &metrics]), log)
}

/// Where a daemon hands out its counters.
fn metrics(name: &str) -> PathBuf {
    products().join(format!("seen-{name}.metrics"))
}

/// Tells a process to end.
fn signal(signal: &str, process: &Child) {
    let order = format!("kill {signal} {}", process.id());
    assert!(Command::new("sh").args(["-c", &order]).status().expect("a shell starts").success());
}

/// The counters of a daemon, as Prometheus fetches them; it does not wait for slow visitors, and on a
/// busy machine we may be one.
fn counters(name: &str) -> String {
    let fetch = || -> std::io::Result<String> {
        let mut visitor = UnixStream::connect(metrics(name))?;
        visitor.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")?;
        let mut page = String::new();
        visitor.read_to_string(&mut page)?;
        Ok(page)
    };
    let mut page = String::new();
    await_that("counters are handed out", || {
        page = fetch().unwrap_or_default();
        !page.is_empty()
    });
    let (head, body) = page.split_once("\r\n\r\n").expect("head and body");
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    body.to_owned()
}

/// Starts an app under the daemon, unseen.
fn start(daemon: &Daemon, options: &[&str], program: &str, arguments: &[&str]) -> Child {
    let arguments = [&["--platform", "off-screen"], arguments].concat();
    let mut command = daemon.run(options, &app(program), &arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("takt starts")
}

fn replay(log: &Path, more: &[&str]) -> Output {
    takt_command("replay").arg(log).args(more).output().expect("takt starts")
}

/// One after the other they have the same slot, and each has its own figures.
#[test]
fn figures_are_those_of_apps_not_of_slots() {
    let (daemon, log) = recording("slots");
    for (name, frames) in [("first", "20"), ("second", "30")] {
        let mut app = start(&daemon, &["--name", name], "takt-menu", &["--frames", frames]);
        assert!(end_of(&mut app, name).success());
    }
    daemon.end();
    let output = replay(&log, &["--figures", "--warm-up", "0", "--json", "-"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let frames = |name: &str| {
        let apps = answer["figures"]["apps"].as_array().expect("apps");
        let app = apps.iter().find(|app| app["name"] == name).unwrap_or_else(|| panic!("{name}: {answer}"));
        app["frames"].as_u64().expect("a number")
    };
    // Warming up, the app draws a few more; one that ends as the program does may not be told.
    assert!((19..30).contains(&frames("first")) && frames("second") >= 29, "{answer}");
}

#[test]
fn live_programs_come_go_and_change_and_all_of_it_happens_again() {
    let (daemon, log) = recording("apps");
    let terms = ["--name", "dial", "--priority", "80", "--fps", "60", "--etpf-ms", "3"];
    let mut dial = start(&daemon, &terms, "takt-speedometer", &[]);
    let terms = ["--name", "flood", "--priority", "3"];
    let mut flood = start(&daemon, &terms, "takt-flood", &["--iterations", "1"]);
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
    assert_eq!(picture["daemon"]["policy"], "timeline", "{picture}");
    assert!(picture["daemon"]["turns"].as_u64().is_some_and(|turns| turns > 0), "{picture}");
    assert!(picture["timeline"]["span_ms"] == 500.0, "{picture}");
    let counted = |app: &str, wanted: u64| {
        await_that(&format!("frames of the {app} are counted"), || {
            let labels = format!("app=\"{app}\",domain=\"own\",listed=\"false\"");
            let (page, frames) = (counters("apps"), format!("takt_frames_total{{{labels}}} "));
            let count = page.lines().find_map(|line| line.strip_prefix(&frames)?.parse().ok());
            count.is_some_and(|count: u64| count >= wanted)
        });
    };
    counted("dial", 60);
    counted("flood", 10);
    let mut menu = start(&daemon, &["--name", "menu"], "takt-menu", &["--frames", "10"]);
    // It may be gone by the time a tool could ask who is there.
    await_that("the menu was scheduled", || {
        std::fs::read_to_string(&log).is_ok_and(|log| log.contains("\"name\":\"menu\""))
    });
    // On a slow machine the others may leave it nothing.
    for app in [&mut dial, &mut flood] {
        signal("-TERM", app);
        let status = end_of(app, "an app");
        assert!(status.success(), "{status}");
    }
    assert!(end_of(&mut menu, "the menu").success());
    counted("menu", 10);
    let why = daemon.ask(&["why", "dial"]);
    assert!(matches!(why.status.code(), Some(0 | 1)), "{}", text(&why.stderr));
    assert!(text(&why.stdout).contains("dial left "), "{}", text(&why.stdout));
    let rows = std::fs::read_to_string(&capture).expect("a table");
    assert!(rows.lines().skip(1).any(|row| row.starts_with("dial,") || row.starts_with("flood,")), "{rows}");
    daemon.end();
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
    for name in ["dial (priority 2000080)", "flood (priority 2000003)", "menu (priority"] {
        assert!(bytes.windows(name.len()).any(|window| window == name.as_bytes()), "{name}");
    }
    let json = replay(log, &["--json", "-"]);
    let outcome: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(outcome["equal"], true, "{outcome}");
    assert_eq!(outcome["cut_off"], false, "{outcome}");
    // Each frame of an app with a rate is at least a swap that is granted.
    assert!(outcome["actions"].as_u64().is_some_and(|actions| actions > 60), "{outcome}");
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
fn a_difference_may_be_that_of_another_build() {
    let (daemon, log) = recording("build");
    await_that("something happens", || {
        std::fs::read_to_string(&log).is_ok_and(|log| log.contains("\"record\":\"turn\""))
    });
    daemon.end();
    let whole = std::fs::read_to_string(&log).expect("a log");
    let (head, rest) = whole.split_once('\n').expect("a line");
    let head: serde_json::Value = serde_json::from_str(head).expect("JSON");
    let version = text(&takt_command("--version").output().expect("takt starts").stdout);
    assert_eq!(format!("takt {}", head["build"].as_str().expect("a build")), version.trim());
    let forged = products().join("seen-build-forged.jsonl");
    let said = |build: Option<&str>, rest: &str| {
        let mut head = head.clone();
        head["build"] = build.into();
        std::fs::write(&forged, format!("{head}\n{rest}")).expect("written");
        let output = replay(&forged, &[]);
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let (code, equal) = said(Some("0.0.1 (0123456789ab)"), rest);
    assert_eq!(code, Some(0), "what is equal is equal: {equal}");
    let at_ns = u64::MAX / 2;
    let wrong = format!("{rest}{{\"at_ns\":{at_ns},\"record\":\"vsync\",\"period\":7}}\n");
    let (code, other) = said(Some("0.0.1 (0123456789ab)"), &wrong);
    assert_eq!(code, Some(1), "{other}");
    assert!(other.contains("written by takt 0.0.1 (0123456789ab), and this is "), "{other}");
    let (code, unsaid) = said(None, &wrong);
    assert_eq!(code, Some(1), "{unsaid}");
    assert!(unsaid.contains("does not say which build of takt wrote it"), "{unsaid}");
    let gap = format!("{rest}{{\"at_ns\":{at_ns},\"record\":\"gap\",\"records\":3}}\n");
    let (code, gap) = said(None, &gap);
    assert!(code == Some(1) && !gap.contains("build of takt"), "no build has what is missing: {gap}");
    let (code, nothing) = said(None, "");
    assert_eq!(code, Some(2), "{nothing}");
    assert!(nothing.contains("nothing to replay"), "{nothing}");
}

#[test]
fn ctrl_c_leaves_a_whole_capture() {
    let (daemon, _) = recording("capture");
    let file = products().join("seen-captured.jsonl");
    std::fs::remove_file(&file).unwrap_or_default();
    let mut command = takt_command("trace");
    command.arg("-o").arg(&file).arg("--socket").arg(&daemon.socket).stdout(Stdio::piped());
    let mut capture = command.stderr(Stdio::null()).spawn().expect("takt starts");
    await_that("something is captured", || std::fs::metadata(&file).is_ok_and(|file| file.len() > 0));
    signal("-INT", &capture);
    assert!(end_of(&mut capture, "the capture").success());
    let lines = std::fs::read_to_string(&file).expect("a log");
    assert!(lines.starts_with("{\"record\":\"run\"") && lines.ends_with('\n'), "{lines}");
    // It began in the middle, so it cannot be played again; that is said.
    let refused = replay(&file, &[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("does not begin with its daemon"), "{}", text(&refused.stderr));
    let once = daemon.ask(&["top", "--once"]);
    let text_once = text(&once.stdout);
    assert!(text_once.starts_with("takt: timeline at 60 Hz, 0 apps by priority;"), "{text_once}");
    assert!(counters("capture").contains("\ntakt_apps 0\n"), "{}", counters("capture"));
    let why = daemon.ask(&["why", "unknown", "--json", "-"]);
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
    let refused =
        takt_command("trace").args(["-o", "x.csv", "--socket", "/nowhere"]).output().expect("starts");
    assert!(text(&refused.stderr).contains("no daemon answers"), "{}", text(&refused.stderr));
    let refused = takt_command("top").args(["--once", "--socket", "/nowhere"]).output().expect("starts");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("no daemon answers"), "{}", text(&refused.stderr));
}
