//! `germ` decides on its ticks and shares fairly.

use expect_test::{Expect, expect};

use super::rig;
use takt_policies::Germ;

fn check(script: &str, expected: Expect) {
    expected.assert_eq(&rig::play(script, Box::new(Germ::new())));
}

#[test]
fn completions_are_found_at_ticks() {
    check(
        "A 1
         tick 100
         until 500
         @0 A 30 30 30       # the GPU idles from 30 to 100 and from 130 to 200",
        expect![[r#"
            0..30 A 30 for 0
            0 hold A: no slot
            30 hold A: tick at 100
            100..130 A 30 for 0
            100 hold A: no slot
            130 hold A: tick at 200
            200..230 A 30 for 0
        "#]],
    );
}

#[test]
fn what_comes_between_ticks_waits_for_the_next_one() {
    check(
        "A 1
         tick 100
         until 500
         @30 A 30",
        expect![[r#"
            30 hold A: tick at 100
            100..130 A 30 for 0
        "#]],
    );
}

#[test]
fn a_deeper_queue_is_filled_at_every_tick() {
    check(
        "A 1
         tick 100
         mpcg 3
         until 300
         @0 A 30 30 30 30 30",
        expect![[r#"
            0..30 A 30 for 0
            30..60 A 30 for 0
            60..90 A 30 for 0
            0 hold A: no slot
            30 hold A: tick at 100
            100..130 A 30 for 0
            130..160 A 30 for 0
        "#]],
    );
}

#[test]
fn an_overrun_costs_turns_and_priority_does_not_help() {
    // A's groups occupy three quanta each: B has three turns for each of them.
    check(
        "A 9
         B 1
         tick 100
         until 2000
         @0 A 300 300 300
         @0 B 100 100 100 100 100 100 100 100",
        expect![[r#"
            0..300 A 300 for 0
            0 hold A: no slot
            0 hold B: behind A
            300..400 B 100 for 0
            300 hold A: behind B
            300 hold B: no slot
            400..500 B 100 for 0
            500..600 B 100 for 0
            600..900 A 300 for 0
            600 hold A: no slot
            600 hold B: behind A
            900..1000 B 100 for 0
            900 hold A: behind B
            900 hold B: no slot
            1000 A missed frame 0 for 0 ×1
            1000 B missed frame 0 for 0 ×1
            1000..1100 B 100 for 0
            1100..1200 B 100 for 0
            1200..1500 A 300 for 0
            1200 hold B: behind A
            1500..1600 B 100 for 0
            1500 hold B: no slot
            1600..1700 B 100 for 0
        "#]],
    );
}
