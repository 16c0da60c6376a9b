//! Triangles in space, prepared so that one matrix after the other can be asked for their area.
//!
//! Clip coordinates are linear in the corner `(x, y, z, 1)`. Twice the area of a triangle on the
//! screen is the determinant of its three `(x, y, w)` over the product of its three `w`, and by
//! the formula of Cauchy and Binet this determinant is a sum of four products: minors of the
//! matrix, which are the same for all triangles, times minors of the corners, which never change.
//! The latter are the normal of the triangle, and its volume as seen from the origin. What is
//! left for each frame is three `w` and one division.
//!
//! This holds where nothing is clipped, so a box around all corners must be inside.

use super::draw::Vertex;
use super::view::View;

/// Triangles that are computed side by side.
const LANES: usize = 8;

/// See the module.
#[derive(Clone, Default, Debug)]
pub(super) struct Facets {
    blocks: Vec<FacetBlock>,
    count: usize,
    /// Corners are given from here, so that models far from the origin keep their digits.
    origin: [f32; 3],
    low: [f32; 3],
    high: [f32; 3],
}

#[derive(Clone, Debug)]
struct FacetBlock {
    /// Normal and volume, times what the triangle stands for.
    minors: [[f32; LANES]; 4],
    /// By corner and axis.
    corners: [[[f32; LANES]; 3]; 3],
}

impl FacetBlock {
    const EMPTY: Self = Self { minors: [[0.0; LANES]; 4], corners: [[[0.0; LANES]; 3]; 3] };
}

/// The normal of a triangle, as long as twice its area.
#[inline]
pub(super) fn normal([a, b, c]: &[[f32; 3]; 3]) -> [f32; 3] {
    let less = |p: &[f32; 3]| [p[0] - a[0], p[1] - a[1], p[2] - a[2]];
    cross(&less(b), &less(c))
}

