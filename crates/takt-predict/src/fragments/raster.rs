//! Counts fragments exactly, as a GPU does; for evaluation only, it is far too slow to predict.
//!
//! Vertices are snapped to 1/256 of a pixel. A fragment is produced for each pixel whose centre
//! lies inside a triangle; of centres on an edge, those on left and top edges count, so that
//! triangles side by side share no fragment and leave no gap. With a depth test, fragments that
//! lie behind what was drawn before do not count, as with an early depth test of unlimited
//! precision.

use super::clip::{Bounds, POINTS_MAX, Polygon};
use super::view::{Pixels, RasterState, View};

/// Which fragments the depth test lets pass.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum DepthTest {
    /// All: the test is disabled.
    #[default]
    Disabled,
    /// Nearer ones (`GL_LESS`).
    Less,
    /// Nearer ones and those at the same depth (`GL_LEQUAL`).
    LessOrEqual,
}

/// A render target on which fragments are counted.
#[derive(Clone, Debug)]
pub struct Raster {
    view: View,
    test: DepthTest,
    seen: Pixels,
    depth: Vec<f32>,
}

impl Raster {
    /// An empty target.
    pub fn new(state: &RasterState, test: DepthTest) -> Self {
        let viewport = RasterState { scissor: Some(state.viewport), ..*state };
        let seen = state.drawable().cut(viewport.drawable());
        let [width, height] = state.target.map(|size| usize::try_from(size).unwrap_or(0));
        let pixels = if test == DepthTest::Disabled { 0 } else { width * height };
        Self { view: View::new(state), test, seen, depth: vec![1.0; pixels] }
    }

    /// Clears the depth buffer.
    pub fn clear(&mut self) {
        self.depth.fill(1.0);
    }

    /// Draws a triangle given in clip coordinates and counts its fragments.
    pub fn triangle(&mut self, triangle: &[[f32; 4]; 3]) -> u64 {
        if !triangle.iter().flatten().all(|value| value.is_finite()) {
            return 0;
        }
        // The sides of the target are left to the pixel loop: cutting there would move edges by
        // the snapping of new vertices.
        let polygon = Polygon::clipped(triangle.map(|vertex| vertex.map(f64::from)), &GUARD.planes());
        let mut corners = [Corner::default(); POINTS_MAX];
        for (corner, point) in corners.iter_mut().zip(polygon.points()) {
            *corner = self.snap(point);
        }
        let corners = &corners[..polygon.points().len()];
        let Some((first, rest)) = corners.split_first() else { return 0 };
        let fans = || rest.windows(2).map(|pair| [*first, pair[0], pair[1]]);
        let area: i64 = fans().map(|[a, b, c]| edge(a, b, c)).sum();
        if !self.view.keeps(area as f64) {
            return 0;
        }
        let fragments: u64 = fans().map(|fan| self.fill(fan)).sum();
        // Coordinates of absurdly different size can leave a polygon that is not quite convex, and
        // the triangles that it is filled with then overlap.
        fragments.min(self.seen.count())
    }

    fn snap(&self, point: &[f64; 4]) -> Corner {
        let [x, y, z, w] = *point;
        let viewport = self.view.state.viewport;
        let [near, far] = self.view.state.depth_range.map(f64::from);
        let place = |at: f64, half: f64, origin: i32| {
            let at = (at / w).clamp(GUARD.left, GUARD.right);
            let subpixels = (((at + 1.0) * half + f64::from(origin)) * SUBPIXELS).round();
            #[expect(clippy::cast_possible_truncation, reason = "clipped to the guard band")]
            let subpixels = subpixels as i64;
            subpixels
        };
        Corner {
            x: place(x, self.view.half[0], viewport.x),
            y: place(y, self.view.half[1], viewport.y),
            z: near + (far - near) * (z / w + 1.0) / 2.0,
        }
    }

