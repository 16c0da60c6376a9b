//! What decides when a program begins its frames: a display, through its swap; the program itself; or
//! nothing.
//!
//! ```text
//!   draw swap │ wait in the swap │ draw swap          a display, or Takt in its place
//!   draw swap │ sleep            │ draw swap          a clock of its own
//!   draw swap │ draw swap │ draw swap                 nothing: it runs free
//! ```
//!
//! * A program that sleeps between the end of a frame and its next command has a clock of its own,
//!   whatever its swap does. The times at which it begins frames tell the period of that clock.
//! * Where its swaps would not wait for a display (a pbuffer, a swap interval of 0, no swap at all), the
//!   same holds for one that works or turns in a loop meanwhile: no display decides when it goes on.
//! * One that does none of that is paced by a display if its swaps would wait for one, and runs free
//!   otherwise.
//! * Only frames that Takt did not hold back are judged: a program that is held back finds its own time
//!   over, and does not sleep, or it sleeps for another reason and its rate is Takt's.
//! * So the first frames are not held back. Later, one frame is not held back now and then. If the program
//!   sleeps after it, the next [`WINDOW`] frames are judged again. Each look that changes nothing doubles the
//!   time to the next one.
//!
//! Of several streams, the first one counts, until it has been silent for `LEADER_SILENT`.

use std::collections::VecDeque;

use takt_core::{Span, Time};
use takt_ipc::message::Pacing;

/// Frames that are judged together.
pub const WINDOW: usize = 6;
/// A program that slept after so many of them has a clock of its own.
const SLEPT_MOST: usize = 5;
/// One that slept after so many at most has none.
const SLEPT_LEAST: usize = 1;
/// How often neither may be so before that is an answer.
const UNDECIDED_MAX: u32 = 18;
/// A thread that slept for this long rested.
const SLEEP: Span = Span::from_us(300);
/// Frames whose distances tell the period.
const DISTANCES: usize = 16;
/// Two periods that differ by less than this part are the same.
const SAME_PARTS: u64 = 16;
/// How long before a frame that runs free its program goes on, besides what it usually takes to its first
/// command.
const LEAD: Span = Span::from_us(200);

/// Time to the first look at a program that is held back, and the longest between two looks.
const LOOK_FIRST: Span = Span::from_ms(1_000);
const LOOK_LAST: Span = Span::from_ms(64_000);
/// A stream that has been silent for this long does not lead any more.
const LEADER_SILENT: Span = Span::from_ms(1_000);

/// What a thread did between the end of a frame and its next command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rest {
    /// How long that was.
    pub gap: Span,
    /// How long the thread slept in it, as far as that is known.
    pub slept: Span,
    /// Whether Takt held it back before.
    pub held: bool,
}

/// Whether a program is to be held back until its next frame may begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    /// No: it is looked at.
    No,
    /// Until that time before the release, so that its first command comes in time.
    Until {
        /// How much earlier.
        lead: Span,
    },
}

/// See the module.
#[derive(Clone, Debug)]
pub struct PaceFinder {
    leader: Option<(u64, Time)>,
    /// Whether its swaps would wait for a display.
    waits: bool,
    found: Option<Pacing>,
    /// Frames that were not held back since the last one that was: whether the program slept after each.
    free: VecDeque<bool>,
    /// The same for those that were held back.
    held: VecDeque<bool>,
    /// When the last frame began, and how far apart the last ones were.
    began: Option<Time>,
    distances: VecDeque<Span>,
    /// How long it took to the first command.
    gaps: VecDeque<Span>,
    /// How often the last frames told nothing.
    undecided: u32,
    looking: Looking,
    next_look: Option<Time>,
    between_looks: Span,
}

/// Which frames are not held back, to look at the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Looking {
    /// None.
    No,
    /// One.
    AtOne,
    /// As many as are judged together.
    AtAll,
}

impl Default for PaceFinder {
    fn default() -> Self {
        Self {
            leader: None,
            waits: false,
            found: None,
            free: VecDeque::with_capacity(WINDOW),
            held: VecDeque::with_capacity(WINDOW),
            began: None,
            distances: VecDeque::with_capacity(DISTANCES),
            gaps: VecDeque::with_capacity(WINDOW),
            undecided: 0,
            looking: Looking::AtAll,
            next_look: None,
            between_looks: LOOK_FIRST,
        }
    }
}

impl PaceFinder {
    /// What was found so far.
    pub fn found(&self) -> Option<Pacing> {
        self.found
    }

    /// Whether it is to be known how long the thread sleeps until its next command, and not only how long it
    /// takes.
    pub fn wants_sleep(&self) -> bool {
        self.waits && (self.looking != Looking::No || self.gaps.back().is_none_or(|gap| *gap >= SLEEP))
    }

