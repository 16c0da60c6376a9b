//! Draws on their way to the driver: whole, or in pieces.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, PoisonError};

use takt_client::Stream;
use takt_core::Span;
use takt_predict::exactness::States;

use super::context::State;
use super::group::{Builder, End};
use super::trials::Approach;
use crate::measure;
use crate::session::session;
use crate::shadow::Shadow;
use crate::shadow::drawing::{Drawing, VertexSource};
use crate::shadow::program::Linked;
use crate::slice::{
    self, Area, Circumstances, Cut, CutPlan, CutTrial, Cuttable, Groups, Known, Piece, Reason, Scissor,
    Signature, Slicer, Tiles, Variant,
};

impl State {
    /// A draw is about to be made: hands over what is too much already, notes the draw, and asks for a
    /// grant or says how to cut it.
    pub fn about_to_draw(&mut self, drawing: &Drawing) -> Option<Box<(Slicer<Cut>, Scissor)>> {
        self.make_room();
        if self.stream.gathering.coasts() {
            if self.draw_unseen(drawing) {
                self.ask();
                self.begins();
                return None;
            }
            self.make_way();
        }
        let slice = self.stream.slice(session());
        let cuts = slice < Span::FOREVER;
        let before = (cuts && !self.builder.is_empty()).then(|| self.pending());
        let program = self.draw(drawing).filter(|_| cuts);
        let slicer = program.and_then(|program| self.slicer(drawing, program, slice, before));
        if slicer.is_none() {
            self.ask();
            self.begins();
        }
        slicer.map(Box::new)
    }

    fn slicer(
        &mut self,
        drawing: &Drawing,
        program: Variant,
        slice: Span,
        before: Option<Span>,
    ) -> Option<(Slicer<Cut>, Scissor)> {
        let predicted = self.pending().saturating_sub(before.unwrap_or(Span::ZERO));
        if !self.was_measured(program) && !self.follow.programs.contains(&program) {
            self.follow.programs.push(program);
            self.trust.begin();
        }
        // The only client need not try a draw out piece by piece: no other waits for it.
        let tried = self.stream.gathering.is_alone() || slice::is_short_program(program);
        let believed = tried && predicted.as_ns() < slice.as_ns() / 2;
        if believed || !measure::is_possible(self.id.display) {
            return None;
        }
        let refused = |reason: Reason| {
            if predicted > slice {
                slice::refused(reason);
            }
        };
        let ways = match slice::decide(&circumstances(&self.shadow, drawing), &self.forecast.exactness) {
            Ok(ways) => ways,
            Err(reason) => {
                refused(reason);
                self.meets(program);
                return None;
            }
        };
        let scissor = Scissor::current();
        let known = slice::draw(signature(&self.shadow, drawing, program, &scissor));
        if slice::is_short(&known.figures(), slice) {
            self.follow.whole.push(known);
            return None;
        }
        let tiles = if ways.tiles { Tiles::new(scissor.clip(), busy(&self.shadow)) } else { None };
        let whole = Cut::new(*drawing, false, None);
        let cut = Cut::choose(*drawing, ways.ranges, tiles, slice::pieces(&known.figures(), slice));
        let Some(cut) = cut else {
            refused(Reason::Small);
            return None;
        };
        let trial = self.trial(&known, predicted, slice)?;
        let cut = if trial.once { whole } else { cut };
        slice::cut(program);
        let (least, software) = (Span::ZERO, self.shadow.software());
        Some((Slicer::new(cut, known, CutPlan { slice, predicted, least, software, before, trial }), scissor))
    }

    /// How a draw or dispatch is approached that may be cut; none if it is handed over whole with what goes
    /// with it.
    pub(super) fn trial(&mut self, known: &Arc<Known>, predicted: Span, slice: Span) -> Option<CutTrial> {
        if known.figures().pieces > 0 {
            return Some(CutTrial::default());
        }
        match self.trials.approach(self.builder.frame(), predicted, slice) {
            Approach::Tried => Some(CutTrial { tried: true, once: false }),
            Approach::Whole => {
                self.follow.whole.push(known.clone());
                None
            }
            Approach::Believed(span) => {
                known.assume(span);
                Some(CutTrial { tried: false, once: span <= slice })
            }
        }
    }

    /// A piece is to follow: asks for a grant for it, if its size follows from that.
    pub fn ask_for_piece<C: Cuttable>(&mut self, slicer: &mut Slicer<C>) {
        if let Some(estimate) = slicer.ask_first()
            && !self.stream.has_grant()
        {
            self.ask_for_span(slicer, estimate);
        }
    }

    fn ask_for_span<C: Cuttable>(&mut self, slicer: &mut Slicer<C>, estimate: Span) {
        self.stream.command = self.builder.current_call();
        let asked = |stream: &mut Stream| stream.ask_exactly(measure::watched(), estimate);
        match (!measure::is_early()).then(|| asked(&mut self.stream)).flatten() {
            Some(credit) => slicer.granted(credit),
            None => slicer.unscheduled(),
        }
    }

    /// A piece is about to be drawn: asks for a grant for it, unless there is one.
    pub fn begin_piece<C>(&mut self, slicer: &mut Slicer<C>, piece: &C::Piece)
    where
        C: Cuttable<Piece: Noted>,
    {
        let mut estimate = slicer.estimate(piece);
        if slicer.is_first() {
            estimate += slicer.before();
        } else {
            piece.note(&mut self.builder);
        }
        if slicer.is_scheduled() && !self.stream.has_grant() {
            self.ask_for_span(slicer, estimate);
        }
        self.stream.contains(estimate);
        self.begins();
    }

