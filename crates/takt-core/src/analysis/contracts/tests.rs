use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::analysis::frames::{self, Demand};

/// A GPU that hears of ends and gets groups at once.
const IDEAL: Span = Span::ZERO;

fn ns(ns: u64) -> Span {
    Span::from_ns(ns)
}

fn claim(kind: Kind, span: u64) -> Claim {
    Claim { kind, span: ns(span), group_max: ns(span) }
}

fn own(period: u64, deadline: u64, span: u64) -> Claim {
    claim(Kind::Frames { period: ns(period), deadline: ns(deadline), display: None }, span)
}

fn server(period: u64, budget: u64) -> Claim {
    Claim { group_max: ns(1), ..claim(Kind::Server { period: ns(period) }, budget) }
}

fn of_display(display: u32, period: u64, stride: u32, span: u64) -> Claim {
    claim(Kind::of_display(display, ns(period), Stride::new(stride).unwrap()), span)
}

fn covered(claims: &[Claim]) -> usize {
    coverage(claims, IDEAL).covered
}

fn missing(time: u64, at: u64) -> Verdict {
    Verdict::Uncovered(Reason::Missing { time: ns(time), at: ns(at) })
}

#[test]
fn a_group_that_blocks_a_sporadic_frame_is_counted() {
    let set = [own(15, 15, 5), own(20, 16, 10)];
    assert_eq!(coverage(&set, IDEAL).verdicts, [Verdict::Covered, missing(1, 15)]);
    let shorter = Claim { group_max: ns(9), ..set[1] };
    assert_eq!(covered(&[set[0], shorter]), 2);
}

#[test]
fn a_short_group_that_is_due_later_blocks_once() {
    // That it begins only if the frame to come still fits is the rule's part.
    let frame = Claim { group_max: ns(8), ..own(20, 20, 16) };
    assert_eq!(covered(&[own(24, 24, 2), frame]), 2);
    assert_eq!(covered(&[own(24, 24, 4), frame]), 1);
}

#[test]
fn servers_count_as_a_fluid() {
    // Not in steps: 4.8 of 8 may be due within 12.
    let set = [own(100, 12, 10), server(20, 8)];
    assert_eq!(coverage(&set, IDEAL).verdicts, [Verdict::Covered, missing(4, 12)]);
    assert_eq!(covered(&[own(100, 12, 6), server(20, 8)]), 2);
    assert_eq!(covered(&[server(3000, 1000), server(3000, 1000), server(3100, 800)]), 3);
}

#[test]
fn groups_longer_than_the_budget_block() {
    let long = Claim { group_max: ns(30), ..server(100, 10) };
    assert_eq!(covered(&[long, own(50, 40, 9)]), 2);
    // 30 of the group and 10 of the frame; of the 30, four are the budget's anyway.
    assert_eq!(coverage(&[long, own(50, 40, 10)], IDEAL).verdicts[1], missing(1, 40));
}

#[test]
fn frames_of_one_display_do_not_block() {
    let set = [of_display(0, 1000, 1, 600), of_display(0, 1000, 2, 799)];
    assert_eq!(covered(&set), 2);
    let other = [set[0], of_display(1, 1000, 2, 799)];
    assert_eq!(coverage(&other, IDEAL).verdicts[1], missing(400, 1000));
}

#[test]
fn reasons_have_numbers() {
    let none = claim(Kind::None, 1_000_000);
    let set = [own(100, 100, 50), none, own(100, 100, 60), own(100, 100, 1)];
    let found = coverage(&set, IDEAL);
    assert_eq!(found.covered, 2);
    let expected = vec![
        Verdict::Covered,
        Verdict::Uncovered(Reason::NoClaim),
        Verdict::Uncovered(Reason::Overload { permille: 1100 }),
        Verdict::Uncovered(Reason::Follows(2)),
    ];
    assert_eq!(found.verdicts, expected);
    let forever = Claim { span: Span::FOREVER, ..set[0] };
    assert_eq!(test(&[forever], IDEAL), Err(Reason::Unbounded));
    assert_eq!(test(&[own(0, 5, 1)], IDEAL), Err(Reason::Unbounded));
    assert_eq!(covered(&[]), 0);
}

#[test]
fn extremes_neither_panic_nor_wrap() {
    let most = Span::FOREVER.as_ns() - 1;
    let huge = own(most, most, most / 2);
    assert_eq!(test(&[own(most, most, most / 2); 5], IDEAL), Err(Reason::Overload { permille: 2500 }));
    assert_eq!(test(&[huge], IDEAL), Ok(()));
    assert!(matches!(test(&[own(1, 1, most); 4096], IDEAL), Err(Reason::Overload { .. })));
    assert_eq!(test(&[huge; 4097], IDEAL), Err(Reason::Limit));
    assert_eq!(test(&[huge; 2], ns(most)), Err(Reason::Unbounded));
}

#[test]
fn the_lead_is_part_of_what_blocks() {
    let set = [own(15, 15, 5), own(100, 100, 9)];
    assert_eq!(coverage(&set, ns(0)).covered, 2);
    assert_eq!(coverage(&set, ns(1)).verdicts, [Verdict::Covered, missing(1, 15)]);
    let shown = [of_display(0, 1000, 1, 600), of_display(0, 1000, 2, 799)];
    assert_eq!(coverage(&shown, ns(500)).covered, 2, "nothing blocks frames of one display");
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
    let one = (period, 1u64..8, 1u64..40).prop_map(|(period, span, deadline)| {
        let kind = match deadline % 5 {
            0 => Kind::Server { period: ns(period) },
            _ => Kind::Frames { period: ns(period), deadline: ns(deadline), display: None },
        };
        claim(kind, span)
    });
    proptest::collection::vec(one, 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn frames_of_one_display_are_tested_as_before(set in demands()) {
        let period = ns(1000);
        let of = |d: &Demand| claim(Kind::of_display(3, period, d.stride), d.etpf.as_ns());
        let claims: Vec<Claim> = set.iter().map(of).collect();
        prop_assert_eq!(test(&claims, IDEAL).is_ok(), frames::is_schedulable(period, &set));
        prop_assert_eq!(covered(&claims), frames::protected(period, &set));
    }

    /// The definition, up to two hyperperiods; and the interval that a refusal names is real.
    #[test]
    fn agrees_with_the_definition(set in sets()) {
        let plain = demand::all_intervals(&set, IDEAL, 2 * 120 + 80);
        let found = test(&set, IDEAL);
        match found {
            Ok(()) => prop_assert_eq!(plain, Ok(())),
            Err(Reason::Missing { .. }) => prop_assert!(plain.is_err()),
            Err(_) => {}
        }
    }
}
