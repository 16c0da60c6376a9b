//! Shapes, each as the signed distance to its edge: negative inside, positive outside.
//!
//! Anything with a distance can be filled with smooth edges at any size, outlined, and given a glow,
//! by one and the same loop of the canvas.

/// A point of the plane, y up.
pub(crate) type Point = [f32; 2];

/// A shape with the box that contains it.
pub(crate) struct Shape {
    low: Point,
    high: Point,
    distance: Box<dyn Fn(Point) -> f32>,
}

impl Shape {
    /// Corners of the box around it, grown by a margin.
    pub(crate) fn bounds(&self, margin: f32) -> (Point, Point) {
        (self.low.map(|low| low - margin), self.high.map(|high| high + margin))
    }

    /// Distance of a point to the edge.
    pub(crate) fn distance(&self, point: Point) -> f32 {
        (self.distance)(point)
    }

    fn around(points: &[Point], margin: f32, distance: impl Fn(Point) -> f32 + 'static) -> Self {
        let fold = |pick: fn(f32, f32) -> f32, start: f32| {
            points.iter().fold([start; 2], |best, point| [pick(best[0], point[0]), pick(best[1], point[1])])
        };
        let low = fold(f32::min, f32::INFINITY).map(|low| low - margin);
        let high = fold(f32::max, f32::NEG_INFINITY).map(|high| high + margin);
        Self { low, high, distance: Box::new(distance) }
    }

    /// A disc.
    pub(crate) fn disc(centre: Point, radius: f32) -> Self {
        Self::around(&[centre], radius, move |point| length(minus(point, centre)) - radius)
    }

    /// A box with round corners.
    pub(crate) fn panel(centre: Point, half: Point, radius: f32) -> Self {
        let corners = [minus(centre, half), plus(centre, half)];
        Self::around(&corners, 0.0, move |point| {
            let from = minus(point, centre);
            let outside = [from[0].abs() - half[0] + radius, from[1].abs() - half[1] + radius];
            let far = length(outside.map(|side| side.max(0.0)));
            far + outside[0].max(outside[1]).min(0.0) - radius
        })
    }

    /// A line through all points, with round ends.
    pub(crate) fn line(points: &[Point], width: f32) -> Self {
        let path = points.to_vec();
        Self::around(points, width / 2.0, move |point| {
            let nearest = path.windows(2).map(|ends| to_segment(point, ends[0], ends[1]));
            nearest.fold(f32::INFINITY, f32::min) - width / 2.0
        })
    }

    /// A part of a circle, from one angle to another counter-clockwise (radians), with flat ends.
    pub(crate) fn arc(centre: Point, radius: f32, angles: (f32, f32), width: f32) -> Self {
        let middle = f32::midpoint(angles.0, angles.1);
        let half = (angles.1 - angles.0) / 2.0;
        Self::around(&[centre], radius + width, move |point| {
            // Seen from the middle of the arc, both ends are alike.
            let from = turn(minus(point, centre), -middle);
            let from = [from[0], from[1].abs()];
            let across = (length(from) - radius).abs() - width / 2.0;
            let beyond = -turn(from, -half)[1];
            let past_end = -beyond;
            if half >= std::f32::consts::PI { across } else { across.max(past_end) }
        })
    }

    /// A closed polygon without crossing edges.
    pub(crate) fn polygon(points: &[Point]) -> Self {
        let path = points.to_vec();
        Self::around(points, 0.0, move |point| {
            let mut nearest = f32::INFINITY;
            let mut inside = false;
            for (index, &end) in path.iter().enumerate() {
                let start = path[(index + path.len() - 1) % path.len()];
                nearest = nearest.min(to_segment(point, start, end));
                let crosses = (start[1] > point[1]) != (end[1] > point[1]);
                if crosses {
                    let at = start[0] + (point[1] - start[1]) / (end[1] - start[1]) * (end[0] - start[0]);
                    inside ^= point[0] < at;
                }
            }
            if inside { -nearest } else { nearest }
        })
    }

