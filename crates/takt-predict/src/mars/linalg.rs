//! The orthonormal basis of the terms found so far.

/// Terms whose part outside the basis is smaller than this, squared and relative, are dependent.
///
/// The knot search works with differences of sums that are good to about 1e-13 of the terms' own
/// size, so what it calls independent is so by a wide margin.
pub(super) const DEPENDENT: f64 = 1e-8;

/// An orthonormal basis, the triangle that leads from it to the terms, and the residual.
pub(super) struct Basis {
    /// Orthonormal columns.
    columns: Vec<Vec<f64>>,
    /// Column `k` holds the `k + 1` coordinates of term `k`.
    triangle: Vec<Vec<f64>>,
    /// Coordinates of the response.
    response: Vec<f64>,
    /// The response less its projection.
    residual: Vec<f64>,
}

impl Basis {
    /// The empty basis.
    pub(super) fn new(response: &[f64]) -> Self {
        let residual = response.to_vec();
        Self { columns: Vec::new(), triangle: Vec::new(), response: Vec::new(), residual }
    }

    /// Adds a term, and says whether it is independent of the others; if not, nothing changes.
    #[must_use = "a dependent term is not part of the basis"]
    pub(super) fn push(&mut self, term: &[f64]) -> bool {
        let mut rest = term.to_vec();
        let mut coordinates = vec![0.0; self.columns.len()];
        // Twice is enough: the second pass removes what rounding left behind in the first.
        for _ in 0..2 {
            for (column, coordinate) in self.columns.iter().zip(&mut coordinates) {
                let part = dot(column, &rest);
                add_scaled(&mut rest, -part, column);
                *coordinate += part;
            }
        }
        let (total, left) = (dot(term, term), dot(&rest, &rest));
        if left <= DEPENDENT * total {
            return false;
        }
        let norm = left.sqrt();
        rest.iter_mut().for_each(|value| *value /= norm);
        coordinates.push(norm);
        let response = dot(&rest, &self.residual);
        add_scaled(&mut self.residual, -response, &rest);
        self.columns.push(rest);
        self.triangle.push(coordinates);
        self.response.push(response);
        true
    }

    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn column(&self, at: usize) -> &[f64] {
        &self.columns[at]
    }

    /// Coordinates of the response.
    pub(super) fn response(&self) -> &[f64] {
        &self.response
    }

    pub(super) fn residual(&self) -> &[f64] {
        &self.residual
    }

    /// Residual sum of squares.
    pub(super) fn rss(&self) -> f64 {
        dot(&self.residual, &self.residual)
    }

    /// The inverse of the triangle, row by row: row `k` times the coordinates of the response is
    /// the least-squares coefficient of term `k`.
    pub(super) fn inverse(&self) -> Vec<Vec<f64>> {
        let size = self.len();
        let mut inverse = vec![vec![0.0; size]; size];
        for (at, column) in self.triangle.iter().enumerate() {
            inverse[at][at] = 1.0 / column[at];
            for row in (0..at).rev() {
                let sum: f64 = (row + 1..=at).map(|k| self.triangle[k][row] * inverse[k][at]).sum();
                inverse[row][at] = -sum / self.triangle[row][row];
            }
        }
        inverse
    }
}

/// Scalar product, in a fixed order that vectorises.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 4;
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

/// `target += factor * column`.
fn add_scaled(target: &mut [f64], factor: f64, column: &[f64]) {
    for (value, add) in target.iter_mut().zip(column) {
        *value += factor * add;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_basis_is_orthonormal_and_solves_least_squares() {
        // y = 1 + 2 a - b, a and b nearly parallel.
        let a: Vec<f64> = (0..50).map(f64::from).collect();
        let b: Vec<f64> = (0..50).map(|i: i32| f64::from(i) + f64::from(i % 3) * 0.01).collect();
        let y: Vec<f64> = a.iter().zip(&b).map(|(a, b)| 1.0 + 2.0 * a - b).collect();
        let mut basis = Basis::new(&y);
        let dependent: Vec<f64> = a.iter().map(|a| 3.0 - a).collect();
        assert!(basis.push(&[1.0; 50]) && basis.push(&a) && basis.push(&b) && !basis.push(&dependent));
        for i in 0..3 {
            for j in 0..3 {
                let wanted = f64::from(u8::from(i == j));
                assert!((dot(basis.column(i), basis.column(j)) - wanted).abs() < 1e-12);
            }
        }
        let inverse = basis.inverse();
        for (row, wanted) in inverse.iter().zip([1.0, 2.0, -1.0]) {
            assert!((dot(row, basis.response()) - wanted).abs() < 1e-8);
        }
        assert!(basis.rss() < 1e-16);
    }
}
