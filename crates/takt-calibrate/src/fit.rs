//! Lines through measured points.
//!
//! Costs span orders of magnitude, so relative errors count: each point weighs the inverse square
//! of its value. No cost is negative, so no coefficient is. Points far from all others are left
//! out, and named: on a machine that does other things as well, there are always some.

use takt_predict::profile::{Piecewise, VALUE_MAX};

/// How well constants fit the measurements.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Quality {
    /// Share of the variance that is explained, each point weighed as in the fit.
    pub r_squared: f64,
    /// Median of relative errors.
    pub error_p50: f64,
    /// Their 95th percentile.
    pub error_p95: f64,
    /// Points that were used.
    pub points: usize,
    /// Points that were not: size, measured and expected nanoseconds.
    pub outliers: Vec<[f64; 3]>,
}

/// A point: a size, and the nanoseconds it took.
pub type Point = [f64; 2];

/// A line that begins at or above zero and does not fall: nanoseconds before the first unit, and
/// per unit.
pub fn line(points: &[Point]) -> ([f64; 2], Quality) {
    let (coefficients, quality) = robust(points, &|x| [1.0, x, 0.0]);
    ([coefficients[0], coefficients[1]], quality)
}

/// How much a knee must lower the squared errors to be believed.
const KNEE_GAIN: f64 = 0.5;
/// Points on each side of a knee.
const KNEE_POINTS: usize = 2;

/// A line with one knee, if the points show one.
pub fn knee(points: &[Point]) -> (Piecewise, Quality) {
    let ([fixed_ns, below_ns], quality) = line(points);
    let kept = without(points, &quality);
    let straight = Piecewise { fixed_ns, below_ns, above_ns: below_ns, knee_bytes: VALUE_MAX };
    let mut best = (straight, squares(&kept, &|x| fixed_ns + below_ns * x) * KNEE_GAIN, quality);
    let mut sizes: Vec<f64> = kept.iter().map(|point| point[0]).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let inner = sizes.iter().take(sizes.len().saturating_sub(KNEE_POINTS)).skip(KNEE_POINTS - 1);
    for &knee_bytes in inner {
        let columns = |x: f64| [1.0, x.min(knee_bytes), (x - knee_bytes).max(0.0)];
        let ([fixed_ns, below_ns, above_ns], quality) = robust(points, &columns);
        let bent = Piecewise { fixed_ns, below_ns, above_ns, knee_bytes };
        let error = squares(&kept, &|x| bent.cost_ns(x));
        if error < best.1 {
            best = (bent, error, quality);
        }
    }
    (best.0, best.2)
}

type Columns<'a> = &'a dyn Fn(f64) -> [f64; 3];

/// Weight of a point: its relative error counts.
fn weight(y: f64) -> f64 {
    y.max(1.0).powi(-2)
}

fn squares(points: &[Point], model: &dyn Fn(f64) -> f64) -> f64 {
    points.iter().map(|[x, y]| (y - model(*x)).powi(2) * weight(*y)).sum()
}

/// Points that a fit did use.
fn without(points: &[Point], quality: &Quality) -> Vec<Point> {
    let left_out = |point: &Point| quality.outliers.iter().any(|[x, y, _]| [*x, *y] == *point);
    points.iter().copied().filter(|point| !left_out(point)).collect()
}

/// A point is far off if its error is so many times the median error,
const FAR: f64 = 6.0;
/// which counts as at least this much.
const NOISE: f64 = 0.02;

/// Fits, leaves the worst point out if it is far off, and fits again; a quarter of all at most.
fn robust(points: &[Point], columns: Columns<'_>) -> ([f64; 3], Quality) {
    let mut kept = points.to_vec();
    let mut outliers = Vec::new();
    loop {
        let found = best_subset(&kept, columns);
        let model = |x: f64| dot(found, columns(x));
        let error = |[x, y]: &Point| (y - model(*x)).abs() / y.max(1.0);
        let errors: Vec<f64> = kept.iter().map(error).collect();
        let worst = (0..kept.len()).max_by(|a, b| errors[*a].total_cmp(&errors[*b]));
        let [error_p50, error_p95] = quantiles(&mut errors.clone());
        if let Some(worst) = worst.filter(|&at| errors[at] > FAR * error_p50.max(NOISE))
            && outliers.len() < points.len() / 4
        {
            let [x, y] = kept.remove(worst);
            outliers.push([x, y, model(x)]);
            continue;
        }
        let total = squares(&kept, &|_| weighted_mean(&kept));
        let left = squares(&kept, &model);
        let r_squared = if total > 0.0 { (1.0 - left / total).max(0.0) } else { 1.0 };
        return (found, Quality { r_squared, error_p50, error_p95, points: kept.len(), outliers });
    }
}

fn weighted_mean(points: &[Point]) -> f64 {
    let sum =
        |of: &dyn Fn(&Point) -> f64| points.iter().map(|point| of(point) * weight(point[1])).sum::<f64>();
    sum(&|point| point[1]) / sum(&|_| 1.0)
}