    /// What is in this shape or in another one.
    pub(crate) fn and(self, other: Self) -> Self {
        let corners = [self.low, self.high, other.low, other.high];
        Self::around(&corners, 0.0, move |point| self.distance(point).min(other.distance(point)))
    }

    /// What is in this shape and not in another one.
    pub(crate) fn without(self, other: Self) -> Self {
        let corners = [self.low, self.high];
        Self::around(&corners, 0.0, move |point| self.distance(point).max(-other.distance(point)))
    }
}

pub(crate) fn plus(a: Point, b: Point) -> Point {
    [a[0] + b[0], a[1] + b[1]]
}

pub(crate) fn minus(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1]]
}

pub(crate) fn times(a: Point, factor: f32) -> Point {
    a.map(|part| part * factor)
}

pub(crate) fn length(a: Point) -> f32 {
    (a[0] * a[0] + a[1] * a[1]).sqrt()
}

/// Turns a vector counter-clockwise.
pub(crate) fn turn(a: Point, angle: f32) -> Point {
    let (sin, cos) = angle.sin_cos();
    [a[0] * cos - a[1] * sin, a[0] * sin + a[1] * cos]
}

/// The point at an angle and a distance from the origin.
pub(crate) fn polar(angle: f32, radius: f32) -> Point {
    turn([radius, 0.0], angle)
}

fn to_segment(point: Point, start: Point, end: Point) -> f32 {
    let (along, from) = (minus(end, start), minus(point, start));
    let square = along[0] * along[0] + along[1] * along[1];
    let share = if square > 0.0 { (from[0] * along[0] + from[1] * along[1]) / square } else { 0.0 };
    length(minus(from, times(along, share.clamp(0.0, 1.0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let near =
            |found: f32, wanted: f32| assert!((found - wanted).abs() < 1e-5, "{found} is not {wanted}");
        near(Shape::disc([1.0, 0.0], 2.0).distance([4.0, 0.0]), 1.0);
        near(Shape::panel([0.0; 2], [2.0, 1.0], 0.5).distance([0.0, 0.0]), -1.0);
        near(Shape::panel([0.0; 2], [2.0, 1.0], 0.0).distance([5.0, 5.0]), 5.0);
        near(Shape::line(&[[0.0; 2], [4.0, 0.0]], 1.0).distance([2.0, 2.0]), 1.5);
        let square = Shape::polygon(&[[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]]);
        near(square.distance([1.0, 1.0]), -1.0);
        near(square.distance([3.0, 1.0]), 1.0);
        let quarter = Shape::arc([0.0; 2], 2.0, (0.0, std::f32::consts::FRAC_PI_2), 1.0);
        near(quarter.distance(polar(0.7, 2.0)), -0.5);
        near(quarter.distance(polar(0.7, 3.0)), 0.5);
        assert!(quarter.distance(polar(-0.5, 2.0)) > 0.0 && quarter.distance(polar(2.0, 2.0)) > 0.0);
        assert!(quarter.distance(polar(4.0, 2.0)) > 0.0);
    }

    #[test]
    fn bounds_contain_what_is_inside() {
        let shapes = [
            Shape::disc([0.3, 0.1], 0.4),
            Shape::line(&[[-0.5, 0.2], [0.5, -0.3], [0.1, 0.7]], 0.2),
            Shape::arc([0.0; 2], 0.6, (1.0, 4.0), 0.1),
            Shape::disc([0.0; 2], 0.5).without(Shape::disc([0.2, 0.0], 0.3)),
        ];
        for shape in shapes {
            let (low, high) = shape.bounds(0.0);
            for step in 0..10_000_u16 {
                let point = [f32::from(step % 100) / 50.0 - 1.0, f32::from(step / 100) / 50.0 - 1.0];
                let within = (0..2).all(|axis| (low[axis]..=high[axis]).contains(&point[axis]));
                assert!(within || shape.distance(point) > 0.0);
            }
        }
    }
}
