//! Whether a process can run, and what its threads do.

use std::path::{Path, PathBuf};

use takt_core::Span;

/// Whether the process exists and is not stopped. Where the system does not tell (another name space,
/// no `/proc`), the answer is yes.
pub fn can_run(pid: u32) -> bool {
    let stat = std::fs::read_to_string(process(pid).join("stat"));
    stat.ok().as_deref().and_then(state).is_none_or(|state| !STOPPED.contains(&state))
}

/// The executable of a process, if the system tells. The file itself is not looked at: it may be on a
/// file system that does not answer.
pub fn executable(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(process(pid).join("exe")).ok()
}

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadState {
    /// It runs, or would if it had a processor.
    pub runnable: bool,
    /// For how long it has run since it began, where the system counts that.
    pub ran: Option<Span>,
}

/// What a thread of a process does, if the system tells.
pub fn thread_state(pid: u32, thread: u32) -> Option<ThreadState> {
    let folder = process(pid).join("task").join(thread.to_string());
    let state = state(&std::fs::read_to_string(folder.join("stat")).ok()?)?;
    let ran = std::fs::read_to_string(folder.join("schedstat")).ok();
    let ran = ran.and_then(|text| text.split(' ').next()?.parse().ok()).map(Span::from_ns);
    Some(ThreadState { runnable: state == 'R', ran })
}

fn process(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

/// States of processes that cannot go on by themselves: stopped by a signal or by a debugger, or dead
/// and not yet reaped.
const STOPPED: [char; 5] = ['T', 't', 'Z', 'X', 'x'];

/// The state in a line of `/proc/PID/stat`. The name before it may contain anything, brackets too.
fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_confuse() {
        assert_eq!(state("1 (a) T (b)) S 1 2"), Some('S'));
        assert_eq!(state("1 (a"), None);
        assert_eq!(state(""), None);
    }

    #[test]
    fn threads_sleep_and_run() {
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let (go_on, wait) = std::sync::mpsc::sync_channel::<()>(1);
        let thread = std::thread::Builder::new().name("looked-at".to_owned()).spawn(move || {
            let id = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            tell.send(id).expect("the test listens");
            wait.recv().expect("the test says so");
            // Runs until the test says so again.
            while wait.try_recv().is_err() {
                std::hint::spin_loop();
            }
        });
        let id = told.recv().expect("it says so");
        let look = || thread_state(std::process::id(), id).expect("our own thread");
        while look().runnable {
            std::thread::yield_now();
        }
        let before = look().ran;
        go_on.send(()).expect("it waits");
        while !look().runnable || (before.is_some() && look().ran <= before) {
            std::thread::yield_now();
        }
        go_on.send(()).expect("it runs");
        thread.expect("a thread").join().expect("no panic");
        assert_eq!(thread_state(std::process::id(), u32::MAX), None);
    }

    #[test]
    fn the_stopped_and_the_dead_cannot_run() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("sleep starts");
        let pid = rustix::process::Pid::from_child(&child);
        assert!(can_run(child.id()));
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("stopped");
        while can_run(child.id()) {
            std::thread::yield_now();
        }
        rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("continued");
        while !can_run(child.id()) {
            std::thread::yield_now();
        }
        child.kill().expect("killed");
        while can_run(child.id()) {
            std::thread::yield_now();
        }
        child.wait().expect("buried");
        assert!(can_run(child.id()), "not known");
    }
}
