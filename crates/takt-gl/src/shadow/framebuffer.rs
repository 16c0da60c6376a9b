//! What is drawn to: the surface, or textures and render buffers.

use std::collections::BTreeMap;
use std::sync::Arc;

use takt_predict::exactness::States;

use super::texture::Image;
use crate::gl;

/// A framebuffer object.
#[derive(Clone, Default, Debug)]
pub struct Framebuffer {
    attachments: BTreeMap<u32, Arc<Image>>,
}

/// What a framebuffer object amounts to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Target {
    /// Tells it from others; 0 is the surface.
    pub id: u64,
    /// Width and height.
    pub size: [u32; 2],
    /// Samples per pixel.
    pub samples: u32,
    /// Bytes of all attachments.
    pub bytes: u64,
    /// What could give away that draws are cut: its kind and its colours.
    pub states: States,
}

/// All framebuffer objects of a context.
#[derive(Default, Debug)]
pub struct Framebuffers {
    objects: BTreeMap<u32, Framebuffer>,
    draw: u32,
    read: u32,
}

impl Framebuffers {
    /// `glBindFramebuffer`; true if drawing goes elsewhere now.
    pub fn bind(&mut self, target: u32, name: u32) -> bool {
        let before = self.draw;
        if matches!(target, gl::FRAMEBUFFER | gl::DRAW_FRAMEBUFFER) {
            self.draw = name;
        }
        if matches!(target, gl::FRAMEBUFFER | gl::READ_FRAMEBUFFER) {
            self.read = name;
        }
        if name != 0 {
            self.objects.entry(name).or_default();
        }
        before != self.draw
    }

    /// Whether binding this would make drawing go elsewhere.
    pub fn switches(&self, target: u32, name: u32) -> bool {
        matches!(target, gl::FRAMEBUFFER | gl::DRAW_FRAMEBUFFER) && name != self.draw
    }

    /// `glDeleteFramebuffers`: what is bound is replaced by the surface.
    pub fn delete(&mut self, names: &[u32]) {
        for name in names.iter().filter(|name| **name != 0) {
            self.objects.remove(name);
            for bound in [&mut self.draw, &mut self.read] {
                if *bound == *name {
                    *bound = 0;
                }
            }
        }
    }

    /// `glFramebufferTexture2D`, `glFramebufferRenderbuffer`; none detaches.
    pub fn attach(&mut self, target: u32, point: u32, image: Option<Arc<Image>>) {
        let name = if target == gl::READ_FRAMEBUFFER { self.read } else { self.draw };
        let Some(object) = self.objects.get_mut(&name) else {
            return;
        };
        match image {
            Some(image) => {
                object.attachments.insert(point, image);
            }
            None => {
                object.attachments.remove(&point);
            }
        }
    }

    /// A texture or render buffer was deleted: the bound framebuffer drops it.
    pub fn forget(&mut self, image: &Arc<Image>) {
        for name in [self.draw, self.read] {
            if let Some(object) = self.objects.get_mut(&name) {
                object.attachments.retain(|_, held| !Arc::ptr_eq(held, image));
            }
        }
    }

    /// Whether that texture is drawn to.
    pub fn draws_to(&self, image: &Arc<Image>) -> bool {
        let object = self.objects.get(&self.draw);
        object.is_some_and(|object| object.attachments.values().any(|held| Arc::ptr_eq(held, image)))
    }

    /// Whether pixels are read from where they are drawn to.
    pub fn reads_what_it_draws_to(&self) -> bool {
        let read = self.objects.get(&self.read);
        let held = |object: &Framebuffer| object.attachments.values().any(|image| self.draws_to(image));
        self.read == self.draw || read.is_some_and(held)
    }

    /// Whether the surface is drawn to.
    pub fn draws_to_surface(&self) -> bool {
        self.draw == 0
    }

    /// What is drawn to, if it is not the surface.
    pub fn target(&self) -> Option<Target> {
        let object = self.objects.get(&self.draw)?;
        let mut target = Target { id: u64::from(self.draw) + 1, size: [u32::MAX; 2], ..Target::default() };
        for image in object.attachments.values() {
            let size = image.size();
            target.size = [target.size[0].min(size.width), target.size[1].min(size.height)];
            target.samples = target.samples.max(size.samples);
            target.bytes = target.bytes.saturating_add(size.bytes());
            target.states = target.states.and(size.states);
        }
        if object.attachments.is_empty() {
            target.size = [0, 0];
        }
        Some(target)
    }
}

#[cfg(test)]
mod tests {
    use super::super::texture::Size;
    use super::*;

    #[test]
    fn the_smallest_attachment_decides() {
        let mut framebuffers = Framebuffers::default();
        assert!(framebuffers.bind(gl::FRAMEBUFFER, 3));
        assert!(!framebuffers.bind(gl::READ_FRAMEBUFFER, 0));
        let image = |width, height| {
            let image = Arc::new(Image::new());
            image.resize(Size { width, height, depth: 1, samples: 4, texel_bytes: 4, states: States::NONE });
            image
        };
        let small = image(10, 30);
        framebuffers.attach(gl::FRAMEBUFFER, gl::COLOR_ATTACHMENT0, Some(small.clone()));
        framebuffers.attach(gl::FRAMEBUFFER, 0x8D00, Some(image(20, 20)));
        assert!(framebuffers.draws_to(&small) && !framebuffers.draws_to(&image(10, 30)));
        let target = framebuffers.target().unwrap();
        assert_eq!((target.size, target.samples, target.bytes), ([10, 20], 4, 4 * (300 + 400)));
        framebuffers.forget(&small);
        assert_eq!(framebuffers.target().unwrap().size, [20, 20]);
        framebuffers.delete(&[3]);
        assert!(framebuffers.draws_to_surface());
    }
}
