//! Late apps that are promised nothing take turns where a change of contexts costs something.

use expect_test::expect;

use super::check;

/// Both frames are late from 100 on. A goes on with two groups in flight until its turn of 160 is over, then B does.
#[test]
fn late_apps_take_turns() {
    check(
        "gpu time-shared slice=10 switch=5
         mpcg 2
         period 100
         rest-turn 160
         until 700
         A 3
         B 2
         @0 A 140
         @90 B 60
         @150 A 40
         @150 A 40
         @150 B 40
         @150 A 40
         @150 B 40
         @150 A 40
         @150 B 40
         @150 A 40
         @150 B 40",
        expect![[r#"
            0 grant A 140 for 1
            90 grant B 60 for 1
            100 A missed frame 0 for 0 ×1
            100 B missed frame 0 for 0 ×1
            150 hold A: no slot
            150 hold B: no slot
            200 A missed frame 0 for 1 ×1
            200 B missed frame 0 for 1 ×1
            240 end A 140
            240 grant A 40 for 2
            240 hold B: behind A
            255 end B 60
            255 grant A 40 for 2
            300 end A 40
            300 A missed frame 0 for 2 ×1
            300 B missed frame 0 for 2 ×1
            300 grant A 40 for 3
            340 end A 40
            340 grant A 40 for 3
            380 end A 40
            380 grant A 40 for 4
            400 A missed frame 0 for 3 ×1
            400 B missed frame 0 for 3 ×1
            420 end A 40
            420 grant B 40 for 4
            420 hold B: no slot
            500 A missed frame 0 for 4 ×1
            500 B missed frame 0 for 4 ×1
            525 end B 40
            525 grant B 40 for 5
            540 end A 40
            540 grant B 40 for 5
            585 end B 40
            585 grant B 40 for 6
            600 A missed frame 0 for 5 ×1
            600 B missed frame 0 for 5 ×1
            625 end B 40
            665 end B 40
        "#]],
    );
}

/// B's frame can still be in time, so it waits for no turn.
#[test]
fn an_app_that_is_not_late_waits_for_no_turn() {
    check(
        "gpu time-shared slice=10 switch=5
         mpcg 2
         period 100
         rest-turn 160
         until 400
         A 3
         B 2
         @0 A 140
         @150 A 40
         @150 B 20s",
        expect![[r#"
            0 grant A 140 for 1
            100 A missed frame 0 for 0 ×1
            140 end A 140
            150 grant A 40 for 1
            150 grant B 20s for 2
            195 end B 20s
            195 B frame 0 met 2
            200 A missed frame 0 for 1 ×1
            230 end A 40
            300 A missed frame 0 for 2 ×1
        "#]],
    );
}

/// C is more important than A, whose turn it is.
#[test]
fn a_more_important_app_waits_for_no_turn() {
    check(
        "gpu time-shared slice=10 switch=5
         mpcg 2
         period 100
         rest-turn 160
         until 400
         C 4
         A 3
         @0 A 110
         @10 C 150
         @150 A 40
         @150 A 40
         @170 C 20",
        expect![[r#"
            0 grant A 110 for 1
            10 grant C 150 for 1
            100 C missed frame 0 for 0 ×1
            100 A missed frame 0 for 0 ×1
            150 hold A: no slot
            170 hold C: no slot
            200 C missed frame 0 for 1 ×1
            200 A missed frame 0 for 1 ×1
            300 C missed frame 0 for 2 ×1
            300 A missed frame 0 for 2 ×1
            310 end A 110
            310 grant C 20 for 3
            310 hold A: behind C
            365 end C 150
            365 hold A: turn of C
            385 end C 20
            385 grant A 40 for 4
            385 grant A 40 for 4
        "#]],
    );
}

/// Turns of no length are none.
#[test]
fn turns_can_be_switched_off() {
    check(
        "gpu time-shared slice=10 switch=5
         mpcg 2
         period 100
         rest-turn 0
         until 400
         A 3
         B 2
         @0 A 140
         @90 B 60
         @150 A 40
         @150 A 40
         @150 B 40",
        expect![[r#"
            0 grant A 140 for 1
            90 grant B 60 for 1
            100 A missed frame 0 for 0 ×1
            100 B missed frame 0 for 0 ×1
            150 hold A: no slot
            150 hold B: no slot
            200 A missed frame 0 for 1 ×1
            200 B missed frame 0 for 1 ×1
            240 end A 140
            240 grant A 40 for 2
            240 hold B: behind A
            255 end B 60
            255 grant A 40 for 2
            300 end A 40
            300 A missed frame 0 for 2 ×1
            300 B missed frame 0 for 2 ×1
            300 grant B 40 for 3
        "#]],
    );
}
