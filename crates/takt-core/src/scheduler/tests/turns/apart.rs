//! Where a change of contexts costs something, protected apps have the GPU one at a time.
//!
//! In these scripts A is protected, and so is B where it has reserved time.

use expect_test::expect;

use super::check;

#[test]
fn a_protected_app_waits_for_another_one_to_end() {
    // One switch to each frame, and none between its groups.
    check(
        "gpu time-shared slice=1000 switch=160
         mpcg 8
         period 16_667
         predictions
         until 6000
         A 9 etpf 2320
         B 8 etpf 2320
         @0 A 1000 1000s
         @0 B 1000 1000s",
        expect![[r#"
            0 grant A 1000 for 0, starts by 0
            0 grant A 1000s for 0, starts by 1160
            0 hold B: turn of A
            1000 end A 1000
            2000 end A 1000s
            2000 A frame 0 met 0
            2000 grant B 1000 for 0, starts by 2000
            2000 grant B 1000s for 0, starts by 3160
            3160 end B 1000
            4160 end B 1000s
            4160 B frame 0 met 0
        "#]],
    );
}

#[test]
fn changes_that_cost_nothing_keep_no_app_waiting() {
    check(
        "gpu time-shared slice=1000
         mpcg 8
         period 16_667
         predictions
         until 6000
         A 9 etpf 2000
         B 8 etpf 2000
         @0 A 1000 1000s
         @0 B 1000 1000s",
        expect![[r#"
            0 grant A 1000 for 0, starts by 0
            0 grant A 1000s for 0, starts by 1000
            0 grant B 1000 for 0, starts by 2000
            0 grant B 1000s for 0, starts by 3000
            1000 end A 1000
            2000 end B 1000
            3000 end A 1000s
            3000 A frame 0 met 0
            4000 end B 1000s
            4000 B frame 0 met 0
        "#]],
    );
}

#[test]
fn other_apps_share_the_gpu_and_pay_for_both_ways() {
    // B goes beside A, and each of its groups is charged for a switch to it and one back.
    check(
        "gpu time-shared slice=1000 switch=160
         mpcg 8
         period 16_667
         predictions
         until 8000
         A 9 etpf 2320
         B 8
         @0 A 1000 1000s
         @0 B 1000 1000s",
        expect![[r#"
            0 grant A 1000 for 0, starts by 0
            0 grant A 1000s for 0, starts by 1160
            0 grant B 1000 for 0, starts by 2160
            0 grant B 1000s for 0, starts by 3480
            1000 end A 1000
            2160 end B 1000
            3320 end A 1000s
            3320 A frame 0 met 0
            4480 end B 1000s
            4480 B frame 0 met 0
        "#]],
    );
}

/// Ends are not always heard in the order in which they happened, and each frame is judged by its own.
#[test]
fn a_frame_that_ended_before_another_group_is_judged_by_its_own_end() {
    // All ends are heard just after the deadline at 16667.
    check(
        "gpu time-shared slice=1000
         mpcg 8
         period 16_667
         timeout 20_000
         until 17_000
         A 9 etpf 3000
         B 8 etpf 3000
         @0 A 1000? 1000s?
         @0 B 1000? 1000s?
         @16_687 A reports 0 ended 16_467
         @16_687 A reports 1 ended 16_567
         @16_687 B reports 2 ended 16_367
         @16_687 B reports 3 ended 16_517",
        expect![[r#"
            0 grant A 1000 for 0
            0 grant A 1000s for 0
            0 grant B 1000 for 0
            0 grant B 1000s for 0
            16667 A missed frame 0 for 0 ×1
            16667 B missed frame 0 for 0 ×1
            16467 end A 1000
            16567 end A 1000s
            16367 end B 1000
            16517 end B 1000s
            16687 A frame 0 met 0
            16687 B frame 0 met 0
        "#]],
    );
}
