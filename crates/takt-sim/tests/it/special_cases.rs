//! What `timeline` does is what older policies do where they are sound: `frame-deadline` for frames of one display
//! that are all covered, `edf-cbs` for servers. Equal means every dispatch, at the same time.

use std::sync::Arc;

use takt_core::contract::{claim, is_covered};
use takt_core::service::{Enforcement, Reservation, Reserve};
use takt_core::{
    Action, AppId, AppParams, Clock, Config, GroupId, GroupKind, Margins, Priority, Service, Span, Stride,
    Time,
};
use takt_sim::model::{AppSpec, Jobs, Pace, RecordedGroup, Scenario, SpanRange, Work};
use takt_sim::prove::{Options, draw};
use takt_sim::rng::Rng;
use takt_sim::world;
use takt_trace::{Observer, Record};

#[derive(Default)]
struct Dispatches(Vec<(Time, AppId, GroupId)>);

impl Observer for Dispatches {
    fn record(&mut self, at: Time, record: &Record) {
        if let Record::Out(Action::Dispatch { app, group, .. }) = record {
            self.0.push((at, *app, *group));
        }
    }
}

fn play(scenario: &Scenario, policy: &str) -> Vec<(Time, AppId, GroupId)> {
    let mut dispatches = Dispatches::default();
    world::run(&Scenario { policy: policy.to_owned(), ..scenario.clone() }, &mut dispatches);
    dispatches.0
}

fn assert_equal(case: u64, scenario: &Scenario, policy: &str) -> usize {
    let (ours, theirs) = (play(scenario, "timeline"), play(scenario, policy));
    let differs = ours.iter().zip(&theirs).position(|(a, b)| a != b);
    if let Some(at) = differs {
        panic!("case {case}: {:?} instead of {:?} by {policy}", ours[at], theirs[at]);
    }
    assert_eq!(ours.len(), theirs.len(), "case {case}");
    ours.len()
}

#[test]
fn frames_of_one_display_go_as_by_frame_deadline() {
    let mut dispatched = 0;
    for case in 0..400 {
        let drawn = draw(&Options { seed: 5, gaps: false, ..Options::default() }, case);
        let mut scenario = drawn.scenario;
        scenario.apps.truncate(drawn.protected);
        dispatched += assert_equal(case, &scenario, "frame-deadline");
    }
    assert!(dispatched > 10_000, "{dispatched}");
}

/// All groups of a case are of one length and every budget is a multiple of it, so that none begins in one budget
/// and ends in the next: there `edf-cbs` lets groups overrun, and `timeline` postpones them. Each job takes a whole
/// budget and finds its server idle: with what is left of a budget, `edf-cbs` has deadlines that are nearer than a
/// period, which `timeline` does not.
const UNIT: Span = Span::from_us(500);

fn server(number: u32, enforcement: Enforcement, rng: &mut Rng) -> AppSpec {
    let period = UNIT.times(rng.between(4, 60));
    let budget = UNIT.times(rng.between(1, (period.as_ns() / UNIT.as_ns() / 4).max(1)));
    let reserve = Reserve { budget, period, deadline: period, enforcement };
    let service = Service { reservation: Reservation::Own(reserve), ..Service::default() };
    let (stride, clock) = (Stride::ONE, Clock::default());
    let params = AppParams { priority: Priority(100 - number), stride, etpf: Span::ZERO, clock, service };
    let count = budget.as_ns() / UNIT.as_ns();
    let group = |number| {
        let kind = if number == count { GroupKind::Swap } else { GroupKind::Draw };
        RecordedGroup { delay: Span::ZERO, kind, cost: UNIT, predicted: Some(UNIT), make: Span::ZERO }
    };
    let groups: Vec<RecordedGroup> = (1..=count).map(group).collect();
    let wait = UNIT.times(rng.between(0, 30));
    let jobs = Jobs { offset: UNIT.times(rng.between(0, 20)), period: period + wait, deadline: period };
    AppSpec {
        name: format!("server-{number}"),
        params,
        fps_mhz: 60_000,
        phase: 0,
        join: Time::ZERO,
        end: None,
        changes: Vec::new(),
        submit_delay: SpanRange::fixed(Span::ZERO),
        cpu: SpanRange::fixed(Span::ZERO),
        work: Work::Recorded(Arc::from(groups)),
        prediction: takt_sim::model::Prediction::default(),
        phases: Vec::new(),
        pace: Pace::Periodic(jobs),
        synchronous: false,
    }
}

/// A covered set of servers.
fn servers(case: u64, enforcement: Enforcement) -> Scenario {
    let mut rng = Rng::new(6, case);
    let mut scenario = draw(&Options::default(), 0).scenario;
    scenario.config = Config { mpcg: 1, margins: Margins::NONE, ..Config::default() };
    scenario.config.tuning.group_max = UNIT;
    scenario.gpu.dispatch_delay = SpanRange::fixed(Span::ZERO);
    scenario.gpu.completion_delay = SpanRange::fixed(Span::ZERO);
    (scenario.seed, scenario.duration) = (case, Span::from_ms(400));
    let mut apps: Vec<AppSpec> = (0..1 + rng.below(6)).map(|n| server(n, enforcement, &mut rng)).collect();
    let config = scenario.config;
    let covered = |apps: &[AppSpec]| {
        is_covered(&apps.iter().map(|app| claim(&app.params, &config)).collect::<Vec<_>>(), &config)
    };
    while !covered(&apps) {
        apps.pop();
    }
    scenario.apps = apps;
    scenario
}

#[test]
fn servers_go_as_by_edf_cbs() {
    let kinds = [(Enforcement::Posterior, "edf-cbs"), (Enforcement::Apriori, "edf-cbs-hard")];
    for (enforcement, policy) in kinds {
        let mut dispatched = 0;
        for case in 0..400 {
            dispatched += assert_equal(case, &servers(case, enforcement), policy);
        }
        assert!(dispatched > 10_000, "{policy} {dispatched}");
    }
}
