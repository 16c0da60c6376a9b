//! Begins and ends frames, by what was found out about the program.
//!
//! [`takt_client::frame_finder`] says where the frames of a program end that never swaps; the daemon hears
//! of each as of a swap that shows nothing. [`takt_client::pace_finder`] says what decides when frames
//! begin: a display, the program, or nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use takt_client::Grant;
use takt_client::frame_finder::{Boundary, Ended, FrameFinder};
use takt_client::pace_finder::{Hold, PaceFinder, Rest};
use takt_core::{Span, Time};
use takt_os::process;

use super::context::State;
use super::group::End;
use crate::session::session;
use crate::{clock, measure};

/// The rhythm of the whole process: it is one client.
static FINDERS: LazyLock<Mutex<Finders>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Finders {
    frames: FrameFinder,
    pace: PaceFinder,
}

/// When the program last swapped; 0 if it never did.
static SWAPPED_NS: AtomicU64 = AtomicU64::new(0);

/// A program that swapped this lately has no other frames.
const SWAPS_NS: u64 = 1_000_000_000;

/// How far a context is in its frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rhythm {
    /// A command came since the last boundary or swap.
    commanded: bool,
    /// A frame ended, and the next one has not begun.
    between_frames: bool,
    /// Takt held the program back after that frame.
    held: bool,
    /// The end of the last call at a boundary or of a swap.
    last: Option<Mark>,
}

impl Rhythm {
    /// What the thread did since the last call at a boundary or the last swap.
    fn rest(&self, now_ns: u64) -> Rest {
        self.last.map_or_else(Rest::default, |last| last.rest(now_ns, self.held))
    }
}

/// A time: by the clock and, if that is of use, how long the thread had run and how often it had slept.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at_ns: u64,
    thread: Option<(u64, u64)>,
}

impl Mark {
    fn now(with_thread: bool) -> Self {
        let thread = with_thread.then(|| (measure::own_ns(), process::own_sleeps()));
        Self { at_ns: clock::now_ns(), thread }
    }

    /// What the thread did from then on.
    fn rest(self, now_ns: u64, held: bool) -> Rest {
        let gap_ns = now_ns.saturating_sub(self.at_ns);
        let slept_ns = self.thread.map_or(0, |(ran_ns, sleeps)| {
            // A thread that only waited for a processor did not sleep.
            let slept = process::own_sleeps() > sleeps;
            if slept { gap_ns.saturating_sub(measure::own_ns().saturating_sub(ran_ns)) } else { 0 }
        });
        Rest { gap: Span::from_ns(gap_ns), slept: Span::from_ns(slept_ns), held }
    }
}

/// The end of a frame, after which its program is held back or not.
#[derive(Clone, Copy, Debug)]
pub struct FrameEnd {
    pub(super) grant: Grant,
    pub(super) hold: Hold,
}

impl FrameEnd {
    /// Keeps the program here until its next frame may begin, if it is to be kept; returns whether it was.
    pub(crate) fn hold_back(self) -> bool {
        match self.hold {
            Hold::No => false,
            Hold::Until { lead } => session().hold(self.grant, lead).is_some_and(|(_, slept)| slept),
        }
    }
}

