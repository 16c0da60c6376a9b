//! Looks at a running program from outside, and tells of what passes Takt by.
//!
//! The program replaced the process of `takt run`, so a copy of that process looks: it reads what the kernel says of
//! the program and of those that it starts, touches none of them, and ends with the last of them.

mod kin;
mod passing;
mod uses;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

pub(crate) use kin::Kin;
use passing::{Cause, judge};
pub(crate) use passing::{Passing, Ways};
use takt_ipc::socket::Connection;
use takt_os::process::Opened;
use uses::Uses;

/// How long a process may have a window or a GPU before Takt must have seen it draw.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same where Takt is loaded, so that work could be seen: programs may load for long.
const PATIENCE_LOADED: Duration = Duration::from_secs(10);
/// The first looks come so fast, the later ones less and less often.
const FIRST: Duration = Duration::from_millis(200);
const LAST: Duration = Duration::from_secs(5);
/// So many lines at most for one program.
const LINES_MAX: usize = 4;
/// So many processes at most are waited for once the program itself has ended.
const AWAITED_MAX: usize = 64;

/// What is done for a program while it runs, beside looking at it.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Duties<'a> {
    /// Its processes count in this folder; what those did not tell that a signal has ended is told.
    pub(crate) tally: Option<&'a Path>,
    /// The daemon there that ends when it has had no client for a while stays: programs may draw late.
    pub(crate) daemon: Option<&'a Path>,
}

impl Duties<'_> {
    fn last(self) -> bool {
        self.tally.is_some() || self.daemon.is_some()
    }
}

/// Watches the program that this process is about to become, with its kin. Without that it runs all the same.
pub(crate) fn beside(mut kin: Kin, ways: &Ways, duties: Duties<'_>) {
    let watch = || {
        if duties.tally.is_some() {
            takt_os::signals::outlive_others();
        }
        // A connection that says nothing. If there is no daemon any more, the program will say so.
        let kept = duties.daemon.and_then(|socket| Connection::connect(socket, PATIENCE).ok());
        Watch::default().until_all_end(&mut kin, ways, duties.last());
        drop(kept);
        duties.tally.into_iter().for_each(tell_tally);
    };
    if let Err(error) = takt_os::fork::beside(watch) {
        crate::output::warn(&format!("takt: cannot look at the program from outside: {error}"));
    }
}

/// What passes by in processes that have run for a while, for those who end them then.
pub(crate) fn now(processes: &[u32], ways: &Ways) -> Vec<Passing> {
    let mut watch = Watch { patience: Duration::ZERO, ..Watch::default() };
    watch.look(processes, ways, Instant::now())
}

/// Tells what slicing did in processes that could not tell it, and removes their numbers.
fn tell_tally(folder: &Path) {
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let line = fs::read(file.path()).ok().and_then(|bytes| takt_gl::slice::line_of(&bytes));
        if let Some(line) = line {
            let process = file.file_name().to_string_lossy().into_owned();
            takt_os::signals::write_to_stderr(format!("takt: process {process}: {line}\n").as_bytes());
        }
    }
    // Temporary files of ours; they stay only if they cannot go.
    let _left = fs::remove_dir_all(folder);
}

struct Watch {
    patience: Duration,
    /// Since when processes have had a window or a GPU.
    since: HashMap<u32, Instant>,
    told: HashSet<(String, Cause)>,
    lines: usize,
}

impl Default for Watch {
    fn default() -> Self {
        Self { patience: PATIENCE, since: HashMap::new(), told: HashSet::new(), lines: 0 }
    }
}

