//! The speed of the simulator.

use std::io;
use std::time::Instant;

use anyhow::Context;
use takt_core::Span;
use takt_sim::{Outcome, Scenario, meta, run};
use takt_trace::export::Perfetto;
use takt_trace::{Metrics, Observer};

use super::Measurement;
use crate::load;

const SCENARIO: &str = include_str!("../../../../scenarios/thesis-mixed.toml");

/// Simulated seconds per run: long enough to forget the start, short enough to repeat.
const SECONDS: u64 = 60;
/// Repetitions; the quantiles are over these.
const RUNS: usize = 7;

pub(super) fn measure_all() -> anyhow::Result<Vec<Measurement>> {
    let mut scenario = load::parse("scenarios/thesis-mixed.toml", SCENARIO, &[], None)?;
    scenario.duration = Span::from_ms(SECONDS * 1000);
    let plain = measure("sim", &scenario, |scenario| Ok(run(scenario, ())))?;
    let figures = measure("sim-metrics", &scenario, |scenario| {
        let mut metrics = Metrics::new(meta(scenario), scenario.warm_up);
        Ok(run(scenario, &mut metrics))
    })?;
    let traced = measure("sim-trace", &scenario, |scenario| {
        let mut trace = Perfetto::new(io::sink(), &meta(scenario))?;
        let outcome = run(scenario, &mut trace as &mut dyn Observer);
        trace.finish().context("a sink takes everything")?;
        Ok(outcome)
    })?;
    Ok(vec![plain, figures, traced])
}

fn measure(
    name: &str,
    scenario: &Scenario,
    mut simulate: impl FnMut(&Scenario) -> anyhow::Result<Outcome>,
) -> anyhow::Result<Measurement> {
    let events = simulate(scenario)?.events;
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        simulate(scenario)?;
        times.push(start.elapsed().as_nanos() as f64 / events as f64);
    }
    let memory = allocation_counter::measure(|| {
        // Measured once more, apart from the clock; the outcome is known.
        let _outcome = simulate(scenario);
    });
    times.sort_by(f64::total_cmp);
    let mean = times.iter().sum::<f64>() / RUNS as f64;
    Ok(Measurement {
        name: name.to_owned(),
        n: events,
        mean_ns: mean,
        p50_ns: times[RUNS / 2],
        p99_ns: times[RUNS - 1],
        allocations: memory.count_total,
        per_second: Some(1e9 / mean),
    })
}
