//! Experiments of the other papers: what they measured, or better.
//!
//! Pages about them are in `docs/experiments/`.

use std::path::Path;

use takt_sim::{Scenario, scenario, summarize};
use takt_trace::{AppSummary, Summary};

fn load(name: &str, sets: &[&str]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&path).expect("the scenario is there");
    let sets: Vec<_> = sets.iter().map(|set| set.parse().expect("a valid override")).collect();
    scenario::parse(name, &text, &sets, &|_| Err("no recordings".into())).expect("the scenario is valid")
}

fn simulate(name: &str, sets: &[&str]) -> Summary {
    let scenario = load(name, &[&["duration_s=60"], sets].concat());
    summarize(&scenario)
}

fn app<'a>(summary: &'a Summary, name: &str) -> &'a AppSummary {
    summary.apps.iter().find(|app| app.name == name).expect("the app exists")
}

#[track_caller]
fn frame_rates(summary: &Summary, expected: impl IntoIterator<Item = (&'static str, f64)>) {
    for (name, fps) in expected {
        let found = app(summary, name).fps;
        assert!((found - fps).abs() < 0.1, "{name} has {found} FPS under {}, not {fps}", summary.policy);
    }
}

const NONE: &[&str] = &["scheduler.policy=fifo", "app.*.unpaced=true"];
const APPS: [&str; 4] = ["speedometer", "tachometer", "menu", "spam"];

/// FG-SDS, MTS-1: all apps have the rate they want, except the last one under HPF.
#[test]
fn enough_time_for_all() {
    let none = simulate("fgsds-mts1", NONE);
    assert!(none.apps.iter().all(|app| app.fps > 39.0), "unrestricted, they exceed their rates");
    for policy in ["scheduler.policy=frrs", "scheduler.policy=frame-deadline"] {
        let summary = simulate("fgsds-mts1", &[policy]);
        assert!(summary.apps.iter().all(|app| app.met >= 1.0), "{policy}");
    }
    let hpf = simulate("fgsds-mts1", &["scheduler.policy=hpf"]);
    assert!(app(&hpf, "speedometer").met >= 1.0);
    assert!(app(&hpf, "menu").met < 0.9, "{}", app(&hpf, "menu").met);
}

/// FG-SDS, MTS-2.
#[test]
fn a_spam_app_sets_the_pace_of_all_without_arbitration() {
    for sets in [NONE, &["scheduler.policy=frrs"]] {
        frame_rates(&simulate("fgsds-mts2", sets), APPS.map(|name| (name, 10.0)));
    }
}

/// FG-SDS, MTS-2.
#[test]
fn a_spam_app_does_no_harm_by_priority_and_is_not_starved_by_deadlines() {
    let hpf = simulate("fgsds-mts2", &["scheduler.policy=hpf"]);
    let ours = simulate("fgsds-mts2", &["scheduler.policy=frame-deadline"]);
    for summary in [&hpf, &ours] {
        assert!(app(summary, "speedometer").met >= 1.0, "{}", summary.policy);
    }
    frame_rates(&hpf, [("tachometer", 30.0), ("menu", 15.0), ("spam", 0.0)]);
    frame_rates(&ours, [("tachometer", 30.0), ("menu", 20.0)]);
    assert!(app(&ours, "menu").met >= 1.0);
    assert!(app(&ours, "spam").fps > 3.0, "{}", app(&ours, "spam").fps);
    assert!(ours.gpu.utilisation > 0.9 && hpf.gpu.utilisation < 0.7);
}

/// HERCULES, section 2.4.1.
#[test]
fn bandwidth_servers_are_never_late_and_the_runlist_is() {
    for seed in 1..=3 {
        let seed = format!("seed={seed}");
        let run = |policy: &str, model: &str| {
            let sets = [format!("scheduler.policy={policy}"), format!("gpu.model={model}")];
            simulate("hercules-adas", &["duration_s=300", &sets[0], &sets[1], &seed])
        };
        let (interleaved, soft) = (run("runlist", "runlist"), run("edf-cbs", "preemptive"));
        let hard = run("edf-cbs-hard", "preemptive");
        let late = |summary: &Summary| {
            summary.apps.iter().filter_map(|app| app.jobs.as_ref()).map(|jobs| jobs.late).sum::<u64>()
        };
        assert!(late(&interleaved) > 0);
        assert_eq!((late(&soft), late(&hard)), (0, 0));
        let worst = |summary: &Summary, name: &str| {
            app(summary, name).jobs.as_ref().expect("it has a clock").response_us.max
        };
        for (name, factor) in [("sphere", 1.64), ("network", 1.93)] {
            let (theirs, ours) = (worst(&interleaved, name), worst(&soft, name));
            assert!(theirs >= factor * ours, "{name}: {theirs} us and {ours} us ({seed})");
        }
    }
}

#[test]
fn hercules_network_that_loads_its_input_is_late_as_often_as_measured() {
    for seed in 1..=2 {
        let seed = format!("seed={seed}");
        let run = |policy: &str, model: &str| {
            let sets = [format!("scheduler.policy={policy}"), format!("gpu.model={model}")];
            simulate("hercules-upload", &["duration_s=120", &sets[0], &sets[1], &seed])
        };
        let clocks = |summary: &Summary| {
            let jobs = summary.apps.iter().filter_map(|app| app.jobs.as_ref());
            jobs.fold((0, 0), |(late, all), jobs| (late + jobs.late, all + jobs.count))
        };
        let (late, all) = clocks(&run("runlist", "runlist"));
        let percent = 100.0 * late as f64 / all as f64;
        assert!((4.5..7.0).contains(&percent), "5.6 % there, {percent:.2} % here ({seed})");
        assert_eq!(clocks(&run("edf-cbs", "preemptive")).0, 0, "{seed}");
    }
}
