//! How good models are for programs that they were not made from.

use super::Submodel;
use super::training::{Rows, TrainingError, TrainingSet, fit};

/// Errors of one model in cross-validation.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Validation {
    /// Which model.
    pub submodel: Submodel,
    /// Runs that were predicted, each by models that had not seen it.
    pub rows: usize,
    /// Mean error, in nanoseconds per instance.
    pub mean_ns: f64,
    /// Mean of the measured times, to compare that with.
    pub scale_ns: f64,
    /// Share of the variance that is predicted; below zero if the mean would do better.
    pub r_squared: f64,
    /// Median of errors relative to the measured times, of runs that took any time.
    pub error_p50: f64,
    /// Their 95th percentile.
    pub error_p95: f64,
}

/// Trains models several times, each time without one of `folds` parts of the runs, which are then
/// predicted.
///
/// # Errors
///
/// As [`train`](super::train).
pub fn cross_validate(runs: &TrainingSet, folds: usize) -> Result<[Validation; 5], TrainingError> {
    let aux = |submodel| fit(submodel, runs.table(submodel)).map(|(model, _)| model);
    let visible = |submodel, of, model| runs.visible_commands(submodel, of, model);
    let (vertex_aux, fragment_aux) = (aux(Submodel::VertexAux)?, aux(Submodel::FragmentAux)?);
    let vertex_commands = visible(Submodel::VertexCommands, Submodel::VertexAux, &vertex_aux);
    let fragment_commands = visible(Submodel::FragmentCommands, Submodel::FragmentAux, &fragment_aux);
    Ok([
        one(Submodel::VertexAux, runs.table(Submodel::VertexAux), folds)?,
        one(Submodel::VertexCommands, &vertex_commands, folds)?,
        one(Submodel::FragmentAux, runs.table(Submodel::FragmentAux), folds)?,
        one(Submodel::FragmentCommands, &fragment_commands, folds)?,
        one(Submodel::Texture, runs.table(Submodel::Texture), folds)?,
    ])
}

fn one(submodel: Submodel, rows: &Rows, folds: usize) -> Result<Validation, TrainingError> {
    let folds = folds.clamp(2, rows.responses.len().max(2));
    let width = submodel.features().len();
    let mut pairs = Vec::with_capacity(rows.responses.len());
    for fold in 0..folds {
        let held = |row: &usize| row % folds == fold;
        let (out, kept): (Vec<usize>, Vec<usize>) = (0..rows.responses.len()).partition(held);
        let (model, _) = fit(submodel, &rows.pick(&kept, width))?;
        let predict = |row: usize| model.predict(&rows.features[row * width..(row + 1) * width]).max(0.0);
        pairs.extend(out.into_iter().map(|row| (predict(row), rows.responses[row])));
    }
    Ok(judge(submodel, &pairs))
}

fn judge(submodel: Submodel, pairs: &[(f64, f64)]) -> Validation {
    let count = pairs.len().max(1) as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
    let scale_ns = mean(&|(_, truth)| *truth);
    let left = mean(&|(predicted, truth)| (predicted - truth).powi(2));
    let total = mean(&|(_, truth)| (truth - scale_ns).powi(2));
    let timed = pairs.iter().filter(|(_, truth)| *truth > scale_ns * NOTHING);
    let mut errors: Vec<f64> = timed.map(|(predicted, truth)| (predicted / truth - 1.0).abs()).collect();
    errors.sort_by(f64::total_cmp);
    let last = errors.len().saturating_sub(1);
    let [error_p50, error_p95] =
        [last / 2, (last * 19).div_ceil(20)].map(|at| errors.get(at).copied().unwrap_or(0.0));
    Validation {
        submodel,
        rows: pairs.len(),
        mean_ns: mean(&|(predicted, truth)| (predicted - truth).abs()),
        scale_ns,
        r_squared: if total > 0.0 { 1.0 - left / total } else { 1.0 },
        error_p50,
        error_p95,
    }
}

/// Below this share of the mean, a relative error says nothing.
const NOTHING: f64 = 0.05;
