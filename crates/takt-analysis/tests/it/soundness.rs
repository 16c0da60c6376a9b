//! No simulated response is above its bound, and admitted sets miss nothing.

use std::cmp::Ordering;

use takt_analysis::cbs::{self, Server};
use takt_analysis::edf;
use takt_analysis::edf_response::{Preemption, bounds, verdict};
use takt_analysis::runlist::{self, Runlist};
use takt_analysis::task::{Overheads, Task, Ticks, utilisation};

use crate::schedules::edf::Machine;
use crate::schedules::{Draw, Rng, cbs as cbs_machine, rounds, runlist as runlist_machine};

/// Longer than the busy periods of nearly all sets that [`Rng::tasks`] draws.
const HORIZON: Ticks = 600;

/// Whether a set counts towards the number of sets that a test must play.
enum Set {
    Played,
    Refused,
}

/// Draws sets that do not overload the GPU until enough were played.
fn sets(seed: u64, mut visit: impl FnMut(Vec<Task>, &mut Rng) -> Set) {
    let mut rng = Rng::seeded(seed);
    let mut left = rounds();
    while left > 0 {
        let tasks = rng.tasks();
        if utilisation(&tasks) != Ordering::Greater
            && let Set::Played = visit(tasks, &mut rng)
        {
            left -= 1;
        }
    }
}

#[track_caller]
fn assert_below(worst: &[Ticks], bounds: &[Ticks], about: impl std::fmt::Debug) {
    let above = worst.iter().zip(bounds).any(|(worst, bound)| worst > bound);
    assert!(!above, "simulated {worst:?}, bounds {bounds:?}: {about:?}");
}

#[track_caller]
fn check_responses(seed: u64, preemption: impl Fn(&mut Rng) -> Preemption) {
    let (mut reached, mut all) = (0u64, 0u64);
    sets(seed, |tasks, rng| {
        let preemption = preemption(rng);
        let found = bounds(&tasks, preemption);
        let admitted = verdict(&tasks, &found).is_schedulable();
        let bounds = found.expect("no overload");
        let shorter = rng.percent(30);
        let machine = Machine { tasks: &tasks, preemption, switch: 0, shorter };
        let releases = rng.releases(&tasks, HORIZON);
        let worst = machine.worst_responses(&releases, rng);
        assert_below(&worst, &bounds, (&tasks, preemption, &releases));
        reached += worst.iter().zip(&bounds).filter(|(worst, bound)| worst == bound).count() as u64;
        all += tasks.len() as u64;
        // Bounds hold for all sets, but those count that were promised their deadlines.
        if admitted { Set::Played } else { Set::Refused }
    });
    // A test that never comes close to the bounds would show nothing.
    assert!(reached * 10 > all, "only {reached} of {all} bounds were reached");
}

#[test]
fn responses_with_preemption_anywhere() {
    check_responses(1, |_| Preemption::Anywhere);
}

#[test]
fn responses_without_preemption() {
    check_responses(2, |_| Preemption::Nowhere);
}

#[test]
fn responses_with_segments() {
    check_responses(3, |rng| Preemption::Segments(rng.between(1, 6)));
}

#[test]
fn responses_with_pieces() {
    check_responses(4, |rng| Preemption::Pieces(rng.between(1, 6)));
}

#[test]
fn the_demand_test_is_exact() {
    sets(5, |tasks, rng| {
        let machine = Machine { tasks: &tasks, preemption: Preemption::Anywhere, switch: 0, shorter: false };
        let deadlines: Vec<Ticks> = tasks.iter().map(Task::deadline).collect();
        if edf::test(&tasks).is_schedulable() {
            let releases = rng.releases(&tasks, HORIZON);
            let worst = machine.worst_responses(&releases, rng);
            assert_below(&worst, &deadlines, (&tasks, &releases));
            Set::Played
        } else {
            // The synchronous busy period contains a miss.
            let busy = edf::busy_period(&tasks).expect("no overload");
            let together = tasks.iter().map(|task| (0..busy).step_by(step(task)).collect());
            let together: Vec<Vec<Ticks>> = together.collect();
            let worst = machine.worst_responses(&together, rng);
            assert!(worst.iter().zip(&deadlines).any(|(worst, due)| worst > due), "{tasks:?}: {worst:?}");
            Set::Refused
        }
    });
}

fn step(task: &Task) -> usize {
    usize::try_from(task.period()).expect("small")
}

#[test]
fn overheads_are_paid_for() {
    sets(6, |tasks, rng| {
        let overheads = Overheads { switch: rng.between(1, 3), submission: 0 };
        let inflated = overheads.inflate(&tasks).expect("in range");
        let segment = rng.between(1, 6);
        let (modelled, analysed) = match rng.between(0, 2) {
            0 => (Preemption::Anywhere, Preemption::Anywhere),
            1 => (Preemption::Nowhere, Preemption::Nowhere),
            _ => (Preemption::Pieces(segment), Preemption::Pieces(overheads.inflate_segment(segment))),
        };
        let Ok(bounds) = bounds(&inflated, analysed) else {
            return Set::Refused;
        };
        let machine =
            Machine { tasks: &tasks, preemption: modelled, switch: overheads.switch, shorter: false };
        let releases = rng.releases(&tasks, HORIZON);
        let worst = machine.worst_responses(&releases, rng);
        assert_below(&worst, &bounds, (&tasks, overheads, modelled, &releases));
        Set::Played
    });
}

