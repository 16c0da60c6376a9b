//! Which objects a context has bound: buffers, textures, programs.

use std::sync::{Arc, Mutex, PoisonError};

use super::Shadow;
use super::buffer::Buffer;
use super::compute::Compute;
use super::program::{Program, Stages};
use super::texture::{self, Image};
use crate::gl;

impl Shadow {
    /// `glBindBuffer`.
    pub fn bind_buffer(&mut self, target: u32, name: u32) {
        let buffer = self.shared.lock().buffers.bind(name);
        if let (gl::PIXEL_PACK_BUFFER, Some(buffer)) = (target, &buffer) {
            // The GPU writes pixels into it with each read from now on.
            buffer.lock().give_up();
        }
        match (target, buffer) {
            (gl::ELEMENT_ARRAY_BUFFER, buffer) => self.vertices.current().elements = buffer,
            (_, Some(buffer)) => {
                self.bound.buffers.insert(target, buffer);
            }
            (_, None) => {
                self.bound.buffers.remove(&target);
            }
        }
    }

    /// `glBindBufferBase` and `glBindBufferRange`, which bind to the target as well.
    pub fn bind_buffer_part(&mut self, target: u32, index: u32, name: u32, part: Option<(isize, isize)>) {
        if target == gl::UNIFORM_BUFFER {
            let newer = self.newer();
            let buffer = self.shared.lock().buffers.bind(name);
            if !newer || !self.bound.uniform_buffers.bind(index, buffer, part) {
                return;
            }
        }
        self.bind_buffer(target, name);
        if is_written_by_gpu(target) {
            self.buffer(target).iter().for_each(|buffer| buffer.lock().give_up());
        }
    }

    /// `glTexBuffer`: shaders may write to the buffer as an image.
    pub fn use_as_texture(&mut self, name: u32) {
        let buffer = self.shared.lock().buffers.bind(name);
        buffer.iter().for_each(|buffer| buffer.lock().give_up());
    }

    /// The buffer bound to a target.
    pub fn buffer(&mut self, target: u32) -> Option<Arc<Buffer>> {
        match target {
            gl::ELEMENT_ARRAY_BUFFER => self.vertices.current().elements.clone(),
            target => self.bound.buffers.get(&target).cloned(),
        }
    }

    /// `glDeleteBuffers`.
    pub fn delete_buffers(&mut self, names: &[u32]) {
        for name in names {
            let Some(buffer) = self.shared.lock().buffers.delete(*name) else {
                continue;
            };
            self.bound.buffers.retain(|_, held| !Arc::ptr_eq(held, &buffer));
            self.bound.uniform_buffers.forget(&buffer);
            self.vertices.forget(&buffer);
        }
    }

    /// `glActiveTexture`.
    pub fn active_texture(&mut self, unit: u32) {
        self.bound.active_unit = unit.wrapping_sub(gl::TEXTURE0);
    }

    /// `glBindTexture`.
    pub fn bind_texture(&mut self, target: u32, name: u32) {
        let key = (self.bound.active_unit, target);
        match self.shared.lock().textures.bind(name) {
            Some(image) => self.bound.textures.insert(key, image),
            None => self.bound.textures.remove(&key),
        };
    }

    /// The texture that a call with this target is about.
    pub fn texture(&self, target: u32) -> Option<Arc<Image>> {
        self.texture_at(self.bound.active_unit, texture::binding(target))
    }

    /// The size of the texture bound to a target of a unit.
    pub fn texture_size_at(&self, unit: u32, target: u32) -> texture::Size {
        self.bound.textures.get(&(unit, target)).map(|image| image.size()).unwrap_or_default()
    }

    /// The texture bound to a target of a unit.
    pub fn texture_at(&self, unit: u32, target: u32) -> Option<Arc<Image>> {
        self.bound.textures.get(&(unit, target)).cloned()
    }

    /// All textures that are bound.
    pub(crate) fn bound_textures(&self) -> impl Iterator<Item = &Arc<Image>> {
        self.bound.textures.values()
    }

    /// `glDeleteTextures`.
    pub fn delete_textures(&mut self, names: &[u32]) {
        for name in names {
            let Some(image) = self.shared.lock().textures.delete(*name) else {
                continue;
            };
            self.bound.textures.retain(|_, held| !Arc::ptr_eq(held, &image));
            self.framebuffers.forget(&image);
        }
    }

    /// `glUseProgram`.
    pub fn use_program(&mut self, name: u32) {
        let program = self.shared.lock().programs.get(name).cloned();
        if let Some(program) = &program {
            let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
            if program.read_compute(name, self.extensions()).is_none() {
                program.read(name, self.extensions());
            }
        }
        self.program = program.map(|program| (name, program));
    }

    /// `glUniformBlockBinding`. A program that was not looked at yet is asked about when it is.
    pub fn bind_block(&mut self, name: u32, index: u32) {
        let program = self.shared.lock().programs.get(name).cloned();
        if let Some(program) = program {
            let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
            program.known().into_iter().for_each(|linked| linked.blocks.rebind(name, index));
            program.compute().into_iter().for_each(Compute::changed);
        }
    }

    /// `glLinkProgram`. Programs for parts that are of no use any more, which are to be
    /// deleted.
    pub fn link_program(&mut self, name: u32) -> Vec<u32> {
        let (program, stages) = {
            let shared = self.shared.lock();
            let Some(program) = shared.programs.get(name).cloned() else {
                return Vec::new();
            };
            let attached = program.lock().unwrap_or_else(PoisonError::into_inner).shaders.clone();
            let of = |stage: u32| {
                let shaders = attached.iter().filter_map(|shader| shared.shaders.get(shader));
                shaders.filter(|shader| shader.stage == stage).map(|shader| shader.compiled.clone()).next()
            };
            let mut others = attached.iter().filter_map(|shader| shared.shaders.get(shader));
            let others =
                others.any(|shader| !matches!(shader.stage, gl::VERTEX_SHADER | gl::FRAGMENT_SHADER));
            let [vertex, fragment, compute] =
                [gl::VERTEX_SHADER, gl::FRAGMENT_SHADER, gl::COMPUTE_SHADER].map(of);
            (program, Stages { vertex, fragment, compute, others })
        };
        let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = program.linked(stages);
        let used = self.program.as_ref().is_some_and(|(used, _)| *used == name);
        if used && program.read_compute(name, self.extensions()).is_none() {
            program.read(name, self.extensions());
        }
        parts
    }

    /// Whether a program is the one of that name, and not on its way out.
    pub(crate) fn has_program(&self, name: u32, program: &Arc<Mutex<Program>>) -> bool {
        self.shared.lock().programs.get(name).is_some_and(|named| Arc::ptr_eq(named, program))
    }
}

/// Whether shaders write to buffers at the points of this target.
fn is_written_by_gpu(target: u32) -> bool {
    matches!(target, gl::TRANSFORM_FEEDBACK_BUFFER | gl::SHADER_STORAGE_BUFFER | gl::ATOMIC_COUNTER_BUFFER)
}
