//! The second process: it is told when to draw, and answers with what it saw.
//!
//! A line each way: it says [`READY`], gets plans and answers each with its draws. A line that
//! begins with [`FAILED`] says why it cannot. It ends when its input does.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::analysis::Draw;
use super::stream::{self, DrawPlan};
use crate::Problem;
use crate::bench::{Bench, Load, Place};

const READY: &str = "ready";
const FAILED: &str = "failed: ";
/// Longest answer, in bytes.
const ANSWER_MAX: u64 = 16 << 20;

/// What the second process does, until its input ends.
///
/// # Errors
///
/// If the process that started this one has closed the connection; that process is told all other errors.
pub fn serve(place: Place, loops: u32, plans: &mut dyn BufRead, out: &mut dyn Write) -> std::io::Result<()> {
    let (load, bench) = match open(place, loops) {
        Ok(opened) => opened,
        Err(problem) => return answer(out, &format!("{FAILED}{problem}")),
    };
    answer(out, READY)?;
    for line in plans.lines() {
        let draws = line?.parse::<DrawPlan>().and_then(|plan| stream::run(&bench, &load, plan));
        match draws {
            Ok(draws) => answer(out, &stream::to_line(&draws))?,
            Err(problem) => return answer(out, &format!("{FAILED}{problem}")),
        }
    }
    Ok(())
}

fn open(place: Place, loops: u32) -> Result<(Load, Bench), Problem> {
    let mut bench = Bench::open(place)?;
    super::prepare(&mut bench)?;
    Ok((Load::new(&bench.gl, loops)?, bench))
}

fn answer(out: &mut dyn Write, line: &str) -> std::io::Result<()> {
    writeln!(out, "{line}")?;
    out.flush()
}

/// The second process, from the side of the first. It is gone when this is dropped.
pub(super) struct Peer {
    child: Child,
    plans: ChildStdin,
    answers: Receiver<String>,
    until: Instant,
}

impl Peer {
    /// Starts it; whatever it is asked must be answered until then.
    pub(super) fn start(mut command: Command, until: Instant) -> Result<Self, Problem> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let fail = |error: std::io::Error| Problem::Peer(format!("does not start: {error}"));
        let mut child = command.spawn().map_err(fail)?;
        let (plans, out) = child.stdin.take().zip(child.stdout.take()).expect("both are pipes");
        let (sender, answers) = sync_channel(4);
        let peer = Self { child, plans, answers, until };
        let listening = thread::Builder::new().name("sharing-peer".to_owned()).spawn(move || {
            // It ends with the process, or when its answers are no longer read.
            let lines = BufReader::new(out.take(ANSWER_MAX)).lines().map_while(Result::ok);
            let _gone = lines.map(|line| sender.send(line)).find(Result::is_err);
        });
        listening.map(|_thread| peer).map_err(fail)
    }

    /// Waits until it can draw.
    pub(super) fn ready(&mut self) -> Result<(), Problem> {
        match self.answer()?.as_str() {
            READY => Ok(()),
            other => Err(Problem::Peer(format!("says {:?}", other.chars().take(80).collect::<String>()))),
        }
    }

    /// Has it draw by a plan.
    pub(super) fn ask(&mut self, plan: DrawPlan) -> Result<(), Problem> {
        let told = writeln!(self.plans, "{plan}").and_then(|()| self.plans.flush());
        told.map_err(|error| Problem::Peer(format!("does not listen: {error}")))
    }

    /// What it saw.
    pub(super) fn draws(&mut self) -> Result<Vec<Draw>, Problem> {
        let line = self.answer()?;
        stream::from_line(&line).ok_or_else(|| Problem::Peer("answers with nonsense".to_owned()))
    }

    fn answer(&mut self) -> Result<String, Problem> {
        let left = self.until.saturating_duration_since(Instant::now());
        match self.answers.recv_timeout(left) {
            Ok(line) => match line.strip_prefix(FAILED) {
                Some(reason) => Err(Problem::Peer(format!("failed: {reason}"))),
                None => Ok(line),
            },
            Err(RecvTimeoutError::Timeout) => Err(Problem::Peer("does not answer in time".to_owned())),
            Err(RecvTimeoutError::Disconnected) => {
                let how = self.end().map_or_else(|| "still there".to_owned(), |how| how.to_string());
                Err(Problem::Peer(format!("ended without an answer ({how})")))
            }
        }
    }

    /// How it ended, if it does soon: one that hangs in its driver cannot be ended at all.
    fn end(&mut self) -> Option<ExitStatus> {
        for _ in 0..ENDS {
            if let Ok(Some(how)) = self.child.try_wait() {
                return Some(how);
            }
            thread::sleep(END_STEP);
        }
        None
    }
}

/// How often it is looked whether a process has ended, and how long is waited in between.
const ENDS: usize = 50;
const END_STEP: Duration = Duration::from_millis(4);

impl Drop for Peer {
    fn drop(&mut self) {
        // It has nothing to save, and may hang in its driver.
        let _gone = self.child.kill();
        let _how = self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a second process that is this script.
    fn said(script: &str) -> String {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let until = Instant::now() + Duration::from_millis(300);
        let asked = Peer::start(command, until).and_then(|mut peer| {
            peer.ready()?;
            peer.ask(DrawPlan::soon(Duration::ZERO, 1))?;
            peer.draws()
        });
        asked.map_or_else(|problem| problem.to_string(), |draws| format!("{} draws", draws.len()))
    }

    #[test]
    fn whatever_a_second_process_does_is_one_line() {
        assert_eq!(said("echo ready; read plan; echo 1 2 3 4"), "2 draws");
        assert_eq!(said("exit 3"), "the second process ended without an answer (exit status: 3)");
        assert_eq!(said("kill -9 $$"), "the second process ended without an answer (signal: 9 (SIGKILL))");
        assert_eq!(said("echo 'failed: no GPU'"), "the second process failed: no GPU");
        assert_eq!(said("echo hello"), "the second process says \"hello\"");
        assert_eq!(said("echo ready; read plan; echo 1 2 3"), "the second process answers with nonsense");
        assert_eq!(said("exec sleep 100"), "the second process does not answer in time");
        let missing = Peer::start(Command::new("/no/such/program"), Instant::now()).err();
        assert!(missing.is_some_and(|problem| problem.to_string().contains("does not start")));
    }

    #[test]
    fn a_second_process_without_a_gpu_says_so() {
        let mut out = Vec::new();
        serve(Place::Device(99), 1, &mut &b""[..], &mut out).expect("the output is a vector");
        let said = String::from_utf8(out).expect("text");
        assert!(said.starts_with(FAILED) && said.lines().count() == 1, "{said}");
    }
}
