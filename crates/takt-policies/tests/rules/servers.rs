//! Bandwidth servers, from arrival to exhaustion.

use alloc::boxed::Box;
use expect_test::{Expect, expect};

use super::rig;
use takt_policies::{EdfCbs, Exhaustion};

fn check(exhaustion: Exhaustion, script: &str, expected: Expect) {
    expected.assert_eq(&rig::play(script, Box::new(EdfCbs::new(exhaustion))));
}

#[test]
fn the_earlier_deadline_preempts_and_best_effort_waits() {
    check(
        Exhaustion::Soft,
        "A 3 posterior 500/2000
         B 2 posterior 100/400
         C 9
         preemptive
         until 1000
         @0 C 300s
         @10 A 200s
         @50 B 60s",
        expect![[r#"
            0..300 C 300s for 0
            10 preempt C
            10..210 A 200s for 0
            10 hold C: behind A
            50 preempt A
            50..110 B 60s for 0
            50 hold C: behind B
            50 hold A: behind B
            110 B frame 0 met 0
            110..270 A 160s for 0
            110 hold C: behind A
            270 A frame 0 met 0
            270..560 C 290s for 0
            560 C frame 0 met 0
        "#]],
    );
}

#[test]
fn without_preemption_groups_run_to_their_end() {
    check(
        Exhaustion::Soft,
        "A 3 posterior 500/2000
         B 2 posterior 100/400
         C 9
         until 1000
         @0 C 300s
         @10 A 100 100s
         @350 B 60s",
        expect![[r#"
            0..300 C 300s for 0
            10 hold A: no slot
            300 C frame 0 met 0
            300..400 A 100 for 0
            350 hold B: no slot
            400..460 B 60s for 0
            400 hold A: behind B
            460 B frame 0 met 0
            460..560 A 100s for 0
            560 A frame 0 met 0
        "#]],
    );
}

#[test]
fn a_soft_server_goes_on_with_a_later_deadline() {
    // After 100, A's deadline is 600 and behind B's.
    check(
        Exhaustion::Soft,
        "A 3 posterior 100/300
         B 2 posterior 200/500
         preemptive
         until 1000
         @0 A 250s
         @0 B 80s",
        expect![[r#"
            0..250 A 250s for 0
            0 hold B: behind A
            100 preempt A
            100..180 B 80s for 0
            100 hold A: behind B
            180 B frame 0 met 0
            180..330 A 150s for 0
            300 A missed frame 0 for 0 ×1
            330 A frame 0 late 0
        "#]],
    );
}

#[test]
fn a_hard_server_rests_until_its_deadline() {
    check(
        Exhaustion::Hard,
        "A 3 posterior 100/300
         C 1
         preemptive
         until 1000
         @0 A 250s
         @0 C 500s",
        expect![[r#"
            0..250 A 250s for 0
            0 hold C: behind A
            100 preempt A
            100..600 C 500s for 0
            100 hold A: no budget until 300
            300 A missed frame 0 for 0 ×1
            300 preempt C
            300..450 A 150s for 0
            300 hold C: behind A
            400 preempt A
            400..700 C 300s for 0
            400 hold A: no budget until 600
            600 preempt C
            600..650 A 50s for 0
            600 hold C: behind A
            650 A frame 0 late 0
            650..750 C 100s for 0
            750 C frame 0 met 0
        "#]],
    );
}

#[test]
fn an_overrun_without_preemption_is_paid_by_resting() {
    // 250 are two budgets and a half, so the third one is half used when it comes at 600.
    check(
        Exhaustion::Hard,
        "A 3 posterior 100/300
         until 1000
         @0 A 250s
         @260 A 60s",
        expect![[r#"
            0..250 A 250s for 0
            250 A frame 0 met 0
            260 hold A: no budget until 600
            600 A missed frame 1 for 1 ×1
            600..660 A 60s for 1
            660 A frame 1 late 1
        "#]],
    );
}

#[test]
fn producers_of_a_waiting_consumer_go_before_it() {
    // C waits for B, which waits for A; both have its deadline, though A is best effort.
    check(
        Exhaustion::Soft,
        "A 1 feeds 1
         B 2 posterior 100/900 feeds 2
         C 3 posterior 400/500
         D 9 posterior 100/800
         preemptive
         until 1000
         @0 D 100s
         @0 A 40s
         @0 B 50s
         @10 C 60s",
        expect![[r#"
            0..100 D 100s for 0
            0 hold B: behind D
            0 hold A: behind D
            10 preempt D
            10..50 A 40s for 0
            10 hold D: behind A
            10 hold C: behind A
            10 hold B: behind A
            50 A frame 0 met 0
            50..100 B 50s for 0
            50 hold D: behind B
            50 hold C: behind B
            100 B frame 0 met 0
            100..160 C 60s for 0
            100 hold D: behind C
            160 C frame 0 met 0
            160..250 D 90s for 0
            250 D frame 0 met 0
        "#]],
    );
}

#[test]
fn nothing_is_inherited_from_a_consumer_that_waits_for_nothing() {
    check(
        Exhaustion::Soft,
        "A 1 feeds 1
         B 2 posterior 100/500
         D 9 posterior 100/800
         preemptive
         until 1000
         @0 A 40s
         @0 D 100s",
        expect![[r#"
            0..100 D 100s for 0
            0 hold A: behind D
            100 D frame 0 met 0
            100..140 A 40s for 0
            140 A frame 0 met 0
        "#]],
    );
}

#[test]
fn what_cannot_be_interrupted_is_charged_at_its_end() {
    check(
        Exhaustion::Hard,
        "A 3 posterior 100/300 interruptible never
         B 2 posterior 100/200
         preemptive
         until 1000
         @0 A 150 40s
         @10 B 50s",
        expect![[r#"
            0..150 A 150 for 0
            0 hold A: no slot
            10 hold B: no slot
            150..200 B 50s for 0
            150 hold A: no budget until 300
            200 B frame 0 met 0
            300 A missed frame 0 for 0 ×1
            300..340 A 40s for 0
            340 A frame 0 late 0
        "#]],
    );
}
