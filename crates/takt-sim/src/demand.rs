//! What a frame of a workload may need, to be compared with what its app reserves.

use takt_core::{Charge, Config, Estimate, GroupKind, Margins, Span};

use crate::model::{AppSpec, CostDist, Prediction, Work};

/// The most that a frame of `app` may need in the terms of the schedulability test: conservative
/// predictions of its groups, the dispatch delay of each, and that of the first; and the changes of
/// contexts that the frame pays for. `None` if a prediction has no bound. Phases of the workload, and
/// what a history adds for switches between apps, are not considered.
pub fn frame_demand(app: &AppSpec, config: &Config) -> Option<Span> {
    let per_group = config.per_group();
    let group = |estimate: Estimate| config.conservative(estimate, Charge::Stays) + per_group;
    // A swap that gives a live GPU nothing to do is no group.
    let swap_of = |cost: Span, estimate: Estimate| {
        let idle = config.gpu.is_time_shared() && cost == Span::ZERO && estimate.span() == Span::ZERO;
        if idle { Span::ZERO } else { group(estimate) }
    };
    let groups: Span = match &app.work {
        Work::Drawn { parts, swap } => {
            let dearest = parts.iter().map(|part| most(&part.cost)).fold(most(swap), Span::max);
            let longest = |cost: &CostDist| {
                // What such groups cost is learnt; until then, they are taken for the dearest.
                let cost = if app.prediction.history.is_some() { dearest } else { most(cost) };
                upper_estimate(cost, &app.prediction)
            };
            let parts = parts.iter().map(|part| {
                let longest = longest(&part.cost)?;
                Some(group(longest).times(part.count.1.into()))
            });
            parts.sum::<Option<Span>>()? + swap_of(most(swap), longest(swap)?)
        }
        Work::Recorded(recorded) => recorded
            .split_inclusive(|entry| entry.kind.ends_frame())
            .map(|frame| {
                let dearest = recorded.iter().map(|entry| entry.cost).max().unwrap_or(Span::ZERO);
                let learnt = app.prediction.history.is_some();
                let estimate = |entry: &crate::model::RecordedGroup| match entry.predicted {
                    Some(predicted) => Some(Estimate::new(predicted)),
                    None => upper_estimate(if learnt { dearest } else { entry.cost }, &app.prediction),
                };
                let demand = |entry: &crate::model::RecordedGroup| match entry.kind {
                    GroupKind::Swap => Some(swap_of(entry.cost, estimate(entry)?)),
                    _ => estimate(entry).map(group),
                };
                frame.iter().map(demand).sum::<Option<Span>>()
            })
            .try_fold(Span::ZERO, |most, frame| frame.map(|frame| most.max(frame)))?,
    };
    Some(groups + config.gpu.switches(Span::ZERO, Charge::Enters) + config.per_frame())
}

/// Whether a group of `app` may run longer than its conservative prediction.
pub fn may_overrun(app: &AppSpec, margins: &Margins) -> bool {
    let overruns = |cost: Span, predicted: Option<Estimate>| match predicted {
        Some(predicted) => cost > margins.conservative(predicted),
        None => lower_estimate(cost, &app.prediction).is_some_and(|least| cost > margins.conservative(least)),
    };
    match &app.work {
        Work::Drawn { parts, swap } => {
            let dists = parts.iter().map(|part| &part.cost).chain([swap]);
            let mut ends =
                dists.flat_map(|dist| &dist.buckets).flat_map(|bucket| [bucket.range.lo, bucket.range.hi]);
            ends.any(|cost| overruns(cost, None))
        }
        Work::Recorded(groups) => {
            groups.iter().any(|group| overruns(group.cost, group.predicted.map(Estimate::new)))
        }
    }
}

/// The smallest estimate that the model can give for a group of that cost; `None` if it has no bound.
fn lower_estimate(cost: Span, prediction: &Prediction) -> Option<Estimate> {
    let scale = prediction.scale_permille?;
    if prediction.history.is_some() {
        // Nothing is known at first.
        return Some(Estimate::new(prediction.floor.scaled(scale, 1000)));
    }
    let noise = 1000 - prediction.noise_permille.min(1000);
    let noisy = cost.scaled(noise, 1000).as_signed_ns() + prediction.bias_ns;
    let outlier = prediction.outliers.map_or(i64::MAX, |outliers| cost.as_signed_ns() + outliers.error_ns.0);
    let least = noisy.min(outlier).max(0).cast_unsigned();
    let floored = Span::from_ns(least).max(prediction.floor);
    Some(Estimate::new(floored.scaled(scale, 1000)))
}

fn most(cost: &CostDist) -> Span {
    cost.buckets.iter().map(|bucket| bucket.range.hi).max().unwrap_or(Span::ZERO)
}

/// The largest estimate that the model can give for a group of that cost.
fn upper_estimate(cost: Span, prediction: &Prediction) -> Option<Estimate> {
    let scale = prediction.scale_permille?;
    let noisy = cost.scaled(1000 + prediction.noise_permille, 1000).as_signed_ns() + prediction.bias_ns;
    let outlier = prediction.outliers.map_or(0, |outliers| cost.as_signed_ns() + outliers.error_ns.1);
    let most = noisy.max(outlier).max(0).cast_unsigned();
    let floored = Span::from_ns(most).max(prediction.floor);
    Some(Estimate::new(floored.scaled(scale, 1000)))
}
