//! Objects that contexts of one share group have in common.
//!
//! Bindings hold objects by reference count, as GL does: an object that is deleted while something
//! uses it loses its name at once and its contents when nothing uses it any more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::buffer::Buffer;
use super::program::{Program, Source};
use super::texture::Image;

/// The objects of a share group, by name.
#[derive(Default, Debug)]
pub struct Shared {
    /// Buffer objects.
    pub buffers: Names<Buffer>,
    /// Textures.
    pub textures: Names<Image>,
    /// Render buffers.
    pub renderbuffers: Names<Image>,
    /// Programs.
    pub programs: Names<Mutex<Program>>,
    /// Sources of shaders.
    pub shaders: BTreeMap<u32, Source>,
}

impl Shared {
    /// `glAttachShader`.
    pub fn attach_shader(&mut self, program: u32, shader: u32) {
        let (program, source) = (self.programs.get(program), self.shaders.get_mut(&shader));
        if let Some((program, source)) = program.zip(source) {
            let shaders = &mut program.lock().unwrap_or_else(PoisonError::into_inner).shaders;
            if !shaders.contains(&shader) {
                shaders.push(shader);
                source.programs += 1;
            }
        }
    }

    /// `glDetachShader`.
    pub fn detach_shader(&mut self, program: u32, shader: u32) {
        let program = self.programs.get(program).cloned();
        let detached = program.is_some_and(|program| {
            let shaders = &mut program.lock().unwrap_or_else(PoisonError::into_inner).shaders;
            let at = shaders.iter().position(|attached| *attached == shader);
            at.map(|at| shaders.remove(at)).is_some()
        });
        if detached {
            self.leave_program(shader);
        }
    }

    /// `glDeleteShader`.
    pub fn delete_shader(&mut self, shader: u32) {
        self.shaders.entry(shader).and_modify(|source| source.deleted = true);
        self.drop_if_unused(shader);
    }

    /// `glDeleteProgram`. Where it is in use it stays what it is until another one is used, but it
    /// has no name by which it could be linked again; so its shaders are left by it.
    ///
    /// True if it must go now, and its programs for parts with it. While a dispatch of it is being cut, it
    /// must not: another program is in use in between, and what is not in use and has no name is gone.
    pub fn delete_program(&mut self, program: u32) -> (bool, Vec<u32>) {
        let Some(program) = self.programs.delete(program) else {
            return (true, Vec::new());
        };
        let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
        program.leaves = program.cutting > 0;
        let goes = (!program.leaves, program.part_names());
        let shaders = std::mem::take(&mut program.shaders);
        drop(program);
        shaders.into_iter().for_each(|shader| self.leave_program(shader));
        goes
    }

    fn leave_program(&mut self, shader: u32) {
        self.shaders.entry(shader).and_modify(|source| source.programs = source.programs.saturating_sub(1));
        self.drop_if_unused(shader);
    }

    fn drop_if_unused(&mut self, shader: u32) {
        if self.shaders.get(&shader).is_some_and(|source| source.deleted && source.programs == 0) {
            self.shaders.remove(&shader);
        }
    }
}

/// A share group.
#[derive(Default, Debug)]
pub struct ShareGroup(Mutex<Shared>);

impl ShareGroup {
    /// Its objects; other threads wait.
    pub fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Objects of one kind.
#[derive(Debug)]
pub struct Names<T>(BTreeMap<u32, Arc<T>>);

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Default> Names<T> {
    /// The object of that name; binding a name for the first time makes the object. 0 is none.
    pub fn bind(&mut self, name: u32) -> Option<Arc<T>> {
        (name != 0).then(|| self.0.entry(name).or_default().clone())
    }
}

impl<T> Names<T> {
    /// The object of that name.
    pub fn get(&self, name: u32) -> Option<&Arc<T>> {
        self.0.get(&name)
    }

    /// Takes the name away.
    pub fn delete(&mut self, name: u32) -> Option<Arc<T>> {
        self.0.remove(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_go_with_the_last_program_that_has_their_shaders() {
        let group = ShareGroup::default();
        let mut shared = group.lock();
        for name in [1, 2, 3] {
            shared.shaders.insert(name, Source::default());
        }
        shared.programs.bind(7);
        shared.programs.bind(8);
        for (program, shader) in [(7, 1), (7, 1), (8, 1), (7, 2), (7, 99), (99, 3)] {
            shared.attach_shader(program, shader);
        }
        for name in [1, 2, 3, 99] {
            shared.delete_shader(name);
        }
        assert_eq!(shared.shaders.keys().copied().collect::<Vec<_>>(), [1, 2], "3 was nowhere");
        shared.detach_shader(7, 1);
        shared.detach_shader(7, 1);
        assert!(shared.shaders.contains_key(&1), "another program has it");
        shared.delete_program(8);
        assert!(!shared.shaders.contains_key(&1));
        shared.delete_program(7);
        assert!(shared.shaders.is_empty());
    }

    #[test]
    fn a_deleted_object_lives_on_where_it_is_bound() {
        let group = ShareGroup::default();
        let held = group.lock().buffers.bind(5).unwrap();
        assert!(group.lock().buffers.bind(0).is_none());
        group.lock().buffers.delete(5);
        held.lock().replace(1, Some(&[1]), true);
        assert!(group.lock().buffers.get(5).is_none());
        let fresh = group.lock().buffers.bind(5).unwrap();
        assert!(!Arc::ptr_eq(&held, &fresh), "the name is free for another object");
        assert_eq!(held.lock().size, 1);
    }
}