/// Median and 95th percentile; zero of nothing.
fn quantiles(values: &mut [f64]) -> [f64; 2] {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    [last / 2, (last * 19).div_ceil(20)].map(|at| values.get(at).copied().unwrap_or(0.0))
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The coefficients without a negative one that fit best: of three columns there are eight
/// subsets, so all are tried.
fn best_subset(points: &[Point], columns: Columns<'_>) -> [f64; 3] {
    let fits = (1..8_usize).filter_map(|subset| least_squares(points, columns, subset));
    let error = |found: &[f64; 3]| squares(points, &|x| dot(*found, columns(x)));
    let good = fits.filter(|found| found.iter().all(|value| *value >= 0.0 && value.is_finite()));
    good.min_by(|a, b| error(a).total_cmp(&error(b))).unwrap_or([0.0; 3])
}

/// Weighted least squares with some of the columns; none if they do not determine it.
fn least_squares(points: &[Point], columns: Columns<'_>, subset: usize) -> Option<[f64; 3]> {
    let used: Vec<usize> = (0..3).filter(|column| subset & (1 << column) != 0).collect();
    // Columns of equal size keep the equations well-conditioned.
    let size = |column: usize| points.iter().map(|point| columns(point[0])[column]).fold(0.0, f64::max);
    let sizes = used.iter().map(|column| size(*column)).collect::<Vec<f64>>();
    if sizes.iter().any(|size| *size <= 0.0) {
        return None;
    }
    let count = used.len();
    let mut rows = vec![vec![0.0; count + 1]; count];
    for [x, y] in points {
        let values = columns(*x);
        let scaled: Vec<f64> = used.iter().zip(&sizes).map(|(column, size)| values[*column] / size).collect();
        for (row, left) in rows.iter_mut().zip(&scaled) {
            for (cell, right) in row.iter_mut().zip(scaled.iter().chain([y])) {
                *cell += left * right * weight(*y);
            }
        }
    }
    let solved = eliminate(rows)?;
    let mut found = [0.0; 3];
    for ((column, size), value) in used.iter().zip(sizes).zip(solved) {
        found[*column] = value / size;
    }
    Some(found)
}

/// Solves equations whose right sides are their last column, by elimination with pivots.
fn eliminate(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let count = rows.len();
    for at in 0..count {
        let pivot = (at..count).max_by(|a, b| rows[*a][at].abs().total_cmp(&rows[*b][at].abs()))?;
        rows.swap(at, pivot);
        let lead = rows[at].clone();
        if lead[at].abs() <= f64::MIN_POSITIVE {
            return None;
        }
        for (_, row) in rows.iter_mut().enumerate().filter(|(number, _)| *number != at) {
            let factor = row[at] / lead[at];
            row.iter_mut().zip(&lead).for_each(|(cell, lead)| *cell -= factor * lead);
        }
    }
    Some((0..count).map(|at| rows[at][count] / rows[at][at]).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-6 * b.abs().max(1.0)
    }

    const SIZES: [f64; 10] = [64.0, 128.0, 256.0, 512.0, 1e3, 2e3, 4e3, 8e3, 16e3, 32e3];

    #[test]
    fn a_line_is_found_and_an_outlier_named() {
        let mut points = SIZES.map(|x| [x, 500.0 + 3.0 * x]);
        points[4][1] *= 5.0;
        let ([fixed, slope], quality) = line(&points);
        assert!(close(fixed, 500.0) && close(slope, 3.0), "{fixed} {slope}");
        assert_eq!(quality.points, 9);
        assert_eq!(quality.outliers.len(), 1);
        // The expected value there before the point was left out.
        assert!((3400.0..3800.0).contains(&quality.outliers[0][2]), "{quality:?}");
        assert!(quality.r_squared > 0.999_999);
    }

    #[test]
    fn a_knee_is_found_only_where_there_is_one() {
        let truth = Piecewise { fixed_ns: 50.0, below_ns: 1.0, above_ns: 4.0, knee_bytes: 2e3 };
        let (found, _) = knee(&SIZES.map(|x| [x, truth.cost_ns(x)]));
        assert!(close(found.above_ns, 4.0) && close(found.knee_bytes, 2e3), "{found:?}");
        let (found, _) = knee(&SIZES.map(|x| [x, 50.0 + x]));
        assert_eq!(found.knee_bytes, VALUE_MAX);
    }

    #[test]
    fn nothing_costs_less_than_nothing() {
        let ([fixed, slope], _) = line(&SIZES.map(|x| [x, 1e6 - x]));
        assert!(fixed > 0.0 && slope == 0.0, "{fixed} {slope}");
        let ([fixed, slope], _) = line(&SIZES.map(|x| [x, x * x]));
        assert!(fixed == 0.0 && slope > 0.0, "{fixed} {slope}");
        assert_eq!(line(&[]).0, [0.0, 0.0]);
        assert_eq!(knee(&[[5.0, 5.0]]).0.knee_bytes, VALUE_MAX);
    }

    proptest! {
        #[test]
        fn any_points_give_finite_constants(points in prop::collection::vec(prop::array::uniform2(0.0..1e12), 0..20)) {
            let (found, quality) = knee(&points);
            let numbers = [found.fixed_ns, found.below_ns, found.above_ns, found.knee_bytes, quality.r_squared];
            prop_assert!(numbers.iter().all(|number| number.is_finite() && *number >= 0.0), "{found:?}");
            prop_assert_eq!(quality.points + quality.outliers.len(), points.len());
        }

        #[test]
        fn noise_of_some_percent_moves_constants_by_some_percent(
            fixed in 1e2..1e4_f64, slope in 0.5..10.0_f64, noise in prop::collection::vec(-0.03..0.03_f64, 10),
        ) {
            let points: Vec<Point> = SIZES.iter().zip(&noise)
                .map(|(x, noise)| [*x, (fixed + slope * x) * (1.0 + noise)]).collect();
            let ([_, found], _) = line(&points);
            prop_assert!((found - slope).abs() < 0.15 * slope, "{found} {slope}");
        }
    }
}
