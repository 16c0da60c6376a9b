//! Errors of predictions, condensed.

use schemars::JsonSchema;
use serde::Serialize;

use super::table::{Comparison, Row};

/// The figures of some of the rows.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Figures {
    /// Which rows: `all`, or the app or kind they share.
    pub of: String,
    /// How many.
    pub rows: usize,
    /// Mean measured time.
    pub measured_mean_us: f64,
    /// The models, in the order of the file.
    pub models: Vec<ModelFigures>,
}

/// How well one model predicted. Errors are predicted − measured.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ModelFigures {
    /// Name of the model.
    pub model: String,
    /// Rows with a prediction.
    pub predicted: usize,
    /// Mean absolute error.
    pub mae_us: f64,
    /// Mean absolute error relative to the measured time, over rows that took a nanosecond or more.
    pub mape: f64,
    /// Mean error: above 0 the model predicts too much.
    pub bias_us: f64,
    /// Median of the absolute error.
    pub p50_us: f64,
    /// 95th percentile of the absolute error.
    pub p95_us: f64,
    /// 99th percentile of the absolute error.
    pub p99_us: f64,
    /// Largest absolute error.
    pub max_us: f64,
    /// Share of rows that took longer than predicted: the errors that cost deadlines.
    pub under_predicted: f64,
    /// Share of rows that took longer than the upper estimate; null without one.
    pub upper_exceeded: Option<f64>,
}

/// The figures of all rows and then, if `by` gives different keys, of each key in turn.
pub fn figures(comparison: &Comparison, by: Option<fn(&Row) -> &str>) -> Vec<Figures> {
    let all: Vec<&Row> = comparison.rows.iter().collect();
    let mut out = vec![condense("all", comparison, &all)];
    if let Some(by) = by {
        let mut keys: Vec<&str> = all.iter().map(|row| by(row)).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys.into_iter().filter(|key| !key.is_empty()) {
            let rows: Vec<&Row> = all.iter().copied().filter(|row| by(row) == key).collect();
            out.push(condense(key, comparison, &rows));
        }
    }
    out
}

fn condense(of: &str, comparison: &Comparison, rows: &[&Row]) -> Figures {
    let models = comparison.models.iter().enumerate();
    Figures {
        of: of.to_owned(),
        rows: rows.len(),
        measured_mean_us: mean(rows.iter().map(|row| row.measured_us)),
        models: models.map(|(index, model)| model_figures(&model.name, index, rows)).collect(),
    }
}

fn model_figures(name: &str, index: usize, rows: &[&Row]) -> ModelFigures {
    let predicted: Vec<(f64, f64)> =
        rows.iter().filter_map(|row| Some((row.predicted_us[index]?, row.measured_us))).collect();
    let errors = || predicted.iter().map(|(predicted, measured)| predicted - measured);
    let sorted = absolute_errors(index, rows);
    let upper: Vec<bool> =
        rows.iter().filter_map(|row| Some(row.measured_us > row.upper_us[index]?)).collect();
    let share = |count: usize, of: usize| if of == 0 { 0.0 } else { count as f64 / of as f64 };
    let relative = predicted.iter().filter(|(_, measured)| *measured >= MEASURABLE_US);
    ModelFigures {
        model: name.to_owned(),
        predicted: predicted.len(),
        mae_us: mean(sorted.iter().copied()),
        mape: mean(relative.map(|(predicted, measured)| (predicted - measured).abs() / measured)),
        bias_us: mean(errors()),
        p50_us: quantile(&sorted, 0.5),
        p95_us: quantile(&sorted, 0.95),
        p99_us: quantile(&sorted, 0.99),
        max_us: sorted.last().copied().unwrap_or(0.0),
        under_predicted: share(errors().filter(|error| *error < 0.0).count(), predicted.len()),
        upper_exceeded: (!upper.is_empty())
            .then(|| share(upper.iter().filter(|exceeded| **exceeded).count(), upper.len())),
    }
}

/// What is shorter was not measured, and nothing is relative to it.
const MEASURABLE_US: f64 = 1e-3;

/// Absolute errors of a model, smallest first.
pub(super) fn absolute_errors(index: usize, rows: &[&Row]) -> Vec<f64> {
    let error = |row: &&Row| Some((row.predicted_us[index]? - row.measured_us).abs());
    let mut errors: Vec<f64> = rows.iter().filter_map(error).collect();
    errors.sort_unstable_by(f64::total_cmp);
    errors
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// The smallest value that at least this share of the values does not exceed.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_what_they_say() {
        let text = "app,measured_us,pred_a_us,upper_a_us\nx,100,90,95\nx,200,220,250\ny,50,50,60\ny,10,,\n";
        let comparison = Comparison::parse(text).unwrap();
        let figures = figures(&comparison, Some(|row| row.app.as_str()));
        let names: Vec<_> = figures.iter().map(|f| (f.of.as_str(), f.rows)).collect();
        assert_eq!(names, [("all", 4), ("x", 2), ("y", 2)]);
        let a = &figures[0].models[0];
        assert_eq!(a.predicted, 3);
        assert!((a.mae_us - 10.0).abs() < 1e-9);
        assert!((a.mape - (0.1 + 0.1 + 0.0) / 3.0).abs() < 1e-9);
        assert!((a.bias_us - 10.0 / 3.0).abs() < 1e-9);
        assert_eq!((a.p50_us, a.p99_us, a.max_us), (10.0, 20.0, 20.0));
        assert!((a.under_predicted - 1.0 / 3.0).abs() < 1e-9);
        assert!(a.upper_exceeded.is_some_and(|share| (share - 1.0 / 3.0).abs() < 1e-9));
    }

    #[test]
    fn nothing_predicted_gives_zeros() {
        let comparison = Comparison::parse("measured_us,pred_a_us\n1,\n").unwrap();
        let a = &figures(&comparison, None)[0].models[0];
        assert_eq!((a.predicted, a.mae_us, a.max_us, a.upper_exceeded), (0, 0.0, 0.0, None));
    }
}
