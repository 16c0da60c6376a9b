//! Whether a process can run, and what its threads do.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use takt_core::Span;

use crate::files::FileId;

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

/// The file that a process executes, if the system tells. The kernel answers from memory
/// (`AT_STATX_DONT_SYNC`), so a file system that does not answer delays nothing.
pub fn running_file(pid: u32) -> Option<FileId> {
    let link = process(pid).join("exe");
    statx(CWD, &link, AtFlags::STATX_DONT_SYNC, StatxFlags::INO).ok().map(|found| FileId::of(&found))
}

/// The control group of a process as a path from the root of the hierarchy that systemd manages, if the
/// system tells.
pub fn cgroup(pid: u32) -> Option<String> {
    let groups = std::fs::read_to_string(process(pid).join("cgroup")).ok()?;
    managed_cgroup(&groups).map(str::to_owned)
}

/// The path in the unified hierarchy, or in systemd's own where the machine still has several.
fn managed_cgroup(groups: &str) -> Option<&str> {
    let named = |name: &str| groups.lines().find_map(|line| line.split_once(name).map(|(_, path)| path));
    let unified = groups.lines().find_map(|line| line.strip_prefix("0::")).filter(|path| *path != "/");
    unified
        .or_else(|| named(":name=systemd:"))
        .or_else(|| groups.lines().find_map(|line| line.strip_prefix("0::")))
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

/// How often this thread has gone to sleep by itself, and not because another one had its processor.
pub fn own_sleeps() -> u64 {
    // SAFETY: a structure of numbers, which may be zero.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: there is room for the answer.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    u64::try_from(usage.ru_nvcsw).unwrap_or_default()
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
    fn the_control_group_is_that_of_systemd() {
        assert_eq!(managed_cgroup("0::/system.slice/a.service\n"), Some("/system.slice/a.service"));
        let both = "9:name=systemd:/user.slice\n4:memory:/x\n0::/\n";
        assert_eq!(managed_cgroup(both), Some("/user.slice"));
        assert_eq!(managed_cgroup("4:memory:/x\n0::/\n"), Some("/"));
        assert_eq!(managed_cgroup(""), None);
        assert!(cgroup(std::process::id()).is_some_and(|path| path.starts_with('/')));
    }

    #[test]
    fn the_running_file_is_the_executable() {
        let this = std::env::current_exe().expect("this test");
        let found = std::fs::metadata(this).expect("there");
        let id = running_file(std::process::id()).expect("our own");
        assert_eq!(id.inode, std::os::unix::fs::MetadataExt::ino(&found));
        assert_eq!(running_file(u32::MAX), None);
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
    fn sleeps_are_counted() {
        let before = own_sleeps();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(own_sleeps() > before);
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
