//! Looks at a running program from outside, and tells of what passes Takt by.
//!
//! The program replaced the process of `takt run`, so a copy of that process looks: it reads what the kernel says of
//! the program and of those that it starts, touches none of them, and ends with the program.

mod passing;
mod uses;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use passing::{Cause, judge};
pub(crate) use passing::{Passing, Ways};
use takt_ipc::socket::Connection;
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

/// Watches the program that this process is about to become. Without that it runs all the same.
pub(crate) fn beside(ways: &Ways, duties: Duties<'_>) {
    let program = std::process::id();
    let watch = || {
        if duties.tally.is_some() {
            takt_os::signals::outlive_others();
        }
        // A connection that says nothing. If there is no daemon any more, the program will say so.
        let kept = duties.daemon.and_then(|socket| Connection::connect(socket, PATIENCE).ok());
        Watch::default().until_it_ends(program, ways, duties.last());
        drop(kept);
        duties.tally.into_iter().for_each(tell_tally);
    };
    if let Err(error) = takt_os::fork::beside(watch) {
        crate::output::warn(&format!("takt: cannot look at the program from outside: {error}"));
    }
}

/// What passes by in a program that has run for a while, for those who end it then.
pub(crate) fn now(program: u32, ways: &Ways) -> Vec<Passing> {
    let mut watch = Watch { patience: Duration::ZERO, ..Watch::default() };
    watch.look(program, ways, Instant::now())
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
    /// With `stays` until the program ends, else as long as there may be something to tell.
    fn until_it_ends(&mut self, program: u32, ways: &Ways, stays: bool) {
        let pid = i32::try_from(program).ok().and_then(Pid::from_raw);
        let Some(handle) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
            return;
        };
        let mut pause = FIRST;
        while (stays || self.lines < LINES_MAX) && !ends_within(&handle, pause) {
            let room = LINES_MAX - self.lines;
            let found = if room > 0 { self.look(program, ways, Instant::now()) } else { Vec::new() };
            for passing in found.into_iter().take(room) {
                self.lines += 1;
                takt_os::signals::write_to_stderr(format!("takt: {passing}\n").as_bytes());
            }
            pause = (pause + pause / 8).min(LAST);
        }
    }

    /// What passes by and was not told yet.
    fn look(&mut self, program: u32, ways: &Ways, now: Instant) -> Vec<Passing> {
        let windows = uses::windows();
        let family = uses::family(program);
        let all: Vec<(u32, Uses)> =
            family.into_iter().map(|process| (process, uses::of(process, &windows))).collect();
        self.since.retain(|process, _| all.iter().any(|(other, _)| other == process));
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
            let matters = kind.1.uses_gpu() || !one_is_seen;
            if matters && now.duration_since(since) >= patience && self.told.insert(kind) {
                found.push(passing);
            }
        }
        found
    }
}

/// Whether the process ends within that time.
fn ends_within(handle: &impl std::os::fd::AsFd, time: Duration) -> bool {
    let mut files = [PollFd::new(handle, PollFlags::IN)];
    let time = Timespec::try_from(time).ok();
    // A signal to this copy ends it, or is none of its business.
    poll(&mut files, time.as_ref()).is_ok_and(|ended| ended > 0)
}
