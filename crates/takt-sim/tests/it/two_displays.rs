//! Displays and clocks that have nothing to do with each other, on one GPU.

use std::path::Path;

use takt_core::{Clock, DisplayId, contract};
use takt_sim::{Scenario, run, scenario, summarize};

fn load(sets: &[&str]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/two-displays.toml");
    let text = std::fs::read_to_string(path).expect("the scenario is there");
    let sets: Vec<_> = sets.iter().map(|set| set.parse().expect("a valid override")).collect();
    scenario::parse("two-displays", &text, &sets, &|_| Err("no recordings".into())).expect("it is valid")
}

/// The most important apps that the offline test covers.
fn protected(scenario: &Scenario) -> usize {
    let claims: Vec<_> =
        scenario.apps.iter().map(|app| contract::claim(&app.params, &scenario.config)).collect();
    let wanted = scenario.apps.iter().take_while(|app| contract::has_contract(&app.params)).count();
    contract::covered(&claims[..wanted], &scenario.config)
}

#[test]
fn protected_apps_of_all_clocks_meet_every_deadline() {
    for seed in 1..=4 {
        let scenario = load(&[&format!("seed={seed}")]);
        assert_eq!(protected(&scenario), 5);
        let summary = summarize(&scenario);
        for (app, fps) in summary.apps.iter().zip([60.0, 1e6 / 33_000.0, 30.0, 90.0, 30.0]) {
            assert_eq!(app.missed, 0, "seed {seed}: {}", app.name);
            assert!((app.fps - fps).abs() < 0.1, "seed {seed}: {} has {} FPS", app.name, app.fps);
        }
        let camera = summary.apps[1].jobs.as_ref().expect("it has a clock of its own");
        assert!(camera.late == 0 && camera.count >= 1818, "seed {seed}: {camera:?}");
        // An idle GPU protects no app.
        assert!(summary.gpu.utilisation > 0.99, "{}", summary.gpu.utilisation);
    }
}

/// The scenario asks for something: who does not know the clocks misses deadlines.
#[test]
fn other_policies_miss_deadlines() {
    for policy in ["fifo", "frame-deadline"] {
        let scenario = load(&["duration_s=10", &format!("scheduler.policy={policy}")]);
        let summary = summarize(&scenario);
        assert!(summary.apps[3].missed > 100, "{policy}: {}", summary.apps[3].missed);
    }
}

/// The apps begin their frames by the clocks that the file names.
#[test]
fn frames_are_due_by_the_clock_of_their_app() {
    use takt_core::{Action, AppId, Time};
    use takt_trace::{Observer, Record};

    #[derive(Default)]
    struct Deadlines(Vec<(AppId, Time)>);
    impl Observer for Deadlines {
        fn record(&mut self, _: Time, record: &Record) {
            if let Record::Out(Action::FrameDone(done)) = record {
                self.0.push((done.app, done.deadline));
            }
        }
    }
    let scenario = load(&["duration_s=2"]);
    let mut deadlines = Deadlines::default();
    run(&scenario, &mut deadlines);
    let head_unit = scenario.config.display(DisplayId(1));
    let of = |app: u32| deadlines.0.iter().filter(move |(done, _)| *done == AppId(app)).map(|(_, at)| *at);
    assert!(of(3).count() > 100);
    assert!(of(3).all(|at| head_unit.start(head_unit.period_at(at)) == at));
    let Clock::Own { period, deadline } = scenario.apps[1].params.clock else { panic!("the camera has one") };
    let first = Time::from_us(1500) + deadline;
    let camera = (0..).map(|frame| first + period.times(frame));
    assert!(of(1).count() > 50 && of(1).eq(camera.take(of(1).count())));
}
