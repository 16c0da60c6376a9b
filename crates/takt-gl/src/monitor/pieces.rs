//! Draws on their way to the driver: whole, or in pieces.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::PoisonError;

use takt_core::Span;

use super::context::State;
use super::current::flush;
use super::draw::{Drawing, Source};
use super::program::Linked;
use crate::gate;
use crate::group::End;
use crate::measure;
use crate::slice::{
    self, Area, Circumstances, Order, Piece, Reason, Scissor, Signature, Slicer, Tiles, Variant,
};

/// What other calls say about the fate of draws.
#[derive(Default, Debug)]
pub struct Observers {
    /// Queries in flight, by target.
    queries: Vec<u32>,
    feedback: bool,
    viewports: bool,
    resolves: bool,
    debugged: bool,
    /// The program of the last draw, if it was measured once: most draws have the same.
    measured: Option<Variant>,
}

impl Observers {
    /// `glBeginQuery` and the like.
    pub fn begin_query(&mut self, target: u32) {
        if !self.queries.contains(&target) {
            self.queries.push(target);
        }
    }

    /// `glEndQuery` and the like.
    pub fn end_query(&mut self, target: u32) {
        self.queries.retain(|active| *active != target);
    }

    /// Transform feedback begins or goes on, ends or pauses. It cannot change hands without a pause.
    pub fn feedback(&mut self, on: bool) {
        self.feedback = on;
    }

    /// The program knows of several viewports.
    pub fn several_viewports(&mut self) {
        self.viewports = true;
    }

    /// The program draws to targets that give up their samples.
    pub fn implicit_resolve(&mut self) {
        self.resolves = true;
    }

    /// Whether a program was measured.
    pub(super) fn was_measured(&mut self, program: Variant) -> bool {
        let measured = self.measured == Some(program) || slice::is_measured(program);
        self.measured = Some(program).filter(|_| measured);
        measured
    }

    /// The program listens to the driver's messages.
    pub fn debugged(&mut self, on: bool) {
        self.debugged = on;
    }
}

impl State {
    /// A draw is about to be made: notes it, and asks for leave or says how to cut it.
    pub fn about_to_draw(&mut self, drawing: &Drawing) -> Option<Box<Slicer>> {
        if self.leave.gathering.coasts() {
            if self.draw_unseen(drawing) {
                self.ask();
                self.begins();
                return None;
            }
            if self.make_way() {
                flush();
            }
        }
        let slice = if gate::is_wanted() { gate::slice() } else { Span::FOREVER };
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
    ) -> Option<Slicer> {
        let predicted = self.pending().saturating_sub(before.unwrap_or(Span::ZERO));
        if !self.observers.was_measured(program) && !self.follow.programs.contains(&program) {
            self.follow.programs.push(program);
        }
        // Where nobody waits for a draw, it need not be tried out piece by piece.
        let tried = self.leave.gathering.is_alone() || slice::is_short_program(program);
        let believed = tried && predicted.as_ns() < slice.as_ns() / 2;
        if believed || !measure::is_possible(self.display()) {
            return None;
        }
        let refused = |reason: Reason| {
            if predicted > slice {
                slice::refused(reason);
            }
        };
        let ways = slice::decide(&self.circumstances(drawing)).inspect_err(|reason| refused(*reason)).ok()?;
        let scissor = Scissor::current();
        let known = slice::draw(self.signature(drawing, program, &scissor));
        if slice::is_short(&known.figures(), slice) {
            self.follow.whole.push(known);
            return None;
        }
        let tiles = if ways.tiles { Tiles::new(scissor.clip(), self.busy()) } else { None };
        let order = Order { ways, tiles, slice, predicted, before, scissor };
        let slicer = Slicer::new(*drawing, known, order);
        match slicer {
            Some(_) => slice::cut(program),
            None => refused(Reason::Small),
        }
        slicer
    }

    /// Where fragments can be expected.
    fn busy(&self) -> Area {
        let [width, height] = self.target().size;
        let target = Area::new(0, 0, width, height);
        let viewport = self.raster.viewport_rect();
        viewport.map_or(target, |rect| target.and(&Area::new(rect.x, rect.y, rect.width, rect.height)))
    }

