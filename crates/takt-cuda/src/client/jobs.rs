//! Jobs: where they end, and how much they contain.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use takt_client::Grant;
use takt_client::frame_finder::{Ended, FrameFinder};
use takt_core::{GroupKind, Span, Time};
use takt_os::clock;

use super::Client;
use crate::streams::thread;

pub use takt_client::frame_finder::Boundary;

thread_local! {
    /// This thread gave the GPU work since its last boundary.
    static COMMANDED: Cell<bool> = const { Cell::new(false) };
    /// When its last call at a boundary ended, by the clock and by its own time.
    static LAST: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Of a job before, one of so many parts is asked for beyond it where its contract has room, and again where that is
/// used up as well.
const SPARE: u64 = 8;

/// How it is known where a job ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// By the program's calls and pauses.
    Found,
    /// The program says it.
    Said,
}

/// What is known of a client's jobs.
#[derive(Debug)]
pub(super) struct Jobs {
    finder: Mutex<FrameFinder>,
    /// What this job has contained so far by prediction, and all of the one before.
    contained_ns: AtomicU64,
    before_ns: AtomicU64,
    /// What its contract reserves for each; 0 if that is not known.
    reserved_ns: u64,
    /// How it is known where jobs end that have deadlines; none if they have none.
    judged: Option<Ending>,
    /// The last grant, by which the session counts jobs that end between groups.
    last: Mutex<Option<Grant>>,
}

impl Jobs {
    /// With so much reserved for each.
    pub(super) fn new(reserved_ns: u64, judged: Option<Ending>) -> Self {
        Self {
            finder: Mutex::default(),
            contained_ns: AtomicU64::new(0),
            before_ns: AtomicU64::new(reserved_ns),
            reserved_ns,
            judged,
            last: Mutex::new(None),
        }
    }

    /// How much to ask for: the rest of the job if it is judged, else as much as there is.
    pub(super) fn wanted_ns(&self, need_ns: u64, most_ns: u64) -> u64 {
        if !self.are_judged() {
            return most_ns.max(need_ns);
        }
        let before = self.before_ns.load(Ordering::Relaxed);
        // No two jobs take just the same, and what one takes longer would be asked for kernel by kernel.
        let part = before / SPARE;
        let whole = (before + part).min(self.reserved_ns.max(before));
        let rest = whole.saturating_sub(self.contained_ns.load(Ordering::Relaxed));
        rest.max(part).max(need_ns).min(most_ns.max(need_ns))
    }

    /// A group with so much ended.
    pub(super) fn contains(&self, predicted_ns: u64, grant: Option<Grant>) {
        self.contained_ns.fetch_add(predicted_ns, Ordering::Relaxed);
        if grant.is_some() {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = grant;
        }
    }

    /// Whether its jobs have deadlines.
    pub(super) fn are_judged(&self) -> bool {
        self.judged.is_some()
    }

    /// Whether a job with a deadline is under way that the program does not end by itself.
    pub(super) fn are_open(&self) -> bool {
        self.judged == Some(Ending::Found) && self.contained_ns.load(Ordering::Relaxed) > 0
    }

    /// Whether that job ends because nothing has come for a while.
    pub(super) fn end_quietly(&self) -> bool {
        self.find(FrameFinder::quiet)
    }

    fn find<T>(&self, look: impl FnOnce(&mut FrameFinder) -> T) -> T {
        look(&mut self.finder.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn ended(&self) {
        self.before_ns.store(self.contained_ns.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Client {
    /// This thread is about to give the GPU work.
    #[inline]
    pub fn commands(&'static self) {
        if !COMMANDED.get() {
            COMMANDED.set(true);
            self.first_command();
        }
    }

    #[cold]
    fn first_command(&'static self) {
        let now = clock::now();
        self.goes_on(now.as_ns().saturating_sub(LAST.get().0));
        let ended = self.jobs.find(|finder| finder.command(thread(), now, slept(now)));
        if ended == Ended::Before {
            self.end_job();
        }
    }

    /// This thread is about to make a call at a boundary.
    pub fn reaches(&'static self, boundary: Boundary) {
        let ended = self.jobs.find(|finder| finder.boundary(thread(), clock::now(), boundary));
        if ended == Ended::Here {
            self.end_job();
        }
    }

    /// Whether this thread gave the GPU work since its last boundary.
    pub fn has_commanded() -> bool {
        COMMANDED.get()
    }

    /// That call is over.
    pub fn reached(&self) {
        COMMANDED.set(false);
        LAST.set((clock::now().as_ns(), own_ns()));
    }

    /// A job ends; all that came before is part of it.
    pub fn end_job(&'static self) {
        if self.jobs.are_judged() {
            self.hand_over_surely();
            if let Some(grant) = self.tell_end() {
                self.session().pace(grant);
            }
            return;
        }
        self.jobs.ended();
        let open = self.group().grant;
        let last = *self.jobs.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(grant) = open.or(last) {
            self.session().end_frame(&grant);
        }
    }

    /// A job that is judged ended where its last group did: tells the daemon, which answers at once.
    pub(super) fn tell_end(&self) -> Option<Grant> {
        self.jobs.ended();
        let grant = self.session().ask(GroupKind::Swap, Span::ZERO)?;
        self.session().complete(grant, clock::now(), Span::ZERO);
        Some(grant)
    }
}

/// How long this thread did nothing since its last call at a boundary.
fn slept(now: Time) -> Span {
    let (then_ns, ran_ns) = LAST.get();
    if then_ns == 0 {
        return Span::ZERO;
    }
    let passed_ns = now.as_ns().saturating_sub(then_ns);
    Span::from_ns(passed_ns.saturating_sub(own_ns().saturating_sub(ran_ns)))
}

/// The processor time of this thread.
fn own_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: there is room for the time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_are_judged_ask_for_their_rest() {
        let jobs = Jobs::new(3_000, Some(Ending::Found));
        assert_eq!(jobs.wanted_ns(10, 100_000), 3_000, "what is reserved, at first");
        assert_eq!(jobs.wanted_ns(10, 1_000), 1_000);
        jobs.contains(2_000, None);
        assert_eq!(jobs.wanted_ns(10, 100_000), 1_000);
        jobs.contains(2_000, None);
        assert_eq!(jobs.wanted_ns(10, 100_000), 375, "it is longer: not kernel by kernel");
        jobs.ended();
        assert_eq!(jobs.wanted_ns(10, 100_000), 4_000, "as the one before, which had more than is reserved");
        jobs.contains(2_000, None);
        jobs.ended();
        assert_eq!(jobs.wanted_ns(10, 100_000), 2_250, "and a little more, if that is reserved");
        assert_eq!(Jobs::new(0, None).wanted_ns(10, 5_000), 5_000, "others take what there is");
    }
}
