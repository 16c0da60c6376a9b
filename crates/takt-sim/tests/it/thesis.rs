//! The experiments of the thesis: what it measured, or better.
//!
//! Each test runs a scenario of `scenarios/` for the thesis's 300 s and compares with the figures
//! that Takt must show.

use std::path::Path;

use takt_sim::{Scenario, run, scenario, summarize};
use takt_trace::{AppSummary, Summary};

fn load(name: &str, sets: &[&str]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&path).expect("the scenario is there");
    let sets: Vec<_> = sets.iter().map(|set| set.parse().expect("a valid override")).collect();
    scenario::parse(name, &text, &sets, &|_| Err("no recordings".into())).expect("the scenario is valid")
}

fn simulate(name: &str, sets: &[&str]) -> Summary {
    let scenario = load(name, sets);
    summarize(&scenario)
}

fn app(summary: &Summary, priority: u32) -> &AppSummary {
    summary.apps.iter().find(|app| app.priority == priority).expect("the priority exists")
}

#[track_caller]
fn met_at_least(summary: &Summary, priorities: impl IntoIterator<Item = u32>, share: f64) {
    for priority in priorities {
        let app = app(summary, priority);
        assert!(app.met >= share, "P{priority} {} met {:.4} %", app.name, app.met * 100.0);
    }
}

#[test]
fn mixed_scenario() {
    let summary = simulate("thesis-mixed", &[]);
    met_at_least(&summary, 12..=17, 0.9999);
    assert!(summary.gpu.utilisation >= 0.995, "{}", summary.gpu.utilisation);
    assert!(app(&summary, 11).fps >= 12.0, "{}", app(&summary, 11).fps);
}

#[test]
fn mixed_scenario_with_wrong_predictions() {
    met_at_least(&simulate("thesis-mixed-quake-inf", &[]), 12..=17, 1.0);
    met_at_least(&simulate("thesis-mixed-quake-200", &[]), [17], 0.9999);
    let quarter = simulate("thesis-mixed-quake-25", &[]);
    met_at_least(&quarter, [16, 17], 0.999);
    met_at_least(&quarter, [12], 0.99);
}

#[test]
fn every_miss_of_the_important_apps_is_blamed_on_the_under_predicted_game() {
    let quarter = simulate("thesis-mixed-quake-25", &[]);
    let misses: Vec<_> = quarter
        .misses
        .iter()
        .filter(|miss| app(&quarter, 11).name != miss.app && !miss.app.starts_with("texture-"))
        .collect();
    assert!(!misses.is_empty(), "predictions of a quarter do harm");
    for miss in misses {
        assert_eq!(miss.cause.culprit.as_deref(), Some("quake3"), "{}", miss.sentence);
        assert!(miss.cause.measured_us > miss.cause.predicted_us, "{}", miss.sentence);
    }
}

#[test]
fn utilisation_grows_with_the_queue() {
    for (mpcg, least) in [(1, 0.90), (2, 0.97), (3, 0.99), (5, 0.99), (10, 0.99)] {
        let set = format!("scheduler.mpcg={mpcg}");
        let summary = simulate("thesis-mixed", &[&set, "duration_s=100"]);
        let utilisation = summary.gpu.utilisation;
        assert!(utilisation >= least, "mpcg {mpcg}: {utilisation}");
    }
}

#[test]
fn homogeneous_scenarios() {
    for (name, full) in
        [("thesis-homogeneous-60", 2), ("thesis-homogeneous-30", 6), ("thesis-homogeneous-20", 9)]
    {
        let summary = simulate(name, &[]);
        met_at_least(&summary, (11 - full)..=10, 0.9998);
        // At most one app is served in part; the rest gets nearly nothing.
        let partly = summary.apps.iter().filter(|app| app.met < 0.9998 && app.met > 0.01).count();
        assert!(partly <= 1, "{name}: {partly} apps are served in part");
    }
}

#[test]
fn submission_order_does_harm() {
    let summary = simulate("thesis-mixed", &["scheduler.policy=fifo"]);
    assert!(app(&summary, 17).fps < 40.0, "{}", app(&summary, 17).fps);
    assert!(app(&summary, 17).met < 0.5, "{}", app(&summary, 17).met);
}

#[test]
fn runs_are_pinned_by_their_seed() {
    // The same in debug and release builds, on any machine: `make test` compares the release
    // build with it, too. A change here means that scheduling, its reasons or the model changed:
    // say so in the commit.
    let pinned = include_str!("../../../../scenarios/drive-cycle.hash");
    let hash = |sets: &[&str]| run(&load("drive-cycle", sets), ()).event_hash;
    assert_eq!(format!("{:016x}", hash(&[])), pinned.trim());
    assert_ne!(hash(&["seed=2"]), hash(&[]));
}
