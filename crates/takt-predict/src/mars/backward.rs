//! Pruning: terms are taken away one by one, and the subset with the best criterion stays.
//!
//! Each step removes the term whose absence costs least, exactly. In the coordinates of the
//! orthonormal basis, the coefficient of a term is the product of one row of the inverse triangle
//! with the response, and what its removal costs is the part of the response along that row. So a
//! removal is a chain of rotations that turns this row onto the last axis, which is then dropped.
//! That takes time quadratic in the terms, and rotations do not amplify rounding.
//!
//! The triangle stays one, so that at any time the first terms that remain, for each number of
//! them, are subsets whose residual is known for free. They compete, too: what the forward pass
//! found first is at times better than what is left at the end of the way back.

use super::linalg::{Basis, dot};

/// What is left of the terms.
pub(super) struct Pruned {
    /// Terms that stay, the intercept first.
    pub(super) kept: Vec<usize>,
    /// Their coefficients.
    pub(super) coefficients: Vec<f64>,
    /// The best subset of every size that was met, from the smallest up.
    pub(super) best: Vec<Subset>,
}

/// A subset of the terms.
#[derive(Clone)]
pub(super) struct Subset {
    pub(super) members: Vec<usize>,
    /// Residual sum of squares.
    pub(super) rss: f64,
    /// The criterion.
    pub(super) gcv: f64,
}

/// Terms that remain.
struct Remaining {
    members: Vec<usize>,
    /// Inverse of their triangle, row by row.
    inverse: Vec<Vec<f64>>,
    /// Coordinates of the response.
    response: Vec<f64>,
    /// Residual sum of squares.
    rss: f64,
}

/// Generalised cross-validation: the mean squared error, corrected for the freedom of a model with
/// `terms` terms, each knot costing `price` more.
///
/// As in `earth` there is half a knot for every term but the intercept.
pub(super) fn gcv(rss: f64, rows: usize, terms: usize, price: f64) -> f64 {
    let knots = terms.saturating_sub(1) as f64 / 2.0;
    let freedom = 1.0 - (terms as f64 + price * knots) / rows as f64;
    if freedom > 0.0 { rss / (rows as f64 * freedom * freedom) } else { f64::INFINITY }
}

/// Finds the subset of at most `limit` terms with the smallest criterion; of equals the smallest.
pub(super) fn prune(basis: &Basis, rows: usize, price: f64, limit: usize) -> Pruned {
    let mut left = Remaining {
        members: (0..basis.len()).collect(),
        inverse: basis.inverse(),
        response: basis.response().to_vec(),
        rss: basis.rss(),
    };
    let unseen = Subset { members: Vec::new(), rss: f64::INFINITY, gcv: f64::INFINITY };
    let mut best = vec![unseen; basis.len()];
    let mut pruned = Pruned { kept: Vec::new(), coefficients: Vec::new(), best: Vec::new() };
    let mut smallest = f64::INFINITY;
    loop {
        let mut rss = left.rss;
        for size in (1..=left.members.len()).rev() {
            let known = &mut best[size - 1];
            if rss < known.rss * BETTER {
                let members = left.members[..size].to_vec();
                *known = Subset { members, rss, gcv: gcv(rss, rows, size, price) };
                let wins = known.gcv < smallest || (known.gcv == smallest && size < pruned.kept.len());
                if size <= limit.max(1) && (wins || pruned.kept.is_empty()) {
                    smallest = known.gcv;
                    pruned.kept.clone_from(&known.members);
                    pruned.coefficients = left.coefficients(size);
                }
            }
            rss += left.response[size - 1] * left.response[size - 1];
        }
        let Some(remove) = left.cheapest() else { break };
        left.remove(remove);
    }
    pruned.best = best;
    pruned
}

/// A sum of squares must be smaller than another by this factor to count as such, lest rounding
/// decides.
const BETTER: f64 = 1.0 - 1e-12;

