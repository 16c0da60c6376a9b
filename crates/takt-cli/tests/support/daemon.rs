//! Daemons of our own, and programs under them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::{products, takt, takt_command, text};

/// Long enough for any machine; nothing waits this long unless it is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon that is killed when the test ends.
pub(crate) struct Daemon {
    process: Child,
    /// Where it listens.
    pub(crate) socket: PathBuf,
}

impl Daemon {
    /// Starts one that has its files under that name.
    pub(crate) fn start(name: &str) -> Self {
        Self::with(name, &[])
    }

    /// The same with options of `takt serve`.
    pub(crate) fn with(name: &str, options: &[&str]) -> Self {
        let socket = products().join(format!("{name}.socket"));
        // What a killed daemon left behind.
        std::fs::remove_file(&socket).unwrap_or_default();
        let mut command = takt_command("serve");
        command.args(options).arg("--socket").arg(&socket).stderr(Stdio::null());
        let process = command.spawn().expect("takt starts");
        let until = Instant::now() + PATIENCE;
        while !socket.exists() {
            assert!(Instant::now() < until, "the daemon does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { process, socket }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: &str) {
        // The shell's own kill, which is everywhere.
        let order = format!("kill {signal} {}", self.process.id());
        assert!(Command::new("sh").args(["-c", &order]).status().expect("a shell starts").success());
    }

    /// `takt run` for a program that asks it for leave, with options of `takt run`.
    pub(crate) fn run(&self, options: &[&str], program: &Path, arguments: &[&str]) -> Command {
        let mut command = takt();
        command.arg("--schedule").args(options).arg("--socket").arg(&self.socket);
        command.arg("--").arg(program).args(arguments);
        environment(&mut command);
        command
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.process.kill().unwrap_or_default();
        self.process.wait().ok();
    }
}

/// A renderer that is the same everywhere.
pub(crate) fn environment(command: &mut Command) -> &mut Command {
    command.envs([("LIBGL_ALWAYS_SOFTWARE", "1"), ("LP_NUM_THREADS", "1")])
}

/// Runs a program without Takt.
pub(crate) fn alone(program: &Path, arguments: &[&str]) -> Output {
    environment(Command::new(program).args(arguments)).output().expect("the program starts")
}

/// The program says and ends the same; what Takt says of itself comes on standard error.
pub(crate) fn assert_same(output: &Output, alone: &Output, name: &str) {
    assert_eq!(text(&output.stdout), text(&alone.stdout), "{name}: {}", text(&output.stderr));
    assert_eq!(output.status, alone.status, "{name}: {}", text(&output.stderr));
}

/// A program in the background, which is killed when the test ends.
pub(crate) struct Background(Child);

impl Background {
    /// Starts it, unheard.
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().unwrap_or_default();
        self.0.wait().ok();
    }
}

/// What a program said and how it ended; it must end by itself.
pub(crate) fn ended(command: &mut Command, name: &str) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let until = Instant::now() + PATIENCE;
    while child.try_wait().expect("our child").is_none() {
        if Instant::now() >= until {
            child.kill().unwrap_or_default();
            let output = child.wait_with_output().expect("our child");
            panic!("{name} hangs: {}\n{}", text(&output.stdout), text(&output.stderr));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().expect("our child")
}
