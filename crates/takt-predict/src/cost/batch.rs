//! Draws of one scene, predicted together.
//!
//! Apps such as es2gears issue hundreds of tiny draws that differ in nothing but their
//! vertices. Predicting them one by one costs more than it tells.

use super::shader::ProgramId;
use crate::fragments::{Mode, RasterState};

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
