//! `timegraph` on the schedules of its paper's figures 5 and 6, and beyond them.

use expect_test::{Expect, expect};

use super::rig;
use takt_policies::TimeGraph;

fn check(script: &str, expected: Expect) {
    expected.assert_eq(&rig::play(script, Box::new(TimeGraph::new())));
}

#[test]
fn figure_5a_single_turns_go_by_priority_at_every_boundary() {
    check(
        "HP 9
         MP 5
         LP 1
         mpcg 5
         until 900
         @0 MP 100
         @20 MP 100          # queued: the GPU is busy, be it with its own group
         @60 HP 100          # queued as well, and next
         @150 LP 100
         @250 HP 100         # comes while MP's second group runs, passes LP",
        expect![[r#"
            0..100 MP 100 for 0
            20 hold MP: turn of MP
            60 hold HP: turn of MP
            100..200 HP 100 for 0
            100 hold MP: turn of HP
            150 hold LP: turn of HP
            200..300 MP 100 for 0
            200 hold LP: turn of MP
            250 hold HP: turn of MP
            300..400 HP 100 for 0
            300 hold LP: turn of HP
            400..500 LP 100 for 0
        "#]],
    );
}

#[test]
fn figure_5b_following_turns_keep_the_gpu_busy_and_block_longer() {
    check(
        "HP 9 turns following
         MP 5 turns following
         LP 1 turns following
         mpcg 5
         delay 10
         until 900
         @0 MP 100
         @20 MP 100          # follows its own group
         @60 HP 100          # waits for both
         @150 LP 100
         @250 HP 100         # follows its own group",
        expect![[r#"
            10..110 MP 100 for 0
            110..210 MP 100 for 0
            60 hold HP: turn of MP
            150 hold LP: turn of MP
            220..320 HP 100 for 0
            210 hold LP: turn of HP
            320..420 HP 100 for 0
            430..530 LP 100 for 0
        "#]],
    );
}

#[test]
fn no_app_follows_itself_past_a_more_important_app() {
    check(
        "HP 9
         MP 5 turns following
         mpcg 5
         until 900
         @0 MP 100
         @20 HP 100
         @30 MP 100",
        expect![[r#"
            0..100 MP 100 for 0
            20 hold HP: turn of MP
            30 hold MP: turn of MP
            100..200 HP 100 for 0
            100 hold MP: turn of HP
            200..300 MP 100 for 0
        "#]],
    );
}

#[test]
fn a_more_important_app_without_budget_is_passed() {
    check(
        "HP 9 posterior 50/1000
         MP 5 turns following
         mpcg 5
         until 1300
         @0 HP 100 100
         @120 MP 100
         @130 MP 100",
        expect![[r#"
            0..100 HP 100 for 0
            0 hold HP: turn of HP
            100 hold HP: no budget until 2000
            120..220 MP 100 for 0
            220..320 MP 100 for 0
            1000 HP missed frame 0 for 0 ×1
            1000 MP missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn figure_6a_posterior_budgets_go_negative_and_are_paid_back() {
    check(
        "A 1 posterior 300/1000
         until 2200
         @0 A 200
         @200 A 250          # starts with 100 left, ends 150 in debt
         @600 A 100          # waits for budget although the GPU is idle
         @1050 A 100         # budget is left, but its own group is running",
        expect![[r#"
            0..200 A 200 for 0
            200..450 A 250 for 0
            600 hold A: no budget until 1000
            1000 A missed frame 0 for 0 ×1
            1000..1100 A 100 for 0
            1050 hold A: no slot
            1100..1200 A 100 for 1
        "#]],
    );
}

#[test]
fn figure_6b_apriori_budgets_are_never_overdrawn() {
    check(
        "A 1 apriori 300/1000
         until 3300
         @0 A 200
         @200 A 350          # more than is left, more than the capacity: saved for
         @600 A 100
         @1050 A 280         # within the capacity: the next period gives no more than that",
        expect![[r#"
            0..200 A 200 for 0
            200 hold A: no budget until 1000
            1000 A missed frame 0 for 0 ×1
            1000..1350 A 350 for 0
            1000 hold A: no slot
            1350 hold A: no budget until 2000
            2000..2100 A 100 for 0
            2000 hold A: no slot
            2100 hold A: no budget until 3000
            3000..3280 A 280 for 0
        "#]],
    );
}

#[test]
fn nothing_without_a_bound_runs_on_an_apriori_budget() {
    check(
        "A 1 apriori 300/1000
         until 1500
         @0 A ∞",
        expect![[r#"
            0 hold A: unbounded
            1000 A missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn an_underestimate_is_paid_back() {
    check(
        "A 1 apriori 300/1000
         until 3500
         @0 A 100/900
         @900 A 100",
        expect![[r#"
            0..900 A 900 for 0
            900 hold A: no budget until 3000
            1000 A missed frame 0 for 0 ×1
            3000..3100 A 100 for 0
        "#]],
    );
}

#[test]
fn a_shared_reserve_caps_all_its_members_together() {
    check(
        "A 3 posterior 150/1000
         B 2 shares 0
         C 1
         until 2500
         @0 A 100
         @0 B 100
         @0 A 100
         @0 C 300",
        expect![[r#"
            0..100 A 100 for 0
            0 hold A: no slot
            0 hold B: behind A
            0 hold C: behind A
            100..200 A 100 for 0
            200..500 C 300 for 0
            200 hold B: no budget until 1000
            1000 A missed frame 0 for 0 ×1
            1000 B missed frame 0 for 0 ×1
            1000 C missed frame 0 for 0 ×1
            1000..1100 B 100 for 0
            2000 C missed frame 0 for 1 ×1
        "#]],
    );
}

#[test]
fn over_the_limit_a_reserve_becomes_background() {
    // A takes 60 %; B's 50 % do not fit below 90 %, C's 30 % do.
    check(
        "A 3 posterior 600/1000
         B 2 posterior 500/1000
         C 1 posterior 300/1000
         limit 900
         background 10/1000
         until 2000
         @0 B 100
         @100 B 100
         @100 C 250
         @350 C 50",
        expect![[r#"
            0..100 B 100 for 0
            100..350 C 250 for 0
            100 hold B: no budget until 10000
            350..400 C 50 for 0
            1000 B missed frame 0 for 0 ×1
            1100 C missed frame 0 for 0 ×1
        "#]],
    );
}

#[test]
fn room_that_becomes_free_is_given_to_an_app_that_was_turned_away() {
    check(
        "A 3 posterior 600/1000
         B 2 posterior 500/1000
         limit 900
         background 0/1000
         until 1000
         @0 B 100
         @50 A leaves",
        expect![[r#"
            0 hold B: no budget until 1152921504606846976
            50 A left, 0 dropped
            50..150 B 100 for 0
        "#]],
    );
}

#[test]
fn the_members_of_a_reserve_whose_owner_left_become_background() {
    check(
        "A 3 posterior 500/1000
         B 2 shares 0
         background 100/1000
         until 2000
         @0 B 100
         @50 A leaves
         @100 B 100
         @300 B 100",
        expect![[r#"
            0..100 B 100 for 0
            50 A left, 0 dropped
            100 hold B: no budget until 1000
            1000 B missed frame 0 for 0 ×1
            1000..1100 B 100 for 0
            1000 hold B: no slot
            1100 hold B: no budget until 2000
        "#]],
    );
}

#[test]
fn a_reserve_implies_single_turns() {
    check(
        "A 2 turns following posterior 500/1000
         B 1
         mpcg 5
         until 1000
         @0 A 100
         @10 A 100",
        expect![[r#"
            0..100 A 100 for 0
            10 hold A: turn of A
            100..200 A 100 for 0
        "#]],
    );
}

#[test]
fn the_focus_decides_among_automatic_priorities() {
    check(
        "A 2 focus automatic
         B 1 focus automatic
         until 800
         @0 A 100
         @10 A 100
         @10 B 100
         @20 B focuses",
        expect![[r#"
            0..100 A 100 for 0
            10 hold A: no slot
            10 hold B: no slot
            20 B ranks 2
            20 A ranks 1
            100..200 B 100 for 0
            100 hold A: behind B
            200..300 A 100 for 0
        "#]],
    );
}