    fn circumstances(&self, drawing: &Drawing) -> Circumstances {
        let program = self.program.as_ref();
        let mut program = program.map(|(_, program)| program.lock().unwrap_or_else(PoisonError::into_inner));
        let linked = program.as_mut().and_then(|program| program.known());
        let (indices, first) = match drawing.source {
            Source::Arrays { first } => (None, first),
            Source::Elements { kind, .. } => (Some(kind), 0),
            Source::Indirect => (None, 0),
        };
        let observers = &self.observers;
        Circumstances {
            mode: drawing.mode,
            placed: drawing.source != Source::Indirect,
            indices,
            count: drawing.count,
            instances: drawing.instances,
            first,
            program: linked.as_ref().map(|linked| linked.habits),
            query: !observers.queries.is_empty(),
            feedback: observers.feedback,
            loops: linked.is_some_and(|linked| self.reads_its_target(linked)),
            resolves: observers.resolves,
            viewports: observers.viewports,
            restart: self.raster.restarts(),
            discard: self.raster.discards(),
            debugged: observers.debugged,
        }
    }

    /// Whether a texture that the program looks up is drawn to. Where shaders could not be read,
    /// any texture that is bound may be looked up; where nothing is known of the target, it may be
    /// any of them.
    fn reads_its_target(&self, linked: &Linked) -> bool {
        if self.framebuffers.draws_to_surface() {
            return false;
        }
        if self.target().size == [0, 0] {
            return true;
        }
        match linked.program.problem() {
            Some(_) => self.bound_textures().any(|image| self.framebuffers.draws_to(image)),
            None => linked.samplers.iter().any(|sampler| {
                let image = self.texture_at(sampler.unit, sampler.target);
                image.is_some_and(|image| self.framebuffers.draws_to(&image))
            }),
        }
    }

    /// Tells the draw from others. Addresses in client memory say nothing.
    fn signature(&self, drawing: &Drawing, program: Variant, scissor: &Scissor) -> Signature {
        let place = match drawing.source {
            Source::Arrays { first } => u64::from(first.unsigned_abs()),
            Source::Elements { pointer, .. } if self.vertices.bound().elements.is_some() => pointer as u64,
            _ => 0,
        };
        let target = self.target();
        let viewport = self.raster.viewport_rect().map(|rect| (rect.x, rect.y, rect.width, rect.height));
        let clip = scissor.clip();
        let mut hash = DefaultHasher::new();
        (program.0, drawing.mode, drawing.count, drawing.instances, place).hash(&mut hash);
        (target.id, target.size, viewport, clip.left, clip.low, clip.right, clip.high).hash(&mut hash);
        Signature(hash.finish())
    }

    /// A piece is about to be drawn: asks for leave for it.
    pub fn begin_piece(&mut self, slicer: &mut Slicer, piece: &Piece) {
        let mut estimate = slicer.estimate(piece);
        if slicer.is_first() {
            estimate += slicer.before();
        } else {
            self.builder.draw(None, u64::try_from(piece.drawing.count).unwrap_or(0));
        }
        if slicer.is_scheduled() && !self.leave.has_pass() {
            let pass = gate::ask(estimate, estimate);
            match &pass {
                Some(pass) => slicer.granted(pass.credit),
                None => slicer.unscheduled(),
            }
            self.leave.granted(pass);
        }
        self.leave.contains(estimate);
        self.begins();
    }

    /// Another piece of the same group is about to be drawn.
    pub fn more_of_piece(&mut self, slicer: &Slicer, piece: &Piece) {
        self.builder.draw(None, u64::try_from(piece.drawing.count).unwrap_or(0));
        self.leave.contains(slicer.estimate(piece));
    }

    /// All pieces of a group were drawn.
    pub fn end_piece(&mut self, slicer: &mut Slicer, spent_ns: u64) {
        self.builder.spent(spent_ns);
        let mut follow = std::mem::take(&mut self.follow);
        follow.part = Some(slicer.part());
        if slicer.ticket.is_none() {
            slicer.ticket = self.predict_group(End::Piece);
        }
        self.hand_over(End::Piece, crate::clock::now_ns(), slicer.ticket.clone(), follow);
    }
}
