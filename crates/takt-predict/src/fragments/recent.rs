//! Estimates from the last frame that was measured completely (Ma, section 5.5).
//!
//! Pictures change little from one frame to the next, and so do their fragments. Where no driver
//! counts them, the predictor reports those that explain the measured time.

use super::{Draw, FragmentEstimator, Scene};

/// As many fragments per vertex as in the last measured frame.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct RecentRatio {
    per_vertex: Option<f64>,
    vertices: u64,
    measured_vertices: u64,
    measured_fragments: f64,
}

impl RecentRatio {
    /// Whether a frame with draws has been measured.
    pub fn is_ready(&self) -> bool {
        self.per_vertex.is_some()
    }

    /// Fragments of so many vertices.
    pub fn estimate(&self, vertices: u64) -> Option<f64> {
        self.per_vertex.map(|ratio| ratio * vertices as f64)
    }
}

impl FragmentEstimator for RecentRatio {
    fn record(&mut self, draw: &Draw<'_>, _scene: &Scene<'_>) {
        self.vertices = self.vertices.saturating_add(draw.vertices());
    }

    fn take(&mut self, _scene: &Scene<'_>) -> Option<f64> {
        let vertices = std::mem::take(&mut self.vertices);
        self.estimate(vertices)
    }

    fn measured(&mut self, vertices: u64, fragments: f64) {
        self.measured_vertices = self.measured_vertices.saturating_add(vertices);
        self.measured_fragments += sane(fragments);
    }

    fn frame_measured(&mut self) {
        let vertices = std::mem::take(&mut self.measured_vertices);
        let fragments = std::mem::take(&mut self.measured_fragments);
        // A frame without draws says nothing about the next one that has some.
        if vertices > 0 {
            self.per_vertex = Some(fragments / vertices as f64);
        }
    }
}

/// As many fragments as the draw group at the same place in the last measured frame.
#[derive(Clone, PartialEq, Debug)]
pub struct RecentSequence {
    last: Vec<f64>,
    next: Vec<f64>,
    place: usize,
}

impl Default for RecentSequence {
    fn default() -> Self {
        Self { last: Vec::with_capacity(SEQUENCE_MAX), next: Vec::with_capacity(SEQUENCE_MAX), place: 0 }
    }
}

impl RecentSequence {
    /// Fragments of the next draw group.
    pub fn estimate(&self) -> Option<f64> {
        self.last.get(self.place).copied()
    }
}

impl FragmentEstimator for RecentSequence {
    fn record(&mut self, _draw: &Draw<'_>, _scene: &Scene<'_>) {}

    fn take(&mut self, _scene: &Scene<'_>) -> Option<f64> {
        let fragments = self.estimate();
        self.place += 1;
        fragments
    }

    fn frame_begins(&mut self) {
        self.place = 0;
    }

    fn measured(&mut self, _vertices: u64, fragments: f64) {
        if self.next.len() < SEQUENCE_MAX {
            self.next.push(sane(fragments));
        }
    }

    fn frame_measured(&mut self) {
        std::mem::swap(&mut self.last, &mut self.next);
        self.next.clear();
    }
}

/// Draw groups of a frame that are remembered; later ones have no estimate.
pub const SEQUENCE_MAX: usize = 1024;

/// Counters and callers can fail, and one bad number must not spoil a sum.
pub(crate) fn sane(fragments: f64) -> f64 {
    if fragments.is_finite() { fragments.clamp(0.0, FRAGMENTS_MAX) } else { 0.0 }
}

/// More fragments than a GPU draws in a day.
const FRAGMENTS_MAX: f64 = 1e15;

#[cfg(test)]
mod tests {
    use super::super::{Attribute, Elements, Format, MatrixPosition, Mode, RasterState, View};
    use super::*;

    fn draw(count: u32) -> Draw<'static> {
        let positions = Attribute { bytes: &[], offset: 0, stride: 0, components: 3, format: Format::F32 };
        let elements = Elements::Arrays { first: 0 };
        Draw { mode: Mode::Triangles, elements, count, instances: 1, positions, key: None }
    }

    fn with_scene<T>(run: impl FnOnce(&Scene<'_>) -> T) -> T {
        let view = View::new(&RasterState::new(8, 8));
        run(&Scene { view: &view, position: &MatrixPosition([[0.0; 4]; 4]) })
    }

    #[test]
    fn the_ratio_of_the_last_frame_is_used() {
        with_scene(|scene| {
            let mut ratio = RecentRatio::default();
            ratio.record(&draw(30), scene);
            assert_eq!(ratio.take(scene), None);
            ratio.measured(100, 1000.0);
            ratio.measured(100, f64::NAN);
            ratio.frame_measured();
            ratio.frame_measured();
            ratio.record(&draw(30), scene);
            ratio.record(&draw(30), scene);
            assert_eq!(ratio.take(scene), Some(300.0));
            ratio.measured(1, f64::MAX);
            ratio.frame_measured();
            ratio.record(&draw(30), scene);
            assert_eq!(ratio.take(scene), Some(30.0 * FRAGMENTS_MAX), "no sum is infinite");
        });
    }

    #[test]
    fn the_same_place_of_the_last_frame_is_used() {
        with_scene(|scene| {
            let mut sequence = RecentSequence::default();
            for fragments in [10.0, 20.0] {
                sequence.measured(3, fragments);
            }
            sequence.frame_measured();
            sequence.frame_begins();
            assert_eq!([0; 3].map(|_| sequence.take(scene)), [Some(10.0), Some(20.0), None]);
            sequence.frame_begins();
            assert_eq!(sequence.take(scene), Some(10.0));
        });
    }

    #[test]
    fn endless_frames_are_cut() {
        let mut sequence = RecentSequence::default();
        (0..2 * SEQUENCE_MAX).for_each(|_| sequence.measured(1, 1.0));
        assert_eq!(sequence.next.len(), SEQUENCE_MAX);
    }
}
