//! A group that is dispatched later delays those in flight.

use expect_test::expect;

use super::check;

#[test]
fn a_group_goes_beside_a_reservation_if_both_meet_its_deadline() {
    check(
        "gpu time-shared
         mpcg 2
         until 990
         R 4 etpf 240
         A 1
         @480 R 240
         @486 A 240",
        expect![[r#"
            480 grant R 240 for 0
            486 grant A 240 for 0
            950 end R 240
            960 end A 240
        "#]],
    );
}

#[test]
fn a_group_goes_beside_a_complete_frame_if_both_meet_its_deadline() {
    check(
        "gpu time-shared
         mpcg 2
         until 990
         R 4 etpf 240
         A 1
         @480 R 240
         @481 R ends frame
         @486 A 240",
        expect![[r#"
            480 grant R 240 for 0
            486 grant A 240 for 0
            950 end R 240
            950 R frame 0 met 0
            960 end A 240
        "#]],
    );
}

#[test]
fn a_group_is_held_if_a_reservation_in_flight_would_miss_its_deadline() {
    // The two would be done at 1080, and R is due at 1000. When R is done, A delays no app.
    check(
        "gpu time-shared
         mpcg 2
         until 990
         R 4 etpf 240
         A 1
         @480 R 240
         @486 A 360",
        expect![[r#"
            480 grant R 240 for 0
            486 hold A: protects R
            720 end R 240
            720 grant A 360 for 1
        "#]],
    );
}

#[test]
fn a_group_is_held_if_a_complete_frame_in_flight_would_miss_its_deadline() {
    check(
        "gpu time-shared
         mpcg 2
         until 990
         R 4 etpf 240
         A 1
         @480 R 240
         @481 R ends frame
         @486 A 360",
        expect![[r#"
            480 grant R 240 for 0
            486 hold A: protects R
            720 end R 240
            720 R frame 0 met 0
            720 grant A 360 for 1
        "#]],
    );
}

#[test]
fn in_order_a_later_group_delays_nothing_in_flight() {
    // Those 360 as well would end at 1080, but behind R.
    check(
        "gpu in-order
         mpcg 2
         until 990
         R 4 etpf 240
         A 1
         @480 R 240
         @486 A 360",
        expect![[r#"
            480..720 R 240 for 0
            720..1080 A 360 for 1
        "#]],
    );
}

#[test]
fn an_overrunning_frame_does_not_expose_the_next_one() {
    // R's first frame misses its deadline at 1000. The second one is due at 2000, and would be late
    // if A's 780 shared the GPU with both.
    check(
        "gpu time-shared
         mpcg 3
         until 1100
         R 4 etpf 240
         A 1
         @720 R 240/600
         @721 R ends frame
         @1008 R 240
         @1020 A 780",
        expect![[r#"
            720 grant R 600 for 0
            1000 R missed frame 0 for 0 ×1
            1008 grant R 240 for 1
            1020 hold A: protects R
        "#]],
    );
}

#[test]
fn beside_an_overrunning_frame_a_short_group_goes() {
    check(
        "gpu time-shared
         mpcg 3
         until 1100
         R 4 etpf 240
         A 1
         @720 R 240/600
         @721 R ends frame
         @1008 R 240
         @1020 A 120",
        expect![[r#"
            720 grant R 600 for 0
            1000 R missed frame 0 for 0 ×1
            1008 grant R 240 for 1
            1020 grant A 120 for 1
        "#]],
    );
}

#[test]
fn no_grant_is_stretched_beyond_the_deadline_of_a_reservation_in_flight() {
    // X asks for 60 and may have up to 480. It starts by 720, and R is due at 1000.
    check(
        "gpu time-shared
         mpcg 3
         stretch 480
         until 700
         X 9 stride 4
         R 4 etpf 240
         @480 R 240
         @486 X 60",
        expect![[r#"
            480 grant R 240 for 0 within 240
            486 grant X 60 for 1 within 279
            600 end X 60
        "#]],
    );
}

#[test]
fn an_app_without_a_contract_waits_for_one_in_flight_whatever_its_priority() {
    // The two would be done at 1140. Both are due at 1000, and R has a contract.
    check(
        "gpu time-shared
         mpcg 2
         predictions
         until 1000
         X 9
         R 4 etpf 240
         @480 R 240
         @486 X 420",
        expect![[r#"
            480 grant R 240 for 0, starts by 480
            486 hold X: protects R
            720 end R 240
            720 grant X 420 for 1, starts by 720
        "#]],
    );
}

#[test]
fn an_app_that_misses_its_deadline_in_any_case_waits_for_a_reservation_in_flight() {
    // X cannot end before 1026, so that it is less urgent than R.
    check(
        "gpu time-shared
         mpcg 2
         predictions
         until 1000
         X 9
         R 4 etpf 240
         @480 R 240
         @486 X 540",
        expect![[r#"
            480 grant R 240 for 0, starts by 480
            486 hold X: protects R
            720 end R 240
            720 grant X 540 for 1, starts by 720
        "#]],
    );
}

/// Found by `takt prove --gpu time-shared`: A has paid for the way back from it, but R comes after A has ended, and the
/// GPU changes only then. What went beside R was checked against an end that was too early.
#[test]
fn the_way_back_begins_when_the_group_is_there() {
    check(
        "gpu time-shared slice=1000 switch=20
         mpcg 2
         delay 100
         predictions
         until 900
         R 4 etpf 700
         A 1
         @0 R 50
         @10 A 30
         @190 R 300s
         @230 A 30",
        expect![[r#"
            0 grant R 50 for 0, starts by 100
            10 grant A 30 for 0, starts by 170
            150 end R 50
            190 grant R 300s for 0, starts by 290
            200 end A 30
            230 grant A 30 for 0, starts by 610
            610 end R 300s
            610 R frame 0 met 0
            660 end A 30
        "#]],
    );
}
