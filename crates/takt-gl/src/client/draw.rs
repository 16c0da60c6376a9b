//! A draw, with everything that it depends on.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::PoisonError;

use takt_predict::cost::{SceneKey, TextureSize};
use takt_predict::fragments::{Elements, Mode};
use takt_predict::predictor::{DrawCall, DrawState};

use super::context::State;
use crate::predict::Models;
use crate::session::session;
use crate::shadow::drawing::{Drawing, VertexSource, mode};
use crate::shadow::inputs::{self, Held};
use crate::shadow::program::{Linked, SamplerUnit};
use crate::slice::Variant;

impl State {
    /// A draw of a frame that is like the one before. False if it is not, because its program was
    /// never measured.
    pub(super) fn draw_unseen(&mut self, drawing: &Drawing) -> bool {
        let variant = self.shadow.program.as_ref().and_then(|(_, program)| {
            let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
            program.known().map(Linked::variant)
        });
        if variant.is_some_and(|variant| !self.was_measured(variant)) {
            return false;
        }
        self.builder.draw(None, drawing.vertices());
        true
    }

    /// A draw is about to be made; the models get it with everything it depends on. Its program, if that
    /// is known.
    pub fn draw(&mut self, drawing: &Drawing) -> Option<Variant> {
        let desktop = self.shadow.is_desktop();
        let Some((name, program)) = self.shadow.program.clone().filter(|_| !desktop) else {
            // GL ES draws nothing without a program, or a pipeline of programs does; desktop GL has functions of
            // its own for that, and programs in a language that is not read.
            self.builder.draw(None, drawing.vertices());
            self.estimate_unread(drawing);
            return None;
        };
        let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
        let known = program.read(name, self.shadow.extensions()).zip(mode(drawing.mode));
        let Some((linked, mode)) = known.filter(|_| drawing.vertices() > 0 || !drawing.is_counted()) else {
            self.builder.draw(None, drawing.vertices());
            self.estimate_unread(drawing);
            return None;
        };
        // Where only the GPU knows how many vertices there are, measured times say what they take.
        let count = match drawing.source {
            VertexSource::Several { vertices, .. } => vertices.unwrap_or(VERTICES_ASSUMED),
            VertexSource::Unknown { .. } => VERTICES_ASSUMED,
            _ => drawing.count,
        };
        self.draw_known(&Drawing { count, ..*drawing }, mode, linked);
        session().is_wanted().then(|| linked.variant())
    }

    /// A draw whose program could not be read: only measured times of its like say what it takes.
    fn estimate_unread(&mut self, drawing: &Drawing) {
        let mut hash = DefaultHasher::new();
        let program = self.shadow.program.as_ref().map(|(name, _)| *name);
        (drawing.mode, drawing.instances, self.shadow.target().size, program).hash(&mut hash);
        // Draws of slightly different length are of one kind.
        coarse(drawing.count).hash(&mut hash);
        self.estimate(hash.finish());
    }

    fn draw_known(&mut self, drawing: &Drawing, mode: Mode, linked: &mut Linked) {
        linked.blocks.update(&mut linked.program, &self.shadow.bound.uniform_buffers);
        let target = self.shadow.target();
        let scene = SceneKey {
            program: linked.program.id(),
            position_uniforms: linked.program.position_hash(),
            target: target.id,
            raster: self.shadow.raster.state(target.size),
            mode,
            capabilities: self.shadow.raster.capabilities(target.samples),
        };
        self.builder.draw(Some(scene), drawing.vertices());
        if let Some(models) = self.forecast.shared() {
            let mut models = models.lock().unwrap_or_else(PoisonError::into_inner);
            if !self.forecast.seen.contains(&scene.program) {
                let sources = linked.sources.take();
                models.link(&linked.program, sources.as_ref(), self.shadow.software());
                self.forecast.seen.push(scene.program);
            }
            self.predict(drawing, &scene, linked, &mut models);
        }
    }

    fn predict(&mut self, drawing: &Drawing, scene: &SceneKey, linked: &Linked, models: &mut Models) {
        let size = |sampler: &SamplerUnit| {
            let size = self.shadow.texture_size_at(sampler.unit, sampler.target);
            TextureSize { width: size.width.max(1), height: size.height.max(1) }
        };
        let textures: Vec<TextureSize> = linked.samplers.iter().map(size).collect();
        let SceneKey { raster, target, capabilities, mode, .. } = *scene;
        let state = DrawState { raster, target, capabilities, textures: &textures };
        let (vertices, copies, locations) =
            (&self.shadow.vertices, &mut self.forecast.copies, &linked.attributes);
        let held = Held::new(vertices.bound(), locations);
        let there = inputs::copy(drawing, vertices.bound(), locations, &held, copies);
        let elements = inputs::elements(drawing, vertices.bound(), &held, copies).filter(|_| there);
        let inputs =
            inputs::inputs(drawing, vertices, locations, &held, copies).filter(|_| elements.is_some());
        // Without its vertices a draw can still fill what is visible.
        let (elements, index_buffer) = elements.unwrap_or((Elements::Arrays { first: 0 }, None));
        models.draw(&DrawCall {
            program: &linked.program,
            mode,
            elements,
            index_buffer,
            count: u32::try_from(drawing.count).unwrap_or(0),
            instances: u32::try_from(drawing.instances).unwrap_or(0),
            inputs: inputs.as_deref().unwrap_or(&[]),
            state: &state,
            fragments: None,
        });
    }
}

/// A number without all but its first two digits of base two.
fn coarse(count: i32) -> u32 {
    let count = count.unsigned_abs();
    let below = count.checked_ilog2().unwrap_or(0).saturating_sub(1);
    count >> below << below
}

/// Vertices of a draw of which only the GPU knows how many it has.
const VERTICES_ASSUMED: i32 = 1024;
