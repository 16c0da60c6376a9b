//! Simulations of scenarios that a page sends, within bounds.

use std::time::{Duration, Instant};

use takt_core::{Span, Time};
use takt_sim::scenario::{self, Override};
use takt_sim::{Scenario, World, meta};
use takt_trace::{Metrics, Summary};

use crate::api::SimulateRequest;

/// How long a simulation may take on this machine.
const TIME_MAX: Duration = Duration::from_secs(20);
/// Longest time that may be simulated.
const SIMULATED_MAX: Span = Span::from_ms(120_000);
/// Simulated time between two looks at the clock.
const STEP: Span = Span::from_ms(100);
/// Most changes of a scenario.
const SETS_MAX: usize = 64;

/// Scenarios to begin with: name and text.
pub(crate) const EXAMPLES: &[(&str, &str)] = &[
    ("car", include_str!("../../../examples/car.toml")),
    ("drive-cycle", include_str!("../../../scenarios/drive-cycle.toml")),
    ("thesis-homogeneous-60", include_str!("../../../scenarios/thesis-homogeneous-60.toml")),
    ("thesis-mixed", include_str!("../../../scenarios/thesis-mixed.toml")),
    ("two-displays", include_str!("../../../scenarios/two-displays.toml")),
];

/// What becomes of the scenario.
pub(crate) fn simulate(request: &SimulateRequest) -> Result<Summary, String> {
    let scenario = read(request)?;
    if scenario.duration > SIMULATED_MAX {
        let most = SIMULATED_MAX.as_ns() / 1_000_000_000;
        return Err(format!(
            "duration_s: the console simulates {most} s at most; takt sim has no such limit"
        ));
    }
    let mut metrics = Metrics::new(meta(&scenario), scenario.warm_up);
    let mut world = World::new(&scenario, &mut metrics);
    let (began, end) = (Instant::now(), Time::ZERO + scenario.duration);
    let mut until = Time::ZERO;
    while until < end {
        until = (until + STEP).min(end);
        world.run_until(until);
        if began.elapsed() > TIME_MAX {
            let seconds = TIME_MAX.as_secs();
            return Err(format!(
                "the simulation took more than {seconds} s; use a smaller duration_s, or takt sim"
            ));
        }
    }
    let facts = world.outcome().facts(&scenario);
    Ok(metrics.finish(facts))
}

fn read(request: &SimulateRequest) -> Result<Scenario, String> {
    if request.set.len() > SETS_MAX {
        return Err(format!("use {SETS_MAX} changes at most"));
    }
    let set = |text: &String| text.parse::<Override>().map_err(|error| format!("{text}: {error}"));
    let sets = request.set.iter().map(set).collect::<Result<Vec<_>, _>>()?;
    let no_files = |path: &str| Err(format!("the console reads no files ({path}); takt sim does"));
    let mut scenario = scenario::parse("scenario", &request.scenario, &sets, &no_files)
        .map_err(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    if let Some(policy) = &request.policy {
        if !takt_policies::NAMES.contains(&policy.as_str()) {
            return Err(format!("no policy {policy}"));
        }
        scenario.policy.clone_from(policy);
    }
    Ok(scenario)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(scenario: &str) -> SimulateRequest {
        SimulateRequest { scenario: scenario.to_owned(), set: Vec::new(), policy: None }
    }

    #[test]
    fn examples_can_be_varied_and_mistakes_are_told() {
        let (_, car) = EXAMPLES[0];
        let short = SimulateRequest { set: vec!["duration_s=2".to_owned()], ..request(car) };
        let summary = simulate(&short).expect("a summary");
        assert_eq!(summary.apps[0].name, "speedometer");
        let fifo = SimulateRequest { policy: Some("fifo".to_owned()), ..short.clone() };
        let (with, without) = (summary.apps[0].missed, simulate(&fifo).expect("a summary").apps[0].missed);
        assert!(with == 0 && without > 0, "{with} and {without}");
        for (bad, part) in [
            (request("nonsense"), "TOML"),
            (SimulateRequest { policy: Some("none".to_owned()), ..request(car) }, "no policy none"),
            (SimulateRequest { set: vec!["x".to_owned()], ..request(car) }, "x"),
            (SimulateRequest { set: vec!["duration_s=600".to_owned()], ..request(car) }, "120 s at most"),
        ] {
            let said = simulate(&bad).expect_err("bad");
            assert!(said.contains(part), "{said}");
        }
    }
}
