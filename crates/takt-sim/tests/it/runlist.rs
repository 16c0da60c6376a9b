//! Turns by a runlist, on a GPU that has one and by the policy: against bounds, tables of other
//! tools, and each other.

use takt_analysis::runlist::{Runlist, bounds, is_schedulable};
use takt_analysis::task::{Task, Ticks};
use takt_core::service::Level;
use takt_core::{
    AppId, AppParams, Config, Event, GroupId, GroupKind, Margins, Priority, Service, Span, Stride, Time,
};
use takt_sim::gpu::{Channel, Gpu, GpuEvent, Job};
use takt_sim::model::{
    AppSpec, GpuModel, GpuSpec, Jobs, Pace, Prediction, RecordedGroup, Scenario, SpanRange, Work,
};
use takt_sim::rng::Rng;
use takt_sim::task_sets::TaskSets;
use takt_sim::{World, meta, run, scenario};
use takt_trace::{GpuRecord, Log, Metrics, Record, RunFacts, Summary};

/// How many random sets a test plays.
fn rounds() -> u64 {
    if std::env::var_os("TAKT_SLOW_TESTS").is_some_and(|value| value == "1") { 100_000 } else { 2_000 }
}

fn channel(level: Level, timeslice: Ticks) -> Channel {
    Channel { level, timeslice: Span::from_ns(timeslice), ..Channel::default() }
}

/// Plays releases (time, task) on a GPU with one high channel per task and, if they have a
/// timeslice, two busy ones below; returns the worst response of each. A tick is a nanosecond.
fn worst_responses(tasks: &[Task], runlist: &Runlist, mut releases: Vec<(Ticks, usize)>) -> Vec<Ticks> {
    releases.sort_unstable();
    let spec = GpuSpec {
        model: GpuModel::Runlist,
        switch: Span::from_ns(runlist.switch),
        queue: u32::MAX,
        ..GpuSpec::default()
    };
    let mut gpu = Gpu::new(&spec);
    let slot = |index: usize| AppId(u32::try_from(index).expect("few tasks"));
    for index in 0..tasks.len() {
        gpu.set_channel(slot(index), channel(Level::High, runlist.slice));
    }
    if runlist.lower_slice > 0 {
        for (lower, level) in [(tasks.len(), Level::Medium), (tasks.len() + 1, Level::Low)] {
            gpu.set_channel(slot(lower), channel(level, runlist.lower_slice));
            let job = Job { app: slot(lower), group: GroupId(u64::MAX), cost: Span::FOREVER };
            gpu.dispatch(Time::ZERO, job);
        }
    }
    for (number, (release, task)) in (0..).zip(&releases) {
        let cost = Span::from_ns(tasks[*task].wcet());
        gpu.dispatch(Time::from_ns(*release), Job { app: slot(*task), group: GroupId(number), cost });
    }
    let mut worst = vec![0; tasks.len()];
    let mut left = releases.len();
    while left > 0 {
        let now = gpu.next_at();
        assert!(now < Time::NEVER, "{left} jobs are stuck");
        while let Some(event) = gpu.step(now) {
            if let GpuEvent::Finished { job, .. } = event {
                let number = usize::try_from(job.group.0).expect("few jobs");
                let (release, task) = releases[number];
                worst[task] = worst[task].max(now.as_ns() - release);
                left -= 1;
            }
        }
    }
    worst
}

fn releases(tasks: &[Task], horizon: Ticks, rng: &mut Rng) -> Vec<(Ticks, usize)> {
    let mut releases = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let mut at = rng.between(0, task.period());
        while at < horizon {
            releases.push((at, index));
            at += task.period() + if rng.chance(200_000) { rng.between(1, task.period()) } else { 0 };
        }
    }
    releases
}

#[track_caller]
fn assert_below(worst: &[Ticks], bounds: &[Ticks], about: impl std::fmt::Debug) {
    let above = worst.iter().zip(bounds).any(|(worst, bound)| worst > bound);
    assert!(!above, "simulated {worst:?}, bounds {bounds:?}: {about:?}");
}

/// Few and short tasks make coincidences likely, and those are where bounds break.
fn small_set(rng: &mut Rng) -> Option<Vec<Task>> {
    let sets = TaskSets {
        tasks: usize::try_from(rng.between(1, 5)).ok()?,
        utilisation_ppb: rng.between(100_000_000, 800_000_000),
        period: (10, 200),
        deadline_permille_min: 800,
        ..TaskSets::hercules(0, 0)
    };
    sets.draw(rng)
}

