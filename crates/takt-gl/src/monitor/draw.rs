//! A draw, with everything that it depends on.

use std::sync::PoisonError;

use takt_predict::cost::{SceneKey, TextureSize};
use takt_predict::fragments::{Elements, Mode};
use takt_predict::predictor::{DrawCall, DrawState};

use super::context::State;
use super::inputs::{self, Held};
use super::program::{Linked, SamplerUnit};
use crate::entry::Ptr;
use crate::predict::Models;
use crate::slice::Variant;
use crate::{gate, gl};

/// Where the vertices of a draw come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Consecutive ones.
    Arrays {
        /// The first of them.
        first: i32,
    },
    /// Through indices.
    Elements {
        /// Their type.
        kind: u32,
        /// Address, or offset in the element buffer.
        pointer: usize,
    },
    /// Parameters lie in a buffer of the GPU.
    Indirect,
}

/// A draw call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drawing {
    /// `GL_TRIANGLES` and so on.
    pub mode: u32,
    /// Which vertices.
    pub source: Source,
    /// How many.
    pub count: i32,
    /// How often.
    pub instances: i32,
}

impl Drawing {
    /// The first vertex, where vertices are consecutive.
    pub fn first(&self) -> i32 {
        match self.source {
            Source::Arrays { first } => first,
            _ => 0,
        }
    }

    /// Where its indices are.
    pub fn indices(&self) -> Ptr {
        match self.source {
            Source::Elements { pointer, .. } => pointer as Ptr,
            _ => std::ptr::null_mut(),
        }
    }

    /// Vertices, instances counted; none if GL would refuse.
    fn vertices(&self) -> u64 {
        let number = |value: i32| u64::try_from(value).unwrap_or(0);
        number(self.count) * number(self.instances)
    }
}

impl State {
    /// A draw of a frame that is like the one before. False if it is not, because its program was
    /// never measured.
    pub(super) fn draw_unseen(&mut self, drawing: &Drawing) -> bool {
        if let Some((_, program)) = &self.program {
            let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
            let variant = program.known().map(Linked::variant);
            if variant.is_some_and(|variant| !self.observers.was_measured(variant)) {
                return false;
            }
        }
        self.builder.draw(None, drawing.vertices());
        true
    }

    /// A draw is about to be made; whoever predicts gets it with everything it depends on. Its
    /// program, if that is known.
    pub fn draw(&mut self, drawing: &Drawing) -> Option<Variant> {
        let Some((name, program)) = self.program.clone() else {
            // GL draws nothing without a program, or a pipeline of programs does.
            self.builder.draw(None, drawing.vertices());
            return None;
        };
        let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
        let known = program.read(name, self.extensions()).zip(mode(drawing.mode));
        let Some((linked, mode)) =
            known.filter(|_| drawing.vertices() > 0 && drawing.source != Source::Indirect)
        else {
            self.builder.draw(None, drawing.vertices());
            return None;
        };
        self.draw_known(drawing, mode, linked);
        gate::is_wanted().then(|| linked.variant())
    }

    fn draw_known(&mut self, drawing: &Drawing, mode: Mode, linked: &mut Linked) {
        linked.blocks.update(&mut linked.program, &self.uniform_buffers);
        let target = self.target();
        let scene = SceneKey {
            program: linked.program.id(),
            position_uniforms: linked.program.position_hash(),
            target: target.id,
            raster: self.raster.state(target.size),
            mode,
            capabilities: self.raster.capabilities(target.samples),
        };
        self.builder.draw(Some(scene), drawing.vertices());
        if let Some(models) = self.models.clone() {
            let mut models = models.lock().unwrap_or_else(PoisonError::into_inner);
            if !self.seen.contains(&scene.program) {
                let sources = linked.sources.take();
                models.link(&linked.program, sources.as_ref(), self.software());
                self.seen.push(scene.program);
            }
            self.predict(drawing, &scene, linked, &mut models);
        }
    }

    fn predict(&mut self, drawing: &Drawing, scene: &SceneKey, linked: &Linked, models: &mut Models) {
        let size = |sampler: &SamplerUnit| {
            let size = self.texture_size_at(sampler.unit, sampler.target);
            TextureSize { width: size.width.max(1), height: size.height.max(1) }
        };
        let textures: Vec<TextureSize> = linked.samplers.iter().map(size).collect();
        let SceneKey { raster, target, capabilities, mode, .. } = *scene;
        let state = DrawState { raster, target, capabilities, textures: &textures };
        let (vertices, copies, locations) = (&self.vertices, &mut self.copies, &linked.attributes);
        let held = Held::new(vertices.bound(), locations);
        let there = inputs::copy(drawing, vertices.bound(), locations, &held, copies);
        let elements = inputs::elements(drawing, vertices.bound(), &held, copies).filter(|_| there);
        let inputs = inputs::inputs(vertices, locations, &held, copies).filter(|_| elements.is_some());
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

/// GL's modes; none for those of newer versions.
fn mode(mode: u32) -> Option<Mode> {
    Some(match mode {
        gl::POINTS => Mode::Points,
        gl::LINES => Mode::Lines,
        gl::LINE_STRIP => Mode::LineStrip,
        gl::LINE_LOOP => Mode::LineLoop,
        gl::TRIANGLES => Mode::Triangles,
        gl::TRIANGLE_STRIP => Mode::TriangleStrip,
        gl::TRIANGLE_FAN => Mode::TriangleFan,
        _ => return None,
    })
}
