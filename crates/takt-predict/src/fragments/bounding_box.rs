//! `bb`: the projected box around all vertices.
//!
//! Only eight positions are computed per batch, and the box of a buffer range is kept, so this
//! is the cheapest estimator. It needs a shader that keeps points between others between them:
//! products of matrices do. A box is larger than what is in it; the coverage factor says by how
//! much on average.

use super::area::finite;
use super::attribute::{Attribute, Elements};
use super::draw::{Draw, RangeKey, Vertex};
use super::view::Cull;
use super::{FragmentEstimator, Scene};
use crate::table::{Lookup, Table};

/// Share of the projected box that fragments cover, as measured in the thesis over its apps.
pub const COVERAGE: f64 = 0.60;

/// See the module.
#[derive(Clone, Debug)]
pub struct BoundingBox {
    coverage: f64,
    batch: Extent,
    boxes: Table<RangeKey, Extent>,
}

impl BoundingBox {
    /// An estimator with this coverage factor.
    pub fn with_coverage(coverage: f64) -> Self {
        Self::new(coverage, RANGES)
    }

    /// An estimator with this coverage factor that keeps the boxes of `ranges` buffer ranges.
    pub fn new(coverage: f64, ranges: usize) -> Self {
        Self { coverage, batch: Extent::EMPTY, boxes: Table::new(ranges, &Extent::EMPTY) }
    }
}

impl Default for BoundingBox {
    fn default() -> Self {
        Self::new(COVERAGE, RANGES)
    }
}

impl FragmentEstimator for BoundingBox {
    fn record(&mut self, draw: &Draw<'_>, _scene: &Scene<'_>) {
        let extent = match &draw.key {
            None => Extent::of(draw),
            Some(key) => {
                let (extent, found) = self.boxes.entry(key);
                if found == Lookup::Miss {
                    *extent = Extent::of(draw);
                }
                *extent
            }
        };
        self.batch = self.batch.joined(&extent);
    }

    fn take(&mut self, scene: &Scene<'_>) -> Option<f64> {
        let extent = std::mem::replace(&mut self.batch, Extent::EMPTY);
        scene.position.is_projective().then(|| extent.area(scene) * self.coverage)
    }
}

/// A box, closed on all sides; empty if a low corner is above a high one.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Extent {
    low: [f32; 3],
    high: [f32; 3],
}

impl Extent {
    const EMPTY: Self = Self { low: [f32::INFINITY; 3], high: [f32::NEG_INFINITY; 3] };

    fn of(draw: &Draw<'_>) -> Self {
        let mut extent = Self::EMPTY;
        if draw.primitives() == 0 || draw.instances == 0 {
            return extent;
        }
        if let Elements::Arrays { first } = draw.elements
            && let Some((bytes, stride)) = draw.positions.floats(first)
        {
            for n in 0..draw.in_memory() as usize {
                extent.include_three(Attribute::three(bytes, n.saturating_mul(stride)));
            }
        } else {
            for n in 0..draw.in_memory() {
                extent.include(draw.vertex(n).position);
            }
        }
        if draw.in_memory() < draw.count {
            extent.include_three([0.0; 3]);
        }
        extent
    }

    fn include(&mut self, [x, y, z, w]: [f32; 4]) {
        #[expect(clippy::float_cmp, reason = "the common case of no w needs no division")]
        let place = if w == 1.0 { [x, y, z] } else { [x / w, y / w, z / w] };
        self.include_three(place);
    }

    #[inline]
    fn include_three(&mut self, place: [f32; 3]) {
        for (axis, value) in place.into_iter().enumerate() {
            // Comparisons with what is no number fail, so that it changes nothing.
            let (low, high) = (&mut self.low[axis], &mut self.high[axis]);
            *low = if value < *low { value } else { *low };
            *high = if value > *high { value } else { *high };
        }
    }

    fn joined(&self, other: &Self) -> Self {
        let pick = |pick: fn(f32, f32) -> f32, a: [f32; 3], b: [f32; 3]| -> [f32; 3] {
            std::array::from_fn(|axis| pick(a[axis], b[axis]))
        };
        Self { low: pick(f32::min, self.low, other.low), high: pick(f32::max, self.high, other.high) }
    }

