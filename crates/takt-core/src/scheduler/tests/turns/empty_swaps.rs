//! A swap that is predicted to cost nothing needs no slot.

use expect_test::expect;
use std::format;

use super::{check, play};
use crate::limits::QUEUE_MAX;

#[test]
fn an_empty_swap_needs_no_slot_and_occupies_none() {
    // B has one slot, and A gets the other again although the swap is still in flight.
    check(
        "gpu time-shared
         mpcg 2
         predictions
         until 1000
         A 3
         B 2
         C 1
         @0 A 120
         @0 B 120
         @6 C 0s?
         @235 A 120",
        expect![[r#"
            0 grant A 120 for 0, starts by 0
            0 grant B 120 for 0, starts by 120
            6 grant C 0s for 0, starts by 240
            230 end A 120
            235 grant A 120 for 0, starts by 240
            240 end B 120
            360 end A 120
        "#]],
    );
}

#[test]
fn a_swap_with_any_cost_needs_a_slot() {
    check(
        "gpu time-shared
         mpcg 2
         predictions
         until 239
         A 3
         B 2
         C 1
         @0 A 120
         @0 B 120
         @6 C 1s?
         @235 A 120",
        expect![[r#"
            0 grant A 120 for 0, starts by 0
            0 grant B 120 for 0, starts by 120
            6 hold C: no slot
            230 end A 120
            230 grant C 1s for 0, starts by 240
            235 hold A: no slot
        "#]],
    );
}

#[test]
fn in_order_an_empty_swap_needs_a_slot() {
    check(
        "gpu in-order
         mpcg 2
         until 100
         A 3
         B 2
         C 1
         @0 A 120
         @0 B 120
         @6 C 0s",
        expect![[r#"
            0..120 A 120 for 0
            120..240 B 120 for 0
            6 hold C: no slot
        "#]],
    );
}

#[test]
fn a_draw_is_held_to_protect_a_reservation() {
    // To be compared with the next test.
    check(
        "gpu time-shared
         mpcg 2
         fixed 6
         delay 9
         lower 3
         min 2
         predictions
         until 100
         R 9 etpf 240
         A 3
         B 2
         C 1
         @0 A 600
         @1 B 180
         @3 R 120",
        expect![[r#"
            0 grant A 600 for 0, starts by 9
            1 hold B: protects R
            3 grant R 120 for 0, starts by 615
            3 hold B: behind R
        "#]],
    );
}

#[test]
fn an_empty_swap_is_not_held_to_protect_a_reservation() {
    // The swap delays nobody, not even by a margin: R starts by 615 with and without it.
    check(
        "gpu time-shared
         mpcg 2
         fixed 6
         delay 9
         lower 3
         min 2
         predictions
         until 100
         R 9 etpf 240
         A 3
         B 2
         C 1
         @0 A 600
         @1 B 180
         @2 C 0s?
         @3 R 120",
        expect![[r#"
            0 grant A 600 for 0, starts by 9
            1 hold B: protects R
            2 grant C 0s for 0, starts by 615
            3 grant R 120 for 0, starts by 615
            3 hold B: behind R
        "#]],
    );
}

#[test]
fn an_empty_swap_is_not_held_where_blocking_is_limited() {
    check(
        "gpu time-shared
         mpcg 2
         blocking 6
         fixed 6
         delay 9
         until 1000
         R 9 etpf 240
         A 2
         B 1
         @996 A 120
         @997 B 0s?",
        expect![[r#"
            996 hold A: clears R
            997 grant B 0s for 0
        "#]],
    );
}

#[test]
fn a_swap_that_is_revised_to_cost_nothing_is_granted_at_once() {
    check(
        "gpu time-shared
         mpcg 2
         until 100
         A 3
         B 2
         C 1
         @0 A 120
         @0 B 120
         @1 C 60/0s
         @2 C revises 2 0",
        expect![[r#"
            0 grant A 120 for 0
            0 grant B 120 for 0
            1 hold C: no slot
            2 grant C 0s for 0
            2 end C 0s
            2 C frame 0 met 0
        "#]],
    );
}

#[test]
fn an_empty_swap_behind_its_draw_is_granted_with_it() {
    check(
        "gpu time-shared
         mpcg 2
         until 240
         A 3
         B 2
         C 1
         @0 A 120
         @0 B 120
         @1 C 120 0s",
        expect![[r#"
            0 grant A 120 for 0
            0 grant B 120 for 0
            1 hold C: no slot
            230 end A 120
            230 grant C 120 for 0
            230 grant C 0s for 0
        "#]],
    );
}

#[test]
fn an_empty_swap_is_granted_while_more_is_in_flight_than_a_lowered_limit() {
    check(
        "gpu time-shared
         mpcg 4
         until 100
         A 3
         B 2
         C 1
         @0 A 60
         @0 B 60
         @0 C 60
         @1 set mpcg 1
         @2 A 0s",
        expect![[r#"
            0 grant A 60 for 0
            0 grant B 60 for 0
            0 grant C 60 for 0
            2 grant A 0s for 0
        "#]],
    );
}

#[test]
fn an_empty_swap_is_granted_at_any_in_flight_limit() {
    for mpcg in [1, 2, 32, 62] {
        let timeline = play(&format!(
            "gpu time-shared
             mpcg {mpcg}
             until 4
             A 3
             B 2
             C 1
             @0 A {}
             @1 B 60
             @2 C 0s",
            "5 ".repeat(mpcg)
        ));
        let grants = "0 grant A 5 for 0\n".repeat(mpcg);
        let swap = "2 grant C 0s for 0\n2 end C 0s\n2 C frame 0 met 0\n";
        assert_eq!(timeline, format!("{grants}1 hold B: no slot\n{swap}"), "mpcg {mpcg}");
    }
}

#[test]
fn empty_swaps_without_completions_do_not_block_others() {
    // One goes without a slot, as many as there are slots go with one, and the rest wait. Late by
    // 2 ms, they no longer occupy their slots.
    let swaps = "0s? ".repeat(QUEUE_MAX);
    check(
        &format!(
            "gpu time-shared
             mpcg 2
             period 16_000_000
             timeout 500_000_000
             until 4_000_100
             R 9 etpf 4_000_000
             A 3
             C 1
             @0 C {swaps}
             @100 R 1000
             @5000 C reports 0
             @3_000_000 A 100"
        ),
        expect![[r#"
            0 grant C 0s for 0
            0 grant C 0s for 1
            0 grant C 0s for 2
            0 hold C: no slot
            100 grant R 1000 for 0
            100 hold C: behind R
            1100 end R 1000
            5000 end C 0s
            5000 C frame 0 met 0
            5000 grant C 0s for 3
            5000 hold C: no slot
            2000000 grant C 0s for 4
            2000000 grant C 0s for 5
            3000000 hold A: no slot
            4000000 grant A 100 for 0
            4000000 grant C 0s for 6
        "#]],
    );
}

#[test]
fn an_empty_swap_without_completion_is_lost_a_timeout_after_its_draw() {
    // The draw's completion comes at 500, so the swap's is due by 1000. Others go on all the time.
    check(
        "gpu time-shared
         mpcg 2
         timeout 500
         period 10_000
         until 2000
         A 2
         C 1
         @0 C 20?
         @10 C 0s?
         @100 A 10
         @500 C reports 0
         @501 A 10
         @900 A 200
         @1100 A 10
         @1500 A 10",
        expect![[r#"
            0 grant C 20 for 0
            10 grant C 0s for 0
            100 grant A 10 for 0
            110 end A 10
            500 end C 20
            501 grant A 10 for 0
            511 end A 10
            900 grant A 200 for 0
            1000 lost a group of C (Timeout)
            1000 C frame 0 late 0
            1100 end A 200
            1100 grant A 10 for 0
            1110 end A 10
            1500 grant A 10 for 0
            1510 end A 10
        "#]],
    );
}

#[test]
fn an_empty_swap_in_flight_causes_no_decisions() {
    // Each step wakes the scheduler up, but only those that submit something make it decide.
    check(
        "gpu time-shared
         mpcg 2
         until 40
         R 9 etpf 240
         A 3
         B 2
         C 1
         @0 A 600
         @1 C 0s?
         @2 B 300
         @30 decisions
         @31 decisions
         @32 decisions
         @33 decisions
         @39 decisions",
        expect![[r#"
            0 grant A 600 for 0
            1 grant C 0s for 0
            2 hold B: protects R
            30 decisions: 2
            31 decisions: 2
            32 decisions: 2
            33 decisions: 2
            39 decisions: 2
        "#]],
    );
}
