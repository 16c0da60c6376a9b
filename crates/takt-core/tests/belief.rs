//! Random events for a [`Belief`], beside a slow version that keeps everything it ever heard.

use proptest::prelude::*;
use takt_core::belief::{Belief, Revision, Tuning};
use takt_core::limits::{IN_FLIGHT_MAX, QUEUE_MAX};
use takt_core::{AppId, Cost, Estimate, GroupId, GroupKind, Hold, Span, Time};

#[derive(Clone, Debug)]
enum Op {
    Wait(u64),
    Submit(GroupKind, Estimate),
    Hold(Hold),
    Grant,
    /// The last granted group comes back.
    Preempt,
    /// Of those in flight, so many places from the oldest.
    Measure(usize, u64),
    Lose(usize),
    Reserve(u64),
}

#[derive(Clone, Copy, Debug)]
struct Group {
    id: GroupId,
    estimate: Estimate,
    believed: Estimate,
    preempted: bool,
}

/// Remembers all measurements and looks through them each time.
#[derive(Default)]
struct Slow {
    waiting: Vec<Group>,
    in_flight: Vec<Group>,
    measured: Vec<(Estimate, Span)>,
    held: bool,
    since: Time,
    next: u64,
}

impl Slow {
    /// The second longest time among groups whose estimates have as many binary digits as
    /// `estimate`, or one less; of each number of digits by itself.
    fn confirmed(&self, estimate: Estimate) -> Span {
        let digits = |of: Estimate| 64 - of.span().as_ns().leading_zeros();
        let second = |count: u32| {
            let alike = self.measured.iter().filter(|(of, _)| digits(*of) == count);
            let mut costs: Vec<Span> = alike.map(|(_, cost)| *cost).collect();
            costs.sort_unstable();
            costs.iter().rev().nth(1).copied().unwrap_or(Span::ZERO)
        };
        second(digits(estimate)).max(digits(estimate).checked_sub(1).map_or(Span::ZERO, second))
    }

    fn due(&self, now: Time) -> Option<Revision> {
        let first = self.waiting.first().filter(|first| self.held && !first.preempted)?;
        let half = Span::from_ns(first.believed.span().as_ns().min(1_000_000_000) / 2);
        let estimate = Estimate::new(half.max(self.confirmed(first.estimate)).max(Span::from_ms(1)));
        let late = now.since(self.since) >= Span::from_ms(500) && estimate < first.believed;
        late.then_some(Revision { group: first.id, estimate })
    }
}

fn op() -> impl Strategy<Value = Op> {
    let ns = || prop_oneof![4 => 0u64..400_000_000, 2 => 0u64..3_000_000, 1 => Just(u64::MAX)];
    let kind = prop_oneof![Just(GroupKind::Draw), Just(GroupKind::Swap)];
    let app = AppId(1);
    let hold = prop_oneof![
        3 => Just(Hold::Protects { app }),
        1 => Just(Hold::Clears { app }),
        1 => Just(Hold::NoSlot),
    ];
    prop_oneof![
        4 => (0u64..700).prop_map(Op::Wait),
        4 => (kind, ns()).prop_map(|(kind, ns)| Op::Submit(kind, Estimate::new(Span::from_ns(ns)))),
        2 => hold.prop_map(Op::Hold),
        2 => Just(Op::Grant),
        1 => Just(Op::Preempt),
        2 => (0usize..4, ns()).prop_map(|(place, ns)| Op::Measure(place, ns)),
        1 => (0usize..4).prop_map(Op::Lose),
        1 => prop_oneof![Just(0), ns()].prop_map(Op::Reserve),
    ]
}

/// Both hear of `op`.
fn play(belief: &mut Belief, slow: &mut Slow, now: &mut Time, op: Op) {
    match op {
        Op::Wait(ms) => *now += Span::from_ms(ms),
        Op::Submit(kind, estimate) if slow.waiting.len() < QUEUE_MAX => {
            let id = GroupId(slow.next);
            slow.next += 1;
            let believed = belief.submitted(*now, id, kind, estimate);
            assert!(believed <= estimate, "a cap never adds anything");
            if slow.waiting.is_empty() {
                (slow.held, slow.since) = (false, *now);
            }
            slow.waiting.push(Group { id, estimate, believed, preempted: false });
        }
        Op::Hold(reason) => {
            belief.held(reason);
            slow.held = reason != Hold::NoSlot;
        }
        Op::Grant if !slow.waiting.is_empty() && slow.in_flight.len() < IN_FLIGHT_MAX => {
            let group = slow.waiting.remove(0);
            belief.granted(*now, group.id);
            slow.since = *now;
            slow.in_flight.push(group);
        }
        Op::Preempt if !slow.in_flight.is_empty() => {
            let group = slow.in_flight.remove(slow.in_flight.len() - 1);
            belief.preempted(*now, group.id);
            slow.since = *now;
            slow.waiting.insert(0, Group { preempted: true, ..group });
        }
        Op::Measure(place, ns) if place < slow.in_flight.len() => {
            let (group, cost) = (slow.in_flight.remove(place), Span::from_ns(ns));
            belief.measured(*now, group.id, Cost::new(cost));
            slow.measured.extend((cost > Span::ZERO).then_some((group.estimate, cost)));
        }
        Op::Lose(place) if place < slow.in_flight.len() => belief.lost(slow.in_flight.remove(place).id),
        Op::Reserve(ns) => belief.reserve(Span::from_ns(ns)),
        Op::Submit(..) | Op::Grant | Op::Preempt | Op::Measure(..) | Op::Lose(..) => {}
    }
}

proptest! {
    #[test]
    fn revisions_are_those_of_the_slow_version(ops in proptest::collection::vec(op(), 1..300)) {
        let mut belief = Belief::default();
        let mut slow = Slow::default();
        let mut now = Time::ZERO;
        for op in ops {
            play(&mut belief, &mut slow, &mut now, op);
            let timeout = belief.next_timeout();
            let revision = belief.revise(now);
            prop_assert_eq!(revision, slow.due(now));
            prop_assert_eq!(timeout.is_some_and(|at| at <= now), revision.is_some());
            if let Some(Revision { group, estimate }) = revision {
                prop_assert_eq!(slow.waiting[0].id, group);
                slow.waiting[0].believed = estimate;
                slow.since = now;
            }
        }
    }
}

/// Estimates come down, and revisions end, whatever the numbers are.
#[test]
fn every_tuning_comes_to_an_end() {
    for (patience, keep_permille, estimate_min) in [(0, 500, 0), (0, 999, 0), (1, 0, 5), (0, 2_000, 1)] {
        let (patience, estimate_min) = (Span::from_ms(patience), Span::from_ms(estimate_min));
        for confirmations in [0, 1, usize::MAX] {
            let mut belief = Belief::new(Tuning {
                patience,
                keep_permille,
                estimate_min,
                confirmations,
                classes_below: usize::MAX,
                ..Tuning::default()
            });
            let estimate = belief.submitted(Time::ZERO, GroupId(0), GroupKind::Swap, Estimate::UNBOUNDED);
            belief.held(Hold::Unbounded);
            let mut believed = vec![estimate];
            while let Some(at) = belief.next_timeout() {
                believed.push(belief.revise(at).expect("it is due").estimate);
            }
            assert!(believed.is_sorted_by(|a, b| a > b) && believed.len() < 50_000);
        }
    }
}