impl Watch {
    /// With `stays` until the last process ends, else as long as there may be something to tell.
    fn until_all_end(&mut self, kin: &mut Kin, ways: &Ways, stays: bool) {
        let (mut pause, mut is_heard, mut left_at) = (FIRST, true, None);
        let mut processes = kin.look();
        while !processes.is_empty() {
            // Its end is told at once; those that it leaves behind are looked for now and then.
            let awaited = match left_at {
                None => processes.get(..1).unwrap_or_default(),
                Some(_) => processes.as_slice(),
            };
            wait(awaited, pause);
            pause = (pause + pause / 8).min(LAST);
            processes = kin.look();
            if processes.first() != Some(&kin.root()) {
                let left_at = *left_at.get_or_insert_with(Instant::now);
                // Services that were started on the way use no GPU, and never end.
                if left_at.elapsed() > PATIENCE_LOADED && !draws(&processes, ways) {
                    return;
                }
                if is_heard && !processes.is_empty() && is_awaited(&processes) {
                    takt_os::fork::leave_stderr();
                    is_heard = false;
                }
            }
            if !stays && (self.lines == LINES_MAX || !is_heard) {
                return;
            }
            self.tell(&processes, ways);
        }
    }

    fn tell(&mut self, processes: &[u32], ways: &Ways) {
        let room = LINES_MAX - self.lines;
        let found = if room > 0 { self.look(processes, ways, Instant::now()) } else { Vec::new() };
        for passing in found.into_iter().take(room) {
            self.lines += 1;
            takt_os::signals::write_to_stderr(format!("takt: {passing}\n").as_bytes());
        }
    }

    /// What passes by and was not told yet.
    fn look(&mut self, processes: &[u32], ways: &Ways, now: Instant) -> Vec<Passing> {
        let servers = uses::servers();
        let all: Vec<(u32, Uses)> =
            processes.iter().map(|process| (*process, uses::of(*process, &servers))).collect();
        self.since.retain(|process, _| processes.contains(process));
        // Where one of several processes draws, the others have windows without drawing.
        let one_is_seen = all.iter().any(|(_, uses)| uses.seen);
        let mut found = Vec::new();
        for (process, uses) in &all {
            let Some(passing) = judge(*process, uses, ways) else {
                continue;
            };
            let kind = passing.kind();
            let since = *self.since.entry(*process).or_insert(now);
            let patience = match uses.has_takt() {
                true if !self.patience.is_zero() => PATIENCE_LOADED,
                _ => self.patience,
            };
            // One line is enough to say that a program needs no GPU.
            let is_new_idler = || !self.told.iter().any(|(_, cause)| !cause.uses_gpu());
            let matters = passing.uses_gpu() || !one_is_seen && is_new_idler();
            if matters && now.duration_since(since) >= patience && self.told.insert(kind) {
                found.push(passing);
            }
        }
        found
    }
}

/// Whether one of the processes draws, with Takt or past it.
fn draws(processes: &[u32], ways: &Ways) -> bool {
    let servers = uses::servers();
    processes.iter().any(|process| {
        let uses = uses::of(*process, &servers);
        uses.seen || judge(*process, &uses, ways).is_some_and(|passing| passing.uses_gpu())
    })
}

/// Waits until one of the processes ends, but no longer than that time.
fn wait(processes: &[u32], time: Duration) {
    let handle = |process: &u32| {
        let process = i32::try_from(*process).ok().and_then(Pid::from_raw)?;
        pidfd_open(process, PidfdFlags::empty()).ok()
    };
    let handles: Vec<OwnedFd> = processes.iter().take(AWAITED_MAX).filter_map(handle).collect();
    let mut files: Vec<PollFd<'_>> =
        handles.iter().map(|handle| PollFd::new(handle, PollFlags::IN)).collect();
    let time = Timespec::try_from(time).ok();
    // A signal to this copy ends it, or is none of its business.
    let _early = poll(&mut files, time.as_ref());
}

/// Whether a reader of standard error waits for its end, and none of these processes will write there.
fn is_awaited(processes: &[u32]) -> bool {
    let ours = rustix::fs::fstat(rustix::stdio::stderr()).ok();
    let kind = ours.map(|found| FileType::from_raw_mode(found.st_mode));
    if !kind.is_some_and(|kind| matches!(kind, FileType::Fifo | FileType::Socket)) {
        return false;
    }
    let ours = Opened::at(Path::new("/proc/self/fd/2"));
    let writes = |process: &u32| {
        let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        files.into_iter().any(|file| Opened::at(&file.path()) == ours)
    };
    ours.is_some() && !processes.iter().any(writes)
}
