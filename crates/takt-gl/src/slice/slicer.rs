//! A draw or dispatch on its way, piece by piece.

use std::sync::{Arc, Mutex, Weak};

use takt_core::Span;

use super::known::Known;
use super::part::{Part, Sum};
use super::sizing::{self, PROBES};
use super::stats;
use crate::predict::{Models, Predicted};

/// What can be handed over piece by piece.
pub trait Cuttable {
    /// A piece of it.
    type Piece;

    /// The next piece, of about that share of the whole; none if all are made.
    fn next(&mut self, share: f64) -> Option<Self::Piece>;

    /// Whether all pieces are made.
    fn is_over(&self) -> bool;

    /// What a piece is of the whole.
    fn share(piece: &Self::Piece) -> f64;
}

/// See the module.
#[derive(Debug)]
pub struct Slicer<C> {
    cut: C,
    known: Arc<Known>,
    /// The longest piece that is wanted.
    slice: Span,
    /// What models say about the draw.
    predicted: Span,
    /// What its smallest part takes, as far as its source shows.
    least: Span,
    /// Whether the renderer works on the CPU.
    software: bool,
    /// What they say about what is already in the group that the first piece belongs to.
    before: Option<Span>,
    trial: CutTrial,
    /// What they said when the first piece was handed over, for when the last one is measured.
    pub ticket: Option<(Weak<Mutex<Models>>, Predicted)>,
    /// Whether a daemon is to be asked.
    scheduled: bool,
    number: u32,
    share: Option<f64>,
    /// What the current group contains of the draw.
    group: f64,
    /// How long that may take by prediction.
    credit: Span,
    sum: Arc<Sum>,
}

/// What pieces are sized by.
#[derive(Debug)]
pub struct CutPlan {
    /// The longest piece that is wanted.
    pub slice: Span,
    /// What models say about it.
    pub predicted: Span,
    /// What its smallest part takes at least; zero if nothing shows that.
    pub least: Span,
    /// Whether the renderer works on the CPU.
    pub software: bool,
    /// What they say about what is already in its group; none if that is empty.
    pub before: Option<Span>,
    /// Whether it is tried out.
    pub trial: CutTrial,
}

/// How a draw is approached.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CutTrial {
    /// Nothing was known of it: its pieces tell.
    pub tried: bool,
    /// It is believed to fit into one piece.
    pub once: bool,
}

impl<C: Cuttable> Slicer<C> {
    /// Begins.
    pub fn new(cut: C, known: Arc<Known>, plan: CutPlan) -> Self {
        let CutPlan { slice, predicted, least, software, before, trial } = plan;
        stats::cut();
        Self {
            cut,
            known,
            slice,
            predicted,
            least,
            software,
            before,
            trial,
            ticket: None,
            scheduled: true,
            number: 0,
            share: None,
            group: 0.0,
            credit: Span::ZERO,
            sum: Arc::default(),
        }
    }

    /// What is to be asked for before the next piece is made, whose size follows from what is granted; none if it
    /// is made first.
    pub fn ask_first(&self) -> Option<Span> {
        let apart = self.scheduled && !self.trial.once && !self.cut.is_over() && self.credit == Span::ZERO;
        let alone = self.number > 0 || self.before.is_none();
        (apart && alone && sizing::is_settled(&self.known.figures()))
            .then(|| self.of_share(self.next_share()))
    }

    /// The next piece; none if all are drawn.
    pub fn next_piece(&mut self) -> Option<C::Piece> {
        let granted = sizing::within(&self.known.figures(), self.credit);
        let share = self.next_share().max(granted.unwrap_or(0.0));
        let piece = self.cut.next(if self.scheduled && !self.trial.once { share } else { 1.0 })?;
        self.share = Some(C::share(&piece));
        self.group = C::share(&piece);
        self.number += 1;
        Some(piece)
    }

