//! Draws of one scene, predicted together.
//!
//! Apps such as es2gears issue hundreds of tiny draws that differ in nothing but their
//! vertices. Predicting them one by one costs more than it tells.

use super::shader::ProgramId;
use crate::fragments::{Draw, Mode, RasterState};

/// What changes the way primitives are drawn, besides [`RasterState`].
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Capabilities {
    /// `GL_DEPTH_TEST`.
    pub depth_test: bool,
    /// `GL_BLEND`.
    pub blend: bool,
    /// `GL_STENCIL_TEST`.
    pub stencil_test: bool,
    /// Samples per pixel.
    pub samples: u32,
}

/// Draws with equal keys belong to one scene.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct SceneKey {
    /// The program in use.
    pub program: ProgramId,
    /// Changes with every uniform that positions depend on; others do not matter.
    pub position_uniforms: u64,
    /// The render target.
    pub target: u64,
    /// Viewport, scissor, depth range, culling.
    pub raster: RasterState,
    /// How vertices make primitives.
    pub mode: Mode,
    /// What else is enabled.
    pub capabilities: Capabilities,
}

/// The draws of one scene so far.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Batch {
    /// What they have in common.
    pub key: SceneKey,
    /// How many there are.
    pub calls: u64,
    /// Vertices of all of them.
    pub vertices: u64,
}

/// Groups consecutive draws into batches.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub struct Batches {
    current: Option<Batch>,
}

impl Batches {
    /// Adds a draw. If it begins a new scene, the batch before it comes back complete; predict
    /// it before recording the draw with an estimator.
    pub fn push(&mut self, key: SceneKey, draw: &Draw<'_>) -> Option<Batch> {
        let complete =
            if self.current.is_some_and(|batch| batch.key == key) { None } else { self.current.take() };
        let batch = self.current.get_or_insert(Batch { key, calls: 0, vertices: 0 });
        batch.calls = batch.calls.saturating_add(1);
        batch.vertices = batch.vertices.saturating_add(draw.vertices());
        complete
    }

    /// The last batch, when a group is about to be submitted.
    pub fn finish(&mut self) -> Option<Batch> {
        self.current.take()
    }
}