#[inline]
fn cross(a: &[f32; 3], b: &[f32; 3]) -> [f32; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

impl Facets {
    /// Forgets all triangles.
    pub(super) fn clear(&mut self) {
        self.blocks.clear();
        self.count = 0;
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a triangle that stands for `weight` of its like.
    pub(super) fn push(&mut self, corners: &[[f32; 3]; 3], weight: f32) {
        if self.count == 0 {
            self.origin = corners[0];
            (self.low, self.high) = ([0.0; 3], [0.0; 3]);
        }
        let lane = self.count % LANES;
        if lane == 0 {
            self.blocks.push(FacetBlock::EMPTY);
        }
        self.count += 1;
        let origin = self.origin;
        let [a, b, c] = corners.map(|corner| std::array::from_fn(|axis| corner[axis] - origin[axis]));
        let [x, y, z] = normal(&[a, b, c]);
        let volume: f32 = cross(&b, &c).iter().zip(a).map(|(n, a)| n * a).sum();
        let Some(block) = self.blocks.last_mut() else { return };
        for (minor, value) in block.minors.iter_mut().zip([x, y, z, volume]) {
            minor[lane] = value * weight;
        }
        for (place, corner) in block.corners.iter_mut().zip([a, b, c]) {
            for axis in 0..3 {
                let value = corner[axis];
                place[axis][lane] = value;
                // What is no number makes the box so as well, and then nothing is inside.
                self.low[axis] = if value >= self.low[axis] { self.low[axis] } else { value };
                self.high[axis] = if value <= self.high[axis] { self.high[axis] } else { value };
            }
        }
    }

    /// Corners of the triangles one by one, three vertices each.
    pub(super) fn vertices(&self, count: usize, vertices: &mut Vec<Vertex>) {
        vertices.clear();
        for number in 0..count.min(self.count) {
            let corners = &self.blocks[number / LANES].corners;
            vertices.extend(corners.iter().map(|corner| {
                let at = |axis: usize| corner[axis][number % LANES] + self.origin[axis];
                Vertex { index: u32::MAX, position: [at(0), at(1), at(2), 1.0] }
            }));
        }
    }

    /// Takes memory for this many triangles.
    pub(super) fn reserve(&mut self, count: usize) {
        self.blocks.reserve_exact(count.div_ceil(LANES));
    }

    /// Fragments of all triangles under a matrix, by columns; none if some may be clipped.
    pub(super) fn fragments(&self, columns: &[[f32; 4]; 4], view: &View) -> Option<f64> {
        let columns = self.around_origin(columns);
        if !view.quick.trusted || !view.is_inside(&self.corners(&columns)) {
            return None;
        }
        let minors = minors(&columns);
        let [wx, wy, wz, w1] = columns.map(|column| column[3]);
        let [front, back] = view.quick.scale;
        let mut sums = [0.0f32; LANES];
        for block in &self.blocks {
            let w = |corner: &[[f32; LANES]; 3], lane: usize| {
                wx * corner[0][lane] + wy * corner[1][lane] + wz * corner[2][lane] + w1
            };
            let [a, b, c] = &block.corners;
            for (lane, sum) in sums.iter_mut().enumerate() {
                let [x, y, z, volume] = block.minors.each_ref().map(|minor| minor[lane]);
                let determinant = minors[0] * x + minors[1] * y + minors[2] * z + minors[3] * volume;
                let twice = determinant / (w(a, lane) * w(b, lane) * w(c, lane));
                *sum += twice.max(0.0) * front + (-twice).max(0.0) * back;
            }
        }
        let sum = sums.iter().copied().map(f64::from).sum::<f64>();
        // What is no number here needs the careful way.
        sum.is_finite().then_some(sum)
    }

    /// The matrix for corners that are given from the origin of the facets.
    #[expect(clippy::cast_possible_truncation, reason = "back to the precision that it came in")]
    fn around_origin(&self, columns: &[[f32; 4]; 4]) -> [[f32; 4]; 4] {
        let [a, b, c, d] = columns.map(|column| column.map(f64::from));
        let [x, y, z] = self.origin.map(f64::from);
        let moved: [f64; 4] = std::array::from_fn(|row| a[row] * x + b[row] * y + c[row] * z + d[row]);
        [columns[0], columns[1], columns[2], moved.map(|value| value as f32)]
    }

    /// Clip coordinates of the corners of the box around all triangles.
    fn corners(&self, columns: &[[f32; 4]; 4]) -> [[f32; 4]; 8] {
        let [a, b, c, d] = columns;
        std::array::from_fn(|corner| {
            let at = |axis: usize| if corner & (1 << axis) == 0 { self.low[axis] } else { self.high[axis] };
            std::array::from_fn(|row| a[row] * at(0) + b[row] * at(1) + c[row] * at(2) + d[row])
        })
    }
}

/// Minors of the rows x, y and w of a matrix: without x, without y (with the sign that goes with
/// it), without z, and without the constant.
#[expect(clippy::cast_possible_truncation, reason = "back to the precision that it came in")]
fn minors(columns: &[[f32; 4]; 4]) -> [f32; 4] {
    let [x, y, z, one] = columns.map(|[x, y, _, w]| [x, y, w].map(f64::from));
    let determinant = |[a, b, c]: [[f64; 3]; 3]| {
        a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0])
            + a[2] * (b[0] * c[1] - b[1] * c[0])
    };
    [determinant([y, z, one]), -determinant([x, z, one]), determinant([x, y, one]), determinant([x, y, z])]
        .map(|minor| minor as f32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Cull, MatrixPosition, PositionSource as _, RasterState};
    use super::*;

    /// A camera that looks at the origin from some distance.
    const CAMERA: [[f32; 4]; 4] =
        [[1.2, 0.1, 0.0, 0.1], [-0.1, 1.6, 0.1, 0.0], [0.2, 0.1, -1.1, -1.0], [0.0, 0.1, 3.0, 4.0]];

    fn one_by_one(triangles: &[[[f32; 3]; 3]], view: &View) -> f64 {
        let clip = |triangle: &[[f32; 3]; 3]| {
            let vertices = triangle.map(|[x, y, z]| Vertex { index: 0, position: [x, y, z, 1.0] });
            let mut clip = [[0.0; 4]; 3];
            MatrixPosition(CAMERA).positions(0, &vertices, &mut clip);
            clip
        };
        triangles.iter().map(|triangle| view.triangle(&clip(triangle))).sum()
    }

    fn triangles() -> impl Strategy<Value = Vec<[[f32; 3]; 3]>> {
        prop::collection::vec(prop::array::uniform3(prop::array::uniform3(-1.0f32..1.0)), 1..40)
    }

    proptest! {
        #[test]
        fn areas_are_those_of_single_triangles(
            triangles in triangles(),
            cull in prop::sample::select(vec![Cull::None, Cull::Front, Cull::Back]),
            far in -0.5f32..0.5,
        ) {
            let view = View::new(&RasterState { cull, ..RasterState::new(800, 600) });
            let moved: Vec<[[f32; 3]; 3]> =
                triangles.iter().map(|corners| corners.map(|corner| corner.map(|value| value + far))).collect();
            let mut facets = Facets::default();
            moved.iter().for_each(|corners| facets.push(corners, 1.0));
            let expected = one_by_one(&moved, &view);
            if let Some(found) = facets.fragments(&CAMERA, &view) {
                prop_assert!((found - expected).abs() <= 1e-3 * expected + 0.1, "{} {}", found, expected);
            }
        }
    }

    #[test]
    fn what_may_be_clipped_is_left_to_others() {
        let view = View::new(&RasterState::new(800, 600));
        let mut facets = Facets::default();
        facets.push(&[[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], 2.0);
        assert!(facets.fragments(&CAMERA, &view).is_some_and(|found| found > 0.0));
        facets.push(&[[0.0; 3], [9.0, 0.0, 0.0], [0.0, 1.0, 0.0]], 1.0);
        assert_eq!(facets.fragments(&CAMERA, &view), None);
        facets.clear();
        facets.push(&[[f32::NAN; 3]; 3], 1.0);
        assert_eq!(facets.fragments(&CAMERA, &view), None);
    }
}
