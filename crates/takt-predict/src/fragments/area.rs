//! Fragments of one primitive, taken to be its visible area.
//!
//! GL produces a fragment for each pixel centre inside a triangle. Over many triangles the
//! number of centres is the area, so the area is used; one triangle alone can be off by about
//! half its circumference. Apps that use this on purpose are met by [`Trust::Untrusted`].

use super::clip::{Bounds, POINTS_MAX, Point, Polygon, W_MIN, clip_line};
use super::view::{Trust, View};

impl View {
    /// Fragments of a triangle given in clip coordinates; never negative, never above
    /// [`View::visible`].
    pub fn triangle(&self, triangle: &[[f32; 4]; 3]) -> f64 {
        if self.quick.trusted && self.is_inside(triangle) {
            return self.inner_triangle(triangle);
        }
        self.clipped_triangle(triangle).min(self.visible)
    }

    /// Whether nothing needs to be clipped. What is no number is never inside, and nothing is
    /// when nothing is visible.
    pub(super) fn is_inside(&self, vertices: &[[f32; 4]]) -> bool {
        let [left, right, bottom, top] = self.quick.bounds;
        vertices.iter().fold(true, |inside, &[x, y, z, w]| {
            inside
                & W_QUICK.contains(&w)
                & (z.abs() <= w)
                & (x >= left * w)
                & (x <= right * w)
                & (y >= bottom * w)
                & (y <= top * w)
        })
    }

    /// Nearly all triangles end here. Single precision will do: errors are those of rounding
    /// device coordinates, a thousandth of a pixel on the largest targets. There is one division
    /// and no branch, as which way a triangle faces cannot be foreseen.
    fn inner_triangle(&self, triangle: &[[f32; 4]; 3]) -> f64 {
        let [a, b, c] = triangle;
        let product = (a[3] * b[3] * c[3]).recip();
        let scale = |vertex: &[f32; 4], others: f32| [vertex[0] * others, vertex[1] * others];
        let a = scale(a, b[3] * c[3] * product);
        let [b, c] = [scale(b, triangle[0][3] * c[3] * product), scale(c, triangle[0][3] * b[3] * product)];
        let twice = (a[0] - c[0]) * (b[1] - c[1]) - (b[0] - c[0]) * (a[1] - c[1]);
        let kept = twice.max(0.0) * self.quick.scale[0] + (-twice).max(0.0) * self.quick.scale[1];
        f64::from(kept).min(self.visible)
    }

    /// Signed areas of the visible parts of flat faces of a body, without regard to culling; a face names its
    /// corners.
    pub(super) fn faces<const N: usize>(&self, corners: &[[f32; 4]; 8], faces: [[usize; 4]; N]) -> [f64; N] {
        if self.visible <= 0.0 || !finite(corners) {
            return [0.0; N];
        }
        let points = corners.map(|corner| corner.map(f64::from));
        if self.is_inside(corners) {
            let window = points.map(|point| self.window(&point));
            return faces.map(|face| of_face(face.map(|corner| window[corner]).into_iter()));
        }
        // Most bodies stick out on one side, so most planes need not be tried with each face.
        let mut planes = self.bounds.planes();
        let mut count = 0;
        for at in 0..planes.len() {
            if planes[at].cuts(&points) {
                planes[count] = planes[at];
                count += 1;
            }
        }
        faces.map(|face| {
            let polygon = Polygon::clipped(face.map(|corner| points[corner]), &planes[..count]);
            of_face(polygon.points().iter().map(|point| self.visible_window(point)))
        })
    }

    /// Fragments of a line given in clip coordinates.
    ///
    /// GL steps along the longer axis, and a wide line repeats each step along the shorter one.
    pub fn line(&self, line: &[[f32; 4]; 2]) -> f64 {
        if self.visible <= 0.0 {
            return 0.0;
        }
        if !finite(line) {
            return self.unplaceable();
        }
        let Some(ends) = clip_line(line, &self.bounds) else { return 0.0 };
        let [a, b] = ends.map(|point| self.visible_window(&point));
        let steps = (b[0] - a[0]).abs().max((b[1] - a[1]).abs());
        self.rounded(steps * width(self.state.line_width)).min(self.visible)
    }

    /// Fragments of a point given in clip coordinates.
    pub fn point(&self, vertex: &[f32; 4]) -> f64 {
        if self.visible <= 0.0 {
            return 0.0;
        }
        if !finite(&[*vertex]) {
            return self.unplaceable();
        }
        let point = vertex.map(f64::from);
        let [x, y, z, w] = point;
        // A point is clipped by its centre alone, and by the volume, not by the scissor.
        if w < W_MIN || x.abs() > w || y.abs() > w || z.abs() > w {
            return 0.0;
        }
        let size = width(self.state.point_size);
        let drawable = self.state.drawable();
        let [x, y] = self.window(&point);
        let (left, bottom) = (f64::from(self.state.viewport.x), f64::from(self.state.viewport.y));
        let across = overlap(x + left, size, drawable.left as f64, drawable.right as f64);
        let up = overlap(y + bottom, size, drawable.bottom as f64, drawable.top as f64);
        self.rounded(across * up)
    }

