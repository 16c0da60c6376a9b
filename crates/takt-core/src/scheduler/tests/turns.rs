//! A time-shared GPU: apps have it in turn, so groups in flight together end at about the same time and
//! completions come in any order.
//!
//! In these scripts A, B and C reserve nothing, and R has reserved 240 of each period of 1000.

mod apart;
mod deadlines;
mod late;
mod promised;
mod rest;

use expect_test::expect;
use std::string::String;

use super::{check, rig};
use crate::policy::Timeline;

/// The timeline of a script.
fn play(script: &str) -> String {
    rig::play(script, alloc::boxed::Box::new(Timeline::new()))
}

#[test]
fn the_gpu_of_the_rig_serves_apps_round_robin() {
    check(
        "gpu time-shared slice=10 switch=2
         mpcg 2
         until 1000
         A 2
         B 1
         @0 A 30
         @0 B 20
         @100 B 5             # a switch from A to B
         @110 B 25            # no other app has work, so there are no switches",
        expect![[r#"
            0 grant A 30 for 0
            0 grant B 20 for 0
            46 end B 20
            58 end A 30
            100 grant B 5 for 0
            107 end B 5
            110 grant B 25 for 0
            135 end B 25
        "#]],
    );
}

#[test]
fn groups_in_flight_together_are_done_when_all_were_predicted_to_be() {
    // A and B shared the GPU until 390, so only 10 of B's work is left then.
    check(
        "gpu time-shared slice=10
         mpcg 2
         predictions
         until 1000
         A 3
         B 2
         C 1
         @0 A 200
         @0 B 200
         @1 C 200",
        expect![[r#"
            0 grant A 200 for 0, starts by 0
            0 grant B 200 for 0, starts by 200
            1 hold C: no slot
            390 end A 200
            390 grant C 200 for 0, starts by 400
            400 end B 200
            600 end C 200
        "#]],
    );
}

#[test]
fn in_order_the_second_group_begins_when_the_first_one_ends() {
    // When A ends at 390, all of B's 200 is still to come.
    check(
        "gpu in-order
         mpcg 2
         predictions
         until 1000
         A 3
         B 2
         C 1
         @0 A 200/390
         @0 B 200
         @1 C 200",
        expect![[r#"
            0..390 A 390 for 0, starts by 0
            390..590 B 200 for 0, starts by 200
            1 hold C: no slot
            590..790 C 200 for 0, starts by 590
        "#]],
    );
}

#[test]
fn a_predicted_end_that_has_passed_is_dropped() {
    // A and B were predicted to be done at 400. At 500 all of B's 300 counts as still to come.
    check(
        "gpu time-shared slice=100
         mpcg 2
         predictions
         until 1000
         A 3
         B 2
         C 1
         @0 A 100/300
         @0 B 300/400
         @1 C 100",
        expect![[r#"
            0 grant A 300 for 0, starts by 0
            0 grant B 400 for 0, starts by 100
            1 hold C: no slot
            500 end A 300
            500 grant C 100 for 0, starts by 800
            700 end C 100
            800 end B 400
        "#]],
    );
}

#[test]
fn an_app_with_a_reservation_may_exceed_the_in_flight_limit_by_one() {
    check(
        "gpu time-shared
         mpcg 2
         predictions
         until 100
         R 9 etpf 240
         A 3
         B 2
         C 1
         @0 A 120
         @0 B 120
         @10 R 60
         @20 C 60",
        expect![[r#"
            0 grant A 120 for 0, starts by 0
            0 grant B 120 for 0, starts by 120
            10 grant R 60 for 0, starts by 240
            20 hold C: no slot
        "#]],
    );
}

#[test]
fn in_order_no_app_exceeds_the_in_flight_limit() {
    check(
        "gpu in-order
         mpcg 2
         until 100
         R 9 etpf 240
         A 3
         B 2
         C 1
         @0 A 120
         @0 B 120
         @10 R 60
         @20 C 60",
        expect![[r#"
            0..120 A 120 for 0
            120..240 B 120 for 0
            10 hold R: no slot
            20 hold C: no slot
        "#]],
    );
}

#[test]
fn a_reservation_with_a_later_deadline_does_not_exceed_the_limit_before_its_turn() {
    // S has the highest priority, but C has the earlier deadline and no slot.
    check(
        "gpu time-shared
         mpcg 2
         predictions
         until 1000
         S 9 stride 4 etpf 60
         A 3
         B 2
         C 1
         @0 A 120
         @0 B 120
         @1 C 60
         @2 S 60",
        expect![[r#"
            0 grant A 120 for 0, starts by 0
            0 grant B 120 for 0, starts by 120
            1 hold C: no slot
            2 hold S: behind C
            230 end A 120
            230 grant C 60 for 0, starts by 240
            230 grant S 60 for 1, starts by 300
            240 end B 120
            350 end C 60
            360 end S 60
        "#]],
    );
}
