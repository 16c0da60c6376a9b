//! `edf-cbs` and `edf-cbs-hard` keep the promises of bandwidth servers.

mod machine;
#[expect(dead_code, reason = "other tests need the rest")]
#[path = "../../../takt-analysis/tests/schedules/mod.rs"]
mod schedules;

use std::collections::BTreeMap;

use machine::{App, Job, play};
use schedules::cbs::{Kind, worst_responses};
use schedules::{Draw, Rng, rounds};
use takt_analysis::cbs::{Server, admits, response_bound};
use takt_analysis::task::{Task, Ticks};
use takt_core::Span;
use takt_core::service::{Enforcement, Reserve};
use takt_policies::{EdfCbs, Exhaustion};

/// Columns: set, task, cost, gap between jobs, budget, period.
const SETS: &str = include_str!("../../../takt-analysis/tests/golden/cbs_hard.sets.csv");
/// Columns: set, task, arrival, end.
const ENDS: &str = include_str!("../../../takt-analysis/tests/golden/cbs_hard.csv");

/// Where the second table ends.
const HORIZON: u64 = 20_000;

fn rows(table: &str) -> Vec<Vec<u64>> {
    let row = |line: &str| line.split(',').map(|cell| cell.parse().expect("a number")).collect();
    table.lines().skip(1).map(row).collect()
}

fn reserve(budget: u64, period: u64) -> Reserve {
    let [budget, period] = [budget, period].map(Span::from_ns);
    Reserve { budget, period, deadline: period, enforcement: Enforcement::default() }
}

fn served(server: &Server, jobs: Vec<Job>) -> App {
    App { reserve: Some(reserve(server.budget(), server.period())), feeds: None, jobs }
}

#[test]
fn every_completion_of_other_tools() {
    let mut expected: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    for row in rows(ENDS) {
        expected.entry((row[0], row[1])).or_default().push((row[2], row[3]));
    }
    let mut compared = 0;
    for set in rows(SETS).chunk_by(|a, b| a[0] == b[0]) {
        let arrivals = |row: &Vec<u64>| (0..HORIZON).step_by(usize::try_from(row[3]).expect("small"));
        let jobs = |row: &Vec<u64>| arrivals(row).map(|at| (at, row[2])).collect();
        let apps: Vec<App> = set
            .iter()
            .map(|row| App { reserve: Some(reserve(row[4], row[5])), feeds: None, jobs: jobs(row) })
            .collect();
        let ends = play(&apps, Box::new(EdfCbs::new(Exhaustion::Hard)));
        for (row, mut ends) in set.iter().zip(ends) {
            ends.retain(|(_, end)| *end < HORIZON);
            assert_eq!(ends, expected[&(row[0], row[1])], "set {}, task {}", row[0], row[1]);
            compared += ends.len();
        }
    }
    assert_eq!(compared, rows(ENDS).len());
}

/// Servers that are admitted together, and a task for each; some overrun by far.
struct Case {
    servers: Vec<Server>,
    tasks: Vec<Task>,
    overruns: Vec<bool>,
    jobs: Vec<Vec<Job>>,
}

impl Case {
    fn draw(rng: &mut Rng) -> Option<Self> {
        let count = rng.between(1, 4);
        let servers: Vec<Server> = (0..count)
            .map(|_| {
                let period = rng.between(2, 24);
                Server::new(rng.between(1, period.min(8)), period).expect("in range")
            })
            .collect();
        if !admits(&servers) {
            return None;
        }
        let task = |rng: &mut Rng| Task::new(rng.between(1, 12), 60, rng.between(1, 60)).expect("in range");
        let tasks: Vec<Task> = (0..count).map(|_| task(rng)).collect();
        let overruns: Vec<bool> = tasks.iter().map(|_| rng.percent(40)).collect();
        let releases = rng.releases(&tasks, 200);
        let jobs = releases.iter().zip(tasks.iter().zip(&overruns)).map(|(times, (task, overruns))| {
            let most = if *overruns { 5 * task.wcet() } else { task.wcet() };
            times.iter().map(|time| (*time, rng.between(1, most))).collect()
        });
        let jobs = jobs.collect();
        Some(Self { servers, tasks, overruns, jobs })
    }

