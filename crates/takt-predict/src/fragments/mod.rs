//! How many fragments a batch of draws will produce.
//!
//! The cost of a draw is mostly its fragments, and their number is unknown before the GPU has
//! rasterised. Four estimators guess it, all behind [`FragmentEstimator`]:
//!
//! - [`BoundingBox`] projects the box around all vertices: eight vertices, whatever the model.
//! - [`TriangleSamples`] projects some of the triangles and extrapolates.
//! - [`RecentRatio`] assumes as many fragments per vertex as in the last completed frame.
//! - [`RecentSequence`] assumes what the draw at the same place in that frame produced.
//!
//! Sources: Schnitzer's thesis, section 3.5.1, for the first two; Ma's thesis, section 5.5, for
//! the others. Draws of one batch share the scene: shader, uniforms, viewport, state.

mod area;
mod attribute;
mod bounding_box;
mod clip;
mod draw;
mod facets;
mod pick;
mod range;
pub mod raster;
mod recent;
mod reservoir;
mod samples;
mod selection;
mod shader;
mod view;

pub use attribute::{Attribute, Elements, Format, IndexFormat};
pub use bounding_box::{BoundingBox, COVERAGE};
pub use draw::{BufferId, Draw, Mode, RangeKey, Shape, Vertex};
pub use range::RANGE_SAMPLES_MAX;
pub(crate) use recent::sane;
pub use recent::{RecentRatio, RecentSequence, SEQUENCE_MAX};
pub use samples::{SAMPLES_MAX, TriangleSamples};
pub use selection::{Fragments, Method};
pub use shader::{AffinePosition, Input, ShaderMemory, ShaderPosition, position_input};
pub use view::{Cull, RasterState, Rect, Trust, View, Winding};

/// Computes `gl_Position`, as the vertex shader would.
pub trait PositionSource {
    /// Computes the clip coordinates of each vertex as this instance of a draw has them; both
    /// slices are equally long.
    fn positions(&self, instance: u32, vertices: &[Vertex], clip: &mut [[f32; 4]]);

    /// Whether the position is a product of matrices with the position attribute, so that a box
    /// around the attribute contains all results.
    fn is_projective(&self) -> bool;

    /// The matrix by columns, if positions are its products with vertices whose `w` is 1.
    fn matrix(&self) -> Option<[[f32; 4]; 4]> {
        None
    }

    /// Whether positions depend on more than [`Vertex::position`], and so can be computed only
    /// while the draw with all its attributes is at hand.
    fn needs_draw(&self) -> bool {
        false
    }

    /// Whether instances of one draw differ.
    fn instances_differ(&self) -> bool {
        false
    }
}

/// The commonest vertex shader: one matrix times the position.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct MatrixPosition(
    /// Model, view and projection together, by columns as GL keeps it.
    pub [[f32; 4]; 4],
);

impl PositionSource for MatrixPosition {
    fn positions(&self, _instance: u32, vertices: &[Vertex], clip: &mut [[f32; 4]]) {
        let [a, b, c, d] = self.0;
        for (vertex, clip) in vertices.iter().zip(clip) {
            let [x, y, z, w] = vertex.position;
            *clip = std::array::from_fn(|row| a[row] * x + b[row] * y + c[row] * z + d[row] * w);
        }
    }

    fn is_projective(&self) -> bool {
        true
    }

    fn matrix(&self) -> Option<[[f32; 4]; 4]> {
        Some(self.0)
    }
}

/// What the draws of a batch have in common.
#[derive(Copy, Clone)]
pub struct Scene<'a> {
    /// Where primitives land.
    pub view: &'a View,
    /// Where vertices land.
    pub position: &'a dyn PositionSource,
}

/// Estimates the fragments of batches of draws.
///
/// Call [`record`](Self::record) for each draw of a batch and [`take`](Self::take) at its end.
/// When measurements arrive, [`measured`](Self::measured) reports the draw groups of a frame in
/// their order, and [`frame_measured`](Self::frame_measured) that all of them are in.
pub trait FragmentEstimator {
    /// Adds a draw to the batch.
    fn record(&mut self, draw: &Draw<'_>, scene: &Scene<'_>);

    /// Ends the batch: its fragments, or none if this estimator cannot tell. Never negative and
    /// always a number.
    fn take(&mut self, scene: &Scene<'_>) -> Option<f64>;

    /// A frame begins: the next batch is its first.
    fn frame_begins(&mut self) {}

    /// Fragments that a draw group turned out to have.
    fn measured(&mut self, vertices: u64, fragments: f64) {
        let _ = (vertices, fragments);
    }

    /// All draw groups of a frame have been reported.
    fn frame_measured(&mut self) {}
}