fn find<T>(look: impl FnOnce(&mut Finders) -> T) -> T {
    look(&mut FINDERS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Whether the program has not swapped for long, or never did.
fn is_unswapped(now_ns: u64) -> bool {
    let swapped_ns = SWAPPED_NS.load(Ordering::Relaxed);
    swapped_ns == 0 || now_ns.saturating_sub(swapped_ns) > SWAPS_NS
}

impl State {
    /// The program swaps a surface; `waits` says whether that would wait for a display.
    pub(super) fn swaps(&mut self, waits: bool) -> Hold {
        let now_ns = clock::now_ns();
        SWAPPED_NS.store(now_ns, Ordering::Relaxed);
        let (stream, now) = (self.id.number, Time::from_ns(now_ns));
        if std::mem::take(&mut self.rhythm.between_frames) {
            // It is a frame without a command.
            let rest = self.rhythm.rest(now_ns);
            self.frame_begins(now, rest);
        }
        find(|finders| {
            finders.frames.swap(now);
            finders.pace.ended(stream, now, waits)
        })
    }

    /// A frame begins, after that rest.
    fn frame_begins(&self, now: Time, rest: Rest) {
        let found = find(|finders| {
            let differs = finders.pace.began(self.id.number, now, rest);
            finders.pace.found().filter(|_| differs)
        });
        if let Some(found) = found {
            session().is_paced_by(found);
        }
        session().keep_told();
    }

    /// The swap is over, and so is the wait after it if Takt held the program back.
    pub(crate) fn rests(&mut self, held: bool) {
        if session().is_wanted() {
            let last = Some(Mark::now(find(|finders| finders.pace.wants_sleep())));
            self.rhythm = Rhythm { commanded: false, between_frames: true, held, last };
        }
    }

    /// The program is about to give the GPU a command.
    #[inline]
    pub(super) fn commands(&mut self) {
        if !self.rhythm.commanded {
            self.rhythm.commanded = true;
            self.first_command();
        }
    }

    fn first_command(&mut self) {
        let now_ns = clock::now_ns();
        if !session().is_wanted() {
            return;
        }
        let (stream, now) = (self.id.number, Time::from_ns(now_ns));
        let mut rest = self.rhythm.rest(now_ns);
        let mut begins = std::mem::take(&mut self.rhythm.between_frames);
        if is_unswapped(now_ns) {
            let ended = find(|finders| finders.frames.command(stream, now, rest.slept));
            if ended == Ended::Before {
                begins = true;
                rest.held |= self.end_unseen_frame().is_some_and(FrameEnd::hold_back);
            }
        }
        if begins {
            self.frame_begins(now, rest);
        }
    }

    /// The program is about to make a call at a boundary. If a frame ends there, what its successor is held
    /// back by.
    pub(crate) fn reaches(&mut self, boundary: Boundary) -> Option<FrameEnd> {
        let now_ns = clock::now_ns();
        if !session().is_wanted() || !is_unswapped(now_ns) {
            return None;
        }
        let (stream, now) = (self.id.number, Time::from_ns(now_ns));
        let ended = find(|finders| finders.frames.boundary(stream, now, boundary));
        (ended == Ended::Here).then(|| self.end_unseen_frame()).flatten()
    }

    /// That call is over. If a frame ended there, so is the wait after it, and it is known whether Takt held the
    /// program back.
    pub(crate) fn reached(&mut self, ended: Option<bool>) {
        let Rhythm { commanded, between_frames, held: before, .. } = self.rhythm;
        let unswapped = is_unswapped(clock::now_ns());
        // Between two swaps, only the wait before the first command counts.
        if !session().is_wanted() || !unswapped && commanded {
            return;
        }
        let last = Some(Mark::now(unswapped || find(|finders| finders.pace.wants_sleep())));
        let (between_frames, held) = (ended.is_some() || between_frames, ended.unwrap_or(before));
        self.rhythm = Rhythm { commanded: false, between_frames, held, last };
    }

    /// A frame ends that no swap shows; all that came before is part of it.
    fn end_unseen_frame(&mut self) -> Option<FrameEnd> {
        let now_ns = clock::now_ns();
        self.submit_since(End::Finish, now_ns);
        self.stream.gathering.stop_coasting();
        self.stream.ask_to_show(measure::watched(), Span::ZERO);
        // The models begin the next frame.
        self.predict_group(End::Swap);
        self.builder.end_frame();
        let grant = self.stream.end_group(session())?;
        let now = Time::from_ns(now_ns);
        session().complete(grant, now, Span::ZERO);
        let hold = find(|finders| finders.pace.ended(self.id.number, now, false));
        Some(FrameEnd { grant, hold })
    }
}