    /// Area that the faces cover which are drawn.
    fn area(&self, scene: &Scene<'_>) -> f64 {
        let empty = self.low.iter().zip(&self.high).any(|(low, high)| low > high);
        if empty || scene.view.state.cull == Cull::Both {
            return 0.0;
        }
        let mut clip = [[0.0; 4]; 8];
        scene.position.positions(0, &self.corners(), &mut clip);
        if !finite(&clip) {
            return scene.view.unplaceable();
        }
        // A flat box, such as that of a picture, has one layer with or without culling.
        if let Some(axis) = self.low.iter().zip(&self.high).position(|(low, high)| low >= high) {
            return scene.view.faces(&clip, [FACES[2 * axis]])[0].abs();
        }
        let (mut front, mut back) = (0.0, 0.0);
        for area in scene.view.faces(&clip, FACES) {
            if area > 0.0 { front += area } else { back -= area }
        }
        // Seen from outside, front and back faces of a box cover the same area, and culling
        // leaves one of them. Seen from inside there are only back faces.
        if scene.view.state.cull == Cull::None { front + back } else { f64::max(front, back) }
    }

    /// Bit 0 of a corner's number selects x, bit 1 y, bit 2 z.
    fn corners(&self) -> [Vertex; 8] {
        std::array::from_fn(|corner| {
            let at = |axis: usize| if corner & (1 << axis) == 0 { self.low[axis] } else { self.high[axis] };
            Vertex { index: u32::MAX, position: [at(0), at(1), at(2), 1.0] }
        })
    }
}

/// The faces, two for each axis, counter-clockwise as seen from outside.
const FACES: [[usize; 4]; 6] =
    [[5, 1, 3, 7], [0, 4, 6, 2], [6, 7, 3, 2], [0, 1, 5, 4], [4, 5, 7, 6], [1, 0, 2, 3]];

/// Buffer ranges whose box is kept, unless told otherwise.
const RANGES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::super::{BufferId, Format, MatrixPosition, Mode, RasterState, View};
    use super::*;

    const IDENTITY: MatrixPosition = MatrixPosition([
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 1.0],
    ]);

    fn estimate(points: &[[f32; 3]], cull: Cull, key: Option<RangeKey>, bb: &mut BoundingBox) -> Option<f64> {
        let bytes: Vec<u8> = points.iter().flatten().flat_map(|value| value.to_ne_bytes()).collect();
        let positions = Attribute { bytes: &bytes, offset: 0, stride: 0, components: 3, format: Format::F32 };
        let count = u32::try_from(points.len()).unwrap();
        let elements = Elements::Arrays { first: 0 };
        let draw = Draw { mode: Mode::TriangleStrip, elements, count, instances: 1, positions, key };
        let view = View::new(&RasterState { cull, ..RasterState::new(100, 100) });
        let scene = Scene { view: &view, position: &IDENTITY };
        bb.record(&draw, &scene);
        bb.take(&scene)
    }

    const QUAD: [[f32; 3]; 4] = [[-0.5, -0.5, 0.0], [0.5, -0.5, 0.0], [-0.5, 0.5, 0.0], [0.5, 0.5, 0.0]];
    const CUBE: [[f32; 3]; 3] = [[-0.5, -0.5, -0.5], [0.5, 0.5, 0.5], [0.0, 0.0, 0.0]];

    #[test]
    fn a_picture_is_its_area_times_coverage() {
        let mut bb = BoundingBox::default();
        for cull in [Cull::None, Cull::Back, Cull::Front] {
            let fragments = estimate(&QUAD, cull, None, &mut bb).unwrap();
            assert!((fragments - 0.6 * 2500.0).abs() < 1e-6, "{fragments}");
        }
        assert_eq!(estimate(&QUAD, Cull::Both, None, &mut bb), Some(0.0));
    }

    #[test]
    fn a_body_has_two_layers_without_culling() {
        let mut bb = BoundingBox::new(1.0, 8);
        assert_eq!(estimate(&CUBE, Cull::Back, None, &mut bb), Some(2500.0));
        assert_eq!(estimate(&CUBE, Cull::None, None, &mut bb), Some(5000.0));
    }

    #[test]
    fn a_known_range_is_not_read_again() {
        let mut bb = BoundingBox::new(1.0, 8);
        let key = |generation| {
            Some(RangeKey {
                positions: BufferId { buffer: 1, generation },
                layout: 0,
                indices: None,
                first: 0,
                count: 3,
                mode: Mode::TriangleStrip,
            })
        };
        assert_eq!(estimate(&CUBE, Cull::Back, key(1), &mut bb), Some(2500.0));
        assert_eq!(estimate(&[[0.0; 3]; 3], Cull::Back, key(1), &mut bb), Some(2500.0));
        assert_eq!(estimate(&[[0.0; 3]; 3], Cull::Back, key(2), &mut bb), Some(0.0));
    }

    #[test]
    fn hostile_positions_give_a_number() {
        let mut bb = BoundingBox::default();
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE] {
            let fragments = estimate(&[[bad; 3], [-bad; 3], [0.1; 3]], Cull::None, None, &mut bb).unwrap();
            assert!(fragments.is_finite() && fragments >= 0.0, "{bad}: {fragments}");
        }
    }
}
