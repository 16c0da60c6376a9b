//! Random events for a [`Belief`], beside a slow version of its rules.

use proptest::prelude::*;
use takt_core::belief::{Belief, Revision, Stuck, Uncut};
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
    Complete(usize, u64),
    Lose(usize),
    Reserve(u64),
    Uncut(bool),
}

#[derive(Clone, Copy, Debug)]
struct Group {
    id: GroupId,
    believed: Estimate,
    preempted: bool,
}

#[derive(Default)]
struct Slow {
    waiting: Vec<Group>,
    in_flight: Vec<Group>,
    held: bool,
    since: Time,
    told: Vec<(GroupId, Time)>,
    runs: bool,
    next: u64,
}

impl Slow {
    /// The first group, if it has been held for its length for two seconds.
    fn long(&self, now: Time) -> Option<Group> {
        let first = *self.waiting.first().filter(|first| self.held && !first.preempted)?;
        let long = first.believed > Estimate::new(Span::from_ms(1));
        (long && now.since(self.since) >= Span::from_ms(2_000)).then_some(first)
    }

    fn stuck(&mut self, now: Time) -> Option<Stuck> {
        let Group { id, believed, .. } =
            self.long(now).filter(|_| !self.told.iter().any(|told| told.1 == self.since))?;
        self.told.push((id, self.since));
        Some(Stuck { group: id, estimate: believed })
    }

    fn due(&self, now: Time) -> Option<Revision> {
        let first = self.long(now).filter(|_| self.runs)?;
        Some(Revision { group: first.id, estimate: Estimate::new(Span::from_ms(1)) })
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
        4 => (0u64..2_500).prop_map(Op::Wait),
        4 => (kind, ns()).prop_map(|(kind, ns)| Op::Submit(kind, Estimate::new(Span::from_ns(ns)))),
        2 => hold.prop_map(Op::Hold),
        2 => Just(Op::Grant),
        1 => Just(Op::Preempt),
        2 => (0usize..4, ns()).prop_map(|(place, cost)| Op::Complete(place, cost)),
        1 => any::<bool>().prop_map(Op::Uncut),
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
            slow.waiting.push(Group { id, believed, preempted: false });
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
        Op::Complete(place, cost) if place < slow.in_flight.len() => {
            let id = slow.in_flight.remove(place).id;
            belief.completed(*now, id, Cost::new(Span::from_ns(cost)));
        }
        Op::Uncut(runs) => {
            belief.set_uncut(if runs { Uncut::Run } else { Uncut::Wait });
            slow.runs = runs;
        }
        Op::Lose(place) if place < slow.in_flight.len() => belief.lost(slow.in_flight.remove(place).id),
        Op::Reserve(ns) => belief.reserve(Span::from_ns(ns)),
        Op::Submit(..) | Op::Grant | Op::Preempt | Op::Complete(..) | Op::Lose(..) => {}
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
            // Each group is told of by the time since which it is the first.
            now += Span::from_ns(1);
            prop_assert_eq!(belief.stuck(now), slow.stuck(now));
            let timeout = belief.next_timeout();
            let revision = belief.revise(now);
            prop_assert_eq!(revision, slow.due(now));
            prop_assert_eq!(timeout.is_some_and(|at| at <= now), revision.is_some());
            if let Some(Revision { group, estimate }) = revision {
                prop_assert_eq!(slow.waiting[0].id, group);
                slow.waiting[0].believed = estimate;
            }
        }
    }
}
