//! Shadows of GL state: what draws depend on, as far as predictions and cuts need it.
//!
//! Nothing here asks the daemon or measures. Objects that contexts share are locked each on its own.
//! Locks are taken in this order: context, share group, program, buffers by number.

mod bindings;
pub mod block;
pub mod buffer;
pub(crate) mod client_memory;
pub mod compute;
pub mod drawing;
pub mod driver;
pub mod framebuffer;
pub(crate) mod inputs;
pub mod legacy;
pub(crate) mod observers;
mod part_program;
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
use legacy::Legacy;
pub use observers::{Counted, Observers};
use program::Program;
use raster::Raster;
use share::ShareGroup;
use surface::Surface;
use takt_predict::cost;
use takt_predict::exactness::{self, States};
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
    /// What only desktop GL has.
    pub legacy: Legacy,
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
            legacy: Legacy::default(),
            surface: None,
            driver: None,
        }
    }

    /// Whether rendering happens on the CPU.
    pub(crate) fn software(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.software)
    }

    /// Whether the context is one of desktop GL.
    pub(crate) fn is_desktop(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.desktop)
    }

    /// Whether the context knows what GL ES 3 brought.
    pub(crate) fn newer(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.newer)
    }

    /// Whether GL says how large levels of a texture at that target are.
    pub(crate) fn tells_levels(&self, target: u32) -> bool {
        let newest = |driver: &Driver| {
            ["OpenGL ES 3.1", "OpenGL ES 3.2"].iter().any(|version| driver.version.starts_with(version))
        };
        target == crate::gl::TEXTURE_2D && self.driver.as_ref().is_some_and(newest)
    }

    /// Whether a draw with more primitives than transform feedback has room for records those that fit. Where
    /// there are no geometry shaders, GL refuses all of such a draw.
    pub(crate) fn records_what_fits(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| {
            let geometry = |name: &String| name.ends_with("_geometry_shader");
            driver.version.starts_with("OpenGL ES 3.2") || driver.extensions.iter().any(geometry)
        })
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

    /// `eglSwapInterval`.
    pub fn set_swap_interval(&self, interval: i32) {
        if let Some(surface) = &self.surface {
            surface.set_interval(interval);
        }
    }

    /// Whether a swap of that surface has no effect. What a renderer on the CPU does in that call is
    /// its own affair, and only the surface that is drawn to is known.
    pub fn swap_does_nothing(&self, handle: usize) -> bool {
        let surface = self.surface.as_ref();
        !self.software() && surface.is_some_and(|surface| surface.handle == handle && !surface.shows())
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
        let states = States::from(exactness::State::Surface).with(exactness::State::Normalised);
        Target { id: 0, size, samples, bytes, states }
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