    /// Another piece of the same group is about to be drawn.
    pub fn more_of_piece<C>(&mut self, slicer: &Slicer<C>, piece: &C::Piece)
    where
        C: Cuttable<Piece: Noted>,
    {
        piece.note(&mut self.builder);
        self.stream.contains(slicer.estimate(piece));
    }

    /// All pieces of a group were drawn.
    pub fn end_piece<C: Cuttable>(&mut self, slicer: &mut Slicer<C>) {
        let mut follow = std::mem::take(&mut self.follow);
        follow.part = Some(slicer.part());
        if slicer.ticket.is_none() {
            slicer.ticket = self.predict_group(End::Piece);
        }
        self.hand_over(End::Piece, crate::clock::now_ns(), slicer.ticket.clone(), follow);
        if let Some((predicted, ns)) = slicer.tried_out() {
            self.trials.took(predicted, ns);
        }
    }

    /// Whether a program was measured.
    pub(super) fn was_measured(&mut self, program: Variant) -> bool {
        let measured = self.measured == Some(program) || slice::is_measured(program);
        self.measured = Some(program).filter(|_| measured);
        measured
    }
}

/// A piece, as a command of its group.
pub trait Noted {
    /// Adds it to the group.
    fn note(&self, builder: &mut Builder);
}

impl Noted for Piece {
    fn note(&self, builder: &mut Builder) {
        builder.draw(None, u64::try_from(self.drawing.count).unwrap_or(0));
    }
}

impl Noted for Groups {
    fn note(&self, builder: &mut Builder) {
        builder.dispatch();
    }
}

/// Where fragments can be expected.
fn busy(shadow: &Shadow) -> Area {
    let [width, height] = shadow.target().size;
    let target = Area::new(0, 0, width, height);
    let viewport = shadow.raster.viewport_rect();
    viewport.map_or(target, |rect| target.and(&Area::new(rect.x, rect.y, rect.width, rect.height)))
}

fn circumstances(shadow: &Shadow, drawing: &Drawing) -> Circumstances {
    let program = shadow.program.as_ref();
    let mut program = program.map(|(_, program)| program.lock().unwrap_or_else(PoisonError::into_inner));
    let linked = program.as_mut().and_then(|program| program.known());
    let (indices, first) = match drawing.source {
        VertexSource::Arrays { first } => (None, first),
        VertexSource::Elements { kind, .. } => (Some(kind), 0),
        VertexSource::Unknown { .. } | VertexSource::Several { .. } => (None, drawing.first()),
    };
    let (observers, target) = (&shadow.observers, shadow.target());
    Circumstances {
        mode: drawing.mode,
        indices,
        count: drawing.count,
        instances: drawing.instances,
        first,
        program: linked.as_ref().map(|linked| linked.habits),
        counted: observers.counted(),
        feedback: observers.feedback.then(|| shadow.records_what_fits()),
        loops: linked.is_some_and(|linked| reads_its_target(shadow, linked)),
        resolves: observers.resolves,
        viewports: observers.viewports,
        restart: shadow.raster.restarts(),
        discard: shadow.raster.discards(),
        debugged: observers.debugged,
        samples: target.samples,
        states: if shadow.raster.discards() {
            States::NONE
        } else {
            shadow.raster.states(drawing.mode).and(target.states)
        },
    }
}

/// Whether a texture that the program looks up is drawn to. Where shaders could not be read,
/// any texture that is bound may be looked up; an unknown target may be any of them.
fn reads_its_target(shadow: &Shadow, linked: &Linked) -> bool {
    if shadow.framebuffers.draws_to_surface() {
        return false;
    }
    if shadow.target().size == [0, 0] {
        return true;
    }
    match linked.program.problem() {
        Some(_) => shadow.bound_textures().any(|image| shadow.framebuffers.draws_to(image)),
        None => linked.samplers.iter().any(|sampler| {
            let image = shadow.texture_at(sampler.unit, sampler.target);
            image.is_some_and(|image| shadow.framebuffers.draws_to(&image))
        }),
    }
}

/// Tells the draw from others. Addresses in client memory say nothing.
fn signature(shadow: &Shadow, drawing: &Drawing, program: Variant, scissor: &Scissor) -> Signature {
    let (start, base) = match drawing.source {
        VertexSource::Arrays { first } => (u64::from(first.unsigned_abs()), 0),
        VertexSource::Elements { pointer, base, .. } if shadow.vertices.bound().elements.is_some() => {
            (pointer as u64, base)
        }
        VertexSource::Elements { base, .. } => (0, base),
        VertexSource::Unknown { at } => (at as u64, 0),
        VertexSource::Several { vertices, .. } => (0, vertices.unwrap_or(0)),
    };
    let target = shadow.target();
    let viewport = shadow.raster.viewport_rect().map(|rect| (rect.x, rect.y, rect.width, rect.height));
    let clip = scissor.clip();
    let mut hash = DefaultHasher::new();
    (program.0, drawing.mode, drawing.count, drawing.instances, start, base).hash(&mut hash);
    (target.id, target.size, viewport, clip.left, clip.low, clip.right, clip.high).hash(&mut hash);
    Signature(hash.finish())
}
