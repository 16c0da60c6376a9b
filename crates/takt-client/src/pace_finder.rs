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
mod tests {
    use super::*;
    use takt_rng::Rng;

    const MS: u64 = 1_000;

    /// When a program begins its next frame.
    #[derive(Clone, Copy)]
    enum Timer {
        /// At the ticks of a clock that runs all the time.
        Ticks(u64),
        /// So long after the frame before, as frame limiters do that count from its end.
        After(u64),
        /// When something happens: at random within these bounds.
        Events(u64, u64),
        /// After so much work.
        Work(u64),
        /// At once.
        None,
    }

    /// A program in made-up time, and a daemon that holds it back by its rate.
    struct Program {
        finder: PaceFinder,
        rng: Rng,
        now: u64,
        timer: Timer,
        /// Whether its swaps would wait for a display.
        waits: bool,
        /// The period of its contract, if it has a rate, and when the next frame may begin.
        rate: Option<u64>,
        release: u64,
        begins: Vec<u64>,
        heard: Vec<Pacing>,
    }

    impl Program {
        fn new(timer: Timer, waits: bool, rate: Option<u64>) -> Self {
            let (finder, rng) = (PaceFinder::default(), Rng::new(7, 0));
            let (begins, heard) = (Vec::new(), Vec::new());
            Self { finder, rng, now: 500_000, timer, waits, rate, release: 0, begins, heard }
        }

        fn time(&self) -> Time {
            Time::from_ns(self.now * 1_000)
        }

        /// Draws, swaps, is held back or not, rests.
        fn frame(&mut self) {
            self.now += self.rng.between(500, 3_000);
            let hold = self.finder.ended(1, self.time(), self.waits);
            let rate = Span::from_us(self.rate.unwrap_or(0));
            let own = self.finder.found().is_some_and(|found| found.keeps(rate));
            let mut held = false;
            if let (Hold::Until { lead }, Some(_), false) = (hold, self.rate, own) {
                let until = self.release.saturating_sub(lead.as_ns() / 1_000);
                held = until > self.now;
                self.now = self.now.max(until);
            }
            let ended = self.now;
            self.now += 50;
            let slept = self.sleep();
            let rest = Rest { gap: Span::from_us(self.now - ended), slept: Span::from_us(slept), held };
            if self.finder.began(1, self.time(), rest) {
                self.heard.push(self.finder.found().expect("something else"));
            }
            self.begins.push(self.now);
            self.release = self.release.max(self.now) + self.rate.unwrap_or(0);
        }

        fn sleep(&mut self) -> u64 {
            let until = match self.timer {
                Timer::Ticks(us) => self.now.next_multiple_of(us) + self.rng.between(0, 300),
                Timer::After(us) => self.begins.last().map_or(self.now, |last| last + us),
                Timer::Events(least, most) => self.now + self.rng.between(least, most),
                Timer::Work(us) => self.now + us,
                Timer::None => self.now,
            };
            let rested = until.saturating_sub(self.now);
            self.now += rested;
            if matches!(self.timer, Timer::Work(_)) { 0 } else { rested }
        }

        fn frames(&mut self, count: usize) -> &mut Self {
            (0..count).for_each(|_| self.frame());
            self
        }

        fn found(&self) -> Option<Pacing> {
            self.finder.found()
        }
    }

    fn own_us(found: Option<Pacing>) -> Option<u64> {
        match found {
            Some(Pacing::Own { period, steady: true }) => Some(period.as_ns() / 1_000),
            _ => None,
        }
    }

    #[test]
    fn sleepers_have_clocks_of_their_own_whatever_their_swaps_do() {
        for waits in [false, true] {
            for timer in [Timer::Ticks(16_667), Timer::After(16_667)] {
                for rate in [None, Some(16_667)] {
                    let mut program = Program::new(timer, waits, rate);
                    let period = own_us(program.frames(60).found()).expect("it sleeps");
                    assert!((16_000..=17_400).contains(&period), "{period}");
                    assert_eq!(program.heard.len(), 1, "{:?}", program.heard);
                }
            }
        }
    }

    #[test]
    fn those_that_do_not_sleep_are_paced_by_a_display_or_run_free() {
        for rate in [None, Some(16_667)] {
            assert_eq!(Program::new(Timer::None, true, rate).frames(2_000).heard, [Pacing::Display]);
            assert_eq!(Program::new(Timer::None, false, rate).frames(2_000).heard, [Pacing::Free]);
        }
    }