impl Remaining {
    /// Coefficients of a model of the first `size` terms.
    fn coefficients(&self, size: usize) -> Vec<f64> {
        self.inverse[..size].iter().map(|row| dot(&row[..size], &self.response[..size])).collect()
    }

    /// The term whose removal costs least; never the intercept.
    fn cheapest(&self) -> Option<usize> {
        let cost = |row: &Vec<f64>| dot(row, &self.response).powi(2) / dot(row, row);
        let costs = self.inverse.iter().map(cost).enumerate().skip(1);
        costs.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(at, _)| at)
    }

    /// Takes a term out.
    fn remove(&mut self, at: usize) {
        let mut axis = self.inverse.remove(at);
        self.members.remove(at);
        for first in at..axis.len() - 1 {
            let length = axis[first].hypot(axis[first + 1]);
            if length == 0.0 {
                continue;
            }
            let (sine, cosine) = (axis[first] / length, axis[first + 1] / length);
            axis[first + 1] = length;
            // Rows below have nothing in these columns.
            let rows = self.inverse.iter_mut().take(first + 1);
            for row in rows.chain(std::iter::once(&mut self.response)) {
                let (x, y) = (row[first], row[first + 1]);
                row[first] = cosine * x - sine * y;
                row[first + 1] = sine * x + cosine * y;
            }
        }
        self.inverse.iter_mut().for_each(|row| row.truncate(self.members.len()));
        self.rss += self.response.pop().map_or(0.0, |lost| lost * lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Residual sum of squares of a subset, found from scratch.
    fn rss_of(columns: &[Vec<f64>], members: &[usize], y: &[f64]) -> f64 {
        let mut basis = Basis::new(y);
        for &member in members {
            assert!(basis.push(&columns[member]));
        }
        basis.rss()
    }

    #[test]
    fn every_step_removes_the_term_that_costs_least() {
        let mut rng = takt_rng::Rng::seeded(1);
        let mut random = move || rng.unit();
        let mut columns = vec![vec![1.0; 40]];
        columns.extend((0..7).map(|_| (0..40).map(|_| random()).collect()));
        let y: Vec<f64> = (0..40).map(|i| 3.0 * columns[2][i] - columns[5][i] + 0.1 * random()).collect();
        let mut basis = Basis::new(&y);
        assert!(columns.iter().all(|column| basis.push(column)));
        let pruned = prune(&basis, 40, 2.0, 100);
        assert_eq!(pruned.best.len(), 8);
        for pair in pruned.best.windows(2) {
            let without = |gone: &usize| -> Vec<usize> {
                pair[1].members.iter().copied().filter(|member| member != gone).collect()
            };
            let costs = pair[1].members[1..].iter().map(|gone| rss_of(&columns, &without(gone), &y));
            let least = costs.fold(f64::INFINITY, f64::min);
            assert!(pair[0].rss <= least + 1e-10, "{} {least}", pair[0].rss);
            assert!((rss_of(&columns, &pair[1].members, &y) - pair[1].rss).abs() < 1e-10);
        }
        let fitted = |row: usize| -> f64 {
            let terms = pruned.kept.iter().zip(&pruned.coefficients);
            terms.map(|(&term, coefficient)| coefficient * columns[term][row]).sum()
        };
        let rss: f64 = (0..40).map(|row| (y[row] - fitted(row)).powi(2)).sum();
        assert!((rss - rss_of(&columns, &pruned.kept, &y)).abs() < 1e-10);
        assert!(pruned.kept.contains(&2) && pruned.kept.contains(&5));
        assert!(prune(&basis, 40, 2.0, 2).kept.len() <= 2);
    }

    #[test]
    fn the_criterion_is_infinite_when_no_freedom_is_left() {
        assert_eq!(gcv(1.0, 10, 5, 3.0), f64::INFINITY);
        assert_eq!(gcv(8.0, 10, 1, 3.0), 8.0 / (10.0 * 0.9 * 0.9));
    }
}
