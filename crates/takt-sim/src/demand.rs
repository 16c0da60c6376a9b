//! What a frame of a workload may need, to be compared with what its app reserves.

use takt_core::service::Gaps;
use takt_core::{Charge, Config, Estimate, GroupKind, Margins, Span};

use crate::model::{AppSpec, CostDist, Part, Prediction, RecordedGroup, Work};

/// The most that a frame of `app` may need in the terms of the schedulability test: conservative
/// predictions of its groups, the dispatch delay of each, and that of the first; the changes of
/// contexts that the frame pays for; and its gaps, as far as they are declared. `None` if a prediction
/// has no bound. Phases of the workload, and what a history adds for switches between apps, are not
/// considered.
pub fn frame_demand(app: &AppSpec, config: &Config) -> Option<Span> {
    let groups = groups_demand(app, config, config.per_group())?;
    Some(
        groups
            + config.gpu.switches(Span::ZERO, Charge::Enters)
            + config.per_frame()
            + gaps_demand(app, config),
    )
}

/// What the declared gaps of a frame of `app` count for.
fn gaps_demand(app: &AppSpec, config: &Config) -> Span {
    let declared = app.params.service.gaps;
    config.per_gap(declared).times(declared.count.into())
}

/// The same for a frame of `app` with one frame of each of its `sources` in it.
pub fn shared_frame_demand(app: &AppSpec, sources: &[&AppSpec], config: &Config) -> Option<Span> {
    if sources.is_empty() {
        return frame_demand(app, config);
    }
    let per_group = config.per_group() + config.per_source();
    let groups = std::iter::once(&app).chain(sources).map(|app| groups_demand(app, config, per_group));
    Some(groups.sum::<Option<Span>>()? + config.per_frame() + gaps_demand(app, config))
}

/// What the groups of a frame of `app` may need, each with what it pays.
fn groups_demand(app: &AppSpec, config: &Config, per_group: Span) -> Option<Span> {
    let group = |estimate: Estimate| config.conservative(estimate, Charge::Stays) + per_group;
    // A swap that gives a live GPU nothing to do is no group.
    let swap_of = |cost: Span, estimate: Estimate| {
        let idle = config.gpu.is_time_shared() && cost == Span::ZERO && estimate.span() == Span::ZERO;
        if idle { Span::ZERO } else { group(estimate) }
    };
    let groups = match &app.work {
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
                let estimate = |entry: &RecordedGroup| match entry.predicted {
                    Some(predicted) => Some(Estimate::new(predicted)),
                    None => upper_estimate(if learnt { dearest } else { entry.cost }, &app.prediction),
                };
                let demand = |entry: &RecordedGroup| match entry.kind {
                    GroupKind::Swap => Some(swap_of(entry.cost, estimate(entry)?)),
                    _ => estimate(entry).map(group),
                };
                frame.iter().map(demand).sum::<Option<Span>>()
            })
            .try_fold(Span::ZERO, |most, frame| frame.map(|frame| most.max(frame)))?,
    };
    Some(groups)
}

/// By how much the longest group of `app` may exceed what groups of protected apps may take
/// ([`Config::longest_group`]), if each pays so much as one of `several` sources of a frame; `None` if a prediction has
/// no bound.
pub fn groups_exceed(app: &AppSpec, several: bool, config: &Config) -> Option<Span> {
    let bound = |cost: Span| upper_estimate(cost, &app.prediction);
    let longest = match &app.work {
        Work::Drawn { parts, swap } => {
            bound(parts.iter().map(|part| most(&part.cost)).fold(most(swap), Span::max))?
        }
        Work::Recorded(recorded) => {
            let estimate = |entry: &RecordedGroup| match entry.predicted {
                Some(predicted) => Some(Estimate::new(predicted)),
                None => bound(entry.cost),
            };
            let longest = recorded.iter().map(estimate).try_fold(Span::ZERO, |longest, estimate| {
                estimate.map(|estimate| longest.max(estimate.span()))
            });
            Estimate::new(longest?)
        }
    };
    let shares = if several && config.gpu.is_time_shared() { config.per_arrival() } else { Span::ZERO };
    let length = config.conservative(longest, Charge::Enters) + shares;
    Some(length.saturating_sub(config.longest_group()))
}

/// The gaps that a frame of `app` may have: how often none of it waits though it goes on, and for how long at most
/// after its groups are over. Phases of the workload are not considered.
pub fn gaps(app: &AppSpec) -> Gaps {
    match &app.work {
        Work::Drawn { parts, .. } => {
            let groups = |count: fn(&Part) -> u32| 1 + parts.iter().map(count).sum::<u32>();
            let (fewest, most) = (groups(|part| part.count.0), groups(|part| part.count.1));
            let length = Span::from_ns(app.cpu.hi.as_ns() / u64::from(fewest));
            let waits = |part: &&Part| part.kind == GroupKind::Sync;
            let count = match app.synchronous || length > Span::ZERO {
                true => most - 1,
                false => parts.iter().filter(waits).map(|part| part.count.1).sum(),
            };
            Gaps { count, length: if count > 0 { length } else { Span::ZERO } }
        }
        Work::Recorded(recorded) => {
            let is_gap = |pair: &&[RecordedGroup]| {
                app.synchronous || pair[0].kind == GroupKind::Sync || pair[1].delay > Span::ZERO
            };
            let frames = recorded.split_inclusive(|entry| entry.kind.ends_frame());
            frames.fold(Gaps::default(), |most, frame| {
                let count = u32::try_from(frame.windows(2).filter(is_gap).count()).unwrap_or(u32::MAX);
                let length = frame.windows(2).map(|pair| pair[1].delay).max().unwrap_or_default();
                Gaps { count: most.count.max(count), length: most.length.max(length) }
            })
        }
    }
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
