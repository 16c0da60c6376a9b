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
    figures: Mutex<Figures>,
    news: Condvar,
}

/// The figures of a draw.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Figures {
    /// What all of it takes, at the pace of its pieces so far.
    pub whole_ns: f64,
    /// Pieces that were measured.
    pub pieces: u32,
}

impl Known {
    /// The figures so far.
    pub fn figures(&self) -> Figures {
        *self.lock()
    }

    /// A piece with that share of the draw took so long.
    ///
    /// The first one is left out of account: drivers finish their compilation with it. Figures rise
    /// quickly, since a piece that is too long delays others, and fall slowly once there are some.
    pub fn piece(&self, share: f64, cost_ns: u64) {
        let mut figures = self.lock();
        let whole_ns = cost_ns as f64 / share.max(SHARE_MIN);
        figures.whole_ns = match figures.pieces {
            0 | 1 => whole_ns,
            pieces => {
                let quickly = whole_ns > figures.whole_ns || pieces < YOUNG;
                figures.whole_ns + if quickly { RISE } else { FALL } * (whole_ns - figures.whole_ns)
            }
        };
        figures.pieces = figures.pieces.saturating_add(1);
        self.news.notify_all();
    }

    /// A piece was drawn that nobody measured.
    pub fn unmeasured(&self) {
        self.lock().pieces += 1;
        self.news.notify_all();
    }

    /// A group that contained all of the draw, and other things, took so long.
    pub fn group(&self, cost_ns: u64, alone: bool) {
        let mut figures = self.lock();
        let cost_ns = cost_ns as f64;
        if alone && cost_ns > figures.whole_ns {
            figures.whole_ns = cost_ns;
        } else if alone || cost_ns < figures.whole_ns {
            figures.whole_ns += FALL * (cost_ns - figures.whole_ns);
        }
    }

    /// Waits until that many pieces were measured; not for long.
    pub fn wait(&self, pieces: u32) -> Figures {
        let figures = self.lock();
        let waited = self.news.wait_timeout_while(figures, PATIENCE, |figures| figures.pieces < pieces);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How far figures follow a piece that took longer, or less long, than they said.
const RISE: f64 = 0.5;
const FALL: f64 = 0.1;

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
}

static BOOK: Mutex<Book> =
    Mutex::new(Book { draws: BTreeMap::new(), programs: BTreeMap::new(), measured: BTreeSet::new() });

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
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded, not negative")]
    pub fn of_share(&self, share: f64) -> Span {
        Span::from_ns((self.whole_ns * share).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_tell_what_the_whole_costs() {
        let known = Known::default();
        known.piece(0.01, 50_000_000);
        known.piece(0.01, 1_000_000);
        assert_eq!(known.figures().whole_ns, 1e8, "the first piece counts for nothing");
        known.piece(0.1, 20_000_000);
        assert_eq!(known.figures().whole_ns, 1.5e8, "up quickly");
        known.piece(0.1, 5_000_000);
        assert_eq!(known.figures().whole_ns, 1e8, "nothing is certain yet");
        (0..YOUNG).for_each(|_| known.piece(0.1, 10_000_000));
        known.piece(0.1, 5_000_000);
        assert_eq!(known.figures().whole_ns, 0.95e8, "down slowly");
        assert_eq!(known.figures().of_share(0.01), Span::from_us(950));
    }

    #[test]
    fn groups_correct_what_is_drawn_whole() {
        let known = Known::default();
        known.piece(1.0, 1000);
        known.group(500, false);
        assert_eq!(known.figures().whole_ns, 950.0);
        known.group(10_000, false);
        assert_eq!(known.figures().whole_ns, 950.0, "whatever else was in the group may be to blame");
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
        let counted: BTreeSet<Variant> = (100..200).map(|number| variant(program, number)).collect();
        assert!(counted.len() <= VARIANTS_MAX, "{counted:?}");
    }

    #[test]
    fn a_wait_ends_when_the_piece_is_there() {
        let known = Arc::new(Known::default());
        let other = known.clone();
        let thread = std::thread::Builder::new().spawn(move || other.piece(0.5, 10)).unwrap();
        assert_eq!(known.wait(1).pieces, 1);
        thread.join().unwrap();
    }
}
