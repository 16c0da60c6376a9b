//! Estimates that keep an app from running, and that nobody has confirmed.
//!
//! A group that is predicted to take longer than reservations of others ever leave is held back, and
//! one that never runs is never measured: if the estimate was wrong, nothing would ever mend it. So an
//! estimate loses half for each half second in which its group is held back for its length, but
//! never goes below what such groups were measured to take (ADR 0031).
//!
//! Such groups are those of the same app that were predicted to take about as long. A length counts
//! as measured when two of them took it: the first time that a program draws something, its driver
//! compiles, which may take as long as any wrong estimate.

use std::collections::VecDeque;

use takt_core::limits::QUEUE_MAX;
use takt_core::{Estimate, GroupId, Hold, Span, Time};

/// How long a group is held back before its estimate is doubted, and between two doubts.
const PATIENCE: Span = Span::from_ms(500);
/// No estimate is worth more than that when it is doubted first.
const LONGEST: Span = Span::from_ms(1_000);
/// No estimate is doubted that is shorter: where not even so much fits, nothing does.
const LEAST: Span = Span::from_ms(1);

/// Estimates belong together that have the same number of binary digits, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Class(usize);

const CLASSES: usize = 65;

impl Class {
    fn of(estimate: Estimate) -> Self {
        Self((64 - estimate.span().as_ns().leading_zeros()) as usize)
    }
}

/// What waits of an app, and what was measured of it.
#[derive(Debug)]
pub(crate) struct Doubt {
    waiting: VecDeque<Waiting>,
    /// Whether the first of them is held back for its length.
    held: bool,
    /// Since when it is the first, or when it was last doubted.
    since: Time,
    measured: [Measured; CLASSES],
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    group: GroupId,
    class: Class,
    believed: Estimate,
}

/// The two longest times that groups of a class took.
#[derive(Clone, Copy, Default, Debug)]
struct Measured {
    longest: Span,
    confirmed: Span,
}

impl Default for Doubt {
    fn default() -> Self {
        Self {
            waiting: VecDeque::with_capacity(QUEUE_MAX),
            held: false,
            since: Time::ZERO,
            measured: [Measured::default(); CLASSES],
        }
    }
}

impl Doubt {
    /// A group was asked for, is predicted to take `estimate`, and believed to take `believed`.
    pub(crate) fn asked(&mut self, now: Time, group: GroupId, estimate: Estimate, believed: Estimate) {
        if self.waiting.is_empty() {
            (self.held, self.since) = (false, now);
        }
        // Who asks for more than may wait is let go.
        if self.waiting.len() < QUEUE_MAX {
            self.waiting.push_back(Waiting { group, class: Class::of(estimate), believed });
        }
    }

    /// The first group is held back.
    pub(crate) fn held(&mut self, reason: Hold) {
        self.held = matches!(
            reason,
            Hold::Protects { .. } | Hold::Clears { .. } | Hold::Unbounded | Hold::NoBudget { .. }
        );
    }

    /// A group was granted; its class, to be told when it was measured. A reason that holds for the
    /// next one as well is not told again.
    pub(crate) fn granted(&mut self, now: Time, group: GroupId) -> Option<Class> {
        self.since = now;
        while let Some(first) = self.waiting.pop_front() {
            if first.group == group {
                return Some(first.class);
            }
        }
        None
    }

    /// A group of that class took so long.
    pub(crate) fn measured(&mut self, class: Class, cost: Span) {
        let Measured { longest, confirmed } = &mut self.measured[class.0];
        *confirmed = (*confirmed).max(cost.min(*longest));
        *longest = (*longest).max(cost);
    }