#[test]
fn admitted_sets_miss_nothing_on_the_gpu() {
    let mut rng = Rng::new(21, 0);
    let (mut left, mut close, mut all) = (rounds(), 0, 0);
    while left > 0 {
        let tasks = small_set(&mut rng).expect("such sets exist");
        let runlist = Runlist {
            slice: rng.between(1, 12),
            lower_slice: rng.between(0, 6),
            switch: rng.between(0, 2),
            every_switch: true,
        };
        let bounds = bounds(&tasks, &runlist);
        if !is_schedulable(&tasks, &bounds) {
            continue;
        }
        left -= 1;
        let worst = worst_responses(&tasks, &runlist, releases(&tasks, 1_500, &mut rng));
        assert_below(&worst, &bounds, (&tasks, runlist));
        close += worst.iter().zip(&bounds).filter(|(worst, bound)| *worst * 5 >= *bound * 4).count();
        all += tasks.len();
    }
    // A test that never comes close to the bounds would show nothing.
    assert!(close * 20 > all, "only {close} of {all} responses are near their bounds");
}

/// Columns: set, task, C, D, T, bound of pyCPA, bound of GCAPS; µs, 2 ms slices, one level.
const ROUND_ROBIN: &str = include_str!("../../../takt-analysis/tests/golden/rr_slice2000.csv");

#[test]
fn the_gpu_stays_below_what_other_tools_say() {
    let row = |line: &str| line.split(',').map(|cell| cell.parse().expect("a number")).collect();
    let rows: Vec<Vec<Ticks>> = ROUND_ROBIN.lines().skip(1).map(row).collect();
    let runlist = Runlist { slice: 2000, lower_slice: 0, switch: 0, every_switch: true };
    let mut rng = Rng::new(22, 0);
    let mut played = 0;
    for set in rows.chunk_by(|a, b| a[0] == b[0]) {
        assert!(set.iter().all(|row| row[5] <= row[6]), "pyCPA is not above GCAPS: {set:?}");
        // Where a response may exceed the period, jobs pile up and the tables say nothing.
        if set.iter().any(|row| row[5] > row[4]) {
            continue;
        }
        played += 1;
        let task = |row: &Vec<Ticks>| Task::new(row[2], row[3], row[4]).expect("in range");
        let tasks: Vec<Task> = set.iter().map(task).collect();
        let bounds: Vec<Ticks> = set.iter().map(|row| row[5]).collect();
        for _ in 0..rounds() / 200 {
            let worst = worst_responses(&tasks, &runlist, releases(&tasks, 2_000_000, &mut rng));
            assert_below(&worst, &bounds, &tasks);
        }
    }
    assert!(played > 20, "{played} sets were played");
}

/// A world in which each task is an app with a clock of its own, and another one always has work.
fn scenario(tasks: &[Task], runlist: &Runlist, model: GpuModel, rng: &mut Rng) -> Scenario {
    let app = |(index, task): (u32, &Task)| {
        let job = Jobs {
            offset: Span::from_ns(rng.between(0, task.period()) | 1),
            period: Span::from_ns(task.period()),
            deadline: Span::from_ns(task.deadline()),
        };
        app(100 - index, task.wcet(), Pace::Periodic(job), Level::High, runlist.slice)
    };
    let mut apps: Vec<AppSpec> = (0..).zip(tasks).map(app).collect();
    apps.push(self::app(1, 40 * runlist.lower_slice, Pace::Unpaced, Level::Low, runlist.lower_slice));
    Scenario {
        name: "runlist".to_owned(),
        description: String::new(),
        duration: Span::from_ms(40),
        warm_up: Span::ZERO,
        seed: 1,
        policy: "runlist".to_owned(),
        config: Config {
            mpcg: if model == GpuModel::Runlist { 64 } else { 1 },
            margins: Margins::NONE,
            completion_timeout: Span::FOREVER,
            ..Config::default()
        },
        belief: false,
        gpu: GpuSpec { model, ..GpuSpec::default() },
        apps,
        focus: Vec::new(),
    }
}

