//! What long draws turned out to cost.
//!
//! A draw that comes again, frame after frame, is known by everything that makes its cost what it
//! is and that rarely changes. What its pieces cost says how long all of it takes; that is all that
//! sizing needs, and each piece corrects it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use takt_core::Span;
use takt_predict::cost::ProgramId;

/// Tells draws apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Signature(pub u64);

/// A program with the whole numbers that its uniforms hold: these say how often shaders loop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Variant(pub u64);

/// What is known about a draw.
#[derive(Default, Debug)]
pub struct Known {
    state: Mutex<(Figures, Recent)>,
    news: Condvar,
}

/// The figures of a draw: a piece takes `fixed_ns`, and its share of `whole_ns`.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Figures {
    /// What the draw takes at the pace of its pieces so far, without what each piece costs anyway.
    pub whole_ns: f64,
    /// What each piece costs, however small it is: handing it over, and all vertices for a box.
    pub fixed_ns: f64,
    /// Pieces that were measured.
    pub pieces: u32,
    /// The smallest of them, on a GPU, without the first.
    pub smallest: Option<Smallest>,
}

/// The smallest piece that was measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Smallest {
    /// Its share of the draw.
    pub share: f64,
    /// What it took.
    pub ns: f64,
    /// Whether that was hardly less than what a piece of twice its size took, or a larger one.
    pub as_long: bool,
}

/// What a piece of a draw took.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Its share of the draw.
    pub share: f64,
    /// Its time.
    pub cost_ns: u64,
    /// Whether it ended together with the one before it, as far as could be seen: the other has part of
    /// its time then.
    pub together: bool,
    /// Whether the renderer works on the CPU: processors run no long invocations all at once.
    pub software: bool,
}

impl Known {
    /// The figures so far.
    pub fn figures(&self) -> Figures {
        self.lock().0
    }

    /// A piece was measured.
    pub fn piece(&self, sample: Sample) {
        let mut state = self.lock();
        let (figures, recent) = &mut *state;
        recent.add(figures, &Sample { share: sample.share.max(SHARE_MIN), ..sample });
        self.news.notify_all();
    }

    /// Nothing is known of the draw, and no thread is to wait until something is: it is believed to take that
    /// long.
    pub fn assume(&self, whole: Span) {
        let figures = &mut self.lock().0;
        if figures.pieces == 0 {
            (figures.whole_ns, figures.pieces) = (whole.as_ns() as f64, super::sizing::PROBES);
        }
    }

    /// A piece was drawn and not measured.
    pub fn unmeasured(&self) {
        self.lock().0.pieces += 1;
        self.news.notify_all();
    }

    /// A group that contained all of the draw, and other things, took so long.
    pub fn group(&self, cost_ns: u64, alone: bool) {
        let figures = &mut self.lock().0;
        let cost_ns = (cost_ns as f64 - figures.fixed_ns).max(0.0);
        if alone && cost_ns > figures.whole_ns {
            figures.whole_ns = cost_ns;
        } else if alone || cost_ns < figures.whole_ns {
            figures.whole_ns += FOLLOW * (cost_ns - figures.whole_ns);
        }
    }

    /// Waits until that many pieces were measured; not for long.
    pub fn wait(&self, pieces: u32) -> Figures {
        let state = self.lock();
        let waited = self.news.wait_timeout_while(state, PATIENCE, |(figures, _)| figures.pieces < pieces);
        waited.unwrap_or_else(PoisonError::into_inner).0.0
    }

    fn lock(&self) -> MutexGuard<'_, (Figures, Recent)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the last pieces took.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Recent {
    /// Some thirty pieces, which tell what a piece costs however small it is.
    line: Line,
    /// Some seven, which tell how fast the draw goes where it is.
    here: Line,
    /// The least that a piece took, lately: no piece has more that is not its own.
    least_ns: Option<f64>,
}

