//! One of the estimators, and what to do where it cannot tell.

use super::{BoundingBox, Draw, FragmentEstimator, RecentRatio, RecentSequence, Scene, TriangleSamples};

/// Which estimator to ask.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum Method {
    /// [`BoundingBox`]; samples for shaders that are no product of matrices.
    #[default]
    BoundingBox,
    /// [`TriangleSamples`].
    Samples,
    /// [`RecentRatio`]; samples until a frame has been measured.
    Ratio,
    /// [`RecentSequence`]; the ratio, then samples, for places that the last frame did not have.
    Sequence,
}

/// Asks one estimator, and others only where it cannot tell.
#[derive(Clone, Debug, Default)]
pub struct Fragments {
    method: Method,
    bounding_box: BoundingBox,
    samples: TriangleSamples,
    ratio: RecentRatio,
    sequence: RecentSequence,
    /// Whether the batch's first choice works, decided at its first draw.
    fallback: Option<bool>,
}

impl Fragments {
    /// Asks by this method, with everything else as usual.
    pub fn new(method: Method) -> Self {
        Self { method, ..Self::default() }
    }

    /// Asks by this method, with these estimators.
    pub fn with(method: Method, bounding_box: BoundingBox, samples: TriangleSamples) -> Self {
        Self { method, bounding_box, samples, ..Self::default() }
    }

    /// Whether the next estimate comes from earlier measurements, whatever the draws: it is then that
    /// of a whole group, and needs no positions.
    pub fn looks_back(&self) -> bool {
        matches!(self.method, Method::Ratio | Method::Sequence) && self.ratio.is_ready()
    }

    /// That estimate, for a group of so many vertices.
    pub fn look_back(&self, vertices: u64) -> Option<f64> {
        let by_ratio = self.ratio.estimate(vertices);
        match self.method {
            Method::Ratio => by_ratio,
            Method::Sequence => self.sequence.estimate().or(by_ratio),
            Method::BoundingBox | Method::Samples => None,
        }
    }

    /// Adds a draw whose vertices cannot be placed.
    pub fn record_unplaced(&mut self, draw: &Draw<'_>, scene: &Scene<'_>) {
        self.ratio.record(draw, scene);
    }

    /// Whether samples are needed in place of the requested estimate. Sampling costs time, so it is
    /// left out where the first choice works; that is known before the batch ends.
    fn needs_samples(&mut self, scene: &Scene<'_>) -> bool {
        let needs = match self.method {
            Method::BoundingBox => !scene.position.is_projective(),
            Method::Samples => true,
            Method::Ratio | Method::Sequence => !self.ratio.is_ready(),
        };
        *self.fallback.get_or_insert(needs)
    }
}

impl FragmentEstimator for Fragments {
    fn record(&mut self, draw: &Draw<'_>, scene: &Scene<'_>) {
        if self.needs_samples(scene) {
            self.samples.record(draw, scene);
        } else if self.method == Method::BoundingBox {
            self.bounding_box.record(draw, scene);
        }
        self.ratio.record(draw, scene);
    }

    fn take(&mut self, scene: &Scene<'_>) -> Option<f64> {
        let sampled = self.needs_samples(scene);
        self.fallback = None;
        let by_ratio = self.ratio.take(scene);
        let by_sequence = self.sequence.take(scene);
        if sampled {
            return self.samples.take(scene);
        }
        match self.method {
            Method::BoundingBox => self.bounding_box.take(scene),
            Method::Samples => self.samples.take(scene),
            Method::Ratio => by_ratio,
            Method::Sequence => by_sequence.or(by_ratio),
        }
    }

    fn frame_begins(&mut self) {
        self.sequence.frame_begins();
    }

    fn measured(&mut self, vertices: u64, fragments: f64) {
        self.ratio.measured(vertices, fragments);
        self.sequence.measured(vertices, fragments);
    }

    fn frame_measured(&mut self) {
        self.ratio.frame_measured();
        self.sequence.frame_measured();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Attribute, Elements, Format, MatrixPosition, Mode, PositionSource, RasterState, Vertex, View,
    };
    use super::*;

    /// A shader that bends: boxes say nothing about it.
    struct Bent(MatrixPosition);

    impl PositionSource for Bent {
        fn positions(&self, instance: u32, vertices: &[Vertex], clip: &mut [[f32; 4]]) {
            self.0.positions(instance, vertices, clip);
        }

        fn is_projective(&self) -> bool {
            false
        }
    }

    const HALF: MatrixPosition = MatrixPosition([
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 1.0],
    ]);

    fn estimate(fragments: &mut Fragments, position: &dyn PositionSource) -> Option<f64> {
        let quad = [[-0.5f32, -0.5], [0.5, -0.5], [-0.5, 0.5], [0.5, 0.5]];
        let bytes: Vec<u8> = quad.iter().flatten().flat_map(|value| value.to_ne_bytes()).collect();
        let positions = Attribute { bytes: &bytes, offset: 0, stride: 0, components: 2, format: Format::F32 };
        let elements = Elements::Arrays { first: 0 };
        let draw = Draw { mode: Mode::TriangleStrip, elements, count: 4, instances: 1, positions, key: None };
        let view = View::new(&RasterState::new(100, 100));
        let scene = Scene { view: &view, position };
        fragments.record(&draw, &scene);
        fragments.take(&scene)
    }

    #[test]
    fn boxes_fall_back_to_samples() {
        let mut fragments = Fragments::new(Method::BoundingBox);
        assert_eq!(estimate(&mut fragments, &HALF), Some(1500.0));
        assert_eq!(estimate(&mut fragments, &Bent(HALF)), Some(2500.0));
    }

    #[test]
    fn history_falls_back_until_there_is_some() {
        for method in [Method::Ratio, Method::Sequence] {
            let mut fragments = Fragments::new(method);
            assert_eq!(estimate(&mut fragments, &HALF), Some(2500.0));
            fragments.measured(4, 2000.0);
            fragments.frame_measured();
            fragments.frame_begins();
            assert_eq!(estimate(&mut fragments, &HALF), Some(2000.0));
            assert_eq!(estimate(&mut fragments, &HALF), Some(2000.0), "beyond the sequence: the ratio");
        }
    }
}
