//! What commands cost, from machine constants and the state they run in.
//!
//! Each model is a few multiplications; all constants come from a [`Profile`]. Sources:
//! Schnitzer's thesis, sections 3.4 and 3.5, and Ma's, section 5.5.

mod batch;
mod group;
mod shader;

pub use batch::{Capabilities, SceneKey};
pub use group::{GroupCost, GroupType, Parts};
pub use shader::{
    FragmentState, ProfiledShaders, ProfilingRun, ProgramId, ShaderContext, ShaderCost, ShaderRates,
    StageParts, TextureSize,
};

use crate::profile::Profile;

/// Which buffers a clear touches.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Buffers {
    /// `GL_COLOR_BUFFER_BIT`.
    pub color: bool,
    /// `GL_DEPTH_BUFFER_BIT`.
    pub depth: bool,
    /// `GL_STENCIL_BUFFER_BIT`.
    pub stencil: bool,
}

impl Buffers {
    fn index(self) -> usize {
        usize::from(self.color) | usize::from(self.depth) << 1 | usize::from(self.stencil) << 2
    }
}

/// The target of a clear or a resolve.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// The window's own target, of so many pixels, which the GPU may clear by marking it.
    Default {
        /// Its pixels.
        pixels: u64,
        /// Whether the GPU marks instead of writing.
        fast_clear: bool,
    },
    /// A texture or render buffer.
    OffScreen {
        /// Pixels as the app asked for them.
        pixels: u64,
        /// Bytes as the driver laid them out, of the buffers in question.
        bytes: u64,
    },
}

impl Target {
    fn pixels(self) -> f64 {
        match self {
            Self::Default { pixels, .. } | Self::OffScreen { pixels, .. } => pixels as f64,
        }
    }
}

/// What a batch of draws has to do.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct DrawLoad {
    /// Draw calls.
    pub calls: u64,
    /// Vertices of all of them.
    pub vertices: u64,
    /// Fragments, as estimated.
    pub fragments: f64,
    /// Samples per pixel; 0 and 1 mean the same.
    pub samples: u32,
}

/// Costs in nanoseconds; a view of a profile.
#[derive(Copy, Clone, Debug)]
pub struct Costs<'a>(
    /// Where constants come from.
    pub &'a Profile,
);

impl Costs<'_> {
    /// Submitting a command group: `glFlush` and all that implies one.
    pub fn flush(&self) -> f64 {
        self.0.flush_ns
    }

    /// `glFinish`: what is pending, then an empty group that is waited for.
    pub fn finish(&self) -> f64 {
        2.0 * self.0.flush_ns
    }

    /// `glClear`.
    pub fn clear(&self, buffers: Buffers, target: Target) -> f64 {
        let clear = &self.0.clear;
        match target {
            _ if buffers == Buffers::default() => 0.0,
            Target::Default { fast_clear: true, .. } => clear.fast_ns,
            Target::Default { pixels, .. } => clear.pixel_ns[buffers.index()] * pixels as f64,
            Target::OffScreen { bytes, .. } => clear.byte_ns * bytes as f64,
        }
    }

    /// `eglSwapBuffers`, or another resolve, of a target on which so many fragments were drawn.
    ///
    /// Both forms are added up: a profile has the constants of one, and those of the other are
    /// zero. Tiles have 16 pixels, and no more can be drawn than there are.
    pub fn swap(&self, target: Target, fragments: f64) -> f64 {
        let swap = &self.0.swap;
        let tiles = target.pixels() / TILE_PIXELS;
        let drawn = (fragments / TILE_PIXELS).clamp(0.0, tiles);
        let linear = swap.pixel_ns * target.pixels();
        linear + swap.tile_bytes * (swap.write_byte_ns * tiles + swap.read_byte_ns * drawn)
    }

    /// Loading what a target held, when it is attached.
    pub fn load(&self, bytes: u64) -> f64 {
        self.0.memory.load.cost_ns(bytes as f64)
    }

    /// `glTexImage2D` with data, `glTexSubImage2D`.
    pub fn upload(&self, bytes: u64) -> f64 {
        self.0.memory.upload.cost_ns(bytes as f64)
    }

    /// `glGenerateMipmap` of a texture whose largest level has so many bytes. Smaller levels
    /// add a third; that is part of the constant.
    pub fn mipmap(&self, bytes: u64) -> f64 {
        self.0.memory.mipmap.cost_ns(bytes as f64)
    }

    /// `glCopyTexImage2D`, `glCopyTexSubImage2D`.
    pub fn copy(&self, bytes: u64) -> f64 {
        self.0.memory.copy.cost_ns(bytes as f64)
    }

    /// `glBufferData` with data, `glBufferSubData`.
    pub fn buffer(&self, bytes: u64) -> f64 {
        self.0.memory.buffer.cost_ns(bytes as f64)
    }

    /// A batch of draws with a shader.
    pub fn draw(&self, load: &DrawLoad, rates: ShaderRates) -> f64 {
        let calls = load.calls as f64 * self.0.draw_ns;
        let vertices = load.vertices as f64 * rates.vertex_ns;
        calls + vertices + load.fragments * rates.fragment_ns * self.msaa(load.samples)
    }

    /// A dispatch of so many invocations, each of so many operations that take `operation_ns`.
    pub fn dispatch(&self, invocations: f64, operations: f64, operation_ns: f64) -> f64 {
        self.0.draw_ns + invocations * operations.max(1.0) * operation_ns
    }

    /// By how much samples slow fragments down; between the counts that were measured, the
    /// next higher one.
    fn msaa(&self, samples: u32) -> f64 {
        let [two, four, eight, sixteen] = self.0.msaa;
        match samples {
            0 | 1 => 1.0,
            2 => two,
            3..=4 => four,
            5..=8 => eight,
            _ => sixteen,
        }
    }
}

/// Pixels of a tile, for the tile form of a resolve.
const TILE_PIXELS: f64 = 16.0;

#[cfg(test)]
mod tests;