    /// What is believed from now on of the first group, if that is doubted now.
    pub(crate) fn revised(&mut self, now: Time) -> Option<(GroupId, Estimate)> {
        if !self.held || now.since(self.since) < PATIENCE {
            return None;
        }
        let first = self.waiting.front_mut()?;
        // Estimates that lie near a border between two classes are confirmed by either.
        let confirmed = self.measured[first.class.0.saturating_sub(1)..=first.class.0].iter();
        let confirmed = confirmed.map(|measured| measured.confirmed).fold(LEAST, Span::max);
        let half = Span::from_ns(first.believed.span().min(LONGEST).as_ns() / 2);
        let believed = Estimate::new(half.max(confirmed)).min(first.believed);
        if believed == first.believed {
            return None;
        }
        first.believed = believed;
        self.since = now;
        Some((first.group, believed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_core::AppId;

    const PROTECTS: Hold = Hold::Protects { app: AppId(1) };

    fn ms(ms: u64) -> Estimate {
        Estimate::new(Span::from_ms(ms))
    }

    /// What is believed of a group that is held back for so long, in steps of 100 ms.
    fn believed_after(doubt: &mut Doubt, estimate: Estimate, reason: Hold, held_ms: u64) -> Estimate {
        doubt.asked(Time::ZERO, GroupId(0), estimate, estimate);
        doubt.held(reason);
        let mut believed = estimate;
        for step in 0..=held_ms / 100 {
            if let Some((group, revised)) = doubt.revised(Time::from_ms(step * 100)) {
                assert_eq!(group, GroupId(0));
                believed = revised;
            }
        }
        assert!(doubt.granted(Time::from_ms(held_ms), GroupId(0)).is_some());
        believed
    }

    #[test]
    fn what_nobody_confirmed_loses_half_each_half_second() {
        let mut doubt = Doubt::default();
        assert_eq!(believed_after(&mut doubt, ms(160), PROTECTS, 400), ms(160));
        assert_eq!(believed_after(&mut doubt, ms(160), PROTECTS, 500), ms(80));
        assert_eq!(believed_after(&mut doubt, ms(160), PROTECTS, 2_000), ms(10));
        assert_eq!(believed_after(&mut doubt, ms(160), PROTECTS, 60_000), ms(1), "and no less");
        assert_eq!(believed_after(&mut doubt, Estimate::UNBOUNDED, Hold::Unbounded, 1_500), ms(125));
        let short = Estimate::new(Span::from_us(900));
        assert_eq!(believed_after(&mut doubt, short, PROTECTS, 9_000), short);
    }

    #[test]
    fn only_those_are_doubted_that_are_held_back_for_their_length() {
        let mut doubt = Doubt::default();
        let behind = Hold::Behind { app: AppId(1) };
        for reason in [behind, Hold::NoSlot, Hold::Turn { app: AppId(1) }] {
            assert_eq!(believed_after(&mut doubt, ms(160), reason, 60_000), ms(160), "{reason:?}");
        }
    }

    #[test]
    fn what_was_measured_twice_is_never_doubted() {
        let mut doubt = Doubt::default();
        let mut measure = |predicted: u64, cost: u64| {
            doubt.asked(Time::ZERO, GroupId(7), ms(predicted), ms(predicted));
            let class = doubt.granted(Time::ZERO, GroupId(7)).expect("it was asked for");
            doubt.measured(class, Span::from_ms(cost));
            believed_after(&mut doubt, ms(160), PROTECTS, 60_000)
        };
        assert_eq!(measure(2, 170), ms(1), "of groups that are predicted to be short");
        assert_eq!(measure(2, 170), ms(1));
        assert_eq!(measure(150, 170), ms(1), "once: perhaps a compiler");
        assert_eq!(measure(140, 3), ms(3), "the second one was short");
        assert_eq!(measure(140, 90), ms(90), "two took as long as that");
        assert_eq!(measure(100, 165), ms(90), "another class, once");
        assert_eq!(measure(100, 165), ms(160), "but near by, and twice");
    }

    #[test]
    fn each_group_is_doubted_by_itself() {
        let mut doubt = Doubt::default();
        doubt.asked(Time::ZERO, GroupId(0), ms(160), ms(160));
        doubt.asked(Time::ZERO, GroupId(1), ms(160), ms(160));
        doubt.held(PROTECTS);
        assert_eq!(doubt.revised(Time::from_ms(500)), Some((GroupId(0), ms(80))));
        assert!(doubt.granted(Time::from_ms(600), GroupId(0)).is_some());
        assert_eq!(doubt.revised(Time::from_ms(1_000)), None, "it is the first since 600 ms");
        assert_eq!(doubt.revised(Time::from_ms(1_100)), Some((GroupId(1), ms(80))));
    }
}
