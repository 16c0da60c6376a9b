//! A group that is late, has nothing reserved and does not fit beside R does not hold others back,
//! except in the first two of every sixteen periods.

use expect_test::expect;
use std::format;
use std::vec::Vec;

use super::{check, play};

#[test]
fn the_first_frame_of_an_app_is_not_late_however_long_ago_it_joined() {
    // C joined at 0 and draws first at 4070. Its deadline is ahead, so that it is protected from A.
    check(
        "gpu time-shared
         mpcg 2
         until 4200
         R 9 etpf 240
         C 3
         B 2
         A 1
         @0 B 60s
         @1000 B 60s
         @2000 B 60s
         @3000 B 60s
         @4000 B 60s
         @4070 C 780
         @4100 A 120",
        expect![[r#"
            0 grant B 60s for 0
            60 end B 60s
            60 B frame 0 met 0
            1000 grant B 60s for 1
            1060 end B 60s
            1060 B frame 1 met 1
            2000 grant B 60s for 2
            2060 end B 60s
            2060 B frame 2 met 2
            3000 grant B 60s for 3
            3060 end B 60s
            3060 B frame 3 met 3
            4000 grant B 60s for 4
            4060 end B 60s
            4060 B frame 4 met 4
            4070 hold C: protects R
            4100 hold A: protects R
        "#]],
    );
}

#[test]
fn a_further_group_of_a_late_frame_is_late() {
    // C's frame was due at the end of period 1, and its second group comes in period 4.
    check(
        "gpu time-shared
         mpcg 2
         until 4200
         R 9 etpf 240
         C 3 stride 2
         A 1
         @6 C 60
         @4006 C 960
         @4036 A 120",
        expect![[r#"
            6 grant C 60 for 1
            66 end C 60
            2000 C missed frame 0 for 1 ×1
            4000 C missed frame 0 for 3 ×1
            4006 hold C: protects R
            4036 grant A 120 for 4
            4156 end A 120
        "#]],
    );
}

#[test]
fn a_group_of_unknown_length_does_not_hold_others_back() {
    check(
        "gpu time-shared
         mpcg 2
         until 1000
         R 9 etpf 240
         C 3
         A 1
         @6 C ∞
         @36 A 120",
        expect![[r#"
            6 hold C: unbounded
            36 grant A 120 for 0
            156 end A 120
        "#]],
    );
}

#[test]
fn a_group_that_does_not_fit_holds_others_back_until_it_is_late() {
    // G's 960 do not fit beside R's 240. It is due at the end of period 1.
    check(
        "gpu time-shared
         mpcg 2
         until 2200
         R 99 etpf 240
         G 10 stride 2
         A 1
         @1 G 960
         @2 A 120s
         @720 R 240s
         @1002 A 120s
         @1720 R 240s",
        expect![[r#"
            1 hold G: protects R
            2 grant A 120s for 0
            122 end A 120s
            122 A frame 0 met 0
            720 grant R 240s for 0
            960 end R 240s
            960 R frame 0 met 0
            1002 hold A: protects R
            1720 grant R 240s for 1
            1960 end R 240s
            1960 R frame 1 met 1
            2000 G missed frame 0 for 1 ×1
            2000 A missed frame 1 for 1 ×1
            2000 grant A 120s for 2
            2120 end A 120s
            2120 A frame 1 late 1
        "#]],
    );
}

/// In which of 40 periods A is granted, while G0, G1, ... wait with groups that never fit beside R. A
/// submits a group in each period from `first` on.
fn periods_with_a_grant(settings: &str, waiting: usize, first: u64) -> Vec<u64> {
    let mut script = format!("mpcg 2\nuntil 40_000\nR 99 etpf 240\nA 1\n{settings}\n");
    for g in 0..waiting {
        script += &format!("G{g} {} stride 2\n@{} G{g} 960\n", 10 + g, 1000 * g + 1);
    }
    for period in 0..40 {
        script += &format!("@{} R 240s\n", 1000 * period + 720);
        if period >= first {
            script += &format!("@{} A 120\n", 1000 * period + 2);
        }
    }
    let timeline = play(&script);
    let granted = |what: &str| -> Vec<u64> {
        let lines = timeline.lines().filter(|line| line.contains(what));
        lines.filter_map(|line| line.split([' ', '.']).next()?.parse().ok()).collect()
    };
    assert!(granted(" 960 for ").is_empty(), "no G fits");
    assert!(granted(" R 240s for ").into_iter().eq((720..40_000).step_by(1000)), "R never waits");
    let grants = granted(" A 120 for ");
    let mut periods: Vec<u64> = grants.iter().map(|at| at / 1000).collect();
    periods.dedup();
    for period in &periods {
        let start = period * 1000;
        assert!(grants.iter().any(|at| (start..=start + 2).contains(at)), "A waits in period {period}");
    }
    periods
}

/// All periods from `first` on but the first two of every sixteen.
fn but_two_of_sixteen(first: u64) -> impl Iterator<Item = u64> {
    (first..40).filter(|period| period % 16 >= 2)
}

#[test]
fn a_late_group_holds_others_back_in_two_of_sixteen_periods() {
    let expected: Vec<u64> = [0].into_iter().chain(but_two_of_sixteen(2)).collect();
    for settings in ["gpu time-shared", "gpu time-shared\nblocking 180"] {
        assert_eq!(periods_with_a_grant(settings, 1, 0), expected, "{settings}");
    }
}

#[test]
fn several_late_groups_hold_others_back_in_the_same_periods() {
    // The last of the eight waits from period 7 and is late from period 10 on.
    let expected: Vec<u64> = but_two_of_sixteen(10).collect();
    for settings in ["gpu time-shared", "gpu time-shared\nblocking 180"] {
        assert_eq!(periods_with_a_grant(settings, 8, 10), expected, "{settings}");
    }
}

#[test]
fn relief_does_not_depend_on_the_gpu() {
    let expected: Vec<u64> = [0].into_iter().chain(but_two_of_sixteen(2)).collect();
    assert_eq!(periods_with_a_grant("gpu in-order", 1, 0), expected);
}

#[test]
fn a_group_that_never_ends_is_given_up_however_many_others_end() {
    // A's group should be over at 100 and is late from 250 on; beside two others it could take 200 more.
    // Each end of B's would put that off by another 600.
    check(
        "gpu time-shared
         mpcg 2
         late-after 50
         timeout 500
         until 1200
         A 2
         B 1
         @0 A 100s?
         @200 B 100s
         @400 B 100s
         @600 B 100s
         @800 B 100s",
        expect![[r#"
            0 grant A 100s for 0
            200 grant B 100s for 0
            300 end B 100s
            300 B frame 0 met 0
            400 grant B 100s for 1
            500 end B 100s
            500 B frame 1 met 1
            600 grant B 100s for 2
            700 end B 100s
            700 B frame 2 met 2
            800 grant B 100s for 3
            900 end B 100s
            900 B frame 3 met 3
            950 lost a group of A (Timeout)
            950 A frame 0 late 0
        "#]],
    );
}

#[test]
fn while_the_whole_gpu_stands_still_only_the_group_that_came_first_is_given_up() {
    // No group ends here. A's is given up 500 after it should have been over; B's and C's would be as well, around
    // 610, if the time until then counted against them.
    check(
        "gpu time-shared
         mpcg 3
         late-after 50
         timeout 500
         until 900
         A 3
         B 2
         C 1
         @0 A 10s?
         @10 B 10/700s
         @20 C 10/690s",
        expect![[r#"
            0 grant A 10s for 0
            10 grant B 700s for 0
            20 grant C 690s for 0
            510 lost a group of A (Timeout)
            510 A frame 0 late 0
        "#]],
    );
}

#[test]
fn how_long_a_group_must_take_to_be_late_is_tuned() {
    // A's group should be over at 100. With half of its prediction in place of all of it, it is late from 160 on, and
    // C need not wait until 210.
    for (permille, granted) in [(1000, "210 grant B"), (500, "160 grant B")] {
        let script = std::format!(
            "gpu time-shared
             mpcg 1
             late-after 10
             late-permille {permille}
             until 400
             A 2
             B 1
             @0 A 100/1000s
             @20 B 10s"
        );
        let timeline = play(&script);
        assert!(timeline.contains(granted), "{permille}: {timeline}");
    }
}
