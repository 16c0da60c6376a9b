//! Clients in processes of their own: what the kernel says about those.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use takt_core::{GroupId, Span};
use takt_ipc::client::{Joined, NotScheduled, join};
use takt_ipc::{Reply, Request};
use takt_os::clock;

use crate::support::{Daemon, PATIENCE, await_reply, hello};

/// Where a process of this program joins.
const SOCKET: &str = "TAKT_TEST_SOCKET";
/// The folder of the control group that it enters before.
const CGROUP: &str = "TAKT_TEST_CGROUP";
/// It leaves a child behind that has the connection, and ends.
const LEAVES: &str = "TAKT_TEST_LEAVES";
/// What it says of that child.
const HEIR: &str = "its heir is ";
/// What it says when it is scheduled, and when it is to come back later.
const WELCOME: &str = "it is welcome";
const NOT_NOW: &str = "it may not come now";

/// A process of this program that joins, says what came of it, and stays until its input ends.
struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(daemon: &Daemon, cgroup: Option<&Path>) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args(["--exact", "processes::joins_in_a_process_of_its_own", "--nocapture"])
            .env(SOCKET, &daemon.path);
        if let Some(cgroup) = cgroup {
            command.env(CGROUP, cgroup);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, output }
    }

    /// What it said.
    fn said(&mut self) -> &'static str {
        for line in self.output.by_ref().lines() {
            let line = line.expect("text");
            if let Some(said) = [WELCOME, NOT_NOW].into_iter().find(|said| line.ends_with(said)) {
                return said;
            }
        }
        panic!("it ended");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().expect("it ends");
    }
}

/// Does nothing unless it is run by the others.
#[test]
#[expect(clippy::print_stdout, reason = "the tests read it")]
fn joins_in_a_process_of_its_own() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    if let Some(cgroup) = std::env::var_os(CGROUP) {
        let procs = PathBuf::from(cgroup).join("cgroup.procs");
        std::fs::write(procs, std::process::id().to_string()).expect("it may enter");
    }
    let joined = join(Path::new(&socket), &hello("child", 1), PATIENCE);
    match &joined {
        Ok(_) => println!("\n{WELCOME}"),
        Err(NotScheduled::NotNow { .. }) => println!("\n{NOT_NOW}"),
        Err(other) => println!("\n{other}"),
    }
    if let (Some(_), Ok(joined)) = (std::env::var_os(LEAVES), &joined) {
        rustix::io::fcntl_setfd(&joined.connection, rustix::io::FdFlags::empty()).expect("our own");
        let heir = Command::new("sleep")
            .arg("600")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        println!("\n{HEIR}{}", heir.expect("it starts").id());
        return;
    }
    // Until the other end is closed.
    std::io::stdin().read_to_end(&mut Vec::new()).expect("it ends");
}

/// Breaks a rule, and is evicted.
fn offend(mut app: Joined) {
    let lie =
        Request::Complete { group: GroupId(7), finished: clock::now(), cost: Span::from_us(1), frames: 0 };
    app.sender.send(&lie).expect("room");
    await_reply(&mut app, |reply| (reply == Reply::Farewell).then_some(()));
}

#[test]
fn another_process_of_the_same_program_does_not_evade_quarantine() {
    let daemon = Daemon::start("quarantine", "");
    assert_eq!(Process::start(&daemon, None).said(), WELCOME);
    // The pause is 4 s after the third time: long enough for a process to start on any machine.
    for _ in 0..3 {
        let again = std::time::Instant::now() + PATIENCE;
        let app = loop {
            match join(&daemon.path, &hello("liar", 1), PATIENCE) {
                Ok(app) => break app,
                Err(NotScheduled::NotNow { .. }) => assert!(std::time::Instant::now() < again),
                Err(other) => panic!("{other}"),
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        offend(app);
    }
    assert_eq!(Process::start(&daemon, None).said(), NOT_NOW);
}

/// An app is its process: what that leaves behind keeps neither its slot nor its contract.
#[test]
fn a_child_that_inherits_the_connection_does_not_keep_the_app() {
    let daemon = Daemon::start("heirs", "");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "processes::joins_in_a_process_of_its_own", "--nocapture"]);
    command.env(SOCKET, &daemon.path).env(LEAVES, "1").stdin(Stdio::null());
    let said = command.stdout(Stdio::piped()).output().expect("it ends");
    let said = String::from_utf8(said.stdout).expect("text");
    let heir = said.lines().find_map(|line| line.strip_prefix(HEIR)).expect("a child");
    let heir = heir.parse().ok().and_then(rustix::process::Pid::from_raw).expect("a process");
    daemon.await_answer(r#"{"ask": "apps"}"#, |answer| answer["is"] == serde_json::json!([]));
    // It was there all the time.
    rustix::process::kill_process(heir, rustix::process::Signal::KILL).expect("it sleeps");
}

/// A control group that is removed at the end.
struct Cgroup(PathBuf);

impl Cgroup {
    /// One of that name at the root of the hierarchy, where the machine lets this test make one.
    fn new(name: &str) -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
        let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mut unified = fields.filter(|fields| fields.get(2) == Some(&"cgroup2"));
        let folder = Path::new(unified.next()?[1]).join(name);
        std::fs::create_dir(&folder).ok()?;
        Some(Self(folder))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The last process may not have left it yet.
        for _ in 0..1_000 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "what was skipped")]
fn units_and_control_groups_are_domains() {
    let name = format!("takt-test-{}.service", std::process::id());
    let Some(cgroup) = Cgroup::new(&name) else {
        println!("SKIPPED: this machine lets the test make no control group");
        return;
    };
    for belonging in [format!("unit = '{name}'"), format!("cgroup = '/{name}'")] {
        let config = format!("[[domain]]\nname = 'boxed'\n{belonging}");
        let daemon = Daemon::start("boxed", &config);
        let domain = || daemon.ask(r#"{"ask": "apps"}"#)["is"][0]["domain"].take();
        let mut outside = Process::start(&daemon, None);
        assert_eq!((outside.said(), domain()), (WELCOME, "own".into()), "{belonging}");
        drop(outside);
        daemon.await_answer(r#"{"ask": "apps"}"#, |answer| answer["is"] == serde_json::json!([]));
        let mut inside = Process::start(&daemon, Some(&cgroup.0));
        assert_eq!((inside.said(), domain()), (WELCOME, "boxed".into()), "{belonging}");
    }
}
