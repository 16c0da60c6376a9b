//! The `response-time-analysis` crate on the same sets.

use std::hint::black_box;

use anyhow::ensure;
use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::RBF;
use response_time_analysis::edf::fully_preemptive::{TaskUnderAnalysis, dedicated_uniproc_rta};
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::wcet::Scalar;
use takt_analysis::edf_response::{Preemption, bounds};
use takt_analysis::task::{Task, Ticks};

use super::{Measurement, analysis};

/// Beyond every busy period of the sets.
const LIMIT: u64 = 1 << 40;

pub(super) fn measure(sets: &[Vec<Task>]) -> anyhow::Result<Measurement> {
    for set in sets {
        let ours = bounds(set, Preemption::Anywhere).ok();
        ensure!(ours == Some(bounds_of(set)), "the bounds of {set:?} differ");
    }
    Ok(analysis::measure("response-time-analysis", sets, 1, |set| {
        black_box(bounds_of(set));
    }))
}

fn bounds_of(set: &[Task]) -> Vec<Ticks> {
    let arrivals: Vec<Sporadic> =
        set.iter().map(|task| Sporadic::new_zero_jitter(Duration::from(task.period()))).collect();
    let demands: Vec<RBF<&Sporadic, Scalar>> = set
        .iter()
        .zip(&arrivals)
        .map(|(task, arrivals)| RBF::new(arrivals, Scalar::new(Service::from(task.wcet()))))
        .collect();
    let bound = |index: usize| {
        let demand = |other: usize| TaskUnderAnalysis {
            rbf: &demands[other],
            deadline: Duration::from(set[other].deadline()),
        };
        let others: Vec<_> = (0..set.len()).filter(|other| *other != index).map(demand).collect();
        let result = dedicated_uniproc_rta(&demand(index), &others, Duration::from(LIMIT));
        result.map_or(Ticks::MAX, Ticks::from)
    };
    (0..set.len()).map(bound).collect()
}
