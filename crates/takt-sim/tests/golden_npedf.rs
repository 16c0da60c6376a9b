//! The modelled GPU under plain non-preemptive EDF reproduces every completion time that an
//! independent exact analysis gives.

use std::collections::BTreeMap;

use takt_core::{AppId, GroupId, Span, Time};
use takt_sim::gpu::{Gpu, GpuEvent, Job};
use takt_sim::model::GpuSpec;

const SETS: &str = include_str!("golden/npedf_vsync.sets.csv");
const COMPLETIONS: &str = include_str!("golden/npedf_vsync_det.csv");

/// One tick of the tables is one nanosecond here.
#[derive(Clone, Copy, Debug)]
struct Task {
    cost: u64,
    deadline: u64,
    period: u64,
}

/// A released job that waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Ready {
    deadline: u64,
    task: usize,
    job: u64,
    cost: u64,
}

fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().skip(1).map(|line| line.split(',').collect())
}

fn number(text: &str) -> u64 {
    text.parse().expect("tables hold whole numbers")
}

/// A set is named by its number and its utilisation.
type Name<'a> = (u64, &'a str);

fn sets() -> BTreeMap<Name<'static>, Vec<Task>> {
    let mut sets: BTreeMap<Name<'_>, Vec<Task>> = BTreeMap::new();
    for row in rows(SETS) {
        let [cost, deadline, period] = [3, 4, 5].map(|column| number(row[column]));
        sets.entry((number(row[0]), row[1])).or_default().push(Task { cost, deadline, period });
    }
    sets
}

/// All jobs of one hyperperiod by release, with the end of each.
fn simulate(tasks: &[Task]) -> BTreeMap<(usize, u64), u64> {
    let hyperperiod = tasks.iter().fold(1, |acc, task| takt_core::refresh::lcm(acc, task.period));
    let mut releases: Vec<(u64, Ready)> = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        for job in 0..hyperperiod / task.period {
            let at = job * task.period;
            let deadline = at + task.deadline;
            releases.push((at, Ready { deadline, task: index, job, cost: task.cost }));
        }
    }
    releases.sort_by_key(|(at, ready)| std::cmp::Reverse((*at, *ready)));

    let mut gpu = Gpu::new(&GpuSpec::default());
    let mut ready: Vec<Ready> = Vec::new();
    let mut running = None;
    let mut ends = BTreeMap::new();
    loop {
        let next_release = releases.last().map_or(Time::NEVER, |(at, _)| Time::from_ns(*at));
        let now = gpu.next_at().min(next_release);
        if now == Time::NEVER {
            return ends;
        }
        while let Some((at, job)) = releases.pop_if(|(at, _)| Time::from_ns(*at) <= now) {
            assert!(Time::from_ns(at) <= now);
            ready.push(job);
        }
        while let Some(event) = gpu.step(now) {
            if let (GpuEvent::Finished { .. }, Some(Ready { task, job, .. })) = (event, running) {
                ends.insert((task, job), now.as_ns());
                running = None;
            }
        }
        if running.is_none()
            && let Some(first) = ready.iter().copied().min()
        {
            ready.retain(|other| *other != first);
            let job = Job { app: AppId(0), group: GroupId(first.job), cost: Span::from_ns(first.cost) };
            gpu.dispatch(now, job);
            running = Some(first);
        }
    }
}

#[test]
fn every_completion_time_is_reproduced() {
    let mut expected: BTreeMap<Name<'_>, BTreeMap<(usize, u64), u64>> = BTreeMap::new();
    for row in rows(COMPLETIONS) {
        assert_eq!(row[4], row[5], "deterministic sets have one completion time");
        let task = usize::try_from(number(row[2])).expect("small") - 1;
        let ends = expected.entry((number(row[0]), row[1])).or_default();
        ends.insert((task, number(row[3]) - 1), number(row[4]));
    }
    let sets = sets();
    assert_eq!(sets.len(), 200);
    let mut jobs = 0;
    for (set, tasks) in &sets {
        let ends = simulate(tasks);
        assert_eq!(ends, expected[set], "set {set:?}");
        jobs += ends.len();
    }
    assert_eq!(jobs, 12_038);
}
