//! Groups of several apps on one server: those that share it, and those that produce for the app that has it.

use expect_test::expect;

use super::check;

/// Found by `takt prove --mixed`: the next job of P took the budget that the group of C counted on, which was late.
#[test]
fn the_next_job_of_a_producer_goes_behind_the_consumer_of_the_one_before() {
    // The first job takes the whole budget, and all that comes until 2000 is due then.
    check(
        "until 1300
         C 3 posterior 100/1000
         P 2 feeds 0
         B 1
         @0 P 40s
         @0 C 60s
         @400 B 300
         @500 P 40s
         @500 C 60s
         @600 P 40s
         @600 C 60s",
        expect![[r#"
            0..40 P 40s for 0
            0 hold C: behind P
            40 P frame 0 met 0
            40..100 C 60s for 0
            100 C frame 0 met 0
            400..700 B 300 for 0
            500 hold C: no slot
            500 hold P: no slot
            700..740 P 40s for 1
            700 hold C: behind P
            740 P frame 1 met 1
            740..800 C 60s for 1
            740 hold C: no slot
            740 hold P: behind C
            800 C frame 1 met 1
            800..840 P 40s for 2
            800 hold C: behind P
            840 P frame 2 met 2
            840..900 C 60s for 2
            900 C frame 2 met 2
            1000 B missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn what_comes_together_goes_from_the_producer_to_the_consumer() {
    // Q feeds P, and P feeds C.
    check(
        "until 400
         C 3 posterior 100/1000
         P 2 feeds 0
         Q 1 feeds 1
         B 4
         @0 B 100
         @10 C 20 20s
         @10 P 20s
         @10 Q 20s",
        expect![[r#"
            0..100 B 100 for 0
            10 hold C: no slot
            10 hold P: no slot
            10 hold Q: no slot
            100..120 Q 20s for 0
            100 hold C: behind Q
            100 hold P: behind Q
            120 Q frame 0 met 0
            120..140 P 20s for 0
            120 hold C: behind P
            140 P frame 0 met 0
            140..160 C 20 for 0
            140 hold C: no slot
            160..180 C 20s for 0
            180 C frame 0 met 0
        "#]],
    );
}

#[test]
fn a_shorter_group_does_not_pass_one_that_is_held_on_the_same_server() {
    // Behind B, the group of A would make the next frame of F late. That of S would not, but it came later.
    check(
        "mpcg 2
         group-max 450
         until 2500
         F 4 etpf 540
         A 3 posterior 600/4000
         S 2 shares 1
         B 1
         @0 F 540s
         @900 B 150
         @950 A 450s
         @960 S 40s
         @1000 F 540s",
        expect![[r#"
            0..540 F 540s for 0
            540 F frame 0 met 0
            900..1050 B 150 for 1
            950 hold A: protects F
            960 hold S: behind A
            1000 B missed frame 0 for 0 ×1
            1050..1590 F 540s for 1
            1000 hold A: behind F
            1590..2040 A 450s for 2
            1590 F frame 1 met 1
            2040..2080 S 40s for 2
            2000 B missed frame 0 for 1 ×1
            2040 A frame 0 met 0
            2080 S frame 0 met 0
        "#]],
    );
}

#[test]
fn a_group_that_is_promised_nothing_keeps_none_waiting() {
    // That of S is longer than the budget, and waits for slack.
    check(
        "until 1500
         F 4 etpf 600
         A 3 posterior 100/1000
         S 2 shares 1
         @0 F 100
         @10 S 450s
         @20 A 50s
         @30 F 500s",
        expect![[r#"
            0..100 F 100 for 0
            10 hold S: no slot
            20 hold A: no slot
            30 hold F: no slot
            100..600 F 500s for 0
            100 hold A: behind F
            100 hold S: behind F
            600 F frame 0 met 0
            600..650 A 50s for 0
            600 hold S: behind A
            650 A frame 0 met 0
            650..1100 S 450s for 1
            1010 S missed frame 0 for 0 ×1
            1100 S frame 0 late 0
        "#]],
    );
}

/// Found by `takt prove --mixed --gpu time-shared`: groups on the server of another app had the GPU beside protected
/// apps, and paid for each of their turns.
#[test]
fn where_changes_cost_something_apps_on_one_server_have_the_gpu_one_at_a_time() {
    check(
        "gpu time-shared slice=10 switch=2
         mpcg 3
         until 1000
         F 4 etpf 200
         A 3 posterior 300/1000
         S 2 shares 1
         P 1 feeds 1
         @0 F 100s
         @10 A 40s
         @10 S 40s
         @10 P 40s",
        expect![[r#"
            0 grant F 100s for 0
            10 hold A: turn of F
            10 hold S: turn of F
            10 hold P: turn of F
            100 end F 100s
            100 F frame 0 met 0
            100 grant P 40s for 0
            100 hold A: turn of P
            100 hold S: turn of P
            142 end P 40s
            142 P frame 0 met 0
            142 grant A 40s for 0
            142 hold S: turn of A
            184 end A 40s
            184 A frame 0 met 0
            184 grant S 40s for 0
            226 end S 40s
            226 S frame 0 met 0
        "#]],
    );
}
