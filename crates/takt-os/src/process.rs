//! Whether a process can run, and what its threads do.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, makedev, statx};
use takt_core::Span;

use crate::files::FileId;
use crate::sandbox;

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

/// What a file is: of a device, its number; of any other one, which file. The kernel answers from memory, so a file
/// system that does not answer delays nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opened {
    /// A device, whatever path leads to it.
    Device(u64),
    /// Any other file.
    File(FileId),
}

impl Opened {
    /// What lies at that path, or what the link of `/proc/PID/fd` stands for.
    pub fn at(path: &Path) -> Option<Self> {
        let wanted = StatxFlags::TYPE | StatxFlags::INO;
        let found = statx(CWD, path, AtFlags::STATX_DONT_SYNC, wanted).ok()?;
        let kind = FileType::from_raw_mode(found.stx_mode.into());
        let is_device = matches!(kind, FileType::CharacterDevice | FileType::BlockDevice);
        let number = makedev(found.stx_rdev_major, found.stx_rdev_minor);
        Some(if is_device { Self::Device(number) } else { Self::File(FileId::of(&found)) })
    }
}

/// The threads of a process with open files of their own, which `/proc/PID/fd` does not show: those that do not share
/// them with the first one, or all if that has ended.
pub fn threads_apart(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(process(pid).join("task")).into_iter().flatten().flatten();
    let threads = tasks.filter_map(|task| task.file_name().to_str()?.parse::<u32>().ok());
    threads.filter(|thread| *thread != pid && !share_files(pid, *thread)).collect()
}

/// Whether two threads have the same open files; no if the system cannot tell.
fn share_files(one: u32, other: u32) -> bool {
    // Of `kcmp.h`.
    const KCMP_FILES: libc::c_int = 2;
    // SAFETY: it compares numbers of the kernel, and touches no memory of this process.
    let differs = unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_FILES, 0_usize, 0_usize) };
    differs == 0
}

/// The control group of a process as a path from the root of the hierarchy that systemd manages, if the
/// system tells.
pub fn cgroup(pid: u32) -> Option<String> {
    let groups = std::fs::read_to_string(process(pid).join("cgroup")).ok()?;
    managed_cgroup(&groups).map(str::to_owned)
}

/// The path in the unified hierarchy, or in systemd's own where the machine still has several. Paths may contain
/// anything, what stands before them in a line too.
fn managed_cgroup(groups: &str) -> Option<&str> {
    let named = |wanted: &str| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            parts.next().filter(|name| *name == wanted).and_then(|_| parts.next())
        })
    };
    named("").filter(|path| *path != "/").or_else(|| named("name=systemd")).or_else(|| named(""))
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

/// How often this thread has gone to sleep by itself, and not because another one had its processor; 0 where asking is
/// forbidden.
pub fn own_sleeps() -> u64 {
    if sandbox::is_expected() {
        return 0;
    }
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
        let forged = "9:memory:/box/x:name=systemd:/system.slice/dial.service\n4:name=systemd:/box\n0::/\n";
        assert_eq!(managed_cgroup(forged), Some("/box"), "folders may have any name");
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
    fn threads_with_files_of_their_own_are_told() {
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let (go_on, wait) = std::sync::mpsc::sync_channel::<()>(1);
        let thread = std::thread::Builder::new().name("apart".to_owned()).spawn(move || {
            let id = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            tell.send(id).expect("the test listens");
            wait.recv().expect("the test says so");
            // SAFETY: from here on this thread opens and closes no file that another one knows.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_FILES) }, 0);
            tell.send(id).expect("the test listens");
            wait.recv().expect("the test says so");
        });
        let apart = |id| threads_apart(std::process::id()).contains(&id);
        let id = told.recv().expect("it says so");
        assert!(!apart(id), "threads share files");
        go_on.send(()).expect("it waits");
        told.recv().expect("it says so");
        assert!(apart(id));
        go_on.send(()).expect("it waits");
        thread.expect("a thread").join().expect("no panic");
        assert_eq!(threads_apart(u32::MAX), []);
    }

    #[test]
    fn devices_are_the_same_by_any_path() {
        let null = Opened::at(Path::new("/dev/null")).expect("there");
        let file = std::fs::File::open("/dev/null").expect("there");
        let open = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        assert!(matches!(null, Opened::Device(_)) && Opened::at(Path::new(&open)) == Some(null));
        assert_ne!(Opened::at(Path::new("/dev/zero")), Some(null));
        assert!(matches!(Opened::at(Path::new("/")), Some(Opened::File(_))));
        assert_eq!(Opened::at(Path::new("/nothing-there")), None);
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