impl Recent {
    /// Adds a piece and says what follows from it.
    ///
    /// The first one is left out of account: drivers finish their compilation with it. A piece can
    /// take long because something else came between; so it counts for a few times what was
    /// expected, at most. A draw that really has become longer is known to be after a few pieces.
    ///
    /// A piece that ended together with the one before it says nothing: its time is in the other's.
    fn add(&mut self, figures: &mut Figures, sample: &Sample) {
        if sample.together {
            figures.pieces = figures.pieces.saturating_add(1);
            return;
        }
        let (share, cost_ns) = (sample.share, sample.cost_ns as f64);
        let expected_ns = figures.fixed_ns + figures.whole_ns * share;
        let young = figures.pieces < YOUNG;
        if young && (figures.pieces < 2 || cost_ns * FAR_OFF < expected_ns) {
            *self = Self::default();
            figures.fixed_ns = 0.0;
        }
        let counted_ns = if young { cost_ns } else { cost_ns.min(expected_ns * FAR_OFF) };
        self.line.add(share, counted_ns, 0.97);
        self.here.add(share, counted_ns, 0.85);
        self.least_ns = Some(self.least_ns.map_or(cost_ns, |least_ns| (least_ns * FORGETTING).min(cost_ns)));
        let fixed_ns = self.line.start().unwrap_or(figures.fixed_ns);
        figures.fixed_ns = self.least_ns.map_or(fixed_ns, |least_ns| fixed_ns.min(least_ns));
        let own_ns = self.here.cost - self.here.weight * figures.fixed_ns;
        figures.whole_ns = own_ns.max(0.05 * self.here.cost) / self.here.share;
        figures.pieces = figures.pieces.saturating_add(1);
        if !sample.software && figures.pieces > 1 {
            figures.smallest = Some(Smallest::of(figures.smallest, share, cost_ns));
        }
    }
}

impl Smallest {
    /// With one more. A larger piece that took less says more than a smaller one that was disturbed.
    fn of(before: Option<Self>, share: f64, ns: f64) -> Self {
        let alone = Self { share, ns, as_long: false };
        let Some(before) = before else { return alone };
        if share > before.share {
            return if ns < before.ns { alone } else { before };
        }
        let halved = share * 2.0 <= before.share;
        Self { as_long: (halved || before.as_long) && ns >= before.ns * AS_LONG, ..alone }
    }
}

/// A straight line through what pieces of different sizes took.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Line {
    weight: f64,
    share: f64,
    cost: f64,
    share_share: f64,
    share_cost: f64,
}

impl Line {
    /// Adds a piece, of which those before lose weight.
    fn add(&mut self, share: f64, cost: f64, memory: f64) {
        let keep = |sum: &mut f64, value: f64| *sum = *sum * memory + value;
        keep(&mut self.weight, 1.0);
        keep(&mut self.share, share);
        keep(&mut self.cost, cost);
        keep(&mut self.share_share, share * share);
        keep(&mut self.share_cost, share * cost);
    }

    /// Where it begins: what a piece of no size takes. None if all pieces are of one size.
    fn start(&self) -> Option<f64> {
        let spread = self.weight * self.share_share - self.share * self.share;
        if spread < SPREAD_MIN * self.share * self.share {
            return None;
        }
        let slope = (self.weight * self.share_cost - self.share * self.cost) / spread;
        Some(((self.cost - slope * self.share) / self.weight).clamp(0.0, self.cost / self.weight))
    }
}

/// A smaller piece that took this part of a larger one's time takes as long.
const AS_LONG: f64 = 0.7;

/// The least variance of shares, relative to their mean, that tells anything.
const SPREAD_MIN: f64 = 0.02;

/// How fast the least of all times is forgotten.
const FORGETTING: f64 = 1.05;

/// How far groups correct what is known about a draw that they contain.
const FOLLOW: f64 = 0.1;

/// A measurement that is this much shorter than expected makes the first ones void; longer ones
/// count for as much.
const FAR_OFF: f64 = 4.0;

/// Pieces from which a draw is well known.
pub(super) const YOUNG: u32 = 8;

/// No piece is smaller: against rounding.
const SHARE_MIN: f64 = 1e-9;

/// Longest wait for a piece that tells how to go on.
const PATIENCE: Duration = Duration::from_millis(500);

/// Draws and programs of this process.
#[derive(Default, Debug)]
struct Book {
    draws: BTreeMap<Signature, Arc<Known>>,
    /// Variants of programs, and those that were measured.
    programs: BTreeMap<u64, BTreeSet<u64>>,
    measured: BTreeSet<Variant>,
    /// Those with draws that were cut.
    long: BTreeSet<Variant>,
}

static BOOK: Mutex<Book> = Mutex::new(Book {
    draws: BTreeMap::new(),
    programs: BTreeMap::new(),
    measured: BTreeSet::new(),
    long: BTreeSet::new(),
});