    fn clipped_triangle(&self, triangle: &[[f32; 4]; 3]) -> f64 {
        if self.visible <= 0.0 {
            return 0.0;
        }
        if !finite(triangle) {
            return self.unplaceable();
        }
        let polygon = Polygon::clipped(triangle.map(|vertex| vertex.map(f64::from)), &self.bounds.planes());
        let mut window = [[0.0; 2]; POINTS_MAX];
        for (place, point) in window.iter_mut().zip(polygon.points()) {
            *place = self.visible_window(point);
        }
        self.polygon(&window[..polygon.points().len()])
    }

    /// Fragments of a convex polygon in pixels.
    fn polygon(&self, window: &[[f64; 2]]) -> f64 {
        let area = twice_area(window.iter().copied()) / 2.0;
        if !self.keeps(area) {
            return 0.0;
        }
        match self.state.trust {
            Trust::Trusted => area.abs(),
            Trust::Untrusted => area.abs().max(longest_side(window)).ceil(),
        }
    }

    /// Pixels from the lower left corner of the viewport; where that is does not matter to areas.
    fn window(&self, point: &Point) -> [f64; 2] {
        let scale = point[3].recip();
        [(point[0] * scale + 1.0) * self.half[0], (point[1] * scale + 1.0) * self.half[1]]
    }

    /// The same for a clipped point. Coordinates of very different size leave rounding errors,
    /// which must not carry it out again.
    fn visible_window(&self, point: &Point) -> [f64; 2] {
        let Bounds { left, right, bottom, top } = self.bounds;
        let (x, y) = ((point[0] / point[3]).clamp(left, right), (point[1] / point[3]).clamp(bottom, top));
        [(x + 1.0) * self.half[0], (y + 1.0) * self.half[1]]
    }

    fn rounded(&self, fragments: f64) -> f64 {
        match self.state.trust {
            Trust::Trusted => fragments,
            Trust::Untrusted => fragments.ceil(),
        }
    }

    /// What a primitive counts whose coordinates are no numbers: nothing if this is taken for
    /// a mistake, since GPUs draw nothing then, and everything if it may be intended.
    pub(super) fn unplaceable(&self) -> f64 {
        match self.state.trust {
            Trust::Trusted => 0.0,
            Trust::Untrusted => self.visible,
        }
    }
}

pub(super) fn finite(vertices: &[[f32; 4]]) -> bool {
    vertices.iter().flatten().all(|value| value.is_finite())
}

/// Signed area of a face in window coordinates. Corners so far away that a cut rounds their `w` to zero cannot be
/// divided: their face counts for nothing.
fn of_face(corners: impl Iterator<Item = [f64; 2]>) -> f64 {
    Some(twice_area(corners) / 2.0).filter(|area| area.is_finite()).unwrap_or_default()
}

/// Twice the signed area of a polygon, by the shoelace formula.
fn twice_area(mut points: impl Iterator<Item = [f64; 2]>) -> f64 {
    let Some(first) = points.next() else { return 0.0 };
    let Some(mut previous) = points.next() else { return 0.0 };
    let mut sum = 0.0;
    // Relative to the first corner, so that small areas far from the origin keep their digits.
    for point in points {
        let (a, b) = (less(previous, first), less(point, first));
        sum += a[0] * b[1] - a[1] * b[0];
        previous = point;
    }
    sum
}

fn longest_side(points: &[[f64; 2]]) -> f64 {
    let ends = points.iter().zip(points.iter().cycle().skip(1));
    ends.map(|(a, b)| less(*a, *b)).map(|[x, y]| x.hypot(y)).fold(0.0, f64::max)
}

fn less(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] - b[0], a[1] - b[1]]
}

/// Length of the part of an interval around `centre` that lies within two edges.
fn overlap(centre: f64, size: f64, low: f64, high: f64) -> f64 {
    ((centre + size / 2.0).min(high) - (centre - size / 2.0).max(low)).max(0.0)
}

/// Widths are rounded to whole pixels and are one at least; what is no number is one as well.
fn width(given: f32) -> f64 {
    f64::from(given).round().clamp(1.0, WIDTH_MAX).max(1.0)
}

/// Values of `w` whose product for three vertices is an ordinary number.
const W_QUICK: std::ops::Range<f32> = 1e-5..1e12;
/// Wider than any driver's limit.
const WIDTH_MAX: f64 = 8192.0;

#[cfg(test)]
mod tests;