    /// The share of the next piece, if no more is granted.
    fn next_share(&self) -> f64 {
        // The first piece shares its group with what was there before it.
        let taken = self.before.filter(|_| self.number == 0).unwrap_or(Span::ZERO);
        let budget = self.slice.saturating_sub(taken).max(Span::from_ns(self.slice.as_ns() / 4));
        sizing::share(&self.known.figures(), budget, self.share)
    }

    /// The same where no daemon is asked any more: as much as there is.
    pub fn rest(&mut self) -> Option<C::Piece> {
        self.scheduled = false;
        self.number += 1;
        self.cut.next(1.0)
    }

    /// Pieces are to be that long from now on.
    pub fn limit(&mut self, slice: Span) {
        self.slice = slice;
    }

    /// The current group may take that long.
    pub fn granted(&mut self, credit: Span) {
        self.credit = credit;
    }

    /// Another piece for the current group, if it may take longer than the first one does.
    pub fn more(&mut self) -> Option<C::Piece> {
        let figures = self.known.figures();
        if !self.scheduled || self.is_first() || !sizing::is_settled(&figures) {
            return None;
        }
        let share = sizing::more(&figures, self.group, self.credit, self.slice)?;
        let piece = self.cut.next(share)?;
        self.group += C::share(&piece);
        Some(piece)
    }

    /// What a piece will take, alone. Models that have never seen the draw may be far off, and a
    /// small piece must not wait for as much time as they want.
    pub fn estimate(&self, piece: &C::Piece) -> Span {
        self.of_share(C::share(piece))
    }

    fn of_share(&self, share: f64) -> Span {
        let figures = self.known.figures();
        match !sizing::is_known(&figures) {
            true => scaled(self.predicted, share).min(self.slice).max(self.least),
            false => figures.of_share(share),
        }
    }

    /// Whether this is the first piece.
    pub fn is_first(&self) -> bool {
        self.number == 1
    }

    /// What the first piece's group contains besides it.
    pub fn before(&self) -> Span {
        self.before.unwrap_or(Span::ZERO)
    }

    /// Whether grants are to be asked for.
    pub fn is_scheduled(&self) -> bool {
        self.scheduled
    }

    /// The program is unscheduled now: what is left is drawn at once.
    pub fn unscheduled(&mut self) {
        self.scheduled = false;
    }

    /// All of a group was drawn: what is to be noted with it.
    pub fn part(&mut self) -> Part {
        let part = self.noted();
        self.credit = Span::ZERO;
        part
    }

    fn noted(&self) -> Part {
        let mixed = self.is_first() && self.before.is_some();
        let (before, draw) = (self.before().as_ns() as f64, self.predicted.as_ns().max(1) as f64);
        let own = self.group * draw + if self.is_first() { before } else { 0.0 };
        let slice_ns = self.slice.max(self.credit).as_ns();
        stats::piece(self.of_share(self.group).as_ns());
        Part {
            known: self.known.clone(),
            share: self.group,
            weight: own / (before + draw),
            number: self.number,
            last: self.cut.is_over(),
            mixed,
            software: self.software,
            slice_ns,
            sum: self.sum.clone(),
        }
    }

    /// What models said of a draw that was tried out, and what it takes by its pieces; once all of them are made.
    pub fn tried_out(&self) -> Option<(Span, f64)> {
        let figures = self.known.figures();
        let over = self.trial.tried && self.cut.is_over() && sizing::is_known(&figures);
        over.then_some((self.predicted, figures.whole_ns))
    }

    /// The piece is with the driver: waits for its end where everything depends on it.
    pub fn settle(&self) {
        if self.scheduled && !self.cut.is_over() && self.number <= PROBES {
            let pieces = self.known.figures().pieces;
            if pieces < PROBES {
                self.known.wait(self.number.min(PROBES));
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded, not negative")]
fn scaled(span: Span, share: f64) -> Span {
    Span::from_ns((span.as_ns() as f64 * share).round() as u64)
}