    #[test]
    fn work_between_frames_is_no_clock_where_a_display_paces() {
        for rate in [None, Some(16_667)] {
            let mut program = Program::new(Timer::Work(8 * MS), true, rate);
            assert_eq!(program.frames(60).heard, [Pacing::Display]);
            let mut program = Program::new(Timer::Work(8 * MS), false, rate);
            let found = program.frames(600).found().expect("something");
            assert!(!found.keeps(Span::from_us(16_667)), "{found:?}");
            let taken = program.begins[599] - program.begins[99];
            let each = if rate.is_some() { 16_600..=17_400 } else { 9 * MS..=11 * MS };
            assert!(each.contains(&(taken / 500)), "{rate:?}: {taken} us");
        }
    }

    #[test]
    fn programs_that_draw_when_something_happens_have_no_period() {
        let mut program = Program::new(Timer::Events(2 * MS, 200 * MS), false, None);
        let found = program.frames(60).found();
        assert!(matches!(found, Some(Pacing::Own { steady: false, .. })), "{found:?}");
    }

    #[test]
    fn one_that_sleeps_now_and_then_is_held_back_before_its_frames_at_most() {
        let mut program = Program::new(Timer::None, true, Some(16_667));
        for frame in 0..60 {
            program.timer = if frame % 2 == 0 { Timer::Events(5 * MS, 9 * MS) } else { Timer::None };
            program.frame();
        }
        assert!(matches!(program.found(), Some(Pacing::Own { .. })), "{:?}", program.heard);
    }

    #[test]
    fn another_rate_is_followed() {
        let mut program = Program::new(Timer::Ticks(33_333), false, None);
        assert!((32_000..=34_500).contains(&own_us(program.frames(60).found()).expect("30 FPS")));
        program.timer = Timer::Ticks(16_667);
        assert!((16_000..=17_400).contains(&own_us(program.frames(40).found()).expect("60 FPS")));
        program.timer = Timer::None;
        assert_eq!(program.frames(20).found(), Some(Pacing::Free), "it stopped sleeping");
    }

    #[test]
    fn another_swap_interval_is_followed() {
        let mut program = Program::new(Timer::None, true, Some(16_667));
        assert_eq!(program.frames(60).found(), Some(Pacing::Display));
        program.waits = false;
        assert_eq!(program.frames(20).found(), Some(Pacing::Free));
        program.waits = true;
        assert_eq!(program.frames(20).found(), Some(Pacing::Display));
    }

    #[test]
    fn a_clock_behind_a_hold_is_found_in_the_end() {
        // It runs free while it loads, and is held back; then it has a timer of the same rate, which is
        // over whenever it was held back long enough.
        let mut program = Program::new(Timer::None, false, Some(16_667));
        assert_eq!(program.frames(60 * 5).found(), Some(Pacing::Free));
        program.timer = Timer::After(16_500);
        program.frames(60 * 20);
        let period = own_us(program.found()).expect("it was looked at");
        assert!((16_000..=17_400).contains(&period), "{period}");
    }

    #[test]
    fn who_runs_free_keeps_its_rate_while_it_is_looked_at() {
        let mut program = Program::new(Timer::None, false, Some(16_667));
        program.frames(60 * 60);
        let taken = program.begins.last().expect("frames") - program.begins[WINDOW];
        let rate = (program.begins.len() - WINDOW - 1) as f64 * 1e6 / taken as f64;
        assert!((59.0..=60.5).contains(&rate), "{rate}");
        let early = program.begins[WINDOW + 1..].windows(2).filter(|two| two[1] - two[0] < 10 * MS).count();
        assert!((1..=8).contains(&early), "one in a look: {early}");
    }

    #[test]
    fn a_short_sleep_for_another_reason_does_not_end_the_hold_for_good() {
        // A round trip to its window system after each swap.
        let mut program = Program::new(Timer::Events(400, 600), true, Some(16_667));
        program.frames(60 * 60);
        assert!(program.heard.len() <= 12, "{:?}", program.heard);
        // As fast as it can: the daemon knows that this is no clock of the rate that it asks for.
        assert!(!program.found().expect("something").keeps(Span::from_us(16_667)));
        let taken = program.begins.last().expect("frames") - program.begins[0];
        assert!(taken > 55 * 1_000 * MS, "3600 frames at 60 FPS: {taken} us");
    }

    #[test]
    fn the_first_stream_counts_until_it_is_silent() {
        let mut finder = PaceFinder::default();
        let rest = |slept_us| Rest { gap: Span::from_ms(10), slept: Span::from_us(slept_us), held: false };
        for frame in 0..20 {
            let now = Time::from_ms(10 * frame);
            finder.ended(1, now, true);
            finder.began(1, now, rest(0));
            finder.ended(2, now, false);
            assert!(!finder.began(2, now, rest(9_000)));
        }
        assert_eq!(finder.found(), Some(Pacing::Display));
        for frame in 0..20 {
            let now = Time::from_ms(2_000 + 10 * frame);
            finder.ended(2, now, false);
            finder.began(2, now, rest(9_000));
        }
        assert_eq!(own_us(finder.found()), Some(10_000));
    }
}