/// Draws that are remembered; more are all forgotten, and get to be known again.
const DRAWS_MAX: usize = 4096;
/// The same for programs.
const PROGRAMS_MAX: usize = 4096;
/// A program with more variants than this counts something, such as frames: they mean nothing.
const VARIANTS_MAX: usize = 8;

fn book() -> MutexGuard<'static, Book> {
    BOOK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known about a draw; nothing at first.
pub fn draw(signature: Signature) -> Arc<Known> {
    let mut book = book();
    if book.draws.len() >= DRAWS_MAX {
        book.draws.clear();
    }
    book.draws.entry(signature).or_default().clone()
}

/// Names a program whose uniforms hold whole numbers with that hash.
pub fn variant(program: ProgramId, numbers: u64) -> Variant {
    let mut book = book();
    if book.programs.len() >= PROGRAMS_MAX {
        book.programs.clear();
    }
    let variants = book.programs.entry(program.0).or_default();
    if variants.len() >= VARIANTS_MAX {
        return Variant(program.0);
    }
    variants.insert(numbers);
    Variant(program.0 ^ numbers)
}

/// Whether what models say about draws of that program can be believed: some were measured, and
/// none was cut. The models learn what a cut draw took when its last piece is over, and the next
/// one comes before that.
pub fn is_short_program(program: Variant) -> bool {
    let book = book();
    book.measured.contains(&program) && !book.long.contains(&program)
}

/// A draw of that program is cut.
pub fn cut(program: Variant) {
    let mut book = book();
    if book.long.len() >= PROGRAMS_MAX * VARIANTS_MAX {
        book.long.clear();
    }
    book.long.insert(program);
}

/// Whether a draw of that program was measured.
pub fn is_measured(program: Variant) -> bool {
    book().measured.contains(&program)
}

/// A draw of that program was measured.
pub fn measured(program: Variant) {
    let mut book = book();
    if book.measured.len() >= PROGRAMS_MAX * VARIANTS_MAX {
        book.measured.clear();
    }
    book.measured.insert(program);
}

