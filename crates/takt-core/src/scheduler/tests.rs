//! Text in, timeline out.
//!
//! A test is a little script on a display with periods of 1000 ns and a GPU without delays:
//!
//! ```text
//! A 9 stride 1 etpf 400     an app: name, priority, parameters (and: phase N)
//! @0 A 100 200s             at 0, A submits a group of 100 and one of 200 that ends its frame
//! @0 A 100/150              a group predicted to take 100 that takes 150
//! @0 A 100y                 a group that ends a batch, but not a frame
//! @0 A 100?                 a group whose completion is not reported; also 100s?
//! @5 A ends frame           the frame of A ends without a group
//! @5 A reports 2            the completion of group 2, counted from 0, is reported now; or: reports 2 ended 3
//! @5 decisions              tell how many decisions were taken so far
//! @5 set mpcg 2 delay 30    settings change: mpcg, delay, lower, min, fixed, heard, blocking, stretch
//! @5 A revises 2 50         group 2, counted from 0, is predicted to take 50 now
//! @5 A stride 2 etpf 300    A changes; @5 A priority 3; @5 A leaves; @5 A exits
//! A 9 posterior 30/100      a reserve of 30 in every 100, or 30/100/50 with a deadline; apriori 30/100,
//!                           shares SLOT, reserve background, feeds SLOT, interruptible never
//! A 9 level high slice 20   its channel in the runlist; or low
//! A 9 clock 700_000/500_000 a clock of its own: period and deadline
//! A 9 gaps 2/50             waits for its own groups twice in a frame, for 50 each
//! A 9 turns following       may follow itself on the GPU
//! mpcg 2                    settings: mpcg, delay UPPER, lower LOWER, min ET_MIN, fixed MARGIN, until TIME,
//!                           tick SPAN, limit PERMILLE, background C/T, blocking SPAN, stretch SPAN,
//!                           clear-parts N, unstretched-parts N, late-after SPAN, late-permille N, given-up-max N,
//!                           group-max SPAN, period SPAN of the display, timeout SPAN after which completions are lost
//! preemptive                the GPU gives groups back
//! gpu in-order              the GPU runs each group to its end, in the order of dispatch (default)
//! gpu time-shared slice=10 switch=0
//!                           the GPU serves apps round-robin, a slice each, and loses the switch cost
//!                           whenever the app changes; these values are the defaults
//! releases                  tell when apps may start frames, too
//! predictions               tell by when the scheduler expects the GPU to start each group, too
//! ```
//!
//! The outcome is what ran when, what was held and why, and which deadlines were met. On a GPU that
//! executes in order, a group is one line when it is dispatched, because its end is known:
//!
//! ```text
//! 0..100 A 100 for 2        A's group of 100 runs from 0 to 100, for the deadline at the end of period 2
//! ```
//!
//! On a time-shared GPU the end depends on what comes later, so it is a line of its own:
//!
//! ```text
//! 0 grant A 100 for 2       A's group of 100 is dispatched at 0
//! 190 end A 100             and ends at 190
//! ```

mod blocking;
mod changes;
mod contracts;
#[path = "../../../takt-policies/src/fifo.rs"]
#[expect(unreachable_pub, reason = "public in its own crate")]
mod fifo;
mod frame_ends;
mod gaps;
#[path = "../../../takt-policies/src/hpf.rs"]
#[expect(unreachable_pub, reason = "public in its own crate")]
mod hpf;
mod invariants;
mod jobs;
mod lines;
mod rig;
mod sources;
mod turns;

use expect_test::{Expect, expect};
use std::string::ToString;

use crate::policy::Timeline;
use fifo::Fifo;

fn check(script: &str, expected: Expect) {
    expected.assert_eq(&rig::play(script, alloc::boxed::Box::new(Timeline::new())).to_string());
}

fn check_fifo(script: &str, expected: Expect) {
    expected.assert_eq(&rig::play(script, alloc::boxed::Box::new(Fifo)).to_string());
}

