use takt_core::{Cost, Estimate, GroupId, GroupKind, Period};

use super::*;
use crate::control::config::Settings;

const APP: AppId = AppId(3);

/// Accounts of one domain with a share of 0.3 over a second, in which [`APP`] is.
fn accounts() -> ShareAccounts {
    let text = "[[domain]]\nname = 'ivi'\nuser = 1\nshare_min = 0.3\n";
    let servers = Settings::parse(text).expect("fine").share_servers();
    let mut accounts = ShareAccounts::default();
    accounts.keep(Time::ZERO, &servers);
    accounts.belong(&BTreeMap::from([(APP, servers[0].app)]));
    // The first window is not whole, so it is not judged.
    assert_eq!(accounts.look(Time::from_ms(1_200)), []);
    accounts
}

fn group(app: AppId) -> GroupId {
    GroupId(u64::from(app.0) << 40)
}

fn submit(accounts: &mut ShareAccounts, at_us: u64, app: AppId) {
    let (kind, estimate) = (GroupKind::Draw, Estimate::default());
    accounts.record(
        Time::from_ns(at_us * 1000),
        &Record::In(Event::Submit { app, group: group(app), kind, estimate }),
    );
}

fn dispatch(accounts: &mut ShareAccounts, at_us: u64, app: AppId) {
    let (target, start, reserved) = (Period(0), Time::ZERO, Span::ZERO);
    let action = Action::Dispatch { app, group: group(app), target, start, reserved };
    accounts.record(Time::from_ns(at_us * 1000), &Record::Out(action));
}

fn complete(accounts: &mut ShareAccounts, at_us: u64, app: AppId, cost_us: u64) {
    let (finished, cost) = (Time::from_ns(at_us * 1000), Cost::new(Span::from_us(cost_us)));
    accounts.record(finished, &Record::In(Event::Complete { group: group(app), finished, cost, frames: 0 }));
}

/// In each 10 ms up to `until_ms`, a group that waits for so long and then takes so long.
fn work(
    accounts: &mut ShareAccounts,
    ms: std::ops::Range<u64>,
    waits_us: u64,
    takes_us: u64,
) -> Vec<ShareFinding> {
    let mut found = Vec::new();
    for at_ms in ms.step_by(10) {
        let at = at_ms * 1000;
        submit(accounts, at, APP);
        dispatch(accounts, at + waits_us, APP);
        complete(accounts, at + waits_us + takes_us, APP, takes_us);
        found.extend(accounts.look(Time::from_ms(at_ms + 10)));
    }
    found
}

#[test]
fn a_domain_that_waits_and_has_less_than_its_share_is_short_until_it_has_it() {
    let mut accounts = accounts();
    let found = work(&mut accounts, 1_100..4_300, 8_000, 2_000);
    let [ShareFinding { domain, had, .. }] = &found[..] else { panic!("{found:?}") };
    assert_eq!((domain.as_str(), had.short), ("ivi", true));
    assert_eq!(had.gpu, Span::from_ms(198), "the last one ends with the window");
    assert_eq!(accounts.of_domain("ivi").map(|had| had.violations), Some(3));
    let found = work(&mut accounts, 4_300..6_500, 7_000, 3_000);
    let short: Vec<bool> = found.iter().map(|finding| finding.had.short).collect();
    assert_eq!(short, [false], "{found:?}");
    assert_eq!(accounts.of_domain("ivi").map(|had| (had.violations, had.gpu)), Some((3, Span::from_ms(300))));
}

#[test]
fn a_domain_that_wants_less_is_not_short() {
    for (why, waits_us, takes_us) in [
        ("it has work half of the time", 4_000, 1_000),
        ("what it has is always on the GPU: it waits for no grant", 100, 1_900),
        ("it has its share", 7_100, 2_800),
    ] {
        let mut accounts = accounts();
        assert_eq!(work(&mut accounts, 1_100..5_000, waits_us, takes_us), [], "{why}");
        assert_eq!(accounts.of_domain("ivi").map(|had| had.violations), Some(0), "{why}");
    }
}

#[test]
fn windows_with_missing_records_are_not_judged() {
    let mut accounts = accounts();
    work(&mut accounts, 1_100..1_500, 8_000, 2_000);
    accounts.record(Time::from_ms(1_500), &Record::Gap { records: 9 });
    work(&mut accounts, 1_510..2_200, 8_000, 2_000);
    assert_eq!(accounts.of_domain("ivi"), Some(Had::default()));
}

#[test]
fn work_of_other_apps_and_of_those_that_left_does_not_count() {
    let mut accounts = accounts();
    submit(&mut accounts, 1_100_000, AppId(4));
    submit(&mut accounts, 1_100_000, APP);
    accounts.record(Time::from_ms(1_200), &Record::In(Event::Leave { app: APP }));
    assert_eq!(accounts.look(Time::from_ms(4_000)), []);
    let had = accounts.of_domain("ivi").expect("a share");
    assert_eq!((had.violations, had.busy), (0, Span::from_ms(100)), "until it left");
}

#[test]
fn a_group_that_never_goes_makes_every_window_short() {
    let mut accounts = accounts();
    submit(&mut accounts, 1_100_000, APP);
    let found = accounts.look(Time::from_ms(4_300));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(accounts.of_domain("ivi").map(|had| had.violations), Some(3));
}
