use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::analysis::frames::{self, Demand};
use crate::config::Margins;
use crate::gpu::Divisible;

fn ns(ns: u64) -> Span {
    Span::from_ns(ns)
}

fn claim(kind: Kind, span: u64) -> Claim {
    Claim { kind, span: ns(span), group_max: ns(span), groups: 1, gaps: 0, jitter: Span::ZERO }
}

fn own(period: u64, deadline: u64, span: u64) -> Claim {
    claim(Kind::Frames { period: ns(period), deadline: ns(deadline), display: None }, span)
}

fn server(period: u64, budget: u64) -> Claim {
    Claim { group_max: ns(1), groups: 8, ..claim(Kind::Server { period: ns(period) }, budget) }
}

fn of_display(display: u32, period: u64, stride: u32, span: u64) -> Claim {
    claim(Kind::of_display(display, ns(period), Stride::new(stride).unwrap()), span)
}

fn covered(claims: &[Claim]) -> usize {
    coverage(claims, &GpuCharges::IDEAL).covered
}

fn missing(time: u64, at: u64) -> Verdict {
    Verdict::Uncovered(Reason::Missing { time: ns(time), at: ns(at) })
}

#[test]
fn a_group_that_blocks_a_sporadic_frame_is_counted() {
    let set = [own(15, 15, 5), own(20, 16, 10)];
    assert_eq!(coverage(&set, &GpuCharges::IDEAL).verdicts, [Verdict::Covered, missing(1, 15)]);
    let shorter = Claim { group_max: ns(9), groups: 2, ..set[1] };
    assert_eq!(covered(&[set[0], shorter]), 2);
}

#[test]
fn a_short_group_that_is_due_later_blocks_once() {
    // That it begins only if the frame to come still fits is the rule's part.
    let frame = Claim { group_max: ns(8), groups: 2, ..own(20, 20, 16) };
    assert_eq!(covered(&[own(24, 24, 2), frame]), 2);
    assert_eq!(covered(&[own(24, 24, 4), frame]), 1);
}

#[test]
fn servers_count_as_a_fluid() {
    // Not in steps: 4.8 of 8 may be due within 12.
    let set = [own(100, 12, 10), server(20, 8)];
    assert_eq!(coverage(&set, &GpuCharges::IDEAL).verdicts, [Verdict::Covered, missing(4, 12)]);
    assert_eq!(covered(&[own(100, 12, 6), server(20, 8)]), 2);
    assert_eq!(covered(&[server(3000, 1000), server(3000, 1000), server(3100, 800)]), 3);
}

#[test]
fn groups_longer_than_the_budget_block() {
    let long = Claim { group_max: ns(30), groups: 1, ..server(100, 10) };
    assert_eq!(covered(&[long, own(50, 40, 9)]), 2);
    // 30 of the group and 10 of the frame; of the 30, four are the budget's anyway.
    assert_eq!(coverage(&[long, own(50, 40, 10)], &GpuCharges::IDEAL).verdicts[1], missing(1, 40));
}

#[test]
fn frames_of_one_display_do_not_block() {
    let set = [of_display(0, 1000, 1, 600), of_display(0, 1000, 2, 799)];
    assert_eq!(covered(&set), 2);
    let other = [set[0], of_display(1, 1000, 2, 799)];
    assert_eq!(coverage(&other, &GpuCharges::IDEAL).verdicts[1], missing(400, 1000));
    let late = Claim { jitter: ns(1), ..set[0] };
    assert_eq!(covered(&[late, set[1]]), 1);
}

#[test]
fn jitter_takes_from_the_deadline() {
    let late = Claim { jitter: ns(40), ..own(100, 100, 59) };
    assert_eq!(covered(&[late]), 1);
    assert_eq!(covered(&[Claim { span: ns(60), group_max: ns(60), ..late }]), 0);
    let never = Claim { jitter: ns(100), ..late };
    assert_eq!(coverage(&[never], &GpuCharges::IDEAL).verdicts, [Verdict::Uncovered(Reason::Unbounded)]);
}

