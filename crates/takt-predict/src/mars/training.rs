//! From samples to a model, and how good it is.

use super::backward::{Pruned, Subset, gcv, prune};
use super::data::{Prepared, Samples};
use super::forward::{Forward, Found, Piece, Stop};
use super::model::{Factor, HingeShape, Model};
use super::options::{Options, TrainError};

/// How far the model may be off its scaled twin, as a part of the variance.
const MAPPING_ERROR_MAX: f64 = 1e-6;

/// A model and what is known about it.
#[derive(Clone, PartialEq, Debug)]
pub struct Trained {
    /// The model.
    pub model: Model,
    /// How well it fits.
    pub summary: Summary,
    /// The best model of each size that pruning met, from the smallest up.
    pub sizes: Vec<Size>,
    /// How much each feature matters; one entry per feature.
    pub importance: Vec<Importance>,
}

/// How well a model fits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    /// Generalised cross-validation criterion, in squared units of the response.
    pub gcv: f64,
    /// Residual sum of squares over the training data.
    pub rss: f64,
    /// Part of the variance that is explained; 0 if there is no variance.
    pub r_squared: f64,
    /// The same by GCV: what to expect of new data.
    pub gr_squared: f64,
    /// Terms before pruning, the intercept included.
    pub terms_found: usize,
    /// Why no more terms were added.
    pub stop: Stop,
}

/// The best model of one size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Size {
    /// Terms, the intercept included.
    pub terms: usize,
    /// Residual sum of squares.
    pub rss: f64,
    /// Generalised cross-validation criterion.
    pub gcv: f64,
}

/// How much a feature matters.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Importance {
    /// Sizes, up to that of the model, whose best subset uses the feature.
    pub subsets: usize,
    /// Share in the fall of the residual sum of squares over these sizes, of 100 for the best.
    pub rss_share: f64,
}

/// Trains a model.
///
/// # Errors
///
/// If an option is out of range or the result cannot be represented.
pub fn train(samples: &Samples<'_>, options: &Options) -> Result<Trained, TrainError> {
    options.check(samples.variables())?;
    let data = Prepared::new(samples, &options.linear_only);
    let mut forward = Forward::new(&data, options);
    let stop = forward.run();
    let price = options.knot_price();
    let limit = options.keep_terms.unwrap_or(usize::MAX);
    let pruned = prune(&forward.basis, samples.rows(), price, limit);
    let model = assemble(samples, &data, &forward.terms, &pruned)?;
    let chosen = &pruned.best[pruned.kept.len() - 1];
    let rss = check_mapping(samples, &data, &model, chosen.rss)?;
    let unit = data.response_scale * data.response_scale;
    let size = |one: &Subset| Size { terms: one.members.len(), rss: one.rss * unit, gcv: one.gcv * unit };
    let sizes: Vec<Size> = pruned.best.iter().map(size).collect();
    let explained = |part: f64, whole: f64| if whole > 0.0 { 1.0 - part / whole } else { 0.0 };
    let criterion = gcv(rss, samples.rows(), pruned.kept.len(), price);
    let null = sizes[0];
    let summary = Summary {
        gcv: criterion,
        rss,
        r_squared: explained(rss, null.rss),
        gr_squared: explained(criterion, null.gcv),
        terms_found: forward.terms.len(),
        stop,
    };
    let importance = importance(samples.variables(), &forward.terms, &pruned);
    Ok(Trained { model, summary, sizes, importance })
}

/// Maps the chosen terms back to the caller's units.
fn assemble(
    samples: &Samples<'_>,
    data: &Prepared,
    terms: &[Found],
    pruned: &Pruned,
) -> Result<Model, TrainError> {
    let unrepresentable = |_error| TrainError::Unrepresentable;
    let mut kept = pruned.kept.iter().zip(&pruned.coefficients);
    let intercept = kept.next().map_or(0.0, |(_, value)| *value);
    let intercept = data.response_mean + intercept * data.response_scale;
    let mut model = Model::new(samples.variables(), intercept).map_err(unrepresentable)?;
    for (&at, coefficient) in kept {
        let mut coefficient = coefficient * data.response_scale;
        let mut factors = Vec::with_capacity(terms[at].pieces.len());
        for piece in &terms[at].pieces {
            coefficient /= data.columns[piece.variable].range;
            factors.push(factor(samples, data, piece));
        }
        model.push(coefficient, &factors).map_err(unrepresentable)?;
    }
    Ok(model)
}

fn factor(samples: &Samples<'_>, data: &Prepared, piece: &Piece) -> Factor {
    let variable = piece.variable;
    let (knot, shape) = match piece.knot_row {
        None => (data.columns[variable].low, HingeShape::Linear),
        Some(row) if piece.mirrored => (samples.feature(row, variable), HingeShape::Below),
        Some(row) => (samples.feature(row, variable), HingeShape::Above),
    };
    Factor { variable, knot, shape }
}

/// The residual sum of squares as the model itself gives it, if that is what was found.
fn check_mapping(
    samples: &Samples<'_>,
    data: &Prepared,
    model: &Model,
    found: f64,
) -> Result<f64, TrainError> {
    let scale = data.response_scale;
    let error = |(row, value): (usize, &f64)| (value - model.predict(samples.row(row))) / scale;
    let rss: f64 = samples.responses().iter().enumerate().map(error).map(|error| error * error).sum();
    let variance: f64 = data.response.iter().map(|value| value * value).sum();
    let close = (rss - found).abs() <= MAPPING_ERROR_MAX * variance.max(f64::MIN_POSITIVE);
    if close { Ok(rss * scale * scale) } else { Err(TrainError::Unrepresentable) }
}

/// Counts each feature in the best subsets up to the chosen size.
fn importance(variables: usize, terms: &[Found], pruned: &Pruned) -> Vec<Importance> {
    let mut importance = vec![Importance::default(); variables];
    for pair in pruned.best[..pruned.kept.len()].windows(2) {
        let gain = (pair[0].rss - pair[1].rss).max(0.0);
        let pieces = pair[1].members.iter().flat_map(|&member| &terms[member].pieces);
        let mut used: Vec<usize> = pieces.map(|piece| piece.variable).collect();
        used.sort_unstable();
        used.dedup();
        for variable in used {
            importance[variable].subsets += 1;
            importance[variable].rss_share += gain;
        }
    }
    let most = importance.iter().fold(0.0, |most: f64, one| most.max(one.rss_share));
    if most > 0.0 {
        importance.iter_mut().for_each(|one| one.rss_share *= 100.0 / most);
    }
    importance
}
