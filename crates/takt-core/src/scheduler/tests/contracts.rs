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

/// S is promised 400 in each 1000 and submits a group of 420, which needs slack. C always has a shorter one to offer.
#[test]
fn a_group_longer_than_its_budget_is_not_passed_by_less_important_work_for_ever() {
    check(
        "mpcg 3
         until 3000
         S 2 posterior 400/1000
         C 1
         @0 C 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100
         @0 C 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100
         @10 S 420s",
        expect![[r#"
            0..100 C 100 for 0
            100..200 C 100 for 0
            200..300 C 100 for 0
            0 hold C: no slot
            10 hold S: no slot
            300..400 C 100 for 0
            100 hold S: behind C
            400..500 C 100 for 0
            500..600 C 100 for 0
            600..700 C 100 for 0
            700..800 C 100 for 0
            800..900 C 100 for 0
            900..1000 C 100 for 1
            1000..1100 C 100 for 1
            1100..1200 C 100 for 1
            1000 C missed frame 0 for 0 ×1
            1200..1620 S 420s for 1
            1000 hold C: protects S
            1010 S missed frame 0 for 0 ×1
            1620..1720 C 100 for 1
            1620 S frame 0 late 0
            1720..1820 C 100 for 1
            1820..1920 C 100 for 1
            1620 hold C: no slot
            1920..2020 C 100 for 2
            2020..2120 C 100 for 2
            2120..2220 C 100 for 2
            2000 C missed frame 0 for 1 ×1
            2220..2320 C 100 for 2
            2320..2420 C 100 for 2
            2420..2520 C 100 for 2
            2520..2620 C 100 for 2
            2620..2720 C 100 for 2
            2720..2820 C 100 for 2
            2820..2920 C 100 for 2
            2920..3020 C 100 for 3
            3020..3120 C 100 for 3
            3120..3220 C 100 for 3
        "#]],
    );
}

/// A decision may come between the begin of a period and what F submits at that moment, which is a tick later here: the
/// last group of S would make F late. `prove --mixed`, seed 1, case 54784.
#[test]
fn a_frame_that_is_released_at_this_moment_binds_before_it_is_there() {
    check(
        "mpcg 3
         group-max 500
         until 2000
         S 3 posterior 800/3000
         F 2 etpf 400
         @0 F 400s
         @1000 S 100 400 100s
         @1001 F 400s",
        expect![[r#"
            0..400 F 400s for 0
            400 F frame 0 met 0
            1000..1100 S 100 for 1
            1100..1500 S 400 for 1
            1000 hold S: protects F
            1500..1900 F 400s for 1
            1001 hold S: behind F
            1900..2000 S 100s for 2
            1900 F frame 1 met 1
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

/// Counterexample to a test without blocking: L would have to begin before H comes, and to wait for it.
#[test]
fn a_sporadic_frame_is_kept_from_a_group_that_is_due_later() {
    // H can come at any time and is due 150 later; L has 160 for 100. Both are not covered together.
    check(
        "period 9_000_000
         until 3_000_000
         H 9 etpf 50_000 clock 150_000/150_000
         L 8 etpf 100_000 clock 200_000/160_000
         @2_240_000 L 100_000s
         @2_285_000 H 50_000s
         @2_440_000 L 100_000s
         @2_500_000 H 50_000s",
        expect![[r#"
            2240000..2340000 L 100000s for 11
            2285000 hold H: no slot
            2340000 L frame 0 met 11
            2340000..2390000 H 50000s for 15
            2390000 H frame 0 met 15
            2440000 hold L: protects H
            2500000..2550000 H 50000s for 16
            2550000 H frame 1 met 16
            2550000..2650000 L 100000s for 12
            2600000 L missed frame 1 for 12 ×1
            2650000 L frame 1 late 12
        "#]],
    );
    // If L is more important, H is the one that is not covered.
    check(
        "period 9_000_000
         until 3_000_000
         H 8 etpf 50_000 clock 150_000/150_000
         L 9 etpf 100_000 clock 200_000/160_000
         @2_240_000 L 100_000s
         @2_285_000 H 50_000s
         @2_440_000 L 100_000s
         @2_500_000 H 50_000s",
        expect![[r#"
            2240000..2340000 L 100000s for 11
            2285000 hold H: no slot
            2340000 L frame 0 met 11
            2340000..2390000 H 50000s for 15
            2390000 H frame 0 met 15
            2440000..2540000 L 100000s for 12
            2500000 hold H: no slot
            2540000 L frame 1 met 12
            2540000..2590000 H 50000s for 16
            2590000 H frame 1 met 16
        "#]],
    );
}

/// Counterexample to a test that counts the budget of a server in steps: 80 in 200 beside a frame of 100 in 120.
#[test]
fn a_server_is_promised_no_more_than_its_share_beside_a_frame() {
    // The frame is covered, the server is not: its groups go one at a time, as long as the frame fits behind them.
    let script = |frame, server| {
        std::format!(
            "period 9_000_000
             group-max 10_000
             until 300_000
             F {frame} etpf 100_000 clock 1_000_000/120_000
             S {server} posterior 80_000/200_000
             @0 S 10_000 10_000 10_000 10_000 10_000 10_000 10_000 10_000s
             @0 S 10_000 10_000 10_000 10_000 10_000 10_000 10_000 10_000s
             @85_000 F 10_000 10_000 10_000 10_000 10_000 10_000 10_000 10_000 10_000 10_000s"
        )
    };
    // If the server is more important, the frame is the one that is not covered; here it is in time all the same.
    let expected = expect![[r#"
        0..10000 S 10000 for 0
        0 hold S: no slot
        10000..20000 S 10000 for 0
        20000..30000 S 10000 for 0
        30000..40000 S 10000 for 0
        40000..50000 S 10000 for 0
        50000..60000 S 10000 for 0
        60000..70000 S 10000 for 0
        70000..80000 S 10000s for 0
        80000 S frame 0 met 0
        80000..90000 S 10000 for 1
        85000 hold F: no slot
        90000..100000 F 10000 for 0
        90000 hold S: behind F
        100000..110000 F 10000 for 0
        110000..120000 F 10000 for 0
        120000..130000 F 10000 for 0
        130000..140000 F 10000 for 0
        140000..150000 F 10000 for 0
        150000..160000 F 10000 for 0
        160000..170000 F 10000 for 0
        170000..180000 F 10000 for 0
        180000..190000 F 10000s for 0
        190000 F frame 0 met 0
        190000..200000 S 10000 for 1
        190000 hold S: no slot
        200000..210000 S 10000 for 1
        210000..220000 S 10000 for 1
        220000..230000 S 10000 for 1
        230000..240000 S 10000 for 1
        240000..250000 S 10000 for 1
        250000..260000 S 10000s for 1
        260000 S frame 1 met 1
    "#]];
    for script in [script(9, 8), script(8, 9)] {
        expected
            .assert_eq(&super::rig::play(&script, alloc::boxed::Box::new(crate::policy::Timeline::new())));
    }
}

/// Counterexample to deadlines of servers that are shorter than their periods: with 40 in 200, due after 80, work of 70
/// would be due within 130.
#[test]
fn a_server_may_not_want_its_budget_before_the_end_of_its_period() {
    // By the usual rule, S's second job would be due at 130, and F at 130 as well.
    check(
        "period 9_000_000
         group-max 10_000
         until 400_000
         S 9 posterior 40_000/200_000/80_000
         F 8 etpf 80_000 clock 1_000_000/130_000
         @0 S 10_000 10_000 10_000s
         @0 F 10_000 10_000 10_000 10_000 10_000 10_000 10_000 10_000s
         @50_000 S 10_000 10_000 10_000 10_000s",
        expect![[r#"
            0..10000 F 10000 for 0
            0 hold S: behind F
            0 hold F: no slot
            10000..20000 F 10000 for 0
            20000..30000 F 10000 for 0
            30000..40000 F 10000 for 0
            40000..50000 F 10000 for 0
            50000..60000 F 10000 for 0
            60000..70000 F 10000 for 0
            70000..80000 F 10000s for 0
            80000 F frame 0 met 0
            80000..90000 S 10000 for 0
            80000 hold S: no slot
            90000..100000 S 10000 for 0
            100000..110000 S 10000s for 0
            110000 S frame 0 met 0
            110000..120000 S 10000 for 1
            120000..130000 S 10000 for 1
            130000..140000 S 10000 for 1
            140000..150000 S 10000s for 1
            150000 S frame 1 met 1
        "#]],
    );
}
