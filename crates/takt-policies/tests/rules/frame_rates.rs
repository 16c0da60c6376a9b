//! The policies of FG-SDS: whole frames by priority, and frame rates without arbitration.

use alloc::boxed::Box;
use expect_test::{Expect, expect};
use std::borrow::ToOwned;

use super::rig;
use takt_policies::{Frrs, Hpf};

fn check_hpf(script: &str, expected: Expect) {
    expected.assert_eq(&rig::play(script, Box::new(Hpf)));
}

fn check_frrs(script: &str, expected: Expect) {
    expected.assert_eq(&rig::play(script, Box::new(Frrs::default())));
}

#[test]
fn others_run_between_two_frames_of_the_first() {
    // B's second group would end after A starts its next frame, so C's goes.
    check_hpf(
        "A 9
         B 5
         C 1
         until 2000
         @0 B 300 700s
         @0 C 100s
         @10 A 200 100s
         @1010 A 100s",
        expect![[r#"
            0 hold B: protects A
            0 hold C: protects A
            10..210 A 200 for 0
            10 hold A: no slot
            10 hold B: behind A
            10 hold C: behind A
            210..310 A 100s for 0
            310 A frame 0 met 0
            310..610 B 300 for 0
            310 hold B: no slot
            310 hold C: behind B
            610..710 C 100s for 0
            610 hold B: protects A
            710 C frame 0 met 0
            1000 B missed frame 0 for 0 ×1
            1010..1110 A 100s for 1
            1010 hold B: behind A
            1110 A frame 1 met 1
            1110..1810 B 700s for 0
            1810 B frame 0 late 0
        "#]],
    );
}

#[test]
fn no_app_runs_while_the_first_prepares_a_frame() {
    // The synchronisation point ends a batch: A's first two groups go without its swap.
    check_hpf(
        "A 9 stride 2
         B 5
         until 2000
         @10 A 100
         @20 B 50s
         @200 A 100y
         @600 A 100s",
        expect![[r#"
            10 hold A: batch is not complete
            20 hold B: protects A
            200..300 A 100 for 1
            200 hold A: no slot
            200 hold B: behind A
            300..400 A 100 for 1
            400 hold B: protects A
            600..700 A 100s for 1
            600 hold B: behind A
            700 A frame 0 met 1
            700..750 B 50s for 0
            750 B frame 0 met 0
        "#]],
    );
}

#[test]
fn what_never_fits_never_runs() {
    check_hpf(
        "A 9
         B 5
         until 3000
         @0 B 950s
         @0 A 100s
         @1000 A 100s
         @2000 A 100s",
        expect![[r#"
            0..100 A 100s for 0
            0 hold B: behind A
            100 A frame 0 met 0
            100 hold B: protects A
            1000 B missed frame 0 for 0 ×1
            1000..1100 A 100s for 1
            1000 hold B: behind A
            1100 A frame 1 met 1
            1100 hold B: protects A
            2000 B missed frame 0 for 1 ×1
            2000..2100 A 100s for 2
            2000 hold B: behind A
            2100 A frame 2 met 2
            2100 hold B: protects A
        "#]],
    );
}

#[test]
fn an_incomplete_batch_that_fills_the_queue_is_ready() {
    let script = "A 9\nmpcg 64\nuntil 1000\n@0 A".to_owned() + &" 10".repeat(crate::limits::QUEUE_MAX);
    let told = rig::play(&script, Box::new(Hpf));
    assert!(told.starts_with("0..10 A 10 for 0\n"), "{told}");
}

#[test]
fn rates_are_kept_without_the_display() {
    // A starts a period of its own after it started, or late, but then at once.
    check_frrs(
        "A 9
         B 1 stride 2
         releases
         until 6000
         @0 A 100s
         @100 B 1400s
         @1000 A 100s
         @2500 A 100s
         @2600 B 100s
         @3500 A stride 3",
        expect![[r#"
            A starts at 0
            B starts at 0
            0..100 A 100s for 0
            A starts at 1000
            100 A frame 0 met 0
            100..1500 B 1400s for 1
            B starts at 2000
            1000 hold A: no slot
            1500 B frame 0 met 1
            1500..1600 A 100s for 1
            A starts at 2000
            1600 A frame 1 met 1
            2500..2600 A 100s for 2
            A starts at 3000
            2600 A frame 2 met 2
            2600..2700 B 100s for 3
            B starts at 4000
            2700 B frame 1 met 3
            A starts at 4000
        "#]],
    );
}
