//! Every row of the tables in `golden/`, which were computed by other tools.

use takt_analysis::edf;
use takt_analysis::edf_response::{Preemption, bounds, verdict};
use takt_analysis::task::{Task, Ticks};

const IMPLICIT: &str = include_str!("../golden/edf_imp5.sets.csv");
const CONSTRAINED: &str = include_str!("../golden/edf_con5.sets.csv");

/// The numbers of a table, row by row.
fn rows(text: &str) -> impl Iterator<Item = Vec<u64>> {
    text.lines().map(|line| line.split(',').map(|cell| cell.parse().expect("a number")).collect())
}

/// The sets of a table, which are numbered from 0 and complete.
fn sets(text: &str) -> Vec<Vec<Task>> {
    let mut sets: Vec<Vec<Task>> = Vec::new();
    for row in rows(text) {
        let [set, task, wcet, deadline, period] = row[..] else { panic!("{row:?}") };
        if task == 0 {
            sets.push(Vec::new());
        }
        assert_eq!(set, sets.len() as u64 - 1);
        let task = Task::new(wcet, deadline, period).expect("in range");
        sets.last_mut().expect("tasks are numbered from 0").push(task);
    }
    sets
}

#[track_caller]
fn check_verdicts(table: &str, expected: &str) {
    let sets = sets(table);
    assert_eq!(sets.len(), rows(expected).count());
    for ((index, set), row) in (0..).zip(&sets).zip(rows(expected)) {
        assert_eq!(row[0], index);
        assert_eq!(edf::test(set).is_schedulable(), row[1] == 1, "set {index}");
    }
}

#[track_caller]
fn check_bounds(table: &str, preemption: Preemption, expected: &str) {
    let sets = sets(table);
    assert_eq!(sets.len(), rows(expected).count());
    for ((index, set), row) in (0..).zip(&sets).zip(rows(expected)) {
        assert_eq!(row[0], index);
        let found = bounds(set, preemption);
        let schedulable = verdict(set, &found).is_schedulable();
        let expected: Vec<Ticks> = row[2..].to_vec();
        assert_eq!(found, Ok(expected), "set {index}");
        assert_eq!(schedulable, row[1] == 1, "set {index}");
    }
}

#[test]
fn demand_test_of_implicit_deadlines() {
    check_verdicts(IMPLICIT, include_str!("../golden/edf_imp5.verdict.csv"));
}

#[test]
fn demand_test_of_constrained_deadlines() {
    check_verdicts(CONSTRAINED, include_str!("../golden/edf_con5.verdict.csv"));
}

#[test]
fn preemptive_bounds_of_implicit_deadlines() {
    check_bounds(IMPLICIT, Preemption::Anywhere, include_str!("../golden/edf_imp5.bounds.csv"));
}

#[test]
fn preemptive_bounds_of_constrained_deadlines() {
    check_bounds(CONSTRAINED, Preemption::Anywhere, include_str!("../golden/edf_con5.bounds.csv"));
}

#[test]
fn non_preemptive_bounds_of_implicit_deadlines() {
    check_bounds(IMPLICIT, Preemption::Nowhere, include_str!("../golden/npedf_imp5.bounds.csv"));
}

#[test]
fn non_preemptive_bounds_of_constrained_deadlines() {
    check_bounds(CONSTRAINED, Preemption::Nowhere, include_str!("../golden/npedf_con5.bounds.csv"));
}

#[test]
fn bounds_of_segments_of_500() {
    let expected = include_str!("../golden/lpedf_con5_seg500.bounds.csv");
    check_bounds(CONSTRAINED, Preemption::Segments(500), expected);
}

#[test]
fn bounds_of_segments_of_2000() {
    let expected = include_str!("../golden/lpedf_con5_seg2000.bounds.csv");
    check_bounds(CONSTRAINED, Preemption::Segments(2000), expected);
}

#[test]
fn bounds_of_segments_of_5000() {
    let expected = include_str!("../golden/lpedf_con5_seg5000.bounds.csv");
    check_bounds(CONSTRAINED, Preemption::Segments(5000), expected);
}
