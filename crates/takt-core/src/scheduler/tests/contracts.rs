//! Contracts other than frames of one display: own clocks and servers by the timeline.
//!
//! Own clocks have periods of 100 µs at least, so these scripts count in tens of microseconds.

use expect_test::expect;

use super::check;

/// A frame that is due later is not let in beside work in flight, if one that is due earlier may come.
#[test]
fn a_frame_to_come_that_is_due_earlier_binds() {
    // L needs 160 of the 200 until it is due. H alone would fit before it, but not behind 60 of B.
    check(
        "mpcg 2
         group-max 80_000
         period 9_000_000
         until 700_000
         H 3 etpf 20_000 clock 240_000/240_000
         L 2 etpf 160_000 clock 200_000/200_000
         B 1
         @0 H 20_000s
         @0 L 80_000 80_000s
         @440_000 B 19_000 19_000
         @441_000 H 20_000s
         @450_000 L 80_000 80_000s",
        expect![[r#"
            0..80000 L 80000 for 0
            80000..160000 L 80000s for 0
            0 hold H: behind L
            160000..180000 H 20000s for 0
            160000 L frame 0 met 0
            180000 H frame 0 met 0
            440000..459000 B 19000 for 0
            459000..478000 B 19000 for 0
            441000 hold H: no slot
            450000 hold L: no slot
            478000..558000 L 80000 for 1
            459000 hold H: behind L
            558000..638000 L 80000s for 1
            638000..658000 H 20000s for 1
            638000 L frame 1 met 1
            658000 H frame 1 met 1
        "#]],
    );
}

#[test]
fn a_server_goes_by_the_deadline_of_the_budget_that_covers_its_group() {
    // The second group of S does not fit the first budget, so it is due at 1410, after the frame of F.
    check(
        "until 2000
         F 3 etpf 300
         S 2 posterior 100/700
         B 1
         @0 B 50 50 50
         @10 S 80 80
         @20 F 300s",
        expect![[r#"
            0..50 B 50 for 0
            0 hold B: no slot
            10 hold S: no slot
            20 hold F: no slot
            50..130 S 80 for 0
            50 hold F: behind S
            50 hold B: behind S
            130..430 F 300s for 0
            130 hold S: behind F
            130 hold B: behind F
            430 F frame 0 met 0
            430..480 B 50 for 0
            430 hold S: behind B
            430 hold B: no slot
            480..530 B 50 for 0
            530..610 S 80 for 0
            710 S missed frame 0 for 0 ×1
            1000 B missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn a_hard_server_waits_for_its_next_budget() {
    check(
        "until 2000
         S 2 apriori 100/400
         B 1
         @0 S 100 60s
         @10 B 50",
        expect![[r#"
            0..100 S 100 for 0
            0 hold S: no slot
            10 hold B: no slot
            100..150 B 50 for 0
            100 hold S: no budget until 400
            400 S missed frame 0 for 0 ×1
            400..460 S 60s for 0
            460 S frame 0 late 0
            1000 B missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn a_producer_runs_on_the_budget_of_the_consumer_that_waits() {
    // C is slot 0. P has no contract, and would wait for the slack of both.
    check(
        "until 1000
         group-max 100
         C 3 posterior 200/600
         F 2 etpf 500
         P 1 feeds 0
         @0 F 100
         @10 P 90
         @20 C 80s
         @30 F 100 100 100 100s",
        expect![[r#"
            0..100 F 100 for 0
            10 hold P: no slot
            20 hold C: no slot
            30 hold F: no slot
            100..190 P 90 for 0
            100 hold C: behind P
            100 hold F: behind P
            190..270 C 80s for 0
            190 hold F: behind C
            270 C frame 0 met 0
            270..370 F 100 for 0
            270 hold F: no slot
            370..470 F 100 for 0
            470..570 F 100 for 0
            570..670 F 100s for 0
            610 P missed frame 0 for 0 ×1
            670 F frame 0 met 0
        "#]],
    );
}

#[test]
fn apps_that_share_a_server_have_one_budget() {
    // A is slot 0. 100 of each 500 are for both.
    check(
        "until 1000
         A 3 apriori 100/500
         Z 2 shares 0
         @0 A 60
         @0 Z 60
         @700 Z 30",
        expect![[r#"
            0..60 A 60 for 0
            0 hold Z: behind A
            60 hold Z: no budget until 500
            500 A missed frame 0 for 0 ×1
            500 Z missed frame 0 for 0 ×1
            500..560 Z 60 for 0
            700..730 Z 30 for 0
        "#]],
    );
}