#[test]
fn one_app_runs_as_it_comes() {
    check(
        "A 1
         @0 A 100 200s
         @1000 A 300s",
        expect![[r#"
            0..100 A 100 for 0
            0 hold A: no slot
            100..300 A 200s for 0
            300 A frame 0 met 0
            1000..1300 A 300s for 1
            1300 A frame 1 met 1
            3000 A missed frame 2 for 2 ×1
        "#]],
    );
}

#[test]
fn rule_a_keeps_time_for_a_more_important_app_that_has_not_come_yet() {
    check(
        "A 9 etpf 400
         B 1
         @0 B 700s           # 700 + 400 > 1000: would endanger A
         @1 A 400s",
        expect![[r#"
            0 hold B: protects A
            1..401 A 400s for 0
            1 hold B: behind A
            401 A frame 0 met 0
            401..1101 B 700s for 1
            1000 B missed frame 0 for 0 ×1
            1101 B frame 0 late 0
            2000 A missed frame 1 for 1 ×1
            3000 A missed frame 1 for 2 ×1
            3000 B missed frame 1 for 2 ×1
        "#]],
    );
}

#[test]
fn a_deadline_is_not_met_by_ending_on_it() {
    // The period ends where the next one begins, so B's 600 would make A late by nothing.
    check(
        "A 9 etpf 400
         B 1
         until 1001
         @0 B 600s
         @1 A 400s",
        expect![[r#"
            0 hold B: protects A
            1..401 A 400s for 0
            1 hold B: behind A
            401 A frame 0 met 0
            401..1001 B 600s for 1
            1000 B missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn rule_a_lets_through_what_does_no_harm() {
    check(
        "A 9 etpf 400
         B 1
         @0 B 599s
         @1 A 400s",
        expect![[r#"
            0..599 B 599s for 0
            1 hold A: no slot
            599 B frame 0 met 0
            599..999 A 400s for 0
            999 A frame 0 met 0
            2000 A missed frame 1 for 1 ×1
            2000 B missed frame 1 for 1 ×1
            3000 A missed frame 1 for 2 ×1
            3000 B missed frame 1 for 2 ×1
        "#]],
    );
}

#[test]
fn rule_b_prefers_the_earlier_target_even_of_a_less_important_app() {
    check(
        "A 9 stride 2 etpf 300
         B 1 etpf 100
         @0 A 300s
         @0 B 100s",
        expect![[r#"
            0..100 B 100s for 0
            0 hold A: behind B
            100 B frame 0 met 0
            100..400 A 300s for 1
            400 A frame 0 met 1
            2000 B missed frame 1 for 1 ×1
            3000 B missed frame 1 for 2 ×1
        "#]],
    );
}

#[test]
fn equal_targets_go_to_the_more_important_app() {
    check(
        "B 1 etpf 100
         A 9 etpf 100
         @0 B 100s
         @0 A 100s",
        expect![[r#"
            0..100 A 100s for 0
            0 hold B: behind A
            100 A frame 0 met 0
            100..200 B 100s for 0
            200 B frame 0 met 0
            2000 A missed frame 1 for 1 ×1
            2000 B missed frame 1 for 1 ×1
            3000 A missed frame 1 for 2 ×1
            3000 B missed frame 1 for 2 ×1
        "#]],
    );
}

#[test]
fn groups_may_cross_a_vsync_if_the_next_period_has_room() {
    // The printed listing clamps in every period and would idle here until 1000.
    check(
        "A 9 etpf 400
         B 1
         until 2000
         @0 A 400s
         @400 B 800s
         @1000 A 400s",
        expect![[r#"
            0..400 A 400s for 0
            400 A frame 0 met 0
            400..1200 B 800s for 1
            1000 B missed frame 0 for 0 ×1
            1000 hold A: no slot
            1200 B frame 0 late 0
            1200..1600 A 400s for 1
            1600 A frame 1 met 1
        "#]],
    );
}

#[test]
fn work_due_earlier_cannot_use_time_left_over_later() {
    // Periods 1 and later are almost empty; still A's 900 must be done within period 0.
    check(
        "A 9 etpf 900
         B 1
         until 1000
         @0 A 100
         @0 B 150s",
        expect![[r#"
            0..100 A 100 for 0
            0 hold B: behind A
            100 hold B: protects A
            201..351 B 150s for 0
            351 B frame 0 met 0
        "#]],
    );
}

#[test]
fn overbooking_that_nothing_can_repair_is_ignored() {
    // A and B together need 1400 per period. Whatever C does, they cannot both have it; only
    // what they need before the end of this period counts against C.
    check(
        "A 9 etpf 700
         B 8 etpf 700
         C 1
         until 2000
         @0 A 300s
         @0 B 300s
         @600 C 100s
         @700 C 400s",
        expect![[r#"
            0..300 A 300s for 0
            0 hold B: behind A
            300 A frame 0 met 0
            300..600 B 300s for 0
            600 B frame 0 met 0
            600..700 C 100s for 0
            700 C frame 0 met 0
            700 hold C: protects A
            1301..1701 C 400s for 1
            1701 C frame 1 met 1
        "#]],
    );
}

#[test]
fn overbooked_early_work_is_clamped_as_well() {
    // B (stride 2, due in 1) arrives in period 0 at the earliest, so what does not fit into
    // periods 0 and 1 is lost and must not reach further back.
    check(
        "A 9 stride 2 etpf 2500 phase 1
         C 1
         until 3000
         @0 C 600s
         @1000 A 900s",
        expect![[r#"
            0..600 C 600s for 0
            600 C frame 0 met 0
            1000..1900 A 900s for 2
            1900 A frame 0 met 2
            2000 C missed frame 1 for 1 ×1
        "#]],
    );
}

#[test]
fn early_work_may_use_the_period_before() {
    // 1500 due at the end of period 1 need half of period 0.
    check(
        "A 9 stride 2 etpf 1500
         B 1
         until 2000
         @0 B 600s
         @0 B 400s",
        expect![[r#"
            0 hold B: protects A
            501..1101 B 600s for 1
            501 hold B: no slot
            1000 B missed frame 0 for 0 ×1
            1101 B frame 0 late 0
            1101..1501 B 400s for 2
            1501 B frame 1 met 2
        "#]],
    );
}

#[test]
fn own_work_cannot_use_the_period_before() {
    // The same 1500 as stride 1 would be overbooked; only 1000 of it counts in each period.
    check(
        "A 9 etpf 900
         B 1
         until 2000
         @0 A 50s
         @50 B 950s           # reaches 1000: leaves period 1 whole for A
         @1000 A 900s",
        expect![[r#"
            0..50 A 50s for 0
            50 A frame 0 met 0
            50..1000 B 950s for 1
            1000 B missed frame 0 for 0 ×1
            1000 B frame 0 late 0
            1000..1900 A 900s for 1
            1900 A frame 1 met 1
        "#]],
    );
}

#[test]
fn future_frames_are_reserved_at_every_stride() {
    // A comes every third period. The long group of B fits between two of its frames only.
    check(
        "A 9 stride 3 etpf 900
         B 1
         until 6000
         @0 A 900s
         @0 B 2000s
         @3000 A 900s
         @3000 B 1300s",
        expect![[r#"
            0..900 A 900s for 1
            0 hold B: behind A
            900 A frame 0 met 1
            900..2900 B 2000s for 2
            1000 B missed frame 0 for 0 ×1
            2000 B missed frame 0 for 1 ×1
            2900 B frame 0 late 0
            3000..3900 A 900s for 4
            3000 hold B: behind A
            3900 A frame 1 met 4
            3900..5200 B 1300s for 5
            4000 B missed frame 1 for 3 ×1
            5000 B missed frame 1 for 4 ×1
            5200 B frame 1 late 3
        "#]],
    );
}

#[test]
fn dispatched_work_is_no_longer_reserved() {
    check(
        "A 9 etpf 500
         B 1
         until 1000
         @0 A 400
         @10 B 499s           # 100 of A's 500 are still to come
         @500 A 100s",
        expect![[r#"
            0..400 A 400 for 0
            10 hold B: no slot
            400..899 B 499s for 0
            500 hold A: no slot
            899 B frame 0 met 0
            899..999 A 100s for 0
            999 A frame 0 met 0
        "#]],
    );
}

#[test]
fn a_complete_frame_reserves_what_it_needs_and_no_more() {
    // A might take 1800 of two periods, but is known to need only 300 this time.
    check(
        "A 9 stride 2 etpf 1800
         B 1
         until 1000
         @0 A 300s
         @0 B 600s",
        expect![[r#"
            0..600 B 600s for 0
            0 hold A: behind B
            600 B frame 0 met 0
            600..900 A 300s for 1
            900 A frame 0 met 1
        "#]],
    );
}

#[test]
fn an_open_frame_reserves_what_was_enqueued_if_that_is_more() {
    // A's 1500 leave 500 of two periods, so B may not go first although its target is earlier.
    check(
        "A 9 stride 2 etpf 100
         B 1
         until 1000
         @0 A 700 800
         @0 B 600s",
        expect![[r#"
            0..700 A 700 for 1
            0 hold A: no slot
            0 hold B: protects A
            700..1500 A 800 for 1
            700 hold B: behind A
        "#]],
    );
}

#[test]
fn two_frames_of_one_app_never_mix() {
    // A submits its second frame before the first is dispatched. Only the first counts now.
    check(
        "A 9 stride 2
         B 1
         until 2000
         @0 A 300s 1500s
         @0 B 800s",
        expect![[r#"
            0..800 B 800s for 0
            0 hold A: behind B
            800 B frame 0 met 0
            800..1100 A 300s for 1
            800 hold A: no slot
            1100 A frame 0 met 1
            1100..2600 A 1500s for 3
        "#]],
    );
}

#[test]
fn targets_move_on_when_they_can_no_longer_be_met() {
    // A is busy elsewhere until period 2; its reservation moves along and does not block B.
    check(
        "A 9 etpf 900
         B 1
         until 4000
         @0 A 2300s
         @1 B 500s
         @2300 A 100s",
        expect![[r#"
            0..2300 A 2300s for 2
            1 hold B: no slot
            1000 A missed frame 0 for 0 ×1
            1000 B missed frame 0 for 0 ×1
            2000 A missed frame 0 for 1 ×1
            2000 B missed frame 0 for 1 ×1
            2300 A frame 0 late 0
            2300..2800 B 500s for 2
            2300 hold A: behind B
            2800 B frame 0 late 0
            2800..2900 A 100s for 3
            2900 A frame 1 met 3
        "#]],
    );
}

#[test]
fn a_group_longer_than_the_period_gets_the_target_it_can_meet() {
    check(
        "A 9 etpf 100
         B 5
         C 1
         until 3000
         @0 A 100s
         @0 B 1100s           # ends in period 1, so it yields to C, which targets period 0
         @0 C 100s",
        expect![[r#"
            0..100 A 100s for 0
            0 hold B: behind A
            0 hold C: behind A
            100 A frame 0 met 0
            100..200 C 100s for 0
            100 hold B: behind C
            200 C frame 0 met 0
            200..1300 B 1100s for 1
            1000 B missed frame 0 for 0 ×1
            1300 B frame 0 late 0
            2000 A missed frame 1 for 1 ×1
            2000 C missed frame 1 for 1 ×1
        "#]],
    );
}

#[test]
fn nothing_is_dispatched_without_a_bound() {
    check(
        "A 9
         B 1
         until 2000
         @0 A ∞s
         @0 B 100s",
        expect![[r#"
            0..100 B 100s for 0
            0 hold A: unbounded
            100 B frame 0 met 0
            1000 A missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn an_overrun_pushes_everything_behind_it() {
    // A may come any time and needs 400. B overruns its 100, so D's end moves from 300 to 450,
    // and C's 150 after it would reach 600.
    check(
        "A 9 etpf 400
         B 3
         D 2
         C 1
         mpcg 3
         until 1001
         @0 B 100/300s
         @0 D 200s
         @250 C 150s
         @500 A 400s",
        expect![[r#"
            0..300 B 300s for 0
            300..500 D 200s for 0
            250 hold C: protects A
            300 B frame 0 met 0
            500 D frame 0 met 0
            500..900 A 400s for 0
            900..1050 C 150s for 1
            900 A frame 0 met 0
            1000 C missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn a_finished_group_tells_when_the_gpu_is_free() {
    // B is predicted at 900 and takes 100; the next group fits again at once.
    check(
        "A 9 etpf 100
         B 1
         until 1000
         @0 A 100s
         @100 B 900/100 800s",
        expect![[r#"
            0..100 A 100s for 0
            100 A frame 0 met 0
            100..200 B 100 for 1
            100 hold B: no slot
            200..1000 B 800s for 1
        "#]],
    );
}

#[test]
fn the_dispatch_delay_counts_before_and_per_group() {
    // mpcg 1: each group of A costs 50 more, so 3 × 100 + 150 + C's 50 + 450 is too much.
    check(
        "A 9
         C 1
         delay 50
         until 2000
         @0 A 100 100 100s
         @0 C 750s",
        expect![[r#"
            50..150 A 100 for 0
            0 hold A: no slot
            0 hold C: behind A
            200..300 A 100 for 0
            350..450 A 100s for 0
            450 A frame 0 met 0
            500..1250 C 750s for 1
            1000 C missed frame 0 for 0 ×1
            1250 C frame 0 late 0
        "#]],
    );
}

#[test]
fn deeper_queues_hide_part_of_the_delay() {
    check(
        "A 9
         C 1
         delay 50
         min 20
         mpcg 2
         until 1000
         @0 A 100 100 100s
         @0 C 500s",
        expect![[r#"
            50..150 A 100 for 0
            150..250 A 100 for 0
            0 hold A: no slot
            0 hold C: behind A
            250..350 A 100s for 0
            350..850 C 500s for 0
            350 A frame 0 met 0
            850 C frame 0 met 0
        "#]],
    );
}
