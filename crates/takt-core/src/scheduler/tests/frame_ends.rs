//! Frames that end without a group.
//!
//! In these scripts A, B and C reserve nothing, and R has reserved some of each period of 1000.

use alloc::boxed::Box;
use expect_test::{Expect, expect};
use std::format;
use std::string::String;

use super::hpf::Hpf;
use super::{check, rig};
use crate::limits::{FRAME_ENDS_MAX, QUEUE_MAX};
use crate::policy::Timeline;

fn play(script: &str) -> String {
    rig::play(script, Box::new(Timeline::new()))
}

fn check_hpf(script: &str, outcome: Expect) {
    outcome.assert_eq(&rig::play(script, Box::new(Hpf)));
}

#[test]
fn a_frame_ends_where_no_slot_is_free() {
    for gpu in ["in-order", "time-shared"] {
        let timeline = play(&format!(
            "gpu {gpu}
             mpcg 1
             until 100
             A 2
             C 1
             @0 A 120
             @6 C ends frame"
        ));
        assert!(timeline.ends_with("6 C frame 0 met 0\n"), "{timeline}");
    }
}

#[test]
fn a_swap_of_no_length_is_a_group_like_any_other() {
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
         @6 C 0s
         @235 A 120",
        expect![[r#"
            0 grant A 120 for 0, starts by 0
            0 grant B 120 for 0, starts by 120
            6 hold C: no slot
            230 end A 120
            230 grant C 0s for 0, starts by 240
            230 end C 0s
            230 C frame 0 met 0
            235 grant A 120 for 0, starts by 240
        "#]],
    );
}

#[test]
fn the_frame_is_done_when_its_group_in_flight_ends() {
    check(
        "gpu time-shared
         mpcg 2
         until 1000
         A 2
         B 1
         @0 A 120
         @0 B 120
         @6 A ends frame
         @300 A 50
         @400 A ends frame",
        expect![[r#"
            0 grant A 120 for 0
            0 grant B 120 for 0
            230 end A 120
            230 A frame 0 met 0
            240 end B 120
            300 grant A 50 for 1
            350 end A 50
            400 A frame 1 met 1
        "#]],
    );
}

#[test]
fn the_frame_is_done_when_its_waiting_group_has_run() {
    check(
        "mpcg 1
         until 400
         A 2
         B 1
         @0 A 120
         @1 B 60 60
         @2 B ends frame",
        expect![[r#"
            0..120 A 120 for 0
            1 hold B: no slot
            120..180 B 60 for 0
            180..240 B 60 for 0
            240 B frame 0 met 0
        "#]],
    );
}

#[test]
fn the_frame_is_done_when_the_last_of_its_groups_is_reported() {
    // Group 1 is over before group 0.
    check(
        "gpu time-shared
         mpcg 3
         until 400
         A 1
         @0 A 20? 10?
         @5 A ends frame
         @50 A reports 1
         @70 A reports 0",
        expect![[r#"
            0 grant A 20 for 0
            0 grant A 10 for 0
            50 end A 10
            70 end A 20
            70 A frame 0 met 0
        "#]],
    );
}

#[test]
fn frames_end_in_order_where_an_app_runs_ahead() {
    check(
        "mpcg 2
         until 400
         A 1
         @0 A 60
         @1 A ends frame
         @2 A 60
         @3 A ends frame
         @4 A 60s
         @5 A 60
         @6 A ends frame",
        expect![[r#"
            0..60 A 60 for 0
            60..120 A 60 for 1
            4 hold A: no slot
            60 A frame 0 met 0
            120..180 A 60s for 2
            120 A frame 1 met 1
            180..240 A 60 for 3
            180 A frame 2 met 2
            240 A frame 3 met 3
        "#]],
    );
}

#[test]
fn a_frame_without_groups_is_done_with_the_one_before_it() {
    check(
        "until 2000
         A 1
         @0 A ends frame
         @100 A 60
         @101 A ends frame
         @102 A ends frame
         @1100 A 60s
         @1101 A ends frame
         @1102 A ends frame",
        expect![[r#"
            0 A frame 0 met 0
            100..160 A 60 for 1
            160 A frame 1 met 1
            160 A frame 2 met 2
            1100..1160 A 60s for 3
            1160 A frame 3 met 3
            1160 A frame 4 met 4
            1160 A frame 5 met 5
        "#]],
    );
}

#[test]
fn a_frame_that_ends_late_is_late() {
    // Its group was over in time, but the scheduler could not know that nothing follows.
    check(
        "until 1500
         A 1
         @0 A 100
         @1200 A ends frame",
        expect![[r#"
            0..100 A 100 for 0
            1000 A missed frame 0 for 0 ×1
            1200 A frame 0 late 0
        "#]],
    );
}

#[test]
fn the_next_frame_is_released_when_nothing_of_the_last_one_waits() {
    check(
        "releases
         until 2000
         A 2
         B 1
         @0 A 100
         @10 A ends frame
         @20 B 100
         @30 B ends frame
         @1000 A ends frame",
        expect![[r#"
            A starts at 0
            B starts at 0
            0..100 A 100 for 0
            A starts at 1000
            20 hold B: no slot
            100 A frame 0 met 0
            100..200 B 100 for 0
            B starts at 1000
            200 B frame 0 met 0
            1000 A frame 1 met 1
            A starts at 2000
        "#]],
    );
}

#[test]
fn what_is_reserved_and_not_needed_is_free_when_the_frame_ends() {
    check(
        "until 1000
         R 9 etpf 700
         A 1
         @0 R 100
         @110 A 600
         @300 R ends frame",
        expect![[r#"
            0..100 R 100 for 0
            110 hold A: protects R
            300 R frame 0 met 0
            300..900 A 600 for 0
        "#]],
    );
}

#[test]
fn the_end_of_a_frame_delays_no_app() {
    // R starts by 615 with and without it.
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
         @2 C ends frame
         @3 R 120",
        expect![[r#"
            0 grant A 600 for 0, starts by 9
            1 hold B: protects R
            2 C frame 0 met 0
            3 grant R 120 for 0, starts by 615
            3 hold B: behind R
        "#]],
    );
}

#[test]
fn the_end_of_a_frame_completes_a_batch() {
    check_hpf(
        "until 1000
         A 2
         @0 A 60
         @10 A 60
         @20 A ends frame",
        expect![[r#"
            0 hold A: batch is not complete
            20..80 A 60 for 0
            20 hold A: no slot
            80..140 A 60 for 0
            140 A frame 0 met 0
        "#]],
    );
}

#[test]
fn a_lost_group_makes_its_frame_late() {
    check(
        "gpu time-shared
         timeout 500
         period 10_000
         until 2000
         C 1
         @0 C 20?
         @10 C ends frame
         @11 C ends frame",
        expect![[r#"
            0 grant C 20 for 0
            520 lost a group of C (Timeout)
            520 C frame 0 late 0
            520 C frame 1 late 1
        "#]],
    );
}

#[test]
fn who_leaves_or_exits_ends_no_frame() {
    check(
        "until 1000
         A 2
         B 1
         @0 A 100
         @10 A ends frame
         @20 A leaves
         @30 A ends frame
         @200 B exits
         @200 B ends frame",
        expect![[r#"
            0..100 A 100 for 0
            20 A left, 0 dropped
            30 refused A: no app is attached there
            200 refused B: app already submitted its last group
            200..200 B 0 for 0
            200 B left, 0 dropped
        "#]],
    );
}

#[test]
fn a_change_moves_the_frames_that_wait_to_end() {
    check(
        "releases
         until 4000
         A 1
         @0 A 100 100
         @10 A ends frame
         @20 A ends frame
         @30 A stride 2
         @250 A 100
         @260 A ends frame",
        expect![[r#"
            A starts at 0
            0..100 A 100 for 0
            0 hold A: no slot
            100..200 A 100 for 2
            A starts at 5000
            200 A frame 0 met 2
            200 A frame 1 met 4
            250..350 A 100 for 6
            A starts at 7000
            350 A frame 2 met 6
        "#]],
    );
}

#[test]
fn a_clock_of_its_own_judges_each_frame_by_when_it_began() {
    // The first frame is due at 80'000, and the second, which begins early, a period later.
    check(
        "releases
         until 400_000
         period 1_000_000
         A 1 clock 100_000/80_000
         @0 A 50_000
         @10 A ends frame
         @60_000 A 90_000
         @60_010 A ends frame
         @200_000 A ends frame
         @300_000 A 100_000
         @300_010 A ends frame",
        expect![[r#"
            A starts at 0
            0..50000 A 50000 for 0
            A starts at 10
            50000 A frame 0 met 0
            60000..150000 A 90000 for 1
            A starts at 60010
            150000 A frame 1 met 1
            200000 A frame 2 met 2
            A starts at 200000
            300000..400000 A 100000 for 3
            A starts at 300010
            380000 A missed frame 3 for 3 ×1
        "#]],
    );
}

#[test]
fn frame_ends_that_wait_are_bounded() {
    let ends = |at: u64| format!("@{at} A ends frame\n").repeat(FRAME_ENDS_MAX + 1);
    let timeline = play(&format!("until 900\nA 1\n@0 A 100\n{}@200 A 10s\n", ends(10)));
    let done = timeline.lines().filter(|line| line.contains("frame")).count();
    assert_eq!(done, FRAME_ENDS_MAX + 2, "{timeline}");
    assert_eq!(timeline.matches("10 refused A: more frames have ended than may wait\n").count(), 1);
    // Between two decisions, no more end without any group.
    let timeline = play(&format!("until 900\nA 1\n{}{}", ends(10), ends(20)));
    assert_eq!(timeline.matches("refused A").count(), 2, "{timeline}");
    assert_eq!(timeline.matches(" A frame ").count(), 2 * FRAME_ENDS_MAX, "{timeline}");
}

#[test]
fn a_full_queue_takes_the_end_of_its_frame() {
    let groups = "10 ".repeat(QUEUE_MAX);
    let timeline = play(&format!("until 900\nA 1\n@0 A {groups}\n@1 A ends frame"));
    assert!(timeline.ends_with("640 A frame 0 met 0\n"), "{timeline}");
}