fn app(priority: u32, cost: Ticks, pace: Pace, level: Level, timeslice: Ticks) -> AppSpec {
    let group = RecordedGroup {
        delay: Span::ZERO,
        kind: GroupKind::Swap,
        cost: Span::from_ns(cost),
        predicted: None,
        make: Span::ZERO,
    };
    let service = Service { level, timeslice: Span::from_ns(timeslice), ..Service::default() };
    let params = AppParams {
        priority: Priority(priority),
        stride: Stride::ONE,
        etpf: Span::ZERO,
        clock: takt_core::Clock::default(),
        service,
    };
    AppSpec {
        name: format!("app-{priority}"),
        params,
        fps_mhz: 60_000,
        phase: 0,
        join: Time::ZERO,
        end: None,
        changes: Vec::new(),
        submit_delay: SpanRange::fixed(Span::ZERO),
        cpu: SpanRange::fixed(Span::ZERO),
        work: Work::Recorded([group].into()),
        prediction: Prediction::default(),
        phases: Vec::new(),
        pace,
        synchronous: false,
    }
}

fn cost(app: &AppSpec) -> Option<Span> {
    match &app.work {
        Work::Recorded(groups) => groups.first().map(|group| group.cost),
        Work::Drawn { .. } => None,
    }
}

/// When groups began, were interrupted and ended, and the figures of the run.
fn play(scenario: &Scenario) -> (Vec<(Time, AppId, bool)>, Summary) {
    let mut metrics = Metrics::new(meta(scenario), Span::ZERO);
    let mut log = Log::new();
    let mut world = World::new(scenario, (&mut metrics, &mut log));
    world.run_until(Time::ZERO + scenario.duration);
    let outcome = world.outcome();
    let changes = log.records.iter().filter_map(|(at, record)| match record {
        Record::Gpu(GpuRecord::Started { app, .. }) => Some((*at, *app, true)),
        Record::Gpu(GpuRecord::Finished { app, .. } | GpuRecord::Preempted { app, .. }) => {
            Some((*at, *app, false))
        }
        _ => None,
    });
    let changes = changes.collect();
    // The whole of a group is measured, with all that happened in between.
    let costs: Vec<Span> = scenario.apps.iter().filter_map(cost).collect();
    for (_, record) in &log.records {
        if let Record::In(Event::Complete { cost, .. }) = record {
            assert!(costs.contains(&cost.span()), "{cost:?}, not one of {costs:?}");
        }
    }
    let facts = RunFacts {
        seed: scenario.seed,
        event_hash: outcome.event_hash,
        stats: outcome.stats,
        end: outcome.end,
    };
    (changes, metrics.finish(facts))
}

#[test]
fn the_policy_does_on_a_preemptive_gpu_what_the_runlist_of_a_gpu_does() {
    let mut rng = Rng::new(23, 0);
    for round in 0..rounds() / 20 {
        let sets = TaskSets {
            tasks: usize::try_from(1 + round % 5).expect("small"),
            utilisation_ppb: rng.between(100_000_000, 600_000_000),
            period: (900_000, 9_000_000),
            ..TaskSets::hercules(0, 0)
        };
        // The GPU is never idle and all lengths are even, but jobs come at odd times: nothing comes
        // just when a turn ends, which each may see first.
        let even = |task: Task| Task::new(task.wcet() & !1, task.period() & !1, task.period() & !1).ok();
        let tasks = sets.draw(&mut rng).expect("such sets exist");
        let tasks: Vec<Task> = tasks.into_iter().filter_map(even).collect();
        let runlist = Runlist {
            slice: 2 * rng.between(25_000, 200_000),
            lower_slice: 2 * rng.between(25_000, 200_000),
            switch: 0,
            every_switch: true,
        };
        let bounds = bounds(&tasks, &runlist);
        let seed = rng.next_u64();
        let (on_host, summary) = play(&scenario(&tasks, &runlist, GpuModel::Runlist, &mut Rng::new(seed, 0)));
        let (by_policy, _) = play(&scenario(&tasks, &runlist, GpuModel::Preemptive, &mut Rng::new(seed, 0)));
        assert!(on_host.len() > 30, "little happened: {on_host:?}");
        assert_eq!(on_host, by_policy, "{tasks:?} {runlist:?}");
        if is_schedulable(&tasks, &bounds) {
            for (app, bound) in summary.apps.iter().zip(&bounds) {
                let jobs = app.jobs.as_ref().expect("the first apps have their own clocks");
                assert_eq!(jobs.late, 0, "{tasks:?} {runlist:?}");
                // The histogram has three digits.
                assert!(jobs.response_us.max * 999.0 <= *bound as f64, "{jobs:?}, bound {bound}");
            }
        }
    }
}

