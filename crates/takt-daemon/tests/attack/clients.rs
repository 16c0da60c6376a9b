//! Clients that break the rules of their rings and lie about their work.

use std::os::fd::OwnedFd;
use std::time::Duration;

use takt_core::{Estimate, GroupId, GroupKind, Span, Time};
use takt_ipc::client::{Joined, NotScheduled, join};
use takt_ipc::message::Message;
use takt_ipc::socket::Connection;
use takt_ipc::{Reply, Request};
use takt_os::clock;
use takt_rng::Rng;

use crate::arena::{Arena, as_user, withstand};
use crate::support::{PATIENCE, hello};

const MALLORY: u32 = 41_000;

/// A slot, unless the user is in quarantine.
fn try_join(arena: &Arena, name: &str) -> Option<Joined> {
    match join(arena.path(), &hello(name, 95), PATIENCE) {
        Ok(joined) => Some(joined),
        Err(NotScheduled::NotNow { .. }) => {
            std::thread::sleep(Duration::from_millis(20));
            None
        }
        Err(other) => panic!("{other}"),
    }
}

/// Its descriptors: region, doorbell, beat page.
pub(crate) fn join_by_hand(arena: &Arena) -> Option<(Connection, Vec<OwnedFd>)> {
    let connection = Connection::connect(arena.path(), PATIENCE).expect("connect");
    connection.send(&Message::Hello(hello("mallory", 95)), &[]).expect("sent");
    let received = connection.receive().expect("whole").expect("there");
    matches!(received.message, Message::Welcome(_)).then_some((connection, received.fds))
}

fn submit(app: &mut Joined, group: u64, estimate: Span) -> bool {
    let estimate = Estimate::new(estimate);
    app.sender.send(&Request::Submit { group: GroupId(group), kind: GroupKind::Draw, estimate }).is_ok()
}

/// Writes anything anywhere in its shared memory, and rings without end.
pub(crate) fn scribble(arena: &Arena, user: u32) {
    as_user(user, || {
        let mut rng = Rng::new(26, 1);
        while arena.goes_on() {
            let Some((connection, fds)) = join_by_hand(arena) else {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            };
            while arena.goes_on() && !connection.is_hung_up() {
                let (offset, value) = (rng.between(0, 33_000), rng.next_u64());
                rustix::io::pwrite(&fds[0], &value.to_le_bytes(), offset).expect("it is shared");
                for _ in 0..rng.between(0, 50) {
                    rustix::io::write(&fds[1], &1u64.to_ne_bytes()).expect("rung");
                }
            }
        }
    });
}

#[test]
fn rings_of_rubbish_and_storms_on_doorbells() {
    withstand("rings", |arena| scribble(arena, MALLORY));
}

/// Asks for more groups than may wait.
pub(crate) fn flood_groups(arena: &Arena, user: u32) {
    as_user(user, || {
        while arena.goes_on() {
            let Some(mut app) = try_join(arena, "flood") else { continue };
            let mut group = 0;
            while arena.goes_on() && !app.connection.is_hung_up() {
                group += u64::from(submit(&mut app, group, Span::from_us(100)));
            }
        }
    });
}

#[test]
fn floods_of_groups() {
    withstand("groups", |arena| flood_groups(arena, MALLORY));
}

/// It is granted groups and never says that they end.
pub(crate) fn hog(arena: &Arena, user: u32) {
    as_user(user, || {
        let mut apps: Vec<(Joined, u64)> = Vec::new();
        while arena.goes_on() {
            if apps.len() < 8 {
                apps.extend(try_join(arena, "hog").map(|app| (app, 0)));
            }
            for (app, group) in &mut apps {
                *group += u64::from(*group < 4 && submit(app, *group, Span::from_ms(10_000)));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

#[test]
fn groups_that_never_end() {
    withstand("hogs", |arena| hog(arena, MALLORY));
}

/// Ends that come at once, in the past or in the future, with any cost.
pub(crate) fn lie(arena: &Arena, user: u32) {
    as_user(user, || {
        let mut rng = Rng::new(26, 2);
        while arena.goes_on() {
            let Some(mut app) = try_join(arena, "liar") else { continue };
            let mut group = 0;
            while arena.goes_on() && !app.connection.is_hung_up() {
                group += u64::from(submit(&mut app, group, Span::from_us(rng.between(0, 20_000))));
                while let Some(reply) = app.receiver.next_reply().expect("an honest daemon") {
                    let Reply::Grant { group, .. } = reply else { continue };
                    let finished = *rng
                        .pick(&[Time::ZERO, clock::now(), Time::from_ns(u64::MAX / 4)])
                        .expect("there are some");
                    let cost = Span::from_ns(rng.between(0, 1 << 40));
                    let _gone = app.sender.send(&Request::Complete { group, finished, cost, frames: 0 });
                }
                app.receiver.sleep(Duration::from_millis(1));
            }
        }
    });
}

#[test]
fn lies_about_ends() {
    withstand("lies", |arena| lie(arena, MALLORY));
}
