//! An app that submits one group at a time computes between groups, and no other app does.

use takt_core::{Event, Span, Time};
use takt_sim::{meta, run, scenario};
use takt_trace::{CauseKind, Metrics, Observer, Record, RunFacts};

#[derive(Default)]
struct Submissions(Vec<u64>);

impl Observer for Submissions {
    fn record(&mut self, at: Time, record: &Record) {
        if matches!(record, Record::In(Event::Submit { .. })) {
            self.0.push(at.as_ns() / 1000);
        }
    }
}

/// When an app with 100 us of CPU before each of three groups of 1000 us submits them.
fn submissions(app: &str, first: &str) -> Vec<u64> {
    let text = format!(
        "name = \"t\"\nduration_s = 0.02\n[scheduler]\npolicy = \"fifo\"\nmpcg = 1\n[[app]]\nname = \"a\"\n\
         priority = 1\nfps = 60\nunpaced = true\n{app}\ncpu_us = 300\n\
         draws = [{{ us = 1000{first} }}, {{ us = 1000 }}]\nswap_us = 1000\n"
    );
    let scenario = scenario::parse("t", &text, &[], &|_| Err(String::new())).expect("it makes sense");
    let mut seen = Submissions::default();
    run(&scenario, &mut seen);
    seen.0
}

#[test]
fn a_synchronous_app_computes_after_its_group_was_dispatched() {
    // The second group waits for the first until 1100; the third is computed from then on.
    assert_eq!(submissions("synchronous = true", "")[..5], [100, 200, 1200, 2201, 3200]);
    assert_eq!(submissions("", "")[..4], [100, 200, 300, 401], "others queue");
}

#[test]
fn who_waits_for_a_frame_that_is_too_long_is_late_by_its_own_cost() {
    let causes = |cpu_us: u32, gpu_us: u32| {
        let text = format!(
            "name = \"t\"\nduration_s = 1\n[[app]]\nname = \"a\"\npriority = 1\nfps = 60\netpf_us = 1000\n\
             cpu_us = {cpu_us}\ndraws = [{{ us = {gpu_us}, sync = true }}]\nswap_us = 10\n"
        );
        let scenario = scenario::parse("t", &text, &[], &|_| Err(String::new())).expect("it makes sense");
        let mut metrics = Metrics::new(meta(&scenario), Span::ZERO);
        let outcome = run(&scenario, &mut metrics);
        let (stats, end) = (outcome.stats, outcome.end);
        let summary = metrics.finish(RunFacts { seed: 1, event_hash: outcome.event_hash, stats, end });
        summary.misses.iter().map(|miss| miss.cause.kind).collect::<Vec<_>>()
    };
    let own = causes(100, 30_000);
    assert!(!own.is_empty() && own.iter().all(|kind| *kind == CauseKind::OwnCost), "{own:?}");
    let late = causes(40_000, 1_000);
    assert!(!late.is_empty() && late.iter().all(|kind| *kind == CauseKind::SubmittedLate), "{late:?}");
}

#[test]
fn an_app_waits_for_its_synchronisation_points_and_computes_then() {
    // The first group is over at 1100; the swap of a frame need not be waited for.
    assert_eq!(submissions("", ", sync = true")[..5], [100, 1200, 1300, 1401, 4300]);
}
