//! What is in flight binds others only as far as it was promised, and the time in which the GPU stands still is kept.

use expect_test::expect;

use super::check;

#[test]
fn what_is_beyond_its_promise_holds_no_protected_group() {
    // L was promised 5000 and has 60 000 on the GPU, which is due at 100 000; X is due later.
    check(
        "gpu time-shared slice=1000
         period 100_000
         mpcg 3
         timeout 500_000
         until 140_000
         X 4 etpf 50_000 clock 150_000/150_000
         L 1 etpf 5_000
         @0 L 60_000s
         @10_000 X 45_000s",
        expect![[r#"
            0 grant L 60000s for 0
            10000 grant X 45000s for 0
            99000 end X 45000s
            99000 X frame 0 met 0
            100000 L missed frame 0 for 0 ×1
            105000 end L 60000s
            105000 L frame 0 late 0
        "#]],
    );
}

/// X waits until Z is over, because Z could be late beside it. The GPU stands still until X is there, and there must be
/// time for that as well: U would be over at 53 000, and X takes 70 000 and is due at 130 000.
#[test]
fn work_without_a_promise_leaves_the_time_in_which_the_gpu_stands_still() {
    check(
        "gpu time-shared slice=1000
         mpcg 4
         delay 5_000
         timeout 500_000
         period 100_000
         group-max 70_000
         until 60_000
         Z 3 etpf 20_000
         X 2 etpf 90_000 clock 200_000/130_000
         U 1
         @0 U 10_000
         @2 X 10_000
         @3 Z 15_000s
         @4 X 65_000s
         @5 U 18_000",
        expect![[r#"
            0 grant U 10000 for 0
            2 grant X 10000 for 0
            3 grant Z 15000s for 0
            4 hold X: protects Z
            5 hold U: protects X
            33000 end U 10000
            34000 end X 10000
            40000 end Z 15000s
            40000 Z frame 0 met 0
            40000 grant X 65000s for 0
            40000 grant U 18000 for 0
        "#]],
    );
}

#[test]
fn producers_wait_for_the_budget_of_a_hard_server() {
    check(
        "gpu time-shared
         mpcg 2
         until 1400
         C 3 apriori 100/1000
         P 2 feeds 0
         @0 P 40s
         @0 C 60s
         @100 P 40s
         @100 C 60s",
        expect![[r#"
            0 grant P 40s for 0
            0 grant C 60s for 0
            70 end P 40s
            70 P frame 0 met 0
            100 end C 60s
            100 C frame 0 met 0
            100 hold C: no budget until 1000
            100 hold P: no budget until 1000
            1000 grant P 40s for 1
            1000 grant C 60s for 1
            1070 end P 40s
            1070 P frame 1 met 1
            1100 end C 60s
            1100 C frame 1 met 1
        "#]],
    );
}

/// However much a change of contexts costs, it does not make a group too long to be promised.
#[test]
fn what_a_change_of_contexts_costs_is_no_length_of_a_group() {
    // A's group takes as long as groups may, and 44 400 more for both changes. L is due before it.
    check(
        "gpu time-shared slice=100_000 switch=22_200
         period 300_000
         mpcg 8
         group-max 50_000
         timeout 9_000_000
         until 500_000
         A 9 etpf 94_500 clock 2_000_000/400_000
         L 1
         @0 L 200_000 200_000 200_000
         @1 A 50_000s",
        expect![[r#"
            0 grant L 200000 for 0
            0 hold L: protects A
            1 grant A 50000s for 0
            172200 end A 50000s
            172200 A frame 0 met 0
            172200 grant L 200000 for 1
            172200 grant L 200000 for 1
            294400 end L 200000
            300000 L missed frame 0 for 0 ×1
            494400 end L 200000
        "#]],
    );
}
