//! Minimum shares of domains as the daemon keeps them: servers that never have work of their own, and floods that
//! run on them.

use std::collections::BTreeMap;

use takt_core::{AppId, Event, GroupId, Span, Time};
use takt_sim::scenario;
use takt_trace::{Observer, Record};

/// GPU time of each app, by the number of the group's app.
#[derive(Default)]
struct Used {
    of: BTreeMap<GroupId, AppId>,
    gpu: [Span; 6],
}

impl Observer for Used {
    fn record(&mut self, _at: Time, record: &Record) {
        match *record {
            Record::In(Event::Submit { app, group, .. }) => drop(self.of.insert(group, app)),
            Record::In(Event::Complete { group, cost, .. }) => {
                if let Some(app) = self.of.remove(&group) {
                    self.gpu[app.index()] += cost.span();
                }
            }
            _ => {}
        }
    }
}

/// What floods of groups of `group_us` have in 20 s, in percent, on servers with these shares in 100 ms.
fn play(shares: [u64; 3], group_us: &str) -> [f64; 3] {
    let mut text = "name = \"t\"\nduration_s = 20\n[scheduler]\nmpcg = 2\n".to_owned();
    for (index, percent) in shares.into_iter().enumerate() {
        let (server, app, budget) = (100 - index, 50 - index, percent * 1000);
        // The server belongs to no client, so its one job comes after the end.
        text += &format!(
            "[[app]]\nname = \"share-{index}\"\npriority = {server}\nperiod_us = 1_000_000\noffset_us = 19_999_000\n\
             clock = \"own\"\nswap_us = 1\n[app.service]\nreserve_us = {budget}\nperiod_us = 100_000\n\
             [[app]]\nname = \"flood-{index}\"\npriority = {app}\nfps = 60\nunpaced = true\nswap_us = {group_us}\n\
             [app.service]\nshared_with = \"share-{index}\"\n"
        );
    }
    let scenario = scenario::parse("t", &text, &[], &|_| Err(String::new())).expect("it makes sense");
    let mut used = Used::default();
    takt_sim::run(&scenario, &mut used);
    let all: u64 = used.gpu.iter().map(|span| span.as_ns()).sum();
    [1, 3, 5].map(|app| used.gpu[app].as_ns() as f64 * 100.0 / all as f64)
}

fn assert_near(had: [f64; 3], wanted: [f64; 3]) {
    let is_near = had.iter().zip(wanted).all(|(had, wanted)| (had - wanted).abs() < 2.0);
    assert!(is_near, "{had:?} for {wanted:?}");
}

#[test]
fn three_floods_have_the_shares_of_their_domains() {
    assert_near(play([50, 30, 20], "[800, 1200]"), [50.0, 30.0, 20.0]);
    assert_near(play([50, 30, 20], "[100, 200]"), [50.0, 30.0, 20.0]);
    assert_near(play([20, 30, 50], "[800, 1200]"), [20.0, 30.0, 50.0]);
}

#[test]
fn what_no_share_claims_is_divided_as_the_shares_are() {
    assert_near(play([25, 15, 10], "[800, 1200]"), [50.0, 30.0, 20.0]);
}
