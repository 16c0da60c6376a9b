//! Matrices of four columns, as GL takes them.

/// Columns one after the other.
pub(crate) type Matrix = [f32; 16];

/// First `b`, then `a`.
pub(crate) fn product(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|at| (0..4).map(|k| a[k * 4 + at % 4] * b[at / 4 * 4 + k]).sum())
}

/// Moves.
pub(crate) const fn translation(x: f32, y: f32, z: f32) -> Matrix {
    [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, x, y, z, 1.0]
}

/// Turns about an axis of length 1, counter-clockwise.
pub(crate) fn rotation([x, y, z]: [f32; 3], angle: f32) -> Matrix {
    let (s, c) = angle.sin_cos();
    let t = 1.0 - c;
    [
        t * x * x + c,
        t * x * y + s * z,
        t * x * z - s * y,
        0.0,
        t * x * y - s * z,
        t * y * y + c,
        t * y * z + s * x,
        0.0,
        t * x * z + s * y,
        t * y * z - s * x,
        t * z * z + c,
        0.0,
        0.0,
        0.0,
        0.0,
        1.0,
    ]
}

/// The view of an eye at the origin that looks along −z; the angle is that from bottom to top.
pub(crate) fn perspective(angle: f32, aspect: f32, near: f32, far: f32) -> Matrix {
    let zoom = 1.0 / (angle / 2.0).tan();
    let depth = near - far;
    let mut matrix = [0.0; 16];
    matrix[0] = zoom / aspect;
    matrix[5] = zoom;
    matrix[10] = (far + near) / depth;
    matrix[11] = -1.0;
    matrix[14] = 2.0 * far * near / depth;
    matrix
}

/// Where a point goes, in homogeneous coordinates.
pub(crate) fn apply(matrix: &Matrix, point: [f32; 3]) -> [f32; 4] {
    let [x, y, z] = point;
    std::array::from_fn(|row| matrix[row] * x + matrix[4 + row] * y + matrix[8 + row] * z + matrix[12 + row])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_apply_the_right_one_first() {
        let quarter = rotation([0.0, 0.0, 1.0], std::f32::consts::FRAC_PI_2);
        let both = product(&translation(10.0, 0.0, 0.0), &quarter);
        let [x, y, z, w] = apply(&both, [1.0, 0.0, 5.0]);
        for (found, wanted) in [(x, 10.0), (y, 1.0), (z, 5.0), (w, 1.0)] {
            assert!((found - wanted).abs() < 1e-5, "{found} is not {wanted}");
        }
    }

    #[test]
    fn perspective_maps_near_and_far_to_the_ends_of_depth() {
        let view = perspective(1.0, 1.5, 2.0, 50.0);
        for (z, depth) in [(-2.0, -1.0), (-50.0, 1.0)] {
            let [_, _, found, w] = apply(&view, [0.0, 0.0, z]);
            assert!((found / w - depth).abs() < 1e-4);
        }
    }
}
