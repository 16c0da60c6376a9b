//! Shadows of GL state: what draws depend on, as far as predictions and cuts need it.
//!
//! Nothing here asks the daemon or measures. Objects that contexts share are locked each on its own.
//! Locks are taken in this order: context, share group, program, buffers by number.

mod bindings;
pub mod block;
pub mod buffer;
pub(crate) mod client_memory;
pub mod drawing;
pub mod driver;
pub mod framebuffer;
pub(crate) mod inputs;
pub(crate) mod observers;
pub mod program;
pub mod raster;
pub mod share;
pub mod surface;
pub mod texture;
pub mod vertex;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use block::Points;
use buffer::Buffer;
use driver::Driver;
use framebuffer::{Framebuffers, Target};
pub use observers::Observers;
use program::Program;
use raster::Raster;
use share::ShareGroup;
use surface::Surface;
use takt_predict::cost;
use texture::Image;
use vertex::Vertices;

/// The GL state of one context.
#[derive(Debug)]
pub struct Shadow {
    /// Objects that it shares.
    pub shared: Arc<ShareGroup>,
    /// Viewport, scissor and the like.
    pub raster: Raster,
    /// Vertex arrays.
    pub vertices: Vertices,
    /// Framebuffer objects.
    pub framebuffers: Framebuffers,
    /// The program in use, with its name.
    pub program: Option<(u32, Arc<Mutex<Program>>)>,
    /// What is bound where.
    pub(crate) bound: Bound,
    /// What forbids to cut draws.
    pub observers: Observers,
    /// The surface that the context draws to.
    pub(crate) surface: Option<Arc<Surface>>,
    /// What the driver says about itself; none before the context was current.
    pub(crate) driver: Option<Driver>,
}

/// Objects that are bound to targets.
#[derive(Default, Debug)]
pub(crate) struct Bound {
    /// Buffers by target, except for elements, which belong to vertex arrays.
    buffers: BTreeMap<u32, Arc<Buffer>>,
    /// Buffers that uniform blocks read from.
    pub(crate) uniform_buffers: Points,
    /// Textures by unit and target.
    textures: BTreeMap<(u32, u32), Arc<Image>>,
    active_unit: u32,
    /// `GL_RENDERBUFFER`.
    pub(crate) renderbuffer: Option<Arc<Image>>,
}

impl Shadow {
    /// The state of a fresh context.
    pub fn new(shared: Arc<ShareGroup>) -> Self {
        Self {
            shared,
            raster: Raster::default(),
            vertices: Vertices::default(),
            framebuffers: Framebuffers::default(),
            program: None,
            bound: Bound::default(),
            observers: Observers::default(),
            surface: None,
            driver: None,
        }
    }

    /// Whether rendering happens on the CPU.
    pub(crate) fn software(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.software)
    }

    /// Whether the context knows GL ES 3.
    pub(crate) fn newer(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.newer)
    }

    /// Macros for extensions that shaders can ask about.
    pub fn extensions(&self) -> &[String] {
        self.driver.as_ref().map_or(&[], |driver| &driver.extensions)
    }

    /// Looks whether the surface has another size, if that can be.
    pub(crate) fn look_at_surface(&self) {
        let viewport = self.raster.viewport_size();
        if let Some(surface) = self.surface.as_ref().filter(|surface| surface.wants_look(viewport)) {
            surface.measure();
        }
    }

    /// Whether a swap of that surface has no effect. What a renderer on the CPU does in that call is
    /// its own affair, and only the surface that is drawn to is known.
    pub fn swap_does_nothing(&self, handle: usize) -> bool {
        let surface = self.surface.as_ref();
        !self.software() && surface.is_some_and(|surface| surface.handle == handle && !surface.shows)
    }

    /// What is drawn to.
    pub fn target(&self) -> Target {
        if let Some(target) = self.framebuffers.target() {
            return target;
        }
        let surface = self.surface.as_ref();
        let size = surface.map_or([0, 0], |surface| surface.size());
        let samples = surface.map_or(0, |surface| surface.samples());
        let bytes = u64::from(size[0]) * u64::from(size[1]) * SURFACE_PIXEL_BYTES;
        Target { id: 0, size, samples, bytes }
    }

    /// The same as the predictor sees it.
    pub(crate) fn predicted_target(&self) -> cost::Target {
        let target = self.target();
        let pixels = u64::from(target.size[0]) * u64::from(target.size[1]);
        match target.id {
            0 => cost::Target::Default { pixels, fast_clear: false },
            _ => cost::Target::OffScreen { pixels, bytes: target.bytes },
        }
    }
}

/// Colour and depth of a surface, roughly.
const SURFACE_PIXEL_BYTES: u64 = 8;
