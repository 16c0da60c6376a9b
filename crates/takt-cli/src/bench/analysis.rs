//! The cost of the analyses, per task set.
//!
//! Sets as in the studies: utilisation 0.95, periods of 16 to 125 ms in µs, deadlines within the
//! last fifth of the period. With the feature `opponents`, the `response-time-analysis` crate
//! takes the same sets, and its bounds must equal ours.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Context;
use takt_analysis::edf;
use takt_analysis::edf_response::{Preemption, bounds};
use takt_analysis::task::Task;
use takt_sim::rng::Rng;
use takt_sim::task_sets::TaskSets;

use super::Measurement;

/// Sets per number of tasks.
const SETS: usize = 1000;
/// Tasks per set.
const TASKS: [usize; 2] = [5, 20];
/// A set is analysed so often in a row that reading the clock does not matter.
const REPETITIONS: u32 = 200;
/// The analyses of microseconds and more need fewer.
const REPETITIONS_OF_BOUNDS: u32 = 5;

/// Passes through all sets, at least.
const PASSES_MIN: u32 = 3;

pub(super) fn measure_all() -> anyhow::Result<Vec<Measurement>> {
    let mut all = Vec::new();
    for tasks in TASKS {
        let sets = sets(tasks)?;
        let verdict = |set: &[Task]| {
            black_box(edf::test(set));
        };
        all.push(measure("analysis-qpa", &sets, REPETITIONS, verdict));
        let kinds = [
            ("analysis-edf", Preemption::Anywhere),
            ("analysis-lp-edf", Preemption::Segments(2000)),
            ("analysis-np-edf", Preemption::Nowhere),
        ];
        for (name, preemption) in kinds {
            let bound = |set: &[Task]| {
                // Overload does not happen in these sets, and would be fast.
                let _bounds = black_box(bounds(set, preemption));
            };
            all.push(measure(name, &sets, REPETITIONS_OF_BOUNDS, bound));
        }
        #[cfg(feature = "opponents")]
        all.push(super::opponent::measure(&sets)?);
    }
    Ok(all)
}

fn sets(tasks: usize) -> anyhow::Result<Vec<Vec<Task>>> {
    let sets = TaskSets { deadline_permille_min: 800, ..TaskSets::hercules(tasks, 950_000_000) };
    let mut rng = Rng::new(1, tasks as u64);
    (0..SETS).map(|_| sets.draw(&mut rng).context("such sets exist")).collect()
}

/// Measures one analysis on every set. The mean is that of a pass through all sets, as a study
/// would take them; of several passes the median, since other programs may interrupt some. The
/// quantiles are over sets that are analysed many times in a row.
pub(super) fn measure(
    name: &str,
    sets: &[Vec<Task>],
    repetitions: u32,
    mut analyse: impl FnMut(&[Task]),
) -> Measurement {
    let mut times: Vec<f64> = sets
        .iter()
        .map(|set| {
            analyse(set);
            let start = Instant::now();
            for _ in 0..repetitions {
                analyse(black_box(set));
            }
            start.elapsed().as_nanos() as f64 / f64::from(repetitions)
        })
        .collect();
    let mut passes: Vec<f64> = (0..repetitions.max(PASSES_MIN))
        .map(|_| {
            let start = Instant::now();
            sets.iter().for_each(|set| analyse(black_box(set)));
            start.elapsed().as_nanos() as f64
        })
        .collect();
    passes.sort_by(f64::total_cmp);
    let pass = passes.get(passes.len() / 2).copied().unwrap_or(0.0);
    let memory = allocation_counter::measure(|| sets.iter().for_each(|set| analyse(set)));
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or(0.0);
    Measurement {
        name: name.to_owned(),
        n: sets.first().map_or(0, |set| set.len() as u64),
        mean_ns: pass / sets.len().max(1) as f64,
        p50_ns: at(50),
        p99_ns: at(99),
        allocations: memory.count_total,
        per_second: None,
    }
}
