//! Rules fire when they should, for the client that did it, and with bounded memory.

use takt_audit::rules::{DEFAULTS, RuleText};
use takt_audit::{Alarm, Engine, Event, Record, Rule, Subject};

#[derive(serde::Deserialize)]
struct File {
    rule: Vec<RuleText>,
}

fn rules(text: &str) -> Vec<Rule> {
    let file: File = toml::from_str(text).expect("TOML");
    file.rule.iter().map(|rule| rule.check().expect("a rule")).collect()
}

fn one(keys: &str) -> Engine {
    Engine::new(rules(&format!("[[rule]]\nname = 'r'\n{keys}")))
}

fn us(seconds: f64) -> u64 {
    u64::try_from(std::time::Duration::from_secs_f64(seconds).as_micros()).expect("a short time")
}

fn by(user: u32, at_s: f64, event: Event) -> Record {
    let subject = Subject { user: Some(user), app: Some(format!("app{user}")), ..Subject::default() };
    Record { subject, ..Record::new(us(at_s), event) }
}

fn fired(engine: &mut Engine, records: &[Record]) -> Vec<String> {
    let alarms = records.iter().flat_map(|record| engine.observe(record));
    alarms.map(|alarm: Alarm| format!("{} {}", alarm.at_us / 1_000_000, alarm.text())).collect()
}

#[test]
fn thresholds_count_within_their_window_and_by_user() {
    let mut engine = one("window_s = 10\nper = 'user'\nwhen = [{ events = ['refused'], count = 3 }]");
    let refused = |user, at| by(user, at, Event::Refused);
    let slow = [refused(1, 0.0), refused(1, 9.0), refused(1, 19.5), refused(1, 29.0)];
    assert!(fired(&mut engine, &slow).is_empty(), "never three in ten seconds");
    let mixed = [refused(2, 30.0), refused(3, 30.0), refused(2, 31.0), refused(3, 31.0), refused(2, 32.0)];
    assert_eq!(fired(&mut engine, &mixed), ["32 user 2: 3 refused within 10 s"]);
    assert!(fired(&mut engine, &[refused(2, 33.0), refused(2, 33.1)]).is_empty(), "it counts anew");
    assert_eq!(fired(&mut engine, &[refused(2, 33.2)]).len(), 1);
    let folded = Record { times: 500, ..refused(4, 40.0) };
    assert_eq!(fired(&mut engine, &[folded]), ["40 user 4: 500 refused within 10 s"]);
}

#[test]
fn combinations_need_all_their_conditions() {
    let mut engine = one("window_s = 2\nwhen = [{ events = ['withdrawn'], protected = false }, \
         { events = ['set', 'policy'], count = 2 }]");
    let (set, policy) = (Event::Set, Event::Policy);
    assert!(fired(&mut engine, &[by(0, 1.0, set), by(5, 1.5, Event::Withdrawn)]).is_empty());
    assert_eq!(
        fired(&mut engine, &[by(0, 2.5, policy)]),
        ["2 all clients: 1 withdrawn and 2 set or policy within 2 s"]
    );
    let protected = |mut record: Record| {
        record.subject.protected = true;
        record
    };
    let apart = [
        by(0, 10.0, set),
        by(0, 10.1, set),
        protected(by(5, 10.2, Event::Withdrawn)),
        by(5, 12.2, Event::Withdrawn),
    ];
    assert!(fired(&mut engine, &apart).is_empty(), "the first is not counted, and the second comes too late");
}

#[test]
fn many_users_take_no_room_from_listed_ones() {
    let mut engine = one("window_s = 1000\nper = 'user'\nwhen = [{ events = ['denied'], count = 3 }]");
    let listed = |at| {
        let mut record = by(7, at, Event::Denied);
        record.subject.listed = true;
        record
    };
    fired(&mut engine, &[listed(0.0), listed(0.1)]);
    let crowd: Vec<Record> = (0..10_000).map(|user| by(100 + user, 1.0, Event::Denied)).collect();
    let alarms = fired(&mut engine, &crowd);
    assert!(alarms.iter().all(|alarm| alarm == "1 other clients: 3 denied within 1000 s"), "{alarms:?}");
    assert!(!alarms.is_empty(), "what finds no room counts together");
    assert_eq!(fired(&mut engine, &[listed(2.0)]), ["2 user 7: 3 denied within 1000 s"]);
}

#[test]
fn a_clock_that_is_set_back_raises_and_hides_nothing() {
    let mut engine = one("window_s = 1\nwhen = [{ events = ['refused'], count = 3 }]");
    let back = [by(1, 100.0, Event::Refused), by(1, 5.0, Event::Refused), by(1, 5.5, Event::Refused)];
    assert_eq!(fired(&mut engine, &back), ["5 all clients: 3 refused within 1 s"]);
    let hourly: Vec<Record> =
        [9_000.0, 10.0, 20.0, 30.0].map(|at| by(1, at, Event::Refused)).into_iter().collect();
    assert_eq!(
        fired(&mut engine, &hourly),
        [""; 0],
        "never three in a second, though the clock was later before"
    );
}

#[test]
fn only_rules_about_restarts_outlive_one() {
    let start = |at: f64| Record::new(us(at), Event::Started);
    let mut engine = one("window_s = 100\nwhen = [{ events = ['refused'], count = 2 }]");
    assert!(
        fired(&mut engine, &[by(1, 1.0, Event::Refused), start(2.0), by(1, 3.0, Event::Refused)]).is_empty()
    );
    let mut engine = one("window_s = 100\nwhen = [{ events = ['started'], count = 3 }]");
    assert_eq!(fired(&mut engine, &[start(1.0), start(2.0), start(3.0)]).len(), 1);
}

#[test]
fn the_default_rules_make_sense() {
    let rules = rules(DEFAULTS);
    let mut names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "each has a name of its own");
    let mut engine = Engine::new(rules);
    let quiet: Vec<Record> = (0..50).map(|n| by(1, f64::from(n) * 10.0, Event::Joined)).collect();
    assert!(fired(&mut engine, &quiet).is_empty());
    let attack: Vec<Record> = (0..60).map(|n| by(1, 1000.0 + f64::from(n) * 0.01, Event::Refused)).collect();
    assert_eq!(fired(&mut engine, &attack), ["1000 user 1: 50 refused within 10 s"]);
    let late = Record { times: 2, ..by(2, 1000.9, Event::Late) };
    assert_eq!(
        fired(&mut engine, &[late]),
        [
            "1000 all clients: 2 late or stalled or silent or withdrawn and 20 refused or denied or quarantined \
          within 5 s"
        ]
    );
}
