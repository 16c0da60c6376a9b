//! `takt serve` as a process: signals, its configuration, its log, and its service manager.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{products, takt_command, text};

/// Long enough for any machine; nothing waits this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(60);

struct Daemon {
    process: Child,
    folder: PathBuf,
    /// What the service manager hears, apart from signs of life.
    told: Receiver<String>,
}

impl Daemon {
    fn start(name: &str, config: &str) -> Self {
        let folder = products().join(format!("serve-{name}"));
        std::fs::remove_dir_all(&folder).unwrap_or_default();
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("takt.toml"), config).expect("written");
        let manager = UnixDatagram::bind(folder.join("manager")).expect("bound");
        let (tell, told) = sync_channel(1000);
        let listen = move || {
            loop {
                let mut bytes = [0; 256];
                let length = manager.recv(&mut bytes).expect("told");
                let line = text(&bytes[..length]);
                if line != "WATCHDOG=1" && tell.send(line).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("manager".to_owned()).spawn(listen).expect("a thread");
        let mut command = takt_command("serve");
        command.current_dir(&folder).args(["--config", "takt.toml", "--socket", "socket"]);
        command.args(["--log", "log", "--log-json"]).env("NOTIFY_SOCKET", folder.join("manager"));
        command.env("WATCHDOG_USEC", "100000").stderr(Stdio::null());
        let process = command.spawn().expect("takt starts");
        let daemon = Self { process, folder, told };
        assert_eq!(daemon.told(), "READY=1\nSTATUS=serving");
        daemon
    }

    fn told(&self) -> String {
        self.told.recv_timeout(PATIENCE).expect("told")
    }

    fn write(&self, config: &str) {
        // As a whole: a daemon that looks meanwhile must not find half of it.
        let beside = self.folder.join("takt.toml.new");
        std::fs::write(&beside, config).expect("written");
        std::fs::rename(&beside, self.folder.join("takt.toml")).expect("our own folder");
    }

    fn signal(&self, signal: &str) {
        let order = format!("kill {signal} {}", self.process.id());
        assert!(Command::new("sh").args(["-c", &order]).status().expect("a shell starts").success());
    }

    /// The line of the log that tells of the `n`th such event.
    fn logged(&self, event: &str, n: usize) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            if let Some(line) = lines.filter(|line| line["event"] == event).nth(n) {
                return line;
            }
            assert!(Instant::now() < until, "no {event} in the log:\n{log}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn set(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = takt_command("set");
        command.current_dir(&self.folder).args(arguments).args(["--socket", "socket"]);
        let output = command.output().expect("takt starts");
        (output.status.success(), text(&output.stdout) + &text(&output.stderr))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.process.kill().unwrap_or_default();
        self.process.wait().ok();
    }
}

#[test]
fn a_configuration_is_read_again_when_it_changes_or_on_a_signal() {
    let mut daemon = Daemon::start("reload", "policy = 'fifo'");
    assert_eq!(daemon.logged("serving", 0)["policy"], "fifo");
    daemon.write("policy = 'hpf'");
    assert!(daemon.told().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(daemon.told(), "READY=1\nSTATUS=serving");
    assert_eq!(daemon.logged("reloaded", 0)["changes"], serde_json::json!(["policy = hpf"]));
    daemon.write("polcy = 'hpf'");
    let reason = daemon.logged("unreadable", 0)["reason"].to_string();
    assert!(reason.contains("takt.toml") && reason.contains("line 1"), "{reason}");
    daemon.write("policy = 'hpf'\nadmission = 'refuse'");
    daemon.logged("reloaded", 1);
    daemon.signal("-HUP");
    assert_eq!(daemon.logged("reloaded", 2)["changes"], serde_json::json!([] as [&str; 0]), "nothing is new");
    daemon.signal("-TERM");
    assert!(daemon.process.wait().expect("it ends").success());
    assert_eq!(daemon.logged("stopping", 0)["reason"], "a signal stopped it");
    let mut last = daemon.told();
    while last.starts_with("RELOADING") || last.starts_with("READY") {
        last = daemon.told();
    }
    assert_eq!(last, "STOPPING=1");
    assert!(!daemon.folder.join("socket").exists());
}

#[test]
fn what_holds_for_all_apps_is_set_by_hand() {
    let daemon = Daemon::start("swap", "");
    assert_eq!(daemon.set(&["--policy", "edf-cbs"]), (true, "policy: edf-cbs\n".to_owned()));
    let line = daemon.logged("policy", 0);
    assert_eq!((&line["before"], &line["after"]), (&"timeline".into(), &"edf-cbs".into()));
    let limits = ["--mpcg", "3", "--max-blocking-ms", "inf", "--max-stretch-ms", "2.5"];
    assert_eq!(daemon.set(&limits), (true, "done, for all apps\n".to_owned()));
    let changes = serde_json::json!(["mpcg = 3", "max_blocking_ms = inf", "max_stretch_ms = 2.5"]);
    assert_eq!(daemon.logged("adjusted", 0)["changes"], changes);
    for (arguments, why) in [
        (&["--policy", "no-such"][..], "possible values"),
        (&["--fps", "30"], "required"),
        (&["--policy", "fifo", "--fps", "30"], "say which app"),
        (&["dial", "--policy", "fifo"], "that is for all apps"),
        (&["dial", "--mpcg", "3", "--fps", "30"], "that is for all apps"),
        (&["--mpcg", "65"], "mpcg = 65: use 1 to 64"),
        (&["--max-blocking-ms", "nan"], "write milliseconds"),
        (&["--max-stretch-ms", "inf"], "max_stretch_ms"),
        (&["dial", "--fps", "30"], "no app dial"),
        (&["dial"], "nothing to set"),
    ] {
        let (done, said) = daemon.set(arguments);
        assert!(!done && said.contains(why), "{arguments:?}: {said}");
    }
}
