//! Training data: what the caller gives, and the form in which it is searched.

use super::options::{MAGNITUDE_MAX, ROWS_MAX, TrainError, VARIABLES_MAX};

/// Rows of features and the response of each.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Samples<'a> {
    /// Features per row.
    variables: usize,
    /// Features, row after row.
    features: &'a [f64],
    /// One response per row.
    responses: &'a [f64],
}

impl<'a> Samples<'a> {
    /// Checks sizes and values.
    ///
    /// # Errors
    ///
    /// If the sizes do not fit each other or the limits, or a value is not finite.
    pub fn new(variables: usize, features: &'a [f64], responses: &'a [f64]) -> Result<Self, TrainError> {
        let rows = responses.len();
        if variables.checked_mul(rows) != Some(features.len()) {
            return Err(TrainError::HingeShape { values: features.len(), responses: rows, variables });
        }
        for (what, count, limit) in [("rows", rows, ROWS_MAX), ("features", variables, VARIABLES_MAX)] {
            if count > limit {
                return Err(TrainError::TooMany { what, count, limit });
            }
        }
        if rows < 2 {
            return Err(TrainError::TooFewRows { rows });
        }
        let usable = |value: &f64| value.abs() <= MAGNITUDE_MAX;
        if let Some(at) = features.iter().position(|value| !usable(value)) {
            return Err(TrainError::BadValue { row: at / variables, column: at % variables });
        }
        if let Some(row) = responses.iter().position(|value| !usable(value)) {
            return Err(TrainError::BadValue { row, column: variables });
        }
        Ok(Self { variables, features, responses })
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.responses.len()
    }

    /// Features per row.
    #[must_use]
    pub fn variables(&self) -> usize {
        self.variables
    }

    /// Features of one row.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> &'a [f64] {
        &self.features[row * self.variables..][..self.variables]
    }

    /// All responses.
    #[must_use]
    pub fn responses(&self) -> &'a [f64] {
        self.responses
    }

    /// One feature of one row.
    pub(super) fn feature(&self, row: usize, variable: usize) -> f64 {
        self.features[row * self.variables + variable]
    }
}

/// Samples by columns, scaled and sorted.
///
/// Features are mapped to 0..1 and responses to -1..1 around their mean: sums of products then
/// neither overflow nor depend on units. A hinge in scaled units is a multiple of the hinge in the
/// caller's units, so only coefficients need to be mapped back.
pub(super) struct Prepared {
    pub(super) columns: Vec<Column>,
    /// Scaled responses.
    pub(super) response: Vec<f64>,
    pub(super) response_mean: f64,
    pub(super) response_scale: f64,
}

/// One feature.
pub(super) struct Column {
    /// Scaled values by row.
    pub(super) values: Vec<f64>,
    /// Rows, from the largest value to the smallest; ties by row.
    pub(super) order: Vec<u32>,
    /// Scaled values in that order.
    pub(super) sorted: Vec<f64>,
    /// Smallest value in the caller's units.
    pub(super) low: f64,
    /// Largest less smallest value in the caller's units; such a column is of no use if 0.
    pub(super) range: f64,
    /// Whether it must not get knots.
    pub(super) linear_only: bool,
}

impl Prepared {
    pub(super) fn new(samples: &Samples<'_>, linear_only: &[usize]) -> Self {
        let column = |variable| Column::new(samples, variable, linear_only.contains(&variable));
        let rows = samples.rows() as f64;
        // Divided first: the sum of the largest values allowed must stay finite, too.
        let response_mean: f64 = samples.responses.iter().map(|value| value / rows).sum();
        let deviations = samples.responses.iter().map(|value| value - response_mean);
        let widest = deviations.clone().fold(0.0, |widest: f64, deviation| widest.max(deviation.abs()));
        let constant = samples.responses.iter().all(|value| *value == samples.responses[0]);
        let response_scale = if constant || widest == 0.0 { 1.0 } else { widest };
        let scaled = |deviation: f64| if constant { 0.0 } else { deviation / response_scale };
        Self {
            columns: (0..samples.variables).map(column).collect(),
            response: deviations.map(scaled).collect(),
            response_mean: if constant { samples.responses[0] } else { response_mean },
            response_scale,
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.response.len()
    }
}

impl Column {
    fn new(samples: &Samples<'_>, variable: usize, linear_only: bool) -> Self {
        let raw = || (0..samples.rows()).map(|row| samples.feature(row, variable));
        let low = raw().fold(f64::INFINITY, f64::min);
        let high = raw().fold(f64::NEG_INFINITY, f64::max);
        let range = high - low;
        let scaled = |value: f64| if range > 0.0 { (value - low) / range } else { 0.0 };
        let values: Vec<f64> = raw().map(scaled).collect();
        let mut order: Vec<u32> = (0..).take(values.len()).collect();
        order.sort_by(|&a, &b| values[b as usize].total_cmp(&values[a as usize]).then(a.cmp(&b)));
        let sorted = order.iter().map(|&row| values[row as usize]).collect();
        Self { values, order, sorted, low, range, linear_only }
    }
}
