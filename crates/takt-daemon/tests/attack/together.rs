//! All attacks at once, each by a user of its own.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::arena::{Arena, is_root, say, withstand};
use crate::{clients, crowds, impostors, messages, tools};

/// The first of the attackers.
const FIRST: u32 = 43_000;
/// Those with many connections.
const TOOLS: u32 = 43_100;
const SILENT: u32 = 43_101;

#[test]
fn all_attacks_at_once() {
    if !is_root() {
        say("all at once: SKIPPED, only root can be several users");
        return;
    }
    let attacks: [fn(&Arena, u32); 11] = [
        clients::scribble,
        clients::flood_groups,
        clients::hog,
        clients::lie,
        impostors::pose,
        messages::steer_terminals,
        tools::change_terms,
        |arena, user| messages::mutate(arena, user, 0),
        |arena, user| messages::flood_log(arena, user, 0),
        |arena, user| crowds::connect_and_go(arena, user, 0),
        |arena, user| crowds::invent_names(arena, user, 0),
    ];
    withstand("together", |arena| {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (attack, user) in attacks.into_iter().zip(FIRST..) {
                scope.spawn(move || attack(arena, user));
            }
            scope.spawn(|| tools::question(arena, TOOLS, &over));
            scope.spawn(|| crowds::crowd(arena, 0));
            let silent = crowds::keep_silent(arena, SILENT);
            while arena.goes_on() {
                std::thread::sleep(Duration::from_millis(5));
            }
            drop(silent);
        });
    });
}
