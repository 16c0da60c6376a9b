//! Matrices of glmark2's scenes: computed in double precision, so that every machine rounds to
//! the same ones.

use takt_predict::fragments::MatrixPosition;

use crate::models::Mesh;

/// A matrix by rows.
struct Matrix([[f64; 4]; 4]);

impl Matrix {
    fn times(&self, other: &Self) -> Self {
        let cell = |row: usize, column: usize| (0..4).map(|n| self.0[row][n] * other.0[n][column]).sum();
        Self(std::array::from_fn(|row| std::array::from_fn(|column| cell(row, column))))
    }

    fn translation([x, y, z]: [f64; 3]) -> Self {
        Self([[1.0, 0.0, 0.0, x], [0.0, 1.0, 0.0, y], [0.0, 0.0, 1.0, z], [0.0, 0.0, 0.0, 1.0]])
    }

    /// Rotation around one axis.
    fn rotation(axis: usize, degrees: f64) -> Self {
        let (sin, cos) = degrees.to_radians().sin_cos();
        let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
        let mut matrix = Self::translation([0.0; 3]);
        (matrix.0[a][a], matrix.0[a][b]) = (cos, -sin);
        (matrix.0[b][a], matrix.0[b][b]) = (sin, cos);
        matrix
    }

    fn perspective(fovy_degrees: f64, aspect: f64, near: f64, far: f64) -> Self {
        let scale = (fovy_degrees.to_radians() / 2.0).tan().recip();
        Self([
            [scale / aspect, 0.0, 0.0, 0.0],
            [0.0, scale, 0.0, 0.0],
            [0.0, 0.0, (far + near) / (near - far), 2.0 * far * near / (near - far)],
            [0.0, 0.0, -1.0, 0.0],
        ])
    }

    fn position(&self) -> MatrixPosition {
        #[expect(clippy::cast_possible_truncation, reason = "uniforms have single precision")]
        let cell = |row: usize, column: usize| self.0[row][column] as f32;
        MatrixPosition(std::array::from_fn(|column| std::array::from_fn(|row| cell(row, column))))
    }
}

/// A camera that shows all of a mesh, turned around the vertical axis: glmark2's "build".
pub(crate) fn fitted(mesh: &Mesh, aspect: f64, degrees: f64) -> MatrixPosition {
    fitted_with(mesh, aspect, &Matrix::rotation(1, degrees))
}

/// The same, turned around all axes at once: glmark2's "texture".
pub(crate) fn fitted_tumbling(mesh: &Mesh, aspect: f64, degrees: f64) -> MatrixPosition {
    let axes = [0, 1, 2].map(|axis| Matrix::rotation(axis, degrees));
    fitted_with(mesh, aspect, &axes[0].times(&axes[1]).times(&axes[2]))
}

fn fitted_with(mesh: &Mesh, aspect: f64, rotation: &Matrix) -> MatrixPosition {
    let [low, high] = mesh.extent().map(|corner| corner.map(f64::from));
    let centre: [f64; 3] = std::array::from_fn(|axis| f64::midpoint(low[axis], high[axis]));
    let diameter = (0..3).map(|axis| (high[axis] - low[axis]).powi(2)).sum::<f64>().sqrt();
    let radius = diameter / 2.0;
    let fovy = 2.0 * (radius / (2.0 + radius)).atan().to_degrees();
    let away = Matrix::translation([-centre[0], -centre[1], -(centre[2] + 2.0 + radius)]);
    Matrix::perspective(fovy, aspect, 2.0, 2.0 + diameter).times(&away.times(rotation)).position()
}

/// A gear of es2gears: somewhere in a scene that is seen from above and from the side.
pub(crate) fn gear(place: [f64; 3], degrees: f64) -> MatrixPosition {
    let scene = Matrix::rotation(0, 20.0).times(&Matrix::rotation(1, 30.0));
    let view = Matrix::translation([0.0, 0.0, -20.0]).times(&scene);
    let model = Matrix::translation(place).times(&Matrix::rotation(2, degrees));
    Matrix::perspective(60.0, 1.0, 1.0, 1024.0).times(&view.times(&model)).position()
}
