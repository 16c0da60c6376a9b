//! Frames that several apps share: S and T are sources of O, the app in slot 0.

use expect_test::expect;

use super::check;

#[test]
fn a_source_begins_the_frame_and_the_owner_ends_it() {
    // B is important and promised nothing; it waits for all that is part of the frame of O.
    check(
        "until 1100
         O 8 etpf 500
         S 1 shares 0
         B 9
         @0 B 300
         @10 S 100
         @20 O 50
         @30 S 80
         @40 O 200s
         @50 B 300",
        expect![[r#"
            0..300 B 300 for 0
            10 hold S: no slot
            50 hold B: no slot
            300..400 S 100 for 0
            300 hold B: behind O
            400..450 O 50 for 0
            450..530 S 80 for 0
            530..730 O 200s for 0
            730 O frame 0 met 0
            730..1030 B 300 for 1
            1000 B missed frame 0 for 0 ×1
            1000 S missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn a_short_swap_does_not_pass_what_a_source_has_in_the_frame() {
    // The swap of O alone would fit before the frame of A, which has not come yet.
    check(
        "until 1100
         O 8 etpf 450
         S 1 shares 0
         A 9 etpf 500
         @150 S 400
         @150 O 50s
         @400 A 500s",
        expect![[r#"
            150 hold O: protects A
            150 hold S: protects A
            400..900 A 500s for 0
            400 hold O: behind A
            400 hold S: behind A
            900 A frame 0 met 0
            900..1300 S 400 for 1
            900 hold O: no slot
            1000 O missed frame 0 for 0 ×1
            1000 S missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn what_does_not_fit_into_the_frame_needs_slack() {
    // 300 of S are promised, the next 300 are not: they would make the frame of A late. O does not wait for them.
    check(
        "until 1300
         O 8 etpf 400
         S 2 shares 0
         A 9 etpf 400
         @0 S 300 300
         @0 O 100s
         @0 S 20
         @500 A 400s",
        expect![[r#"
            0..300 S 300 for 0
            0 hold O: no slot
            0 hold S: no slot
            300..400 O 100s for 0
            300 hold S: behind O
            400 O frame 0 met 0
            400 hold S: protects A
            500..900 A 400s for 0
            500 hold S: behind A
            900 A frame 0 met 0
            900 hold S: protects A
            1000 S missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn what_a_source_submits_behind_the_end_is_for_the_next_frame() {
    check(
        "until 2100
         O 8 etpf 500
         S 1 shares 0
         T 2 shares 0
         @0 T 100
         @10 O 100s
         @20 S 100
         @30 T 50
         @1200 O 100s",
        expect![[r#"
            0..100 T 100 for 0
            10 hold O: no slot
            20 hold S: no slot
            30 hold T: no slot
            100..200 O 100s for 0
            200 O frame 0 met 0
            200..300 S 100 for 1
            300..350 T 50 for 1
            1000 T missed frame 0 for 0 ×1
            1000 S missed frame 0 for 0 ×1
            1200..1300 O 100s for 1
            1300 O frame 1 met 1
            2000 T missed frame 0 for 1 ×1
            2000 S missed frame 0 for 1 ×1
        "#]],
    );
}

#[test]
fn a_frame_ends_behind_the_groups_of_its_sources() {
    // The frame of O ends without a group while one of S waits, and is done when that is over.
    check(
        "until 1100
         releases
         O 8 etpf 500
         S 1 shares 0
         B 9
         @0 B 200
         @10 O 50
         @20 S 100
         @30 O ends frame",
        expect![[r#"
            O starts at 0
            S starts at 0
            B starts at 0
            0..200 B 200 for 0
            10 hold O: no slot
            20 hold S: no slot
            200..250 O 50 for 0
            250..350 S 100 for 0
            O starts at 1000
            350 O frame 0 met 0
            1000 B missed frame 0 for 0 ×1
            1000 S missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn the_frame_goes_on_without_a_source_that_leaves() {
    // The end of the frame was behind the group of S; now it is behind that of O.
    check(
        "until 1100
         releases
         O 8 etpf 500
         S 1 shares 0
         B 9
         @0 B 200
         @10 O 50
         @20 S 100
         @30 O ends frame
         @40 S leaves",
        expect![[r#"
            O starts at 0
            S starts at 0
            B starts at 0
            0..200 B 200 for 0
            10 hold O: no slot
            20 hold S: no slot
            40 S left, 1 dropped
            200..250 O 50 for 0
            O starts at 1000
            250 O frame 0 met 0
            1000 B missed frame 0 for 0 ×1
        "#]],
    );
    // There is nothing else that it could be behind.
    check(
        "until 1100
         releases
         O 8 etpf 500
         S 1 shares 0
         B 9
         @0 B 200
         @20 S 100
         @30 O ends frame
         @40 S leaves",
        expect![[r#"
            O starts at 0
            S starts at 0
            B starts at 0
            0..200 B 200 for 0
            20 hold S: no slot
            40 O frame 0 met 0
            O starts at 1000
            40 S left, 1 dropped
            1000 B missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn a_source_whose_owner_is_gone_is_promised_nothing() {
    check(
        "until 1100
         O 8 etpf 500
         S 1 shares 0
         A 9 etpf 400
         @0 A 400s
         @0 S 300 100
         @10 O 50s
         @100 O leaves
         @1000 A 400s",
        expect![[r#"
            0..400 A 400s for 0
            0 hold S: behind A
            100 O left, 1 dropped
            400 A frame 0 met 0
            400..700 S 300 for 0
            400 hold S: no slot
            700..800 S 100 for 0
            1000 S missed frame 0 for 0 ×1
            1000..1400 A 400s for 1
        "#]],
    );
    // It wants no frames any more.
    check(
        "until 1100
         O 8 etpf 500
         S 1 shares 0
         A 9 etpf 400
         @0 A 400s
         @0 S 300 100
         @10 O 50s
         @100 O etpf 0
         @1000 A 400s",
        expect![[r#"
            0..400 A 400s for 0
            0 hold S: behind A
            400 A frame 0 met 0
            400..450 O 50s for 0
            400 hold S: behind O
            450 O frame 0 met 0
            450..750 S 300 for 0
            450 hold S: no slot
            750..850 S 100 for 0
            1000 S missed frame 0 for 0 ×1
            1000..1400 A 400s for 1
        "#]],
    );
}

#[test]
fn a_source_that_joins_in_the_middle_finds_what_is_left_of_the_frame() {
    check(
        "until 1100
         O 8 etpf 500
         S 1
         B 9
         @0 O 300
         @100 S shares 0
         @110 S 150 60
         @120 O 20s
         @130 B 700",
        expect![[r#"
            0..300 O 300 for 0
            110 hold S: no slot
            130 hold B: no slot
            300..450 S 150 for 0
            300 hold B: behind O
            450..470 O 20s for 0
            450 hold S: behind O
            470 O frame 0 met 0
            470..530 S 60 for 0
            470 hold B: behind S
            530..1230 B 700 for 1
            1000 B missed frame 0 for 0 ×1
            1000 S missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn sources_have_no_sources() {
    check(
        "until 1000
         O 8 etpf 500
         S 1 shares 0
         T 2
         @10 T shares 1
         @20 O shares 2
         @30 S shares 1",
        expect![[r#"
            10 refused T: a contract can be shared only with the app that has it
            20 refused O: a contract can be shared only with the app that has it
            30 refused S: a contract can be shared only with the app that has it
        "#]],
    );
}

#[test]
fn a_frame_by_its_own_clock_begins_with_its_source() {
    // It is due 200 µs after the first group of S, and the next one a period later at the earliest.
    check(
        "until 700_000
         period 9_000_000
         O 8 etpf 100_000 clock 300_000/200_000
         S 1 shares 0
         B 9
         @0 B 50_000
         @10_000 S 40_000
         @20_000 O 20_000s
         @250_000 S 20_000
         @260_000 O 20_000s",
        expect![[r#"
            0..50000 B 50000 for 0
            10000 hold S: no slot
            50000..90000 S 40000 for 0
            90000..110000 O 20000s for 0
            110000 O frame 0 met 0
            250000..270000 S 20000 for 1
            260000 hold O: no slot
            270000..290000 O 20000s for 1
            290000 O frame 1 met 1
        "#]],
    );
}

#[test]
fn what_a_source_has_on_the_gpu_is_kept_from_being_late() {
    // Where contexts take turns, B would make the group of S late, which is due at 1000 with the frame of O.
    check(
        "gpu time-shared
         mpcg 3
         until 1200
         O 8 etpf 600
         S 1 shares 0
         B 9
         @400 S 400
         @410 O 50s
         @420 B 200",
        expect![[r#"
            400 grant S 400 for 0
            410 grant O 50s for 0
            420 hold B: protects O
            500 end O 50s
            500 O frame 0 met 0
            850 end S 400
            850 grant B 200 for 1
            1000 B missed frame 0 for 0 ×1
            1000 S missed frame 0 for 0 ×1
            1050 end B 200
        "#]],
    );
}

#[test]
fn sources_have_the_gpu_one_at_a_time_where_a_change_costs() {
    check(
        "gpu time-shared slice=100 switch=10
         mpcg 3
         until 1200
         O 8 etpf 600
         S 1 shares 0
         @0 S 100
         @0 O 50
         @0 S 80
         @0 O 50s",
        expect![[r#"
            0 grant S 100 for 0
            0 hold O: turn of S
            0 hold S: turn of S
            100 end S 100
            100 grant O 50 for 0
            100 hold O: turn of O
            100 hold S: turn of O
            160 end O 50
            160 grant S 80 for 0
            160 hold O: turn of S
            250 end S 80
            250 grant O 50s for 0
            310 end O 50s
            310 O frame 0 met 0
            1000 S missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn what_a_producer_has_on_the_gpu_is_kept_from_being_late() {
    // P runs on the budget of C, and is due at 700. B would make it late.
    check(
        "gpu time-shared
         mpcg 4
         until 1200
         C 8 posterior 500/700
         P 1 feeds 0
         B 9
         @0 P 300
         @0 C 150s
         @10 B 300",
        expect![[r#"
            0 grant P 300 for 0
            0 grant C 150s for 0
            10 hold B: protects C
            300 end C 150s
            300 C frame 0 met 0
            450 end P 300
            450 grant B 300 for 0
            700 P missed frame 0 for 0 ×1
            750 end B 300
            1000 B missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn no_frame_waits_for_what_its_own_source_has_behind_it() {
    // O is not covered beside F. The second group of S does not fit into the frame of O, and S is more important.
    check(
        "until 2100
         O 2 etpf 500
         S 8 shares 0
         F 9 etpf 600
         @0 F 600s
         @10 S 100 900
         @20 O 100s",
        expect![[r#"
            0..600 F 600s for 0
            10 hold S: no slot
            600 F frame 0 met 0
            600..700 S 100 for 0
            700..800 O 100s for 0
            700 hold S: protects F
            800 O frame 0 met 0
            1000 S missed frame 0 for 0 ×1
            1401..2301 S 900 for 2
            2000 F missed frame 1 for 1 ×1
            2000 S missed frame 0 for 1 ×1
            2000 O missed frame 1 for 1 ×1
        "#]],
    );
}
