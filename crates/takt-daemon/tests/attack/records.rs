//! Floods of the audit: many users do whatever is recorded, to push out what is recorded about others.

use std::time::Duration;

use takt_audit::Event;
use takt_ipc::client::join;
use takt_ipc::message::Message;
use takt_ipc::socket::Connection;

use crate::arena::{Arena, as_user, is_root, say, scale, withstand_with};
use crate::setting::Setting;
use crate::support::{PATIENCE, ask, hello};

/// The first of many users, none of which is listed.
const CROWD: u32 = 60_000;
/// Attackers at once.
const ATTACKERS: u32 = 3;
/// The bounds of the audit here: the smallest ones.
const SMALL: Setting = Setting { more: "", audit: "file_mib = 1\nfiles = 2\n", prepare: None };
const BYTES_MAX: usize = 2 << 20;

/// Long texts in requests, as far as they are recorded.
fn long(text: &str) -> String {
    format!(r#"{{"ask": "evict", "app": "{}"}}"#, text.repeat(600))
}

/// Everything about a user that makes records: it joins, changes, leaves, is refused and denied, gives
/// orders about its own app.
fn make_records(arena: &Arena, user: u32) {
    as_user(user, || {
        for round in 0..20 {
            if let Ok(app) = join(arena.path(), &hello("mine", round), PATIENCE) {
                for order in ["pause", "resume"] {
                    ask(arena.path(), &format!(r#"{{"ask": "{order}", "app": "mine"}}"#));
                }
                ask(arena.path(), &format!(r#"{{"ask": "set", "app": "mine", "priority": {round}}}"#));
                drop(app);
            }
            ask(arena.path(), &long("x"));
            let nameless = Connection::connect(arena.path(), PATIENCE).expect("connect");
            let _gone = nameless.send(&Message::Hello(hello("\u{1b}", 1)), &[]);
        }
    });
}

#[test]
fn floods_of_audit_records() {
    if !is_root() {
        say("audit floods: SKIPPED, only root can be several users");
        return;
    }
    let evidence = withstand_with("audit-flood", SMALL, |arena| {
        std::thread::scope(|scope| {
            for attacker in 0..ATTACKERS {
                scope.spawn(move || {
                    let mut users = (CROWD + attacker..).step_by(ATTACKERS as usize);
                    let mut made = 0;
                    while made < scale(0, 200) || arena.goes_on() {
                        make_records(arena, users.next().expect("without end"));
                        made += 1;
                    }
                });
            }
            while arena.goes_on() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
    });
    let (main, unlisted) = (&evidence.main, &evidence.unlisted);
    assert_eq!(main.first, 0, "no record about a listed client was deleted");
    assert!(unlisted.bytes <= BYTES_MAX, "{} bytes", unlisted.bytes);
    let foreign = |user: u32| (CROWD..CROWD + 10_000).contains(&user);
    let about_others = main.records.iter().find(|record| record.subject.user.is_some_and(foreign));
    assert!(about_others.is_none(), "{about_others:?}");
    // One user has so many records of a kind in a second; it needs longer than that for no more of them.
    for event in [Event::Set, Event::Denied] {
        let counted = unlisted.records.iter().filter(|record| record.event == event);
        assert!(counted.count() > 0, "{event:?} is recorded");
    }
}

/// One user gives orders about its own app without end.
#[test]
fn orders_about_an_own_app_without_end() {
    const MALLORY: u32 = 41_000;
    if !is_root() {
        say("orders without end: SKIPPED, only root can be several users");
        return;
    }
    let evidence = withstand_with("own-orders", SMALL, |arena| {
        as_user(MALLORY, || {
            let app = join(arena.path(), &hello("mine", 1), PATIENCE).expect("a slot");
            let mut given = 0;
            while given < scale(300, 20_000) || arena.goes_on() {
                let order = ["pause", "resume"][given % 2];
                ask(arena.path(), &format!(r#"{{"ask": "{order}", "app": "mine"}}"#));
                given += 1;
            }
            drop(app);
        });
    });
    let orders: Vec<_> =
        evidence.unlisted.records.iter().filter(|record| record.event == Event::Set).collect();
    let all: u64 = orders.iter().map(|record| record.times).sum();
    assert!(all >= 300 && evidence.unlisted.first == 0, "all are counted: {all}");
    // 16 of a kind in each second, and one with what was more.
    let seconds = |at_us: u64| at_us / 1_000_000;
    let mut by_second = std::collections::BTreeMap::new();
    orders.iter().for_each(|record| *by_second.entry(seconds(record.at_us)).or_insert(0_u64) += 1);
    assert!(by_second.values().all(|count| *count <= 17), "{by_second:?}");
}
