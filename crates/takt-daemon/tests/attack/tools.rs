//! Tools that watch and ask without end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use takt_ipc::client::join;
use takt_ipc::message::Message;
use takt_ipc::socket::Connection;

use crate::arena::{Arena, as_user, is_root, say, withstand, withstand_with};
use crate::setting::Setting;
use crate::support::{PATIENCE, hello};

const MALLORY: u32 = 41_000;

fn ask(connection: &Connection, text: &str) {
    let _gone = connection.send(&Message::Ask { text: text.to_owned() }, &[]);
}

#[test]
fn watchers_that_do_not_read() {
    if !is_root() {
        say("watchers: SKIPPED, only root can be several users");
        return;
    }
    // All may watch here, attackers as well.
    let setting = Setting { more: "[[domain]]\nname = 'unlisted'\nsee = true\n", ..Setting::default() };
    withstand_with("watchers", setting, |arena| {
        let connect = || Connection::connect(arena.path(), PATIENCE).expect("connect");
        let watch = |connection: Connection| {
            ask(&connection, r#"{"ask": "watch"}"#);
            connection
        };
        let deaf: Vec<Connection> = as_user(MALLORY, || (0..40).map(|_| watch(connect())).collect());
        for uid in [0, MALLORY + 1] {
            let tool = as_user(uid, || watch(connect()));
            let first = tool.receive().expect("whole").expect("there").message;
            assert!(matches!(first, Message::Answer { more: true, .. }), "user {uid}: {first:?}");
        }
        while arena.goes_on() {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(deaf);
    });
}

/// A hundred tools of a user ask without end, and every other one never reads.
pub(crate) fn question(arena: &Arena, user: u32, over: &AtomicBool) {
    let questions = [
        r#"{"ask": "summary", "window_s": 30}"#,
        r#"{"ask": "why", "app": "victim"}"#,
        r#"{"ask": "apps"}"#,
        r#"{"ask": "summary", "window_s": 1}"#,
    ];
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || {
                as_user(user, || {
                    let connect = |_| Connection::connect_at_once(arena.path()).ok();
                    let tools: Vec<Connection> = (0..50).filter_map(connect).collect();
                    while !over.load(Ordering::Relaxed) && arena.goes_on() {
                        for (n, tool) in tools.iter().enumerate() {
                            ask(tool, questions[(n + half) % questions.len()]);
                            while n % 2 == 0 && tool.receive().is_ok_and(|answer| answer.is_some()) {}
                        }
                    }
                });
            });
        }
    });
}

#[test]
fn questions_without_end() {
    withstand("questions", |arena| {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| question(arena, MALLORY, &over));
            while arena.goes_on() {
                // Other users are answered meanwhile.
                assert_eq!(arena.daemon.ask(r#"{"ask": "summary", "window_s": 2}"#)["answer"], "summary");
            }
            over.store(true, Ordering::Relaxed);
        });
    });
}

/// An app that asks for other terms all the time.
pub(crate) fn change_terms(arena: &Arena, user: u32) {
    as_user(user, || {
        let mut priority = 0;
        while arena.goes_on() {
            let Ok(app) = join(arena.path(), &hello("restless", 1), PATIENCE) else {
                // Among others, there may be no slot.
                std::thread::sleep(Duration::from_millis(5));
                continue;
            };
            // One that does not read its answers is hung up on.
            while arena.goes_on() && !app.connection.is_hung_up() {
                priority = (priority + 1) % 200;
                let _full = app.connection.send(&Message::Hello(hello("restless", priority)), &[]);
            }
        }
    });
}

#[test]
fn other_terms_without_end() {
    withstand("terms", |arena| change_terms(arena, MALLORY));
}
