//! Clipping in homogeneous coordinates, before any division.
//!
//! A vertex behind the eye has a negative `w`, and dividing by it would fold the triangle over
//! to the wrong side. So triangles and lines are cut while they still have four coordinates:
//! by the near and the far plane, and by the edges of what is visible (Sutherland–Hodgman).

/// A point before the division by `w`.
pub(crate) type Point = [f64; 4];

/// Edges of the visible rectangle in normalised device coordinates.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct Bounds {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
    pub(crate) top: f64,
}

impl Bounds {
    /// The whole view volume.
    pub(crate) const WHOLE: Self = Self { left: -1.0, right: 1.0, bottom: -1.0, top: 1.0 };

    /// The planes that cut: the smallest `w`, near and far, and the four edges.
    pub(crate) fn planes(&self) -> [Plane; PLANES] {
        let plane = |normal, distance| Plane { normal, distance };
        [
            plane([0.0, 0.0, 0.0, 1.0], W_MIN),
            plane([0.0, 0.0, 1.0, 1.0], 0.0),
            plane([0.0, 0.0, -1.0, 1.0], 0.0),
            plane([1.0, 0.0, 0.0, -self.left], 0.0),
            plane([-1.0, 0.0, 0.0, self.right], 0.0),
            plane([0.0, 1.0, 0.0, -self.bottom], 0.0),
            plane([0.0, -1.0, 0.0, self.top], 0.0),
        ]
    }
}

/// A plane that cuts; a point is inside if its product with the normal is at least the distance.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Plane {
    normal: Point,
    distance: f64,
}

impl Plane {
    /// How far inside a point is.
    fn side(&self, point: &Point) -> f64 {
        dot(&self.normal, point) - self.distance
    }

    /// Whether it cuts something off these points.
    pub(crate) fn cuts(&self, points: &[Point]) -> bool {
        points.iter().any(|point| self.side(point) < 0.0)
    }
}

/// A convex polygon that is being cut.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Polygon {
    points: [Point; POINTS_MAX],
    len: usize,
}

impl Polygon {
    /// The part of a triangle or of a flat quad inside of all planes; without points if there is none.
    pub(crate) fn clipped<const N: usize>(corners: [Point; N], planes: &[Plane]) -> Self {
        const { assert!(N <= CORNERS_MAX) };
        let mut polygon = Self { points: [[0.0; 4]; POINTS_MAX], len: N };
        polygon.points[..N].copy_from_slice(&corners);
        planes.iter().for_each(|plane| polygon.cut(plane));
        polygon
    }

    /// Its corners; every one has a positive `w`.
    pub(crate) fn points(&self) -> &[Point] {
        &self.points[..self.len]
    }

    /// Keeps what lies on the inner side of a plane.
    fn cut(&mut self, plane: &Plane) {
        if !plane.cuts(self.points()) {
            return;
        }
        let old = *self;
        self.len = 0;
        let Some(mut previous) = old.points().last() else { return };
        for point in old.points() {
            let (before, after) = (plane.side(previous), plane.side(point));
            if (before < 0.0) != (after < 0.0) {
                self.push(between(previous, point, before / (before - after)));
            }
            if after >= 0.0 {
                self.push(*point);
            }
            previous = point;
        }
    }

    fn push(&mut self, point: Point) {
        // A plane adds one corner to a convex polygon at most. Rounding can make it look
        // slightly concave, and then a corner too many is as good as none.
        if self.len < POINTS_MAX {
            self.points[self.len] = point;
            self.len += 1;
        }
    }
}

/// The visible part of a line.
pub(crate) fn clip_line(line: &[[f32; 4]; 2], bounds: &Bounds) -> Option<[Point; 2]> {
    let [mut a, mut b] = line.map(|vertex| vertex.map(f64::from));
    for plane in bounds.planes() {
        let (from, to) = (plane.side(&a), plane.side(&b));
        match (from < 0.0, to < 0.0) {
            (true, true) => return None,
            (true, false) => a = between(&a, &b, from / (from - to)),
            (false, true) => b = between(&a, &b, from / (from - to)),
            (false, false) => {}
        }
    }
    Some([a, b])
}

fn dot(plane: &Point, point: &Point) -> f64 {
    plane[0] * point[0] + plane[1] * point[1] + plane[2] * point[2] + plane[3] * point[3]
}

fn between(a: &Point, b: &Point, at: f64) -> Point {
    std::array::from_fn(|axis| a[axis] + (b[axis] - a[axis]) * at)
}

/// The smallest `w`, near, far and the four edges.
const PLANES: usize = 7;
/// Corners of a polygon before it is clipped.
const CORNERS_MAX: usize = 4;
/// Every plane can add a corner.
pub(crate) const POINTS_MAX: usize = CORNERS_MAX + PLANES;
/// Nearer to the eye than this, a point cannot be divided.
pub(crate) const W_MIN: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_triangle_inside_stays_as_it_is() {
        let triangle = [[0.0, 0.0, 0.0, 1.0], [0.5, 0.0, 0.0, 1.0], [0.0, 0.5, 0.0, 1.0]];
        let polygon = Polygon::clipped(triangle, &Bounds::WHOLE.planes());
        assert_eq!(polygon.points(), triangle);
    }

    #[test]
    fn a_triangle_behind_the_eye_vanishes() {
        let triangle = [[0.0, 0.0, 0.0, -1.0], [0.5, 0.0, 0.0, -1.0], [0.0, 0.5, 0.0, -2.0]];
        assert!(Polygon::clipped(triangle, &Bounds::WHOLE.planes()).points().is_empty());
    }

    #[test]
    fn every_plane_can_add_a_corner() {
        let triangle = [[-1.6, -1.6, 0.0, 1.0], [1.7, -0.1, 0.0, 1.0], [-0.1, 1.7, 0.0, 1.0]];
        let polygon = Polygon::clipped(triangle, &Bounds::WHOLE.planes());
        assert!(polygon.points().len() > 4, "{:?}", polygon.points());
        for point in polygon.points() {
            assert!(point[0].abs() <= point[3] + 1e-12 && point[1].abs() <= point[3] + 1e-12, "{point:?}");
        }
    }

    #[test]
    fn a_line_through_the_eye_is_cut_at_the_near_plane() {
        let line = [[0.0, 0.0, -3.0, 1.0], [0.0, 0.5, 0.0, 1.0]];
        let [a, b] = clip_line(&line, &Bounds::WHOLE).unwrap();
        assert!((a[2] + a[3]).abs() < 1e-12, "{a:?}");
        assert_eq!(b, [0.0, 0.5, 0.0, 1.0]);
    }
}
