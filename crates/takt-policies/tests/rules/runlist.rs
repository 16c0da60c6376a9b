//! Turns by a runlist on a GPU that cannot be interrupted.

use expect_test::{Expect, expect};

use super::rig;
use takt_policies::Runlist;

fn check(script: &str, expected: Expect) {
    expected.assert_eq(&rig::play(script, Box::new(Runlist::new())));
}

#[test]
fn turns_end_between_groups() {
    check(
        "A 3 level high slice 100
         B 2 level high slice 100
         C 1 level low slice 50
         until 900
         @0 A 60 60 60 60s
         @0 B 30 30 30 30s
         @0 C 70 70s",
        expect![[r#"
            0..60 A 60 for 0
            0 hold A: no slot
            0 hold B: turn of A
            0 hold C: turn of A
            60..120 A 60 for 0
            120..150 B 30 for 0
            120 hold A: turn of B
            120 hold B: no slot
            120 hold C: turn of B
            150..180 B 30 for 0
            180..210 B 30 for 0
            210..240 B 30s for 0
            240 B frame 0 met 0
            240..310 C 70 for 0
            240 hold A: turn of C
            240 hold C: no slot
            310..370 A 60 for 0
            310 hold A: no slot
            310 hold C: turn of A
            370..430 A 60s for 0
            430 A frame 0 met 0
            430..500 C 70s for 0
            500 C frame 0 met 0
        "#]],
    );
}

#[test]
fn without_rivals_the_next_timeslice_begins() {
    check(
        "A 3 slice 100
         B 2 slice 100
         until 900
         @0 A 60 60 60 60s
         @130 B 10s",
        expect![[r#"
            0..60 A 60 for 0
            0 hold A: no slot
            60..120 A 60 for 0
            120..180 A 60 for 0
            130 hold B: no slot
            180..240 A 60s for 0
            180 hold B: turn of A
            240 A frame 0 met 0
            240..250 B 10s for 0
            250 B frame 0 met 0
        "#]],
    );
}

#[test]
fn a_channel_that_drains_gives_its_turn_away() {
    check(
        "A 3 slice 100
         B 2 slice 100
         until 900
         @0 A 40s
         @0 B 90 90s
         @40 A 40s",
        expect![[r#"
            0..40 A 40s for 0
            0 hold B: turn of A
            40 A frame 0 met 0
            40..130 B 90 for 0
            40 hold A: turn of B
            40 hold B: no slot
            130..220 B 90s for 0
            220 B frame 0 met 0
            220..260 A 40s for 1
            260 A frame 1 met 1
        "#]],
    );
}

#[test]
fn only_groups_that_begin_within_the_timeslice_are_sent_ahead() {
    check(
        "mpcg 5
         A 3 slice 100
         B 2 slice 100
         until 900
         @0 A 60 60 60 60s
         @0 B 10s",
        expect![[r#"
            0..60 A 60 for 0
            60..120 A 60 for 0
            0 hold A: no slot
            0 hold B: turn of A
            120..130 B 10s for 0
            120 hold A: turn of B
            130 B frame 0 met 0
            130..190 A 60 for 0
            190..250 A 60s for 0
            250 A frame 0 met 0
        "#]],
    );
}

#[test]
fn an_app_that_leaves_ends_its_turn() {
    check(
        "mpcg 2
         A 3 slice 100
         B 2 slice 100
         until 900
         @0 A 60 60 60
         @0 B 10s
         @20 A leaves",
        expect![[r#"
            0..60 A 60 for 0
            60..120 A 60 for 0
            0 hold A: no slot
            0 hold B: turn of A
            20 A left, 1 dropped
            20 hold B: no slot
            120..130 B 10s for 0
            130 B frame 0 met 0
        "#]],
    );
}