#[test]
fn every_gap_lets_in_one_more_group() {
    let frame = Claim { groups: 3, group_max: ns(10), ..own(100, 50, 20) };
    let long = Claim { groups: 3, group_max: ns(10), ..own(100, 100, 25) };
    assert_eq!(covered(&[frame, long]), 2);
    assert_eq!(covered(&[Claim { gaps: 1, ..frame }, long]), 2);
    assert_eq!(covered(&[Claim { gaps: 2, ..frame }, long]), 1);
    assert_eq!(covered(&[Claim { gaps: 2, ..frame }]), 1);
}

#[test]
fn reasons_have_numbers() {
    let none = claim(Kind::None, 1_000_000);
    let set = [own(100, 100, 50), none, own(100, 100, 60), own(100, 100, 1)];
    let found = coverage(&set, &GpuCharges::IDEAL);
    assert_eq!(found.covered, 2);
    let expected = vec![
        Verdict::Covered,
        Verdict::Uncovered(Reason::NoClaim),
        Verdict::Uncovered(Reason::Overload { permille: 1100 }),
        Verdict::Uncovered(Reason::Follows(2)),
    ];
    assert_eq!(found.verdicts, expected);
    let forever = Claim { span: Span::FOREVER, ..set[0] };
    assert_eq!(test(&[forever], &GpuCharges::IDEAL), Err(Reason::Unbounded));
    assert_eq!(test(&[own(0, 5, 1)], &GpuCharges::IDEAL), Err(Reason::Unbounded));
    assert_eq!(covered(&[]), 0);
}

#[test]
fn extremes_neither_panic_nor_wrap() {
    let most = Span::FOREVER.as_ns() - 1;
    let huge = own(most, most, most / 2);
    assert_eq!(
        test(&[own(most, most, most / 2); 5], &GpuCharges::IDEAL),
        Err(Reason::Overload { permille: 2500 })
    );
    assert_eq!(test(&[huge], &GpuCharges::IDEAL), Ok(()));
    assert!(matches!(test(&[own(1, 1, most); 4096], &GpuCharges::IDEAL), Err(Reason::Overload { .. })));
    assert_eq!(test(&[huge; 4097], &GpuCharges::IDEAL), Err(Reason::Limit));
    let many = Claim { groups: u32::MAX, gaps: u32::MAX, ..own(most, most, most / 2) };
    assert_eq!(test(&[many; 2], &GpuCharges::in_order(&Margins::default(), 1)), Err(Reason::Unbounded));
}

#[test]
fn slack_and_headroom_reach_the_limit_exactly() {
    let set = [of_display(0, 1000, 1, 300), of_display(0, 1000, 2, 400)];
    assert_eq!(slack(&set, &GpuCharges::IDEAL), Some(ns(699)));
    assert_eq!(headroom(&set, &GpuCharges::IDEAL, 1), Some(ns(999)));
    assert_eq!(headroom(&set, &GpuCharges::IDEAL, 2), None);
    assert_eq!(slack(&[own(100, 100, 100)], &GpuCharges::IDEAL), None);
    assert_eq!(slack(&[], &GpuCharges::IDEAL), Some(Span::FOREVER));
}

