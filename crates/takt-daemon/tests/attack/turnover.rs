//! Apps that come, change and go faster than anything is done for them, and that act together.

use std::os::fd::AsFd;

use takt_core::limits::QUEUE_MAX;
use takt_core::{Estimate, GroupId, GroupKind, Span};
use takt_ipc::Request;
use takt_ipc::client::{Joined, NotScheduled, join, renew};
use takt_ipc::message::Hello;
use takt_ipc::region::Region;
use takt_os::clock;

use crate::arena::{Arena, as_user, is_root, say, scale, withstand};
use crate::clients::join_by_hand;
use crate::support::{PATIENCE, ask, hello};

const MALLORY: u32 = 41_000;
/// Longest line of the log about a client: its texts are cut, and what is hidden in them is escaped.
const LINE_MAX: usize = 16 << 10;

/// A slot, unless there is none for now.
fn try_join(arena: &Arena, hello: &Hello) -> Option<Joined> {
    match join(arena.path(), hello, PATIENCE) {
        Ok(joined) => Some(joined),
        Err(NotScheduled::NotNow { .. }) => {
            std::thread::sleep(std::time::Duration::from_millis(5));
            None
        }
        Err(other) => panic!("{other}"),
    }
}

fn submit(app: &mut Joined, group: u64, kind: GroupKind, estimate: Span) {
    let estimate = Estimate::new(estimate);
    // A full ring is as good.
    let _room = app.sender.send(&Request::Submit { group: GroupId(group), kind, estimate });
}

/// Comes, asks for as much as may wait, and goes, with groups granted, waiting and not read yet.
pub(crate) fn leave_work_behind(arena: &Arena, user: u32) {
    let kinds = [GroupKind::Draw, GroupKind::Swap, GroupKind::Sync, GroupKind::Exit];
    as_user(user, || {
        let mut round = 0;
        while arena.goes_on() {
            round += 1;
            let Some(mut app) = try_join(arena, &hello("leaver", 95)) else { continue };
            for group in 0..round % 40 {
                let kind = kinds[usize::try_from(group).unwrap_or_default() % kinds.len()];
                submit(&mut app, group, kind, Span::from_us(300 * (group % 3)));
            }
        }
    });
}

#[test]
fn apps_that_leave_work_behind() {
    withstand("leavers", |arena| {
        std::thread::scope(|scope| {
            for user in MALLORY..MALLORY + 2 {
                scope.spawn(move || leave_work_behind(arena, user));
            }
        });
    });
}