    /// Worst response of each app under the policy, beside `others`.
    fn worst(&self, exhaustion: Exhaustion, others: Vec<App>) -> Vec<Ticks> {
        let served = self.servers.iter().zip(&self.jobs).map(|(server, jobs)| served(server, jobs.clone()));
        let apps: Vec<App> = served.chain(others).collect();
        let ends = play(&apps, Box::new(EdfCbs::new(exhaustion)));
        let worst = |ends: &Vec<(u64, u64)>| ends.iter().map(|(arrival, end)| end - arrival).max();
        ends.iter().take(self.servers.len()).map(|ends| worst(ends).unwrap_or(0)).collect()
    }
}

const KINDS: [(Exhaustion, Kind); 2] = [(Exhaustion::Soft, Kind::Soft), (Exhaustion::Hard, Kind::Hard)];

fn cases(seed: u64, mut visit: impl FnMut(&Case, &mut Rng)) {
    let mut rng = Rng::seeded(seed);
    let mut left = rounds();
    while left > 0 {
        if let Some(case) = Case::draw(&mut rng) {
            visit(&case, &mut rng);
            left -= 1;
        }
    }
}

#[test]
fn overruns_do_not_reach_other_servers() {
    cases(9, |case, _| {
        for (exhaustion, kind) in KINDS {
            let worst = case.worst(exhaustion, Vec::new());
            assert_eq!(worst, worst_responses(&case.servers, &case.jobs, kind), "{exhaustion:?}");
            for index in (0..worst.len()).filter(|index| !case.overruns[*index]) {
                if let Some(bound) = response_bound(&case.servers[index], &case.tasks[index]) {
                    assert!(worst[index] <= bound, "{} > {bound}: {:?}", worst[index], case.jobs);
                }
            }
        }
    });
}

#[test]
fn best_effort_work_is_never_felt() {
    cases(10, |case, rng| {
        for (exhaustion, kind) in KINDS {
            let jobs = (0..rng.between(1, 10)).map(|_| (rng.between(0, 200), rng.between(1, 90)));
            let mut jobs: Vec<Job> = jobs.collect();
            jobs.sort_unstable();
            let worst = case.worst(exhaustion, vec![App { reserve: None, feeds: None, jobs }]);
            assert_eq!(
                worst,
                worst_responses(&case.servers, &case.jobs, kind),
                "{exhaustion:?} {:?} {:?}",
                case.servers,
                case.jobs
            );
        }
    });
}

/// An overrunning producer runs on its consumer's deadline, but at the cost of its consumer.
#[test]
fn inheritance_does_not_reach_other_servers() {
    cases(11, |case, rng| {
        let jobs: Vec<Job> = (0..200).step_by(20).map(|at| (at, rng.between(1, 90))).collect();
        let consumer = rng.between(0, case.servers.len() as u64 - 1);
        let feeds = u32::try_from(consumer).ok();
        for (exhaustion, _) in KINDS {
            let producer = App { reserve: None, feeds, jobs: jobs.clone() };
            let worst = case.worst(exhaustion, vec![producer]);
            for index in (0..worst.len()).filter(|index| !case.overruns[*index] && *index as u64 != consumer)
            {
                if let Some(bound) = response_bound(&case.servers[index], &case.tasks[index]) {
                    assert!(worst[index] <= bound, "{} > {bound}: {:?}", worst[index], case.jobs);
                }
            }
        }
    });
}

#[test]
fn what_is_admitted_misses_nothing() {
    cases(12, |case, rng| {
        let wcets = case.servers.iter().map(|server| (server, rng.between(1, server.budget())));
        let apps: Vec<App> = wcets
            .map(|(server, wcet)| {
                let jobs = (0..300).step_by(usize::try_from(server.period()).expect("small"));
                served(server, jobs.map(|at| (at, wcet)).collect())
            })
            .collect();
        for (exhaustion, _) in KINDS {
            let ends = play(&apps, Box::new(EdfCbs::new(exhaustion)));
            for (ends, server) in ends.iter().zip(&case.servers) {
                assert!(ends.iter().all(|(arrival, end)| *end <= arrival + server.period()), "{ends:?}");
            }
        }
    });
}