#[test]
fn gpus_add_what_they_cost() {
    let margins = Margins::default();
    let us = Span::from_us;
    let frame = Claim { groups: 3, group_max: us(1000), gaps: 1, ..own(50_000_000, 50_000_000, 2_500_000) };
    let in_order = GpuCharges::in_order(&margins, 5);
    assert_eq!(in_order.cost(&frame), us(2500 + 3 * 30 + 2 * 120));
    assert_eq!(in_order.longest_group(&frame), us(1000 + 150));
    let foreign = Divisible { slice: us(300), quantum: us(400), own_slice: us(20_000), switch: us(50) };
    let beside = GpuCharges { foreign: Some(foreign), ..in_order };
    assert_eq!(beside.cost(&frame), us(2500 + 3 * 30 + 2 * 120 + 3 * 800));
    let order = Order::TimeShared { per_group: us(150), per_frame: us(0), slice: us(400), switch: us(10) };
    let shared = GpuCharges { order, lead: us(0), foreign: None };
    assert_eq!(shared.cost(&frame), us(2500 + 3 * 150 + 9 * 10));
    // Not two turns for each of eight groups: no more than six can be that long.
    let many = Claim { groups: 8, group_max: us(500), ..frame };
    assert_eq!(shared.cost(&many), us(2500 + 8 * 150 + 14 * 10));
    assert_eq!(shared.longest_group(&frame), us(1000 + 3 * 10));
    assert_eq!(shared.cost(&own(5, 5, 0)), us(150));
    let usual = GpuCharges::time_shared(&margins, 5, us(400), us(10));
    assert_eq!(usual.cost(&frame), us(2500 + 3 * 30 + 2 * 120 + 9 * 10));
    assert_eq!(usual.longest_group(&frame), us(1000 + 150 + 3 * 10));
    let served = Claim { gaps: 0, kind: Kind::Server { period: us(50_000) }, ..frame };
    assert_eq!(usual.cost(&served), us(2500 + 3 * 150 + 9 * 10));
    assert_eq!(shared.cost(&Claim { groups: 0, ..own(5, 5, 0) }), us(0));
}

fn demands() -> impl Strategy<Value = Vec<Demand>> {
    let one = (1u32..=6, 0u64..900);
    let one = one.prop_map(|(stride, etpf)| {
        let stride = Stride::new(stride).unwrap();
        Demand { stride, etpf: ns(etpf), phase: 0 }
    });
    proptest::collection::vec(one, 0..7)
}

fn sets() -> impl Strategy<Value = Vec<Claim>> {
    let period = proptest::sample::select(&[4u64, 5, 6, 8, 10, 12, 15, 20, 24, 30][..]);
    let one =
        (period, 1u64..8, 1u64..40, 0u64..3, 0u32..3).prop_map(|(period, span, deadline, jitter, gaps)| {
            let kind = match deadline % 5 {
                0 => Kind::Server { period: ns(period) },
                _ => Kind::Frames { period: ns(period), deadline: ns(deadline), display: None },
            };
            Claim { jitter: ns(jitter), gaps, ..claim(kind, span) }
        });
    proptest::collection::vec(one, 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn frames_of_one_display_are_tested_as_before(set in demands()) {
        let period = ns(1000);
        let of = |d: &Demand| Claim { groups: 0, ..claim(Kind::of_display(3, period, d.stride), d.etpf.as_ns()) };
        let claims: Vec<Claim> = set.iter().map(of).collect();
        prop_assert_eq!(test(&claims, &GpuCharges::IDEAL).is_ok(), frames::is_schedulable(period, &set));
        prop_assert_eq!(covered(&claims), frames::protected(period, &set));
    }

    /// The definition, up to two hyperperiods; and the interval that a refusal names is real.
    #[test]
    fn agrees_with_the_definition(set in sets()) {
        let plain = demand::all_intervals(&set, &GpuCharges::IDEAL, 2 * 120 + 80);
        let found = test(&set, &GpuCharges::IDEAL);
        match found {
            Ok(()) => prop_assert_eq!(plain, Ok(())),
            Err(Reason::Missing { .. }) => prop_assert!(plain.is_err()),
            Err(_) => {}
        }
    }

    #[test]
    fn headroom_is_the_last_that_fits(set in sets(), index in 0usize..5) {
        let index = index % set.len().max(1);
        if let Some(room) = headroom(&set, &GpuCharges::IDEAL, index) {
            let mut grown = set;
            grown[index].span += room;
            prop_assert!(test(&grown, &GpuCharges::IDEAL).is_ok());
            grown[index].span += ns(1);
            prop_assert!(test(&grown, &GpuCharges::IDEAL).is_err());
        }
    }
}