    fn fill(&mut self, [a, b, c]: [Corner; 3]) -> u64 {
        let area = edge(a, b, c);
        let [a, b, c] = match area.signum() {
            1 => [a, b, c],
            -1 => [a, c, b],
            _ => return 0,
        };
        let low =
            |values: [i64; 3]| values.into_iter().min().map_or(0, |value| (value - HALF).div_euclid(ONE));
        let high =
            |values: [i64; 3]| values.into_iter().max().map_or(0, |value| (value - HALF).div_euclid(ONE) + 1);
        let columns = low([a.x, b.x, c.x]).max(self.seen.left)..high([a.x, b.x, c.x]).min(self.seen.right);
        let rows = low([a.y, b.y, c.y]).max(self.seen.bottom)..high([a.y, b.y, c.y]).min(self.seen.top);
        let edges = [Edge::new(b, c), Edge::new(c, a), Edge::new(a, b)];
        let mut fragments = 0;
        for row in rows {
            let first = Corner { x: columns.start * ONE + HALF, y: row * ONE + HALF, z: 0.0 };
            let mut sides = edges.map(|edge| edge.at(first));
            for column in columns.clone() {
                let inside = sides.iter().zip(&edges).all(|(side, edge)| side + edge.bias >= 0);
                if inside && self.passes(column, row, sides, [a.z, b.z, c.z]) {
                    fragments += 1;
                }
                sides.iter_mut().zip(&edges).for_each(|(side, edge)| *side += edge.step());
            }
        }
        fragments
    }

    fn passes(&mut self, column: i64, row: i64, weights: [i64; 3], depths: [f64; 3]) -> bool {
        if self.test == DepthTest::Disabled {
            return true;
        }
        let at = row * i64::from(self.view.state.target[0]) + column;
        let Some(old) = usize::try_from(at).ok().and_then(|at| self.depth.get_mut(at)) else { return true };
        #[expect(clippy::cast_possible_truncation, reason = "a depth buffer has 32 bits at most")]
        let depth = interpolate(weights, depths) as f32;
        let passes = match self.test {
            DepthTest::Disabled => true,
            DepthTest::Less => depth < *old,
            DepthTest::LessOrEqual => depth <= *old,
        };
        if passes {
            *old = depth;
        }
        passes
    }
}

/// A vertex in subpixels.
#[derive(Copy, Clone, Default, Debug)]
struct Corner {
    x: i64,
    y: i64,
    z: f64,
}

/// One side of a triangle that goes counter-clockwise.
#[derive(Copy, Clone, Debug)]
struct Edge {
    from: Corner,
    to: Corner,
    /// Takes centres on this edge out, unless it is a left or a top one.
    bias: i64,
}

impl Edge {
    fn new(from: Corner, to: Corner) -> Self {
        let left = to.y < from.y;
        let top = to.y == from.y && to.x < from.x;
        Self { from, to, bias: if left || top { 0 } else { -1 } }
    }

    fn at(&self, point: Corner) -> i64 {
        edge(self.from, self.to, point)
    }

    /// By how much that changes from one pixel to the next.
    fn step(&self) -> i64 {
        (self.from.y - self.to.y) * ONE
    }
}

/// Twice the signed area of a triangle: positive if it goes counter-clockwise.
fn edge(a: Corner, b: Corner, c: Corner) -> i64 {
    (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)
}

fn interpolate(weights: [i64; 3], depths: [f64; 3]) -> f64 {
    let sum: i64 = weights.iter().sum();
    weights.iter().zip(depths).map(|(&weight, depth)| weight as f64 * depth).sum::<f64>() / sum as f64
}

