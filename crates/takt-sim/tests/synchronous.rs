//! An app that submits one group at a time computes between groups, and nobody else does.

use takt_core::{Event, Time};
use takt_sim::{run, scenario};
use takt_trace::{Observer, Record};

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
fn an_app_waits_for_its_synchronisation_points_and_computes_then() {
    // The first group is over at 1100; the swap of a frame need not be waited for.
    assert_eq!(submissions("", ", sync = true")[..5], [100, 1200, 1300, 1401, 4300]);
}