    /// A frame of a stream ended; `waits` says whether a swap ended it that would wait for a display.
    pub fn ended(&mut self, stream: u64, now: Time, waits: bool) -> Hold {
        if self.leads(stream, now) {
            if self.waits != waits {
                self.waits = waits;
                self.look_at_all();
            }
            if self.looking == Looking::No && self.next_look.is_some_and(|at| now >= at) {
                self.looking = Looking::AtOne;
            }
            if self.looking != Looking::No {
                return Hold::No;
            }
        }
        Hold::Until { lead: self.lead() }
    }

    /// The next frame of a stream begins, after that rest; returns whether something else was found.
    pub fn began(&mut self, stream: u64, now: Time, rest: Rest) -> bool {
        if !self.leads(stream, now) {
            return false;
        }
        let slept = if self.waits { rest.slept } else { rest.gap } >= SLEEP;
        let before = self.began.replace(now);
        push(&mut self.gaps, rest.gap, WINDOW);
        if rest.held {
            self.free.clear();
            self.distances.clear();
            push(&mut self.held, slept, WINDOW);
            // Something makes it sleep although it is held back.
            if count(&self.held) >= SLEPT_MOST && self.next_look.is_none_or(|at| now >= at) {
                self.look_at_all();
            }
            return false;
        }
        if let Some(before) = before {
            push(&mut self.distances, now.since(before), DISTANCES);
        }
        push(&mut self.free, slept, WINDOW);
        match self.looking {
            Looking::AtOne if slept => self.look_at_all(),
            Looking::AtOne => self.looked(now, false),
            Looking::AtAll | Looking::No => {}
        }
        self.judge(now)
    }

    /// Judges the last frames, if none of them was held back.
    fn judge(&mut self, now: Time) -> bool {
        if self.free.len() < WINDOW {
            return false;
        }
        self.undecided += 1;
        let found = match count(&self.free) {
            SLEPT_MOST.. => self.own_clock(),
            ..=SLEPT_LEAST if self.waits => Pacing::Display,
            ..=SLEPT_LEAST => Pacing::Free,
            // It sleeps now and then, so it is held back, if at all, before its frames.
            _ if self.undecided >= UNDECIDED_MAX => self.own_clock(),
            _ => return false,
        };
        self.undecided = 0;
        let differs = !self.found.is_some_and(|before| is_like(before, found));
        if differs {
            self.found = Some(found);
        }
        if self.looking == Looking::AtAll {
            self.looked(now, differs);
        }
        differs
    }

    /// The program was looked at.
    fn looked(&mut self, now: Time, differs: bool) {
        self.looking = Looking::No;
        self.between_looks = if differs { LOOK_FIRST } else { self.between_looks.times(2).min(LOOK_LAST) };
        self.next_look = Some(now + self.between_looks);
    }

    fn look_at_all(&mut self) {
        self.looking = Looking::AtAll;
        (self.began, self.undecided) = (None, 0);
        self.distances.clear();
        self.free.clear();
        self.held.clear();
    }

    /// The clock by which frames come.
    fn own_clock(&self) -> Pacing {
        let mut distances: Vec<Span> = self.distances.iter().copied().collect();
        distances.sort_unstable();
        let period = distances.get(distances.len() / 2).copied().unwrap_or_default();
        let is_near = |distance: &&Span| difference(period, **distance).times(4) <= period;
        let near = distances.iter().filter(is_near).count();
        Pacing::Own { period, steady: near * 4 >= distances.len() * 3 }
    }

    /// How long before its release a frame has to be let through, so that its first command comes in time: one
    /// in some frames may take longer.
    fn lead(&self) -> Span {
        let mut gaps: Vec<Span> = self.gaps.iter().copied().collect();
        gaps.sort_unstable();
        let usual = gaps.len().checked_sub(2).map_or(Span::ZERO, |at| gaps[at]);
        usual + LEAD
    }

    /// Whether the stream is the one that counts.
    fn leads(&mut self, stream: u64, now: Time) -> bool {
        match &mut self.leader {
            Some((leader, heard)) if *leader == stream => *heard = now,
            Some((_, heard)) if now.since(*heard) < LEADER_SILENT => return false,
            _ => {
                let found = self.found;
                *self = Self { leader: Some((stream, now)), found, ..Self::default() };
            }
        }
        true
    }
}

/// Whether both say the same but for what clocks differ from one moment to the next. What comes as it likes
/// does so with any period.
fn is_like(before: Pacing, found: Pacing) -> bool {
    match (before, found) {
        (
            Pacing::Own { period: before, steady: was_steady },
            Pacing::Own { period: found, steady: is_steady },
        ) => {
            let parts = if was_steady && is_steady { SAME_PARTS } else { 2 };
            difference(before, found).times(parts) <= before.max(found) && was_steady == is_steady
        }
        (before, found) => before == found,
    }
}

fn difference(one: Span, other: Span) -> Span {
    one.max(other).saturating_sub(one.min(other))
}

fn push<T>(last: &mut VecDeque<T>, new: T, most: usize) {
    if last.len() == most {
        last.pop_front();
    }
    last.push_back(new);
}

fn count(slept: &VecDeque<bool>) -> usize {
    slept.iter().filter(|slept| **slept).count()
}

#[cfg(test)]
mod tests;