#[test]
fn work_that_costs_nothing_waits_for_no_turn() {
    let text = "name = \"t\"\nduration_s = 1\n[gpu]\nmodel = \"runlist\"\n\
         [[app]]\nname = \"dial\"\npriority = 2\nfps = 60\ndraws = [{ us = 1000 }]\nswap_us = 0\n\
         [[app]]\nname = \"film\"\npriority = 1\nfps = 60\ndraws = [{ us = 3000 }]\nswap_us = 0\n";
    let scenario = scenario::parse("t", text, &[], &|_| Err(String::new())).expect("it makes sense");
    let mut metrics = Metrics::new(meta(&scenario), Span::ZERO);
    let outcome = run(&scenario, &mut metrics);
    let (stats, end) = (outcome.stats, outcome.end);
    let summary = metrics.finish(RunFacts { seed: 1, event_hash: outcome.event_hash, stats, end });
    let [dial, film] = &summary.apps[..] else { unreachable!("two apps") };
    assert_eq!((dial.met, film.met), (1.0, 1.0));
    assert_eq!(dial.blocking_us.max, 0.0, "its swap is over with its draw");
    assert!(stats.dispatched <= dial.frames + film.frames + 2, "a frame is one group, its swap is none");
}

#[test]
fn apps_whose_frames_end_without_groups_do_not_run_ahead_without_end() {
    // Most frames have no group, and come every microsecond while one with a group is on the GPU.
    let text = "name = \"t\"\nduration_s = 0.2\n[gpu]\nmodel = \"runlist\"\n\
         [[app]]\nname = \"idle\"\npriority = 1\nfps = 60\nunpaced = true\ndraws = [{ us = 5000, count = [0, 1] }]\n\
         swap_us = 0\n";
    let scenario = scenario::parse("t", text, &[], &|_| Err(String::new())).expect("it makes sense");
    let outcome = run(&scenario, ());
    assert_eq!(outcome.stats.refused, 0, "it waits instead");
    assert!((38..=40).contains(&outcome.stats.completed), "the GPU is kept busy: {:?}", outcome.stats);
}

/// An instrument whose groups use up its reserved time by their predictions, beside longer groups, on a
/// GPU that serves processes in turn: work that comes while its group is on the GPU delays it.
#[test]
fn what_is_on_the_gpu_is_not_made_late_by_what_comes_later() {
    let app = |name: &str, priority: u32, fps: u32, etpf_us: u32, us: u32| {
        format!(
            "[[app]]\nname = \"{name}\"\npriority = {priority}\nfps = {fps}\netpf_us = {etpf_us}\n\
             synchronous = true\ncpu_us = [100, 500]\ndraws = [{{ us = {us}, sync = true }}]\nswap_us = 0\n\
             service = {{ uninterruptible = true }}\n"
        )
    };
    for (mpcg, game_us) in [(2, 7_000), (3, 7_000), (3, 8_500), (5, 8_500)] {
        let text = format!(
            "name = \"t\"\nduration_s = 20\nwarm_up_s = 1\n\
             [scheduler]\nmpcg = {mpcg}\nmargins = {{ completion_upper_us = 300 }}\n\
             [gpu]\nmodel = \"runlist\"\nlate_ends = true\nswitch_us = 160\ncompletion_delay_us = 20\n{}{}{}{}",
            app("dial", 9, 60, 3_900, 3_300),
            app("film", 8, 30, 4_000, 2_000),
            app("game", 7, 60, 0, game_us),
            app("toy", 6, 60, 0, 5_000),
        );
        let scenario = scenario::parse("t", &text, &[], &|_| Err(String::new())).expect("it makes sense");
        let mut metrics = Metrics::new(meta(&scenario), Span::from_ms(1_000));
        let outcome = run(&scenario, &mut metrics);
        let (stats, end) = (outcome.stats, outcome.end);
        let summary = metrics.finish(RunFacts { seed: 1, event_hash: outcome.event_hash, stats, end });
        let met = |name| summary.apps.iter().find(|app| app.name == name).expect("the app exists").met;
        assert_eq!((met("dial"), met("film")), (1.0, 1.0), "{mpcg} in flight, {game_us} µs");
        assert!(met("game") > 0.3, "what fits still goes: {}", met("game"));
    }
}
