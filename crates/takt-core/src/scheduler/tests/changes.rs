//! Frames over time, apps that change and go, and what the corrections to the listing are for.

use expect_test::expect;

use super::{check, check_fifo};

#[test]
fn a_late_frame_shifts_the_next_deadline() {
    check(
        "A 9 stride 2
         until 7000
         @0 A 2500s
         @3000 A 100s
         @5000 A 100s",
        expect![[r#"
            0..2500 A 2500s for 2
            2000 A missed frame 0 for 1 ×1
            2500 A frame 0 late 1
            3000..3100 A 100s for 4
            3100 A frame 1 met 4
            5000..5100 A 100s for 6
            5100 A frame 2 met 6
        "#]],
    );
}

#[test]
fn a_starved_app_misses_every_deadline() {
    check(
        "A 9 etpf 900
         B 1 etpf 500
         until 4500
         @0 B 500s
         @0 A 900s
         @1000 A 900s
         @2000 A 900s
         @3000 A 900s
         @4000 A 900s",
        expect![[r#"
            0..900 A 900s for 0
            0 hold B: behind A
            900 A frame 0 met 0
            900 hold B: protects A
            1000 B missed frame 0 for 0 ×1
            1000..1900 A 900s for 1
            1000 hold B: behind A
            1900 A frame 1 met 1
            1900 hold B: protects A
            2000 B missed frame 0 for 1 ×1
            2000..2900 A 900s for 2
            2000 hold B: behind A
            2900 A frame 2 met 2
            2900 hold B: protects A
            3000 B missed frame 0 for 2 ×1
            3000..3900 A 900s for 3
            3000 hold B: behind A
            3900 A frame 3 met 3
            3900 hold B: protects A
            4000 B missed frame 0 for 3 ×1
            4000..4900 A 900s for 4
            4000 hold B: behind A
        "#]],
    );
}

#[test]
fn parameters_change_at_once() {
    check(
        "A 9 etpf 900
         B 1
         until 3000
         @0 B 500s
         @100 A etpf 100
         @1000 B 500s
         @1001 A priority 1
         @1002 B priority 9
         @1003 A priority 1
         @1500 A 100s",
        expect![[r#"
            0 hold B: protects A
            100..600 B 500s for 0
            600 B frame 0 met 0
            1000..1500 B 500s for 1
            1001 refused A: priority 1 belongs to app 1
            1002 refused B: priority 9 belongs to app 0
            1003 refused A: priority 1 belongs to app 1
            1500 B frame 1 met 1
            1500..1600 A 100s for 1
            1600 A frame 0 met 1
        "#]],
    );
}

#[test]
fn leaving_frees_reservations_and_drops_waiting_groups() {
    check(
        "A 9 etpf 900
         B 1
         until 2000
         @0 A 100 800s
         @0 B 950s
         @50 A leaves
         @60 A 100s",
        expect![[r#"
            0..100 A 100 for 0
            0 hold A: no slot
            0 hold B: behind A
            50 A left, 1 dropped
            50 hold B: no slot
            60 refused A: no app is attached there
            100..1050 B 950s for 1
            1000 B missed frame 0 for 0 ×1
            1050 B frame 0 late 0
        "#]],
    );
}

#[test]
fn an_exit_group_is_the_last_one() {
    check(
        "A 9
         until 2000
         @0 A 100s
         @10 A exits
         @20 A 100s",
        expect![[r#"
            0..100 A 100s for 0
            10 hold A: no slot
            20 refused A: app already submitted its last group
            100 A frame 0 met 0
            100..100 A 0 for 1
            100 A left, 0 dropped
        "#]],
    );
}

#[test]
fn fifo_keeps_submission_order_and_does_harm() {
    check_fifo(
        "A 9 etpf 400
         B 1
         until 2500
         @0 B 1500s
         @1 A 400s
         @2 B 300s",
        expect![[r#"
            0..1500 B 1500s for 0
            1 hold A: no slot
            2 hold B: no slot
            1000 A missed frame 0 for 0 ×1
            1000 B missed frame 0 for 0 ×1
            1500 B frame 0 late 0
            1500..1900 A 400s for 0
            1500 hold B: behind A
            1900 A frame 0 late 0
            1900..2200 B 300s for 2
            2200 B frame 1 met 2
        "#]],
    );
}

#[test]
fn the_clamp_of_the_printed_listing_would_break_the_guarantee() {
    // All four pass the offline test. Clamping in every period, reserved or not, forbids groups
    // to cross a vsync; then D misses every other frame.
    check(
        "A 9 stride 2 etpf 588
         B 8 etpf 269
         C 7 stride 2 etpf 191
         D 6 etpf 330
         until 4000
         @0 A 588s
         @2000 A 588s
         @0 B 269s
         @1000 B 269s
         @2000 B 269s
         @3000 B 269s
         @0 C 191s
         @2000 C 191s
         @0 D 330s
         @1000 D 330s
         @2000 D 330s
         @3000 D 330s",
        expect![[r#"
            0..269 B 269s for 0
            0 hold A: behind B
            0 hold C: behind B
            0 hold D: behind B
            269 B frame 0 met 0
            269..599 D 330s for 0
            269 hold A: behind D
            269 hold C: behind D
            599 D frame 0 met 0
            599..1187 A 588s for 1
            599 hold C: behind A
            1000 hold B: no slot
            1000 hold D: no slot
            1187 A frame 0 met 1
            1187..1456 B 269s for 1
            1187 hold C: behind B
            1187 hold D: behind B
            1456 B frame 1 met 1
            1456..1647 C 191s for 1
            1456 hold D: behind C
            1647 C frame 0 met 1
            1647..1977 D 330s for 1
            1977 D frame 1 met 1
            2000..2269 B 269s for 2
            2000 hold A: behind B
            2000 hold C: behind B
            2000 hold D: behind B
            2269 B frame 2 met 2
            2269..2599 D 330s for 2
            2269 hold A: behind D
            2269 hold C: behind D
            2599 D frame 2 met 2
            2599..3187 A 588s for 3
            2599 hold C: behind A
            3000 hold B: no slot
            3000 hold D: no slot
            3187 A frame 1 met 3
            3187..3456 B 269s for 3
            3187 hold C: behind B
            3187 hold D: behind B
            3456 B frame 3 met 3
            3456..3647 C 191s for 3
            3456 hold D: behind C
            3647 C frame 1 met 3
            3647..3977 D 330s for 3
            3977 D frame 3 met 3
        "#]],
    );
}

#[test]
fn frames_after_the_next_one_are_reserved_as_well() {
    // C's 900 are due in period 2. There A takes 500, so 400 of C's must run in period 1, where
    // A takes 500 again: B may use 100 of period 1 and no more.
    check(
        "A 9 etpf 500
         C 8 stride 2 etpf 900 phase 1
         B 1
         until 1000
         @0 A 10s
         @10 B 1090s",
        expect![[r#"
            0..10 A 10s for 0
            10 A frame 0 met 0
            10 hold B: protects A
        "#]],
    );
}

#[test]
fn a_group_that_fits_nowhere_beside_a_contract_waits_whatever_its_priority() {
    // A keeps 400 of each 1000, so X never fits. B fits once X is late and keeps no time free.
    check(
        "X 10
         A 9 etpf 400
         B 1
         mpcg 2
         until 3000
         @0 X 1100s
         @500 B 450s",
        expect![[r#"
            0 hold X: protects A
            500 hold B: protects A
            601 hold B: protects X
            1000 X missed frame 0 for 0 ×1
            1000 B missed frame 0 for 0 ×1
            1000..1450 B 450s for 1
            1450 B frame 0 late 0
            2000 X missed frame 0 for 1 ×1
        "#]],
    );
}

#[test]
fn the_focus_lifts_an_app_to_the_top_of_the_automatic_ones() {
    check(
        "A 9
         B 8 focus automatic
         C 7
         D 6 focus automatic
         E 5 focus automatic
         until 30
         @10 E focuses
         @20 C focuses",
        expect![[r#"
            10 E ranks 8
            10 B ranks 6
            10 D ranks 5
            20 B ranks 8
            20 D ranks 6
            20 E ranks 5
        "#]],
    );
}

#[test]
fn no_app_waits_for_itself() {
    check(
        "A 9 feeds 1
         B 8 feeds 2
         C 7 feeds 0
         D 6 feeds 3
         until 10",
        expect![[r#"
            0 refused C: its consumers depend on each other in a circle
            0 refused D: its consumers depend on each other in a circle
        "#]],
    );
}

#[test]
fn an_app_that_leaves_takes_its_timer_with_it() {
    // A's absent frame becomes hopeless at 101, which would matter to B alone. C is still running.
    check(
        "A 9 etpf 900
         C 5
         B 1
         mpcg 2
         until 1000
         @0 C 50/800
         @10 B 200s
         @20 B leaves",
        expect![[r#"
            0..800 C 800 for 0
            10 hold B: protects A
            20 B left, 1 dropped
        "#]],
    );
}

#[test]
fn more_slots_are_used_at_once_and_fewer_when_the_rest_has_ended() {
    check(
        "A 9
         B 1
         mpcg 1
         @0 B 100 100 100 100 100s
         @50 set mpcg 3      # two more are on their way
         @60 A 100y
         @110 set mpcg 1     # and A; but no other app until these have ended
         @210 A 100s",
        expect![[r#"
            0..100 B 100 for 0
            0 hold B: no slot
            100..200 B 100 for 0
            200..300 B 100 for 0
            60 hold A: no slot
            300..400 A 100 for 0
            100 hold B: behind A
            210 hold A: no slot
            400..500 A 100s for 0
            500 A frame 0 met 0
            500..600 B 100 for 0
            500 hold B: no slot
            600..700 B 100s for 0
            700 B frame 0 met 0
            2000 A missed frame 1 for 1 ×1
            2000 B missed frame 1 for 1 ×1
            3000 A missed frame 1 for 2 ×1
            3000 B missed frame 1 for 2 ×1
        "#]],
    );
}

#[test]
fn other_margins_hold_for_groups_that_come_and_for_reservations_at_once() {
    check(
        "A 9 etpf 400
         B 1
         until 2500
         @0 B 500s           # fits beside the 400 of A
         @0 A 400s
         @1000 set fixed 150
         @1000 B 500s        # 650 do not
         @1100 set fixed 0 delay 200
         @1200 A 300",
        expect![[r#"
            0..400 A 400s for 0
            0 hold B: behind A
            400 A frame 0 met 0
            400..900 B 500s for 0
            900 B frame 0 met 0
            1000 hold B: protects A
            1400..1700 A 300 for 1
            1200 hold B: behind A
            1900..2400 B 500s for 2
            2000 A missed frame 1 for 1 ×1
            2000 B missed frame 1 for 1 ×1
            2400 B frame 1 late 1
        "#]],
    );
}

#[test]
fn blocking_is_bounded_as_soon_as_it_is_asked_for() {
    check(
        "A 9 etpf 100
         B 1
         until 2900
         @700 B 500          # A comes at 1000, and loses no deadline by this
         @1700 set blocking 0
         @1700 B 500",
        expect![[r#"
            700 hold B: protects A
            901..1401 B 500 for 1
            1000 B missed frame 0 for 0 ×1
            1700 hold B: protects A
            1901 hold B: clears A
            2000 B missed frame 0 for 1 ×1
            2031..2531 B 500 for 2
        "#]],
    );
}

#[test]
fn deadlines_are_judged_when_all_must_have_been_heard_by_the_new_margin() {
    check(
        "A 9
         until 2400
         @0 A 100
         @500 set heard 300
         @1600 set heard 0",
        expect![[r#"
            0..100 A 100 for 0
            1300 A missed frame 0 for 0 ×1
            2000 A missed frame 0 for 1 ×1
        "#]],
    );
}

#[test]
fn a_group_that_was_held_back_for_its_length_goes_when_it_is_said_to_be_shorter() {
    check(
        "A 9 etpf 400
         B 1
         until 2500
         @0 A 400s
         @0 B 5000/100s      # fits nowhere
         @1000 A 400s
         @1500 B revises 1 500
         @1900 B revises 1 100 # it has gone",
        expect![[r#"
            0..400 A 400s for 0
            0 hold B: behind A
            400 A frame 0 met 0
            400 hold B: protects A
            1000 B missed frame 0 for 0 ×1
            1000..1400 A 400s for 1
            1000 hold B: behind A
            1400 A frame 1 met 1
            1400 hold B: protects A
            1500..1600 B 100s for 2
            1600 B frame 0 late 0
            1900 refused B: no such group in flight
        "#]],
    );
}

#[test]
fn who_reserves_nothing_gets_what_longer_frames_leave_at_the_ends_of_periods() {
    check(
        "A 6
         B 5
         until 3300
         @0 A 300 300 300 300 300 300 300 300 300 300s
         @0 B 100s",
        expect![[r#"
            0..300 A 300 for 0
            0 hold A: no slot
            0 hold B: behind A
            300..600 A 300 for 0
            600..900 A 300 for 0
            900..1200 A 300 for 1
            1000 A missed frame 0 for 0 ×1
            1000 B missed frame 0 for 0 ×1
            1200..1500 A 300 for 1
            1500..1800 A 300 for 1
            1800..1900 B 100s for 1
            1800 hold A: behind B
            1900 B frame 0 late 0
            1900..2200 A 300 for 2
            1900 hold A: no slot
            2000 A missed frame 0 for 1 ×1
            2200..2500 A 300 for 2
            2500..2800 A 300 for 2
            2800..3100 A 300s for 3
            3000 A missed frame 0 for 2 ×1
            3000 B missed frame 1 for 2 ×1
            3100 A frame 0 late 0
        "#]],
    );
}

#[test]
fn who_reserves_nothing_has_its_turn_after_more_important_frames_that_are_shorter() {
    check(
        "A 6
         B 5
         until 2500
         @0 A 700s 700s 700s
         @0 B 100s 100s 100s",
        expect![[r#"
            0..700 A 700s for 0
            0 hold A: no slot
            0 hold B: behind A
            700 A frame 0 met 0
            700..800 B 100s for 0
            700 hold A: behind B
            700 hold B: no slot
            800 B frame 0 met 0
            800..1500 A 700s for 1
            800 hold A: no slot
            800 hold B: behind A
            1500 A frame 1 met 1
            1500..1600 B 100s for 1
            1500 hold A: behind B
            1500 hold B: no slot
            1600 B frame 1 met 1
            1600..2300 A 700s for 2
            1600 hold B: behind A
            2300 A frame 2 met 2
            2300..2400 B 100s for 2
            2400 B frame 2 met 2
        "#]],
    );
}
