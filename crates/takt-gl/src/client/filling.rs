//! Clears and blits on their way to the driver: whole, or in bands.
//!
//! They go at the speed of memory, so most are short on most GPUs. One that was measured to be longer than a group may
//! be, or that models believe to be, is cut by the scissor, where the driver's self-test found that exact.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use takt_core::Span;
use takt_predict::exactness::{State as Exact, Way};

use super::context::State;
use super::copying::TELLING_BYTES;
use super::group::Builder;
use super::pieces::Noted;
use crate::measure;
use crate::session::session;
use crate::shadow::Counted;
use crate::slice::{self, Area, Band, Bands, CutPlan, Fill, Reason, Scissor, Signature, Slicer};

/// A clear or blit that is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct Filling<K> {
    /// What it is.
    pub fill: Fill,
    /// Bytes that it moves, roughly.
    pub bytes: u64,
    /// What tells it from others of the same call.
    pub kind: K,
    /// The pixels that it sets.
    pub area: Area,
}

/// It is handed over in pieces, within that scissor of the program's.
pub type CutFilling = (Slicer<Bands>, Scissor);

impl State {
    /// A clear or blit is about to be made, which `note` adds to the group: asks for a grant or says how to cut it.
    pub fn about_to_fill<K: Hash + Copy>(
        &mut self,
        filling: Filling<K>,
        note: impl FnOnce(&mut Self),
    ) -> Option<Box<CutFilling>> {
        let apart = self.begins_apart(filling.bytes, filling.kind);
        if !apart {
            self.make_room();
        }
        let slice = self.stream.slice(session());
        let before = (!self.builder.is_empty()).then(|| self.pending());
        note(self);
        let cut = (slice < Span::FOREVER && !self.stream.gathering.coasts())
            .then(|| self.cut_filling(filling, slice, before))
            .flatten();
        if cut.is_none() {
            self.measure_apart |= apart;
            self.ask();
            self.begins();
        }
        cut.map(Box::new)
    }

    fn cut_filling<K: Hash>(
        &mut self,
        filling: Filling<K>,
        slice: Span,
        before: Option<Span>,
    ) -> Option<CutFilling> {
        let long = filling.bytes >= 2 * TELLING_BYTES && !self.builder.is_empty();
        if !session().is_wanted() || !long || !measure::is_possible(self.id.display) {
            return None;
        }
        let predicted = self.pending().saturating_sub(before.unwrap_or(Span::ZERO));
        let Filling { fill, bytes, kind, area } = filling;
        let mut hash = DefaultHasher::new();
        (self.builder.current_call(), bytes, kind, self.shadow.target().id, area.low, area.left)
            .hash(&mut hash);
        let known = slice::draw(Signature(hash.finish()));
        // What it took when it was whole says more than models do.
        let figures = known.figures();
        let measured = Span::from_ns(nanoseconds(figures.whole_ns));
        let believed = if figures.whole_ns > 0.0 { measured } else { predicted };
        if believed <= slice {
            self.follow.whole.push(known);
            return None;
        }
        if let Err(reason) = self.may_be_filled_in_bands(fill) {
            slice::refused(reason);
            self.follow.whole.push(known);
            return None;
        }
        let scissor = Scissor::current();
        let bands = Bands::new(fill, scissor.clip(), area, TELLING_BYTES / FILLED_PIXEL_BYTES);
        if figures.whole_ns > 0.0 {
            known.assume(measured);
        }
        let trial = self.trial(&known, predicted, slice)?;
        let (bands, software) = (bands.filter(|_| !trial.once)?, self.shadow.software());
        let plan = CutPlan { slice, predicted, least: Span::ZERO, software, before, trial };
        Some((Slicer::new(bands, known, plan), scissor))
    }

    /// Whether nothing but time tells bands from the whole.
    fn may_be_filled_in_bands(&self, fill: Fill) -> Result<(), Reason> {
        let (observers, target) = (&self.shadow.observers, self.shadow.target());
        let state = match fill {
            Fill::Clear => Exact::Clear,
            Fill::Blit => Exact::Blit,
        };
        let exact = self.forecast.exactness.is_exact(Way::Boxes, target.samples, target.states.with(state));
        let forbidden = [
            (observers.counted() == Counted::Everything, Reason::Query),
            (observers.resolves, Reason::Resolve),
            (observers.viewports, Reason::Viewports),
            (observers.debugged, Reason::Debugged),
            (fill == Fill::Blit && self.shadow.framebuffers.reads_what_it_draws_to(), Reason::Loop),
            (!exact, Reason::Inexact),
        ];
        forbidden.iter().find(|(holds, _)| *holds).map_or(Ok(()), |(_, reason)| Err(*reason))
    }
}

/// Bytes of a pixel that is cleared or copied, roughly.
pub(super) const FILLED_PIXEL_BYTES: u64 = 4;

impl Noted for Band {
    fn note(&self, builder: &mut Builder) {
        match self.fill {
            Fill::Clear => builder.clear(self.pixels),
            Fill::Blit => builder.copy(self.pixels.saturating_mul(FILLED_PIXEL_BYTES)),
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn nanoseconds(ns: f64) -> u64 {
    ns as u64
}
