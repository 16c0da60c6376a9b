//! How long apps that reserve nothing delay those that do.

use expect_test::expect;
use std::format;

use super::check;

/// A best-effort app below one with a reservation, whose deadlines are in no danger at all.
const BEST_EFFORT: &str = "until 2400
    A 9 etpf 100
    B 1
    @0 A 40 60s
    @1 B 300 300 300 300 300 300
    @1010 A 40
    @1045 A 60s";

#[test]
fn without_a_bound_on_blocking_work_runs_on_over_the_releases_of_others() {
    check(
        BEST_EFFORT,
        expect![[r#"
            0..40 A 40 for 0
            0 hold A: no slot
            1 hold B: no slot
            40..100 A 60s for 0
            40 hold B: behind A
            100 A frame 0 met 0
            100..400 B 300 for 0
            100 hold B: no slot
            400..700 B 300 for 0
            700..1000 B 300 for 1
            1000 B missed frame 0 for 0 ×1
            1000..1300 B 300 for 1
            1010 hold A: no slot
            1300..1340 A 40 for 1
            1300 hold B: behind A
            1340..1400 A 60s for 1
            1400 A frame 1 met 1
            1400..1700 B 300 for 1
            1400 hold B: no slot
            1700..2000 B 300 for 2
            2000 B missed frame 0 for 1 ×1
        "#]],
    );
}

#[test]
fn best_effort_work_keeps_clear_of_releases_if_blocking_is_bounded() {
    check(
        &format!("blocking 50\nmpcg 2\n{BEST_EFFORT}"),
        expect![[r#"
            0..40 A 40 for 0
            40..100 A 60s for 0
            1 hold B: no slot
            100..400 B 300 for 0
            100 A frame 0 met 0
            400..700 B 300 for 0
            700..1000 B 300 for 1
            700 hold B: clears A
            1000 B missed frame 0 for 0 ×1
            1010..1050 A 40 for 1
            1050..1110 A 60s for 1
            1045 hold B: behind A
            1110..1410 B 300 for 1
            1050 hold B: no slot
            1110 A frame 1 met 1
            1410..1710 B 300 for 1
            1710..2010 B 300 for 2
            2000 B missed frame 0 for 1 ×1
        "#]],
    );
}

#[test]
fn best_effort_work_keeps_clear_of_jobs_that_a_server_owes_its_budget() {
    check(
        "until 1500
        blocking 50
        A 9 posterior 400/1000
        B 1
        @0 A 100
        @1 B 300 40 300 300
        @120 A 100",
        expect![[r#"
            0..100 A 100 for 0
            1 hold B: no slot
            100..400 B 300 for 0
            120 hold A: no slot
            400..500 A 100 for 0
            400 hold B: clears A
            500..540 B 40 for 0
            500 hold B: no slot
            540..840 B 300 for 0
            840..1140 B 300 for 1
            1000 A missed frame 0 for 0 ×1
            1000 B missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn what_a_server_has_used_up_its_budget_for_keeps_others_from_nothing() {
    check(
        "until 1500
        blocking 50
        A 9 posterior 100/1000
        B 1
        @0 A 100 100 100
        @1 B 300 300 300",
        expect![[r#"
            0..100 A 100 for 0
            0 hold A: no slot
            1 hold B: no slot
            100..400 B 300 for 0
            100 hold A: behind B
            400..700 B 300 for 0
            700..800 A 100 for 0
            700 hold A: no slot
            700 hold B: behind A
            800..1100 B 300 for 1
            800 hold A: behind B
            1000 A missed frame 0 for 0 ×1
            1000 B missed frame 0 for 0 ×1
            1100..1200 A 100 for 1
        "#]],
    );
}

#[test]
fn best_effort_work_may_be_longer_where_no_app_waits_for_it() {
    check(
        "until 1300
        blocking 50
        stretch 400
        A 9 etpf 100
        B 1
        @0 A 40 60s
        @1 B 100/380 100/350 100/200 100 100
        @1010 A 40 60s",
        expect![[r#"
            0..40 A 40 for 0 within 40
            0 hold A: no slot
            1 hold B: no slot
            40..100 A 60s for 0 within 60
            40 hold B: behind A
            100 A frame 0 met 0
            100..480 B 380 for 0 within 400
            100 hold B: no slot
            480..830 B 350 for 0 within 400
            830..1030 B 200 for 0 within 220
            1000 B missed frame 0 for 0 ×1
            1010 hold A: no slot
            1030..1070 A 40 for 1 within 40
            1030 hold B: behind A
            1070..1130 A 60s for 1 within 60
            1130 A frame 1 met 1
            1130..1230 B 100 for 1 within 400
            1130 hold B: no slot
            1230..1330 B 100 for 1 within 400
        "#]],
    );
}

#[test]
fn nothing_is_stretched_in_front_of_who_is_late() {
    check(
        "until 1800
        blocking 50
        stretch 400
        A 9 etpf 100
        B 1
        @0 A 40 60s
        @1 B 300 300 300 100 100 100 100",
        expect![[r#"
            0..40 A 40 for 0 within 40
            0 hold A: no slot
            1 hold B: no slot
            40..100 A 60s for 0 within 60
            40 hold B: behind A
            100 A frame 0 met 0
            100..400 B 300 for 0 within 400
            100 hold B: no slot
            400..700 B 300 for 0 within 400
            700..1000 B 300 for 1 within 350
            1000 B missed frame 0 for 0 ×1
            1000 hold B: clears A
            1031..1131 B 100 for 1 within 100
            1031 hold B: no slot
            1131..1231 B 100 for 1 within 100
            1231..1331 B 100 for 1 within 100
            1331..1431 B 100 for 1 within 400
        "#]],
    );
}

#[test]
fn an_app_that_does_not_come_is_not_waited_for() {
    let script = format!("blocking 50\n{BEST_EFFORT}").replace("@1010", "@1040");
    check(
        &script,
        expect![[r#"
            0..40 A 40 for 0
            0 hold A: no slot
            1 hold B: no slot
            40..100 A 60s for 0
            40 hold B: behind A
            100 A frame 0 met 0
            100..400 B 300 for 0
            100 hold B: no slot
            400..700 B 300 for 0
            700..1000 B 300 for 1
            1000 B missed frame 0 for 0 ×1
            1000 hold B: clears A
            1031..1331 B 300 for 1
            1031 hold B: no slot
            1040 hold A: no slot
            1331..1371 A 40 for 1
            1331 hold B: behind A
            1371..1431 A 60s for 1
            1431 A frame 1 met 1
            1431..1731 B 300 for 1
            1431 hold B: no slot
            1731..2031 B 300 for 2
            2000 B missed frame 0 for 1 ×1
        "#]],
    );
}

/// A is late: for how long others keep clear of it, and are not stretched after that, is tuned.
#[test]
fn how_long_others_wait_for_who_does_not_come_is_tuned() {
    check(
        "until 1700
        blocking 50
        stretch 400
        clear-parts 5
        unstretched-parts 2
        A 9 etpf 100
        B 1
        @0 A 100s
        @1 B 300 300 300 100 100 100 100",
        expect![[r#"
            0..100 A 100s for 0 within 100
            1 hold B: no slot
            100 A frame 0 met 0
            100..400 B 300 for 0 within 400
            400..700 B 300 for 0 within 400
            700..1000 B 300 for 1 within 350
            1000 B missed frame 0 for 0 ×1
            1000 hold B: clears A
            1200..1300 B 100 for 1 within 100
            1200 hold B: no slot
            1300..1400 B 100 for 1 within 100
            1400..1500 B 100 for 1 within 100
            1500..1600 B 100 for 1 within 399
        "#]],
    );
}

#[test]
fn apps_with_reservations_are_not_held_back_to_bound_blocking() {
    let script = format!("blocking 50\n{BEST_EFFORT}").replace("B 1\n", "B 1 etpf 1\n");
    check(
        &script,
        expect![[r#"
            0..40 A 40 for 0
            0 hold A: no slot
            1 hold B: no slot
            40..100 A 60s for 0
            40 hold B: behind A
            100 A frame 0 met 0
            100..400 B 300 for 0
            100 hold B: no slot
            400..700 B 300 for 0
            700..1000 B 300 for 1
            1000 B missed frame 0 for 0 ×1
            1000..1300 B 300 for 1
            1010 hold A: no slot
            1300..1340 A 40 for 1
            1300 hold B: behind A
            1340..1400 A 60s for 1
            1400 A frame 1 met 1
            1400..1700 B 300 for 1
            1400 hold B: no slot
            1700..2000 B 300 for 2
            2000 B missed frame 0 for 1 ×1
        "#]],
    );
}