#[test]
fn responses_on_a_runlist() {
    check_runlist(7, runlist::bounds);
}

#[test]
fn responses_on_a_runlist_by_arrivals() {
    check_runlist(9, runlist::bounds_by_arrivals);
}

#[track_caller]
fn check_runlist(seed: u64, bounds: impl Fn(&[Task], &Runlist) -> Vec<Ticks>) {
    sets(seed, |tasks, rng| {
        let runlist = Runlist {
            slice: rng.between(1, 8),
            lower_slice: rng.between(0, 4),
            switch: rng.between(0, 2),
            every_switch: true,
        };
        let bounds = bounds(&tasks, &runlist);
        if !runlist::is_schedulable(&tasks, &bounds) {
            return Set::Refused;
        }
        let releases = rng.releases(&tasks, HORIZON);
        let worst = runlist_machine::worst_responses(&tasks, &runlist, &releases, rng);
        assert_below(&worst, &bounds, (&tasks, runlist, &releases));
        Set::Played
    });
}

/// Formula 3 of the deliverable leaves out the switches to other channels.
#[test]
fn formula_3_needs_cheap_switches() {
    let task = |wcet| Task::new(wcet, 100, 100).expect("in range");
    let tasks = [task(2), task(2), task(2)];
    let runlist = Runlist { slice: 2, lower_slice: 2, switch: 3, every_switch: false };
    let worst = (0..100).map(|seed| {
        let mut rng = Rng::seeded(seed);
        let releases: Vec<Vec<Ticks>> = (0..3).map(|_| vec![rng.between(0, 30)]).collect();
        runlist_machine::worst_responses(&tasks, &runlist, &releases, &mut rng)[0]
    });
    let worst = worst.max().unwrap_or(0);
    assert!(worst > runlist::bounds(&tasks, &runlist)[0]);
    let every = Runlist { every_switch: true, ..runlist };
    assert!(worst <= runlist::bounds(&tasks, &every)[0]);
}

#[test]
fn overruns_do_not_reach_other_servers() {
    let mut rng = Rng::seeded(8);
    let mut left = rounds();
    while left > 0 {
        let count = rng.between(1, 4);
        let servers: Vec<Server> = (0..count)
            .map(|_| {
                let period = rng.between(2, 24);
                Server::new(rng.between(1, period.min(8)), period).expect("in range")
            })
            .collect();
        if !cbs::admits(&servers) {
            continue;
        }
        left -= 1;
        let tasks: Vec<Task> = (0..count)
            .map(|_| Task::new(rng.between(1, 12), 60, rng.between(1, 60)).expect("in range"))
            .collect();
        let overruns: Vec<bool> = tasks.iter().map(|_| rng.percent(40)).collect();
        let releases = rng.releases(&tasks, 200);
        let jobs: Vec<Vec<(Ticks, Ticks)>> = releases
            .iter()
            .zip(tasks.iter().zip(&overruns))
            .map(|(times, (task, overruns))| {
                let most = if *overruns { 5 * task.wcet() } else { task.wcet() };
                times.iter().map(|time| (*time, rng.between(1, most))).collect()
            })
            .collect();
        for kind in [cbs_machine::Kind::Soft, cbs_machine::Kind::Hard] {
            let worst = cbs_machine::worst_responses(&servers, &jobs, kind);
            for (index, worst) in worst.iter().enumerate().filter(|(index, _)| !overruns[*index]) {
                if let Some(bound) = cbs::response_bound(&servers[index], &tasks[index]) {
                    assert!(
                        *worst <= bound,
                        "{worst} > {bound}: server {index} of {servers:?}, {kind:?}, {jobs:?}"
                    );
                }
            }
        }
    }
}

/// Columns: set, task, C, D, T, bound of pyCPA, bound of GCAPS; 2 ms slices, one level.
const ROUND_ROBIN: &str = include_str!("../golden/rr_slice2000.csv");

#[test]
fn round_robin_agrees_with_other_tools() {
    let row = |line: &str| line.split(',').map(|cell| cell.parse().expect("a number")).collect();
    let rows: Vec<Vec<Ticks>> = ROUND_ROBIN.lines().skip(1).map(row).collect();
    let runlist = Runlist { slice: 2000, lower_slice: 0, switch: 0, every_switch: true };
    let mut played = 0;
    for set in rows.chunk_by(|a, b| a[0] == b[0]) {
        let task = |row: &Vec<Ticks>| Task::new(row[2], row[3], row[4]).expect("in range");
        let tasks: Vec<Task> = set.iter().map(task).collect();
        for (bound, row) in runlist::bounds(&tasks, &runlist).iter().zip(set) {
            assert!(row[5] <= *bound && *bound <= row[6], "{bound}: {row:?}");
        }
        if set.iter().all(|row| row[5] <= row[4]) {
            played += 1;
            let mut rng = Rng::seeded(played);
            for _ in 0..rounds() / 300 {
                let releases = rng.releases(&tasks, 2_000_000);
                let worst = runlist_machine::worst_responses(&tasks, &runlist, &releases, &mut rng);
                let bounds: Vec<Ticks> = set.iter().map(|row| row[5]).collect();
                assert_below(&worst, &bounds, (&tasks, &releases));
            }
        }
    }
    assert!(played > 20, "{played} sets were played");
}
