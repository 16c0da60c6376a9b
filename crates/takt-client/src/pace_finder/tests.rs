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
