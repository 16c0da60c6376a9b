//! Objects that contexts of one share group have in common.
//!
//! Bindings hold objects by reference count, as GL does: an object that is deleted while something
//! uses it loses its name at once and its contents when nobody uses it any more.

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
