//! `takt bench`: what the hot paths cost.

mod analysis;
mod decision;
mod grant;
#[cfg(feature = "opponents")]
mod opponent;
mod predict;
mod simulator;
mod turn;

use std::time::Instant;

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Answer;
use crate::args::{BenchArgs, BenchName};
use crate::output;
use crate::table::Table;

/// One measurement, as `--json` prints it.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct Measurement {
    /// Which hot path.
    pub(crate) name: String,
    /// How large: apps for decisions, grants and turns, events for simulations, tasks for analyses; for
    /// predictions vertices of a call, bytes of a shader, or triangles.
    pub(crate) n: u64,
    /// Mean time of one decision, grant, turn, event, vertex, prediction, or of the analysis of one set;
    /// where there are batches of them, in the median batch.
    pub(crate) mean_ns: f64,
    /// Median.
    pub(crate) p50_ns: f64,
    /// 99th percentile.
    pub(crate) p99_ns: f64,
    /// Memory allocations during the measurement, set-up excluded.
    pub(crate) allocations: u64,
    /// Events per second, where a rate is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) per_second: Option<f64>,
}

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<Answer> {
    if args.bare {
        decision::take_only(&args.apps, args.iterations)?;
        return Ok(Answer::Yes);
    }
    let mut measurements = Vec::new();
    if args.name.is_none_or(|name| name == BenchName::Decision) {
        measurements.extend(decision::measure_all(&args.apps, args.iterations)?);
    }
    if args.name.is_none_or(|name| name == BenchName::Sim) {
        measurements.extend(simulator::measure_all()?);
    }
    if args.name.is_none_or(|name| name == BenchName::Predict) {
        measurements.extend(predict::measure_all()?);
    }
    if args.name.is_none_or(|name| name == BenchName::Analysis) {
        measurements.extend(analysis::measure_all()?);
    }
    if args.name.is_none_or(|name| name == BenchName::Grant) {
        measurements.extend(grant::measure_all(args.iterations.min(20_000))?);
    }
    if args.name.is_none_or(|name| name == BenchName::Turn) {
        measurements.extend(turn::measure_all(args.iterations)?);
    }
    output::json(args.json.as_deref(), &measurements)?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&describe(&measurements))?;
    }
    Ok(Answer::Yes)
}

/// Times `iterate(count)`: the mean over batches of iterations, the quantiles one by one.
///
/// The mean is that of the median batch. A machine that has other things to do interrupts some of
/// them, which would say more about the machine; what is slow now and then shows in the quantiles.
fn time(name: &str, n: u64, iterations: u64, mut iterate: impl FnMut(u64)) -> anyhow::Result<Measurement> {
    iterate(iterations / 10 + 1);
    let batches = iterations.min(BATCHES);
    let size = iterations / batches;
    let mut means = Vec::with_capacity(usize::try_from(batches)?);
    let memory = allocation_counter::measure(|| {
        for _ in 0..batches {
            let start = Instant::now();
            iterate(size);
            means.push(start.elapsed().as_nanos() as f64 / size as f64);
        }
    });
    means.sort_unstable_by(f64::total_cmp);
    let mut histogram = Histogram::<u64>::new(3)?;
    for _ in 0..iterations.min(100_000) {
        let start = Instant::now();
        iterate(1);
        histogram.record(u64::try_from(start.elapsed().as_nanos())?)?;
    }
    Ok(Measurement {
        name: name.to_owned(),
        n,
        mean_ns: means[means.len() / 2],
        p50_ns: histogram.value_at_quantile(0.5) as f64,
        p99_ns: histogram.value_at_quantile(0.99) as f64,
        allocations: memory.count_total,
        per_second: None,
    })
}

/// Batches that a mean is taken of, if there are enough iterations.
const BATCHES: u64 = 1000;

fn describe(measurements: &[Measurement]) -> String {
    let mut table = Table::new("<bench, n, mean ns, p50 ns, p99 ns, allocations, M events/s");
    for m in measurements {
        table.row(vec![
            m.name.clone(),
            m.n.to_string(),
            format!("{:.1}", m.mean_ns),
            format!("{:.1}", m.p50_ns),
            format!("{:.1}", m.p99_ns),
            m.allocations.to_string(),
            m.per_second.map_or_else(String::new, |rate| format!("{:.2}", rate / 1e6)),
        ]);
    }
    let legend = "n: apps for decision*, grant* and turn, events for sim*, vertices for position-slice, bytes for \
                  glsl-largest, triangles for fragments* and batch*, tasks for the analyses. Times are for one \
                  decision, grant, turn, event, vertex, shader, prediction or set.\n";
    table.render() + legend
}