impl Figures {
    /// What a piece with that share will take.
    ///
    /// Few long invocations run all at once on a GPU, so that a part of them takes as long as all. Once a
    /// smaller piece took as long as a larger one, none is believed to be shorter, until several have told
    /// what a piece costs however small it is.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded, not negative")]
    pub fn of_share(&self, share: f64) -> Span {
        let by_share_ns = self.fixed_ns + self.whole_ns * share;
        let unproven = |least: &Smallest| least.as_long && self.pieces < YOUNG && share < least.share;
        let least_ns = self.smallest.filter(unproven).map_or(0.0, |smallest| smallest.ns);
        Span::from_ns(by_share_ns.max(least_ns).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_cpu(share: f64, cost_ns: u64, together: bool) -> Sample {
        Sample { share, cost_ns, together, software: true }
    }

    fn on_gpu(share: f64, cost_ns: u64) -> Sample {
        Sample { share, cost_ns, together: false, software: false }
    }

    #[test]
    fn no_piece_is_believed_to_be_shorter_than_those_that_took_alike() {
        let known = Known::default();
        known.piece(on_gpu(1.0 / 256.0, 600_000_000));
        known.piece(on_gpu(1.0 / 64.0, 50_000_000));
        let smaller = known.figures().of_share(1.0 / 1024.0);
        assert!(smaller < Span::from_ms(4), "a sixteenth may take a sixteenth: {smaller:?}");
        known.piece(on_gpu(1.0 / 1024.0, 50_000_000));
        assert!(known.figures().of_share(1.0 / 4096.0) >= Span::from_ms(50), "it does not");
        let known = Known::default();
        known.piece(on_gpu(1.0 / 256.0, 600_000_000));
        known.piece(on_gpu(1.0 / 64.0, 50_000_000));
        known.piece(on_gpu(1.0 / 1024.0, 3_000_000));
        assert!(known.figures().of_share(1.0 / 2048.0) < Span::from_ms(3), "here it does");
    }

    #[test]
    fn a_larger_piece_that_took_less_corrects_a_smaller_one() {
        let known = Known::default();
        known.piece(on_gpu(1.0 / 256.0, 600_000_000));
        known.piece(on_gpu(1.0 / 64.0, 50_000_000));
        known.piece(on_gpu(1.0 / 1024.0, 50_000_000));
        known.piece(on_gpu(1.0 / 512.0, 800_000));
        let smallest = Smallest { share: 1.0 / 512.0, ns: 800_000.0, as_long: false };
        assert_eq!(known.figures().smallest, Some(smallest), "the others were disturbed");
    }

    #[test]
    fn pieces_tell_what_the_whole_costs() {
        let known = Known::default();
        known.piece(on_cpu(0.01, 50_000_000, false));
        known.piece(on_cpu(0.01, 1_000_000, false));
        assert_eq!(known.figures().whole_ns, 1e8, "the first piece counts for nothing");
        known.piece(on_cpu(0.01, 100_000, false));
        assert_eq!(known.figures().whole_ns, 1e7, "nor does a second one that was disturbed");
        (0..50).for_each(|_| known.piece(on_cpu(0.1, 1_000_000, false)));
        let before = known.figures().whole_ns;
        assert!((before - 1e7).abs() < 1e5, "{before}");
        known.piece(on_cpu(0.1, 100_000_000, false));
        let after = known.figures().whole_ns;
        assert!(after < before * 1.6, "a single piece says little: {after}");
        (0..20).for_each(|_| known.piece(on_cpu(0.1, 10_000_000, false)));
        let long = known.figures();
        assert!((0.9e8..1.1e8).contains(&long.whole_ns), "many say all: {long:?}");
        assert!(long.of_share(0.01) > Span::from_us(900));
    }

    #[test]
    fn what_every_piece_costs_is_told_from_what_the_draw_costs() {
        let known = Known::default();
        for at in 0..40 {
            let share = [0.01, 0.02, 0.005][at % 3];
            known.piece(on_cpu(share, [160_000, 260_000, 110_000][at % 3], false));
        }
        let Figures { whole_ns, fixed_ns, .. } = known.figures();
        assert!((fixed_ns - 60_000.0).abs() < 1_000.0, "{fixed_ns}");
        assert!((whole_ns - 1e7).abs() < 3e5, "{whole_ns}");
    }

    #[test]
    fn groups_correct_what_is_drawn_whole() {
        let known = Known::default();
        known.piece(on_cpu(1.0, 1000, false));
        known.group(500, false);
        assert_eq!(known.figures().whole_ns, 950.0);
        known.group(10_000, false);
        assert_eq!(known.figures().whole_ns, 950.0, "something else in the group may be to blame");
        known.group(10_000, true);
        assert_eq!(known.figures().whole_ns, 10_000.0);
    }

    #[test]
    fn numbers_make_variants_until_they_only_count() {
        let program = ProgramId(0xABCD);
        let first = variant(program, 1);
        assert_ne!(first, variant(program, 2));
        assert_eq!(first, variant(program, 1));
        measured(first);
        assert!(is_measured(first) && !is_measured(variant(program, 2)));
        assert!(is_short_program(first));
        cut(first);
        assert!(!is_short_program(first), "models may not know yet");
        let counted: BTreeSet<Variant> = (100..200).map(|number| variant(program, number)).collect();
        assert!(counted.len() <= VARIANTS_MAX, "{counted:?}");
    }

    #[test]
    fn pieces_that_end_together_are_not_free() {
        let known = Known::default();
        (0..50).for_each(|_| known.piece(on_cpu(0.01, 1_000_000, false)));
        let before = known.figures().whole_ns;
        known.piece(on_cpu(0.01, 5_000_000, false));
        (0..4).for_each(|_| known.piece(on_cpu(0.01, 0, true)));
        assert!(known.figures().whole_ns >= before, "{:?}", known.figures());
    }

    #[test]
    fn what_is_assumed_holds_until_something_was_measured() {
        let known = Known::default();
        known.assume(Span::from_ms(3));
        assert_eq!(known.figures().of_share(0.5), Span::from_us(1_500));
        known.piece(Sample { share: 0.5, cost_ns: 100_000, together: false, software: false });
        assert!((known.figures().whole_ns - 200_000.0).abs() < 1.0, "{:?}", known.figures());
        known.assume(Span::from_ms(3));
        assert!(known.figures().whole_ns < 300_000.0, "it is known");
    }

    #[test]
    fn a_wait_ends_when_the_piece_is_there() {
        let known = Arc::new(Known::default());
        let other = known.clone();
        let thread = std::thread::Builder::new().spawn(move || other.piece(on_cpu(0.5, 10, false))).unwrap();
        assert_eq!(known.wait(1).pieces, 1);
        thread.join().unwrap();
    }
}