const ONE: i64 = 256;
const HALF: i64 = ONE / 2;
const SUBPIXELS: f64 = ONE as f64;
/// Vertices this many times further out than the viewport's edge need no clipping: with targets
/// of 2^16 pixels, products of two differences still fit in 64 bits.
const GUARD: Bounds = Bounds { left: -8.0, right: 8.0, bottom: -8.0, top: 8.0 };

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::view::{Cull, Rect};
    use super::*;

    fn count(state: &RasterState, triangles: &[[[f32; 4]; 3]]) -> u64 {
        let mut raster = Raster::new(state, DepthTest::Disabled);
        triangles.iter().map(|triangle| raster.triangle(triangle)).sum()
    }

    fn point(x: f32, y: f32) -> [f32; 4] {
        [x, y, 0.0, 1.0]
    }

    /// The example of the thesis's figure 3.9: area says little about one thin triangle.
    #[test]
    fn a_thin_triangle_over_centres_has_fragments_and_one_between_has_none() {
        let state = RasterState::new(4, 4);
        let over = [point(-1.0, 0.2), point(1.0, 0.2), point(1.0, 0.3)];
        let between = [point(-1.0, 0.01), point(1.0, 0.01), point(1.0, 0.2)];
        assert_eq!(count(&state, &[over]), 2);
        assert_eq!(count(&state, &[between]), 0);
    }

    #[test]
    fn quads_share_no_fragment_and_leave_no_gap() {
        let state = RasterState::new(456, 456);
        let [a, b, c, d] = [point(-1.0, -1.0), point(1.0, -1.0), point(1.0, 1.0), point(-1.0, 1.0)];
        assert_eq!(count(&state, &[[a, b, c], [a, c, d]]), 207_936);
        assert_eq!(count(&state, &[[a, b, c], [a, d, c]]), 207_936, "either way round");
    }

    #[test]
    fn viewport_and_scissor_cut() {
        let large = [point(-9.0, -9.0), point(20.0, -9.0), point(-9.0, 20.0)];
        let rect = |x, width| Rect { x, y: 0, width, height: 50 };
        let state = RasterState { viewport: rect(10, 50), ..RasterState::new(100, 100) };
        assert_eq!(count(&state, &[large]), 2500);
        let state = RasterState { scissor: Some(rect(20, 10)), ..state };
        assert_eq!(count(&state, &[large]), 500);
    }

    #[test]
    fn what_lies_behind_fails_the_depth_test() {
        let state = RasterState::new(100, 100);
        let at = |z| [[-1.0, -1.0, z, 1.0], [1.0, -1.0, z, 1.0], [-1.0, 1.0, z, 1.0]];
        let mut raster = Raster::new(&state, DepthTest::Less);
        let passed = [0.5, 0.5, 0.7, 0.2].map(|z| raster.triangle(&at(z)));
        let all = passed[0];
        assert!(all.abs_diff(5000) <= 100, "{all}");
        assert_eq!(passed, [all, 0, 0, all]);
        raster.clear();
        assert_eq!(raster.triangle(&at(0.9)), all);
        let mut raster = Raster::new(&state, DepthTest::LessOrEqual);
        assert_eq!([0.5, 0.5].map(|z| raster.triangle(&at(z))), [all, all]);
    }

    fn coordinate() -> impl Strategy<Value = f32> {
        prop_oneof![3 => -2.0f32..2.0, 1 => any::<f32>()]
    }

    proptest! {
        #[test]
        fn a_fan_around_any_point_covers_a_convex_polygon_once(x in -0.9f32..0.9, y in -0.9f32..0.9) {
            let state = RasterState::new(64, 64);
            let ring = [point(-1.0, -1.0), point(1.0, -1.0), point(1.0, 1.0), point(-1.0, 1.0)];
            let fan: Vec<_> = (0..4).map(|n| [point(x, y), ring[n], ring[(n + 1) % 4]]).collect();
            prop_assert_eq!(count(&state, &fan), 64 * 64);
        }

        #[test]
        fn counts_and_areas_differ_by_the_circumference_at_most(
            corners in prop::array::uniform3((-1.5f32..1.5, -1.5f32..1.5, 0.5f32..2.0)),
            cull in prop_oneof![Just(Cull::None), Just(Cull::Back), Just(Cull::Front)],
        ) {
            let triangle = corners.map(|(x, y, w)| [x * w, y * w, 0.0, w]);
            let state = RasterState { cull, ..RasterState::new(200, 150) };
            let exact = count(&state, &[triangle]) as f64;
            let area = View::new(&state).triangle(&triangle);
            // A polygon within the target has no more circumference than the target.
            prop_assert!((exact - area).abs() <= 351.0, "{} {}", exact, area);
        }

        #[test]
        fn hostile_triangles_are_counted_within_the_target(
            triangle in prop::array::uniform3(prop::array::uniform4(coordinate())),
        ) {
            let state = RasterState::new(32, 32);
            prop_assert!(count(&state, &[triangle]) <= 32 * 32);
        }
    }
}