/// As many apps as a user gets, each with as many groups as may wait, which are all there at one moment; then all go,
/// and come back.
pub(crate) fn burst(arena: &Arena, user: u32) {
    as_user(user, || {
        while arena.goes_on() {
            let mut apps = Vec::new();
            while let Some((connection, fds)) = join_by_hand(arena) {
                let region = Region::open(fds[0].as_fd()).expect("mapped");
                apps.push((connection, region.client_ends(), fds));
            }
            for (_, (requests, _), _) in &mut apps {
                for group in 0..QUEUE_MAX as u64 {
                    let (group, kind) = (GroupId(group), GroupKind::Draw);
                    let estimate = Estimate::new(Span::from_us(300));
                    requests.push(&Request::Submit { group, kind, estimate }.encode()).expect("room");
                }
            }
            for (_, _, fds) in &apps {
                rustix::io::write(&fds[1], &1u64.to_ne_bytes()).expect("rung");
            }
            // They are read meanwhile, and wait.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
}

#[test]
fn bursts_of_groups_of_many_apps() {
    withstand("bursts", |arena| burst(arena, MALLORY));
}

/// It reads no reply, and says of groups that they ended which may have been granted by then.
pub(crate) fn act_blindly(arena: &Arena, user: u32) {
    as_user(user, || {
        while arena.goes_on() {
            let Some(mut app) = try_join(arena, &hello("blind", 95)) else { continue };
            let mut group = 0;
            while arena.goes_on() && !app.connection.is_hung_up() {
                submit(&mut app, group, GroupKind::Swap, Span::from_us(100));
                std::thread::sleep(std::time::Duration::from_micros(300));
                let (finished, cost) = (clock::now(), Span::ZERO);
                let ended = Request::Complete { group: GroupId(group), finished, cost, frames: 32 };
                let _room = app.sender.send(&ended);
                group += 1;
            }
        }
    });
}

#[test]
fn apps_that_read_no_reply() {
    withstand("blind", |arena| act_blindly(arena, MALLORY));
}

/// Two apps of a user: each pauses, evicts and readmits the other one, which has work and comes back.
#[test]
fn apps_that_steer_each_other() {
    if !is_root() {
        say("steered by others: SKIPPED, only root can be several users");
        return;
    }
    let orders = [
        r#"{"ask": "pause", "app": "NAME"}"#,
        r#"{"ask": "set", "app": "NAME", "fps": 60, "etpf_ms": 1}"#,
        r#"{"ask": "resume", "app": "NAME"}"#,
        r#"{"ask": "evict", "app": "NAME", "for_s": 1}"#,
        r#"{"ask": "readmit", "app": "NAME"}"#,
        r#"{"ask": "set", "app": "NAME", "fps": 0, "shares": "one"}"#,
    ];
    withstand("steered", |arena| {
        std::thread::scope(|scope| {
            for (name, other) in [("one", "other"), ("other", "one")] {
                scope.spawn(move || {
                    as_user(MALLORY, || {
                        let mut given = 0;
                        while given < scale(50, 5_000) || arena.goes_on() {
                            let Some(mut app) = try_join(arena, &hello(name, 95)) else { continue };
                            for group in 0..6 {
                                submit(&mut app, group, GroupKind::Draw, Span::from_us(300));
                                ask(arena.path(), &orders[given % orders.len()].replace("NAME", other));
                                given += 1;
                            }
                        }
                    });
                });
            }
        });
    });
}

/// Apps of a user that produce for each other, share the contract of each other, and change that all the time.
#[test]
fn circles_of_apps() {
    withstand("circles", |arena| {
        as_user(MALLORY, || {
            let names = ["a", "b", "c", "d"];
            let mut apps: Vec<Joined> = Vec::new();
            let mut round = 0;
            while arena.goes_on() {
                if apps.len() < names.len() {
                    apps.extend(try_join(arena, &hello(names[apps.len()], 95)));
                    continue;
                }
                round += 1;
                let (at, of) = (round % names.len(), (round / names.len() + round) % names.len());
                let partner = Some(names[of].to_owned());
                let linked = match round % 3 {
                    0 => Hello { feeds: partner, ..hello(names[at], 95) },
                    1 => Hello { shares: partner, ..hello(names[at], 95) },
                    _ => Hello { feeds: Some("victim".to_owned()), ..hello(names[at], 95) },
                };
                // It comes too soon at times, and some make no sense.
                let _refused = renew(&apps[at].connection, &linked, PATIENCE);
                if round % 50 == 0 {
                    apps.clear();
                }
            }
        });
    });
}

/// Orders and names as long as messages may be, of characters that are escaped.
#[test]
fn texts_as_long_as_messages() {
    if !is_root() {
        say("long texts: SKIPPED, only root can be several users");
        return;
    }
    withstand("long-texts", |arena| {
        // Six characters of JSON stand for each.
        let long = "\\u001b".repeat(9_000);
        let orders = ["evict", "pause", "readmit"];
        as_user(MALLORY, || {
            let mut given = 0;
            while given < scale(100, 5_000) || arena.goes_on() {
                let order = orders[given % orders.len()];
                ask(arena.path(), &format!(r#"{{"ask": "{order}", "app": "{long}"}}"#));
                given += 1;
            }
        });
        let log = arena.log.text();
        let longest = log.lines().map(str::len).max().unwrap_or_default();
        assert!(log.contains(" refused ") && longest < LINE_MAX, "a line of {longest} bytes");
    });
}
