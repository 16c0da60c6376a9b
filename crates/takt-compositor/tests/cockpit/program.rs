//! The program `takt-compositor`, as users start it.

use std::io::Read;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use takt_cockpit::control::SOCKET;

use crate::PATIENCE;
use crate::admin::Tool;
use crate::wayland::{Client, patiently};
use crate::world::{ONE, path};

/// The program with that configuration, and a folder of its own.
pub(crate) struct Program {
    pub(crate) folder: PathBuf,
    child: Child,
    manager: UnixDatagram,
    arguments: Vec<String>,
}

impl Program {
    /// Starts it, and waits until it says that it serves.
    pub(crate) fn start(config: &str) -> Self {
        Self::with(config, &[])
    }

    pub(crate) fn with(config: &str, arguments: &[&str]) -> Self {
        let folder = path("program");
        std::fs::create_dir(&folder).expect("made");
        let (file, notify) = (folder.join("cockpit.toml"), folder.join("notify"));
        std::fs::write(&file, config).expect("written");
        let manager = UnixDatagram::bind(&notify).expect("bound");
        manager.set_read_timeout(Some(PATIENCE)).expect("set");
        let mut arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        if !arguments.iter().any(|argument| argument == "--socket") {
            arguments.extend(["--socket".to_owned(), "/nonexistent/takt".to_owned()]);
        }
        let folder = folder.join("sockets");
        let child = spawn(&folder, &arguments);
        let mut program = Self { folder, child, manager, arguments };
        assert_eq!(program.told(), "READY=1\nSTATUS=serving");
        program
    }

    /// Kills it, and starts it again in the same folder.
    pub(crate) fn restart(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
        self.child = spawn(&self.folder, &self.arguments);
        assert_eq!(self.told(), "READY=1\nSTATUS=serving");
    }

    /// What the service manager hears.
    fn told(&mut self) -> String {
        let mut bytes = [0; 256];
        let length = self.manager.recv(&mut bytes).unwrap_or_else(|error| {
            panic!("{error}; {:?}", self.child.try_wait());
        });
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it by a signal; how it ended, what it printed, and its records.
    pub(crate) fn end(mut self, signal: Signal) -> (ExitStatus, String, Vec<serde_json::Value>) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
        let (mut printed, mut records) = (String::new(), String::new());
        let (out, error) = (self.child.stdout.take(), self.child.stderr.take());
        error.expect("piped").read_to_string(&mut records).expect("text");
        out.expect("piped").read_to_string(&mut printed).expect("text");
        let status = self.child.wait().expect("it ends");
        let records = records.lines();
        let json = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        (status, printed, records.map(json).collect())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // One that was waited for is gone already.
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
        let above = self.folder.parent().map(Path::to_owned).unwrap_or_default();
        std::fs::remove_dir_all(above).unwrap_or_default();
    }
}

/// Starts the program with sockets in that folder, and files beside it.
fn spawn(folder: &Path, arguments: &[String]) -> Child {
    command()
        .arg(folder.with_file_name("cockpit.toml"))
        .args(["--device", "software", "--log-json", "--folder"])
        .arg(folder)
        .args(arguments)
        .env("NOTIFY_SOCKET", folder.with_file_name("notify"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_takt-compositor"))
}

fn events(records: &[serde_json::Value]) -> Vec<&str> {
    records.iter().filter_map(|record| record["event"].as_str()).collect()
}

#[test]
fn the_program_serves_clients_and_tools_until_a_signal_ends_it() {
    let mut program = Program::start(ONE);
    let mut client = Client::new(UnixStream::connect(program.folder.join("apps")).expect("it listens"));
    let window = client.window("app");
    client.paint(&window.surface, (80, 60), 0xFF12_3456);
    let mut tool = Tool::new(&program.folder);
    let shot = "{\"ask\":\"shot\",\"output\":\"center\"}";
    patiently("it is shown", || (tool.colour(shot, (50, 50)) == 0x12_3456).then_some(()));
    assert_eq!(tool.status().windows[0].pid, std::process::id(), "by the kernel's word");
    let folder = program.folder.clone();
    kill_process(Pid::from_child(&program.child), Signal::TERM).expect("it runs");
    assert_eq!(program.told(), "STOPPING=1");
    patiently("its sockets are gone", || (!folder.join("apps").exists()).then_some(()));
    assert!(!folder.join(SOCKET).exists());
    patiently("it has ended", || program.child.try_wait().expect("ours"));
    let mut records = String::new();
    program.child.stderr.take().expect("piped").read_to_string(&mut records).expect("text");
    let records: Vec<serde_json::Value> =
        records.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let events = events(&records);
    assert_eq!((events.first(), events.last()), (Some(&"started"), Some(&"stopping")), "{events:?}");
    let shown = records.iter().find(|record| record["event"] == "window").expect("it was shown");
    assert_eq!((&shown["about"], &shown["domain"]), (&"app".into(), &"apps".into()));
    assert_eq!(shown["pid"], std::process::id());
}

#[test]
fn another_signal_ends_it_as_well_and_its_folder_serves_again() {
    let program = Program::start(ONE);
    let second = command()
        .arg(program.folder.with_file_name("cockpit.toml"))
        .args(["--device", "software", "--folder"])
        .arg(&program.folder)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(2), "{said}");
    assert!(said.contains("is a socket that a program serves; use another path"), "{said}");
    Tool::new(&program.folder).status();
    let (status, _, records) = program.end(Signal::INT);
    assert_eq!(status.code(), Some(0), "{records:?}");
    assert_eq!(events(&records).last(), Some(&"stopping"));
}

#[test]
fn mistakes_are_told_with_their_place_before_anything_starts() {
    let folder = path("mistakes");
    std::fs::create_dir(&folder).expect("made");
    let (file, sockets) = (folder.join("cockpit.toml"), folder.join("sockets"));
    let run = |text: &str, check: bool| {
        std::fs::write(&file, text).expect("written");
        let mut command = command();
        command.arg(&file).arg("--folder").arg(&sockets);
        let output = command.args(check.then_some("--check")).output().expect("it starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let wrong = ONE.replace("200x100", "200");
    let said = format!("error: {}: line 4: output \"center\": size = \"200\": use WIDTHx", file.display());
    for check in [true, false] {
        let (code, out, error) = run(&wrong, check);
        assert_eq!((code, out.as_str()), (Some(2), ""));
        assert!(error.starts_with(&said), "{error}");
    }
    let (code, out, error) = run(ONE, true);
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert!(out.ends_with("cockpit.toml: 1 outputs, 1 domains, 1 windows, 0 inputs, 0 clients\n"), "{out}");
    assert!(!sockets.exists(), "nothing has started");
    std::fs::remove_file(&file).expect("removed");
    let missing = command().arg(&file).output().expect("it starts");
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("error: cannot read "));
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn the_example_is_read() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cockpit.toml");
    let output = command().arg(example).arg("--check").output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.ends_with("2 outputs, 2 domains, 4 windows, 2 inputs, 3 clients\n"), "{said}");
}
