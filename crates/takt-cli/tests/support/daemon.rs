//! Daemons of our own, and programs under them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use super::{products, takt, takt_command, text};

/// Long enough for any machine; nothing waits this long unless it is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How long daemons and programs of tests bear with each other. A machine may be so busy that either
/// is starved for longer than they usually would, and then they rightly part; what tests ask is what
/// they do together.
const BEAR_MS: &str = "60000";
const BEAR: &str = "completion_timeout_ms = 60000\n";

/// A daemon that is killed when the test ends.
pub(crate) struct Daemon {
    process: Child,
    /// Where it listens.
    pub(crate) socket: PathBuf,
}

impl Daemon {
    /// Starts one that has its files under that name.
    pub(crate) fn start(name: &str) -> Self {
        Self::with(name, "", &[])
    }

    /// The same with more in its configuration, and options of `takt serve`.
    pub(crate) fn with(name: &str, config: &str, options: &[&str]) -> Self {
        let socket = products().join(format!("{name}.socket"));
        let file = products().join(format!("{name}.toml"));
        let patience = if config.contains("completion_timeout_ms") { "" } else { BEAR };
        std::fs::write(&file, format!("{patience}{config}")).expect("our own file");
        // What a killed daemon left behind.
        std::fs::remove_file(&socket).unwrap_or_default();
        let mut command = takt_command("serve");
        command.arg("--config").arg(&file).args(options).arg("--socket").arg(&socket);
        let process = command.stderr(Stdio::null()).spawn().expect("takt starts");
        await_that("the daemon listens", || socket.exists());
        Self { process, socket }
    }

    /// What a tool says when it asks this daemon.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Output {
        let mut command = takt_command(arguments[0]);
        command.args(&arguments[1..]).arg("--socket").arg(&self.socket).output().expect("takt starts")
    }

    /// Ends it as Ctrl-C does: what it writes is complete then.
    pub(crate) fn end(mut self) {
        self.signal("-INT");
        assert!(end_of(&mut self.process, "the daemon").success());
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: &str) {
        // The shell's own kill, which is everywhere.
        let order = format!("kill {signal} {}", self.process.id());
        assert!(Command::new("sh").args(["-c", &order]).status().expect("a shell starts").success());
    }

    /// `takt run` for a program that asks it for grants, with options of `takt run`.
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

/// A renderer that is the same everywhere, and patience with the daemon.
pub(crate) fn environment(command: &mut Command) -> &mut Command {
    command.envs([("LIBGL_ALWAYS_SOFTWARE", "1"), ("LP_NUM_THREADS", "1"), ("TAKT_PATIENCE_MS", BEAR_MS)])
}

/// Waits until something is so.
pub(crate) fn await_that(what: &str, mut is: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < until, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a process has ended by itself.
pub(crate) fn end_of(process: &mut Child, what: &str) -> std::process::ExitStatus {
    let mut ended = None;
    await_that(&format!("{what} ends"), || {
        ended = process.try_wait().expect("our child");
        ended.is_some()
    });
    ended.expect("it has ended")
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

/// A program that runs until its input ends, and what it says meanwhile.
pub(crate) struct Talking {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    heard: String,
}

impl Talking {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let (input, errors) = (child.stdin.take(), child.stderr.take().expect("piped"));
        let (tell, lines) = sync_channel(1000);
        let listen =
            move || BufReader::new(errors).lines().map_while(Result::ok).try_for_each(|line| tell.send(line));
        std::thread::Builder::new().name("listener".to_owned()).spawn(listen).expect("a thread");
        Self { child, input, lines, heard: String::new() }
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it says that, after all that was waited for before: the line.
    pub(crate) fn says(&mut self, what: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("it does not say '{what}', only: {}", self.heard);
            };
            self.heard += &format!("{line}\n");
            if line.contains(what) {
                return line;
            }
        }
    }

    /// Gives it a line of input.
    pub(crate) fn hears(&mut self, line: &str) {
        let input = self.input.as_mut().expect("its input has not ended");
        writeln!(input, "{line}").expect("it listens");
    }

    /// What it has said, as far as was waited for.
    pub(crate) fn heard(&self) -> &str {
        &self.heard
    }

    /// Its input ends, and then it must do so by itself: what it wrote, and all that it said.
    pub(crate) fn end(mut self) -> (String, String) {
        drop(self.input.take());
        let status = end_of(&mut self.child, "the program");
        let heard = std::mem::take(&mut self.heard);
        let said = self.lines.iter().fold(heard, |said, line| said + &line + "\n");
        assert!(status.success(), "{status}: {said}");
        // It is short, so that it was written at once.
        let output = self.child.stdout.take().expect("piped");
        (std::io::read_to_string(output).expect("text"), said)
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().unwrap_or_default();
        self.child.wait().ok();
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
