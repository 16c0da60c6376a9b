//! `takt audit` on what a daemon recorded, and what a DLT daemon heard of it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::support::daemon::await_that;
use crate::support::{products, skipped, text};

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

fn takt(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_takt"));
    command.current_dir(folder).args(arguments).output().expect("takt starts")
}

/// A folder with the audit of a daemon that was told to use two other policies and an app that is not there.
fn recorded(name: &str, more: &str) -> PathBuf {
    let folder = products().join(format!("audit-{name}"));
    std::fs::remove_dir_all(&folder).unwrap_or_default();
    std::fs::create_dir_all(&folder).expect("a folder");
    let rule = "[[audit.rule]]\nname = 'two'\nwindow_s = 60\nwhen = [{ events = ['policy'], count = 2 }]";
    let config = format!("[audit]\nfolder = '{}'\n{more}\n{rule}\n", folder.join("audit").display());
    std::fs::write(folder.join("takt.toml"), config).expect("written");
    let mut serve = Command::new(env!("CARGO_BIN_EXE_takt"));
    serve.current_dir(&folder).args(["serve", "--config", "takt.toml", "--socket", "s", "--log", "log"]);
    let mut daemon = Process(serve.stderr(Stdio::null()).spawn().expect("takt starts"));
    await_that("the daemon serves", || takt(&folder, &["list", "--socket", "s"]).status.success());
    for (arguments, works) in [
        (&["--policy", "fifo"][..], true),
        (&["--policy", "timeline"], true),
        (&["none", "--fps", "3"], false),
    ] {
        let set = takt(&folder, &[&["set", "--socket", "s"], arguments].concat());
        assert_eq!(set.status.success(), works, "{}", text(&set.stderr));
    }
    assert!(takt(&folder, &["serve", "--socket", "s", "--stop"]).status.success());
    assert!(daemon.0.wait().expect("it ends").success());
    folder
}

/// They have no end, or wait for one.
#[test]
fn devices_and_pipes_are_no_audit() {
    let folder = products().join("audit-devices");
    std::fs::remove_dir_all(&folder).unwrap_or_default();
    std::fs::create_dir_all(&folder).expect("a folder");
    std::os::unix::fs::symlink("/dev/zero", folder.join("zero.jsonl")).expect("linked");
    assert!(Command::new("mkfifo").arg(folder.join("pipe.jsonl")).status().expect("it starts").success());
    for file in ["zero.jsonl", "pipe.jsonl", "."] {
        let verified = takt(&folder, &["audit", "verify", file]);
        let said = text(&verified.stderr);
        assert_eq!(verified.status.code(), Some(2), "{file}: {said}");
        assert!(said.contains("no file of an audit, but a device, a pipe or a socket"), "{file}: {said}");
    }
}

#[test]
fn a_daemons_decisions_are_recorded_checked_and_scanned() {
    let folder = recorded("whole", "");
    let verified = takt(&folder, &["audit", "verify", "audit"]);
    assert!(verified.status.success(), "{}", text(&verified.stdout));
    let said = text(&verified.stdout);
    let head = said.lines().find_map(|line| line.trim().strip_prefix("head: ")).expect("a head");
    let log = std::fs::read_to_string(folder.join("log")).expect("a log");
    assert!(log.contains(" alarm ") && log.contains(head.rsplit(':').next().expect("a hash")), "{log}");

    let shown = takt(&folder, &["audit", "show", "audit", "--json", "-"]);
    let records: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    let events: Vec<&str> =
        records.as_array().expect("a list").iter().filter_map(|record| record["event"].as_str()).collect();
    assert_eq!(events, ["started", "policy", "policy", "alarm", "set", "adjusted", "stopped"]);
    let set = &records[4];
    assert_eq!((&set["decision"], &set["domain"]), (&"refused".into(), &"own".into()), "{set}");
    assert!(set["exe"].as_str().is_some_and(|exe| exe.ends_with("/takt")) && set["pid"].is_u64(), "{set}");
    let policies = takt(&folder, &["audit", "show", "audit", "--event", "policy", "--last", "1"]);
    assert_eq!(text(&policies.stdout).lines().count(), 2, "{}", text(&policies.stdout));

    let scanned = takt(&folder, &["audit", "scan", "audit", "--config", "takt.toml"]);
    assert_eq!(scanned.status.code(), Some(1));
    assert!(text(&scanned.stdout).contains("2 policy within 60 s  yes"), "{}", text(&scanned.stdout));
    assert!(takt(&folder, &["audit", "scan", "audit"]).status.success(), "no rule of its own fires");

    // The last line is cut off, and the head with it.
    let file = folder.join("audit/main-00000001.jsonl");
    let whole = std::fs::read_to_string(&file).expect("the file");
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    std::fs::write(&file, lines[..lines.len() - 1].concat()).expect("written");
    let cut = takt(&folder, &["audit", "verify", "audit"]);
    assert_eq!(cut.status.code(), Some(1));
    assert!(text(&cut.stdout).contains("are missing at the end"), "{}", text(&cut.stdout));
    std::fs::remove_file(folder.join("audit/main.head")).expect("removed");
    assert!(takt(&folder, &["audit", "verify", "audit"]).status.success(), "the files alone do not tell");
    let noted = takt(&folder, &["audit", "verify", "audit", "--head", head]);
    assert_eq!(noted.status.code(), Some(1), "a head that was noted does: {}", text(&noted.stdout));
}

#[test]
fn a_dlt_daemon_hears_every_record() {
    if Command::new("dlt-daemon").arg("-h").output().is_err() {
        return skipped("dlt-daemon is not installed; packages.txt lists it");
    }
    let pipes = products().join("audit-dlt-pipes");
    std::fs::remove_dir_all(&pipes).unwrap_or_default();
    std::fs::create_dir_all(&pipes).expect("a folder");
    // A port that is free now; the daemon takes no other way to say which one it has.
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let port = port.expect("a port").port().to_string();
    let pipe = pipes.join("dlt");
    let mut command = Command::new("dlt-daemon");
    command.arg("-t").arg(&pipes).args(["-p", &port]).stdout(Stdio::null()).stderr(Stdio::null());
    let _dlt = Process(command.spawn().expect("it starts"));
    let received = pipes.join("received");
    await_that("dlt-daemon serves", || std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
    let mut command = Command::new("dlt-receive");
    // What it prints it keeps back until its buffer is full; to a file it writes each message at once.
    command.arg("-o").arg(&received).args(["-p", &port, "127.0.0.1"]).stdout(Stdio::null());
    let _client = Process(command.spawn().expect("it starts"));
    let heard = || text(&std::fs::read(&received).unwrap_or_default());
    await_that("dlt-receive is connected", || heard().contains("New client connection"));
    recorded("dlt", &format!("dlt = '{}'", pipe.display()));
    await_that("the last record is there", || heard().contains("\"event\":\"stopped\""));
    let found = heard();
    // Level, one argument, application and context as the daemon passes them on.
    for part in
        ["\x41\x01TAKTAUDT", "\x31\x01TAKTAUDT", "{\"seq\":1,", "\"event\":\"policy\"", "\"event\":\"alarm\""]
    {
        assert!(found.contains(part), "{part:?}: {found}");
    }
}
