use super::*;
use crate::app::AppId;

const PROTECTS: Hold = Hold::Protects { app: AppId(1) };

fn ms(ms: u64) -> Estimate {
    Estimate::new(Span::from_ms(ms))
}

fn submit(belief: &mut Belief, group: u64, estimate: Estimate) {
    assert_eq!(belief.submitted(Time::ZERO, GroupId(group), GroupKind::Swap, estimate), estimate);
}

fn cost(ms: u64) -> Cost {
    Cost::new(Span::from_ms(ms))
}

/// What is believed of a group that is held for so long, looked at every 100 ms.
fn believed_after(belief: &mut Belief, estimate: Estimate, reason: Hold, held_ms: u64) -> Estimate {
    submit(belief, 0, estimate);
    belief.held(reason);
    let mut believed = estimate;
    for step in 0..=held_ms / 100 {
        if let Some(revision) = belief.revise(Time::from_ms(step * 100)) {
            assert_eq!(revision.group, GroupId(0));
            believed = revision.estimate;
        }
    }
    belief.granted(Time::from_ms(held_ms), GroupId(0));
    belief.measured(Time::from_ms(held_ms), GroupId(0), Cost::default());
    believed
}

#[test]
fn an_unconfirmed_estimate_loses_half_each_half_second() {
    let mut belief = Belief::default();
    assert_eq!(believed_after(&mut belief, ms(160), PROTECTS, 400), ms(160));
    assert_eq!(believed_after(&mut belief, ms(160), PROTECTS, 500), ms(80));
    assert_eq!(believed_after(&mut belief, ms(160), PROTECTS, 2_000), ms(10));
    assert_eq!(believed_after(&mut belief, ms(160), PROTECTS, 60_000), ms(1), "and no less");
    assert_eq!(believed_after(&mut belief, Estimate::UNBOUNDED, Hold::Unbounded, 1_500), ms(125));
    let short = Estimate::new(Span::from_us(900));
    assert_eq!(believed_after(&mut belief, short, PROTECTS, 9_000), short);
}

#[test]
fn only_holds_for_length_make_an_estimate_decay() {
    let mut belief = Belief::default();
    let behind = Hold::Behind { app: AppId(1) };
    for reason in [behind, Hold::NoSlot, Hold::Turn { app: AppId(1) }] {
        assert_eq!(believed_after(&mut belief, ms(160), reason, 60_000), ms(160), "{reason:?}");
    }
}

#[test]
fn an_estimate_that_was_measured_twice_is_kept() {
    let mut belief = Belief::default();
    let mut measure = |predicted: u64, took: u64| {
        submit(&mut belief, 7, ms(predicted));
        belief.granted(Time::ZERO, GroupId(7));
        belief.measured(Time::ZERO, GroupId(7), cost(took));
        believed_after(&mut belief, ms(160), PROTECTS, 60_000)
    };
    assert_eq!(measure(2, 170), ms(1), "of groups that are predicted to be short");
    assert_eq!(measure(2, 170), ms(1));
    assert_eq!(measure(150, 170), ms(1), "once: perhaps a compiler");
    assert_eq!(measure(140, 3), ms(3), "the second one was short");
    assert_eq!(measure(140, 90), ms(90), "two took as long as that");
    assert_eq!(measure(100, 165), ms(90), "another class, once");
    assert_eq!(measure(100, 165), ms(160), "but near, and twice");
}

#[test]
fn patience_starts_anew_for_each_group() {
    let mut belief = Belief::default();
    submit(&mut belief, 0, ms(160));
    submit(&mut belief, 1, ms(160));
    belief.held(PROTECTS);
    let half = |group| Some(Revision { group: GroupId(group), estimate: ms(80) });
    assert_eq!(belief.next_timeout(), Some(Time::from_ms(500)));
    assert_eq!(belief.revise(Time::from_ms(500)), half(0));
    belief.granted(Time::from_ms(600), GroupId(0));
    assert_eq!(belief.next_timeout(), Some(Time::from_ms(1_100)));
    assert_eq!(belief.revise(Time::from_ms(1_000)), None, "it is the first since 600 ms");
    assert_eq!(belief.revise(Time::from_ms(1_100)), half(1));
}

#[test]
fn a_preempted_group_is_not_revised() {
    let mut belief = Belief::default();
    submit(&mut belief, 0, ms(160));
    submit(&mut belief, 1, ms(160));
    belief.granted(Time::ZERO, GroupId(0));
    belief.preempted(Time::from_ms(50), GroupId(0));
    belief.held(PROTECTS);
    assert_eq!((belief.next_timeout(), belief.revise(Time::from_ms(900))), (None, None));
    // It had finished when it was taken back: its completion was already on its way.
    belief.measured(Time::from_ms(1_000), GroupId(0), cost(160));
    assert_eq!(belief.next_timeout(), Some(Time::from_ms(1_500)), "the next group is the first now");
}

#[test]
fn a_lost_group_is_forgotten() {
    let mut belief = Belief::new(Tuning { confirmations: 1, ..Tuning::default() });
    for group in [0, 1] {
        submit(&mut belief, group, ms(160));
        belief.granted(Time::ZERO, GroupId(group));
    }
    belief.lost(GroupId(0));
    belief.measured(Time::ZERO, GroupId(0), cost(150));
    assert_eq!(believed_after(&mut belief, ms(160), PROTECTS, 60_000), ms(1));
    belief.measured(Time::ZERO, GroupId(1), cost(150));
    assert_eq!(believed_after(&mut belief, ms(160), PROTECTS, 60_000), ms(150), "one is enough here");
}

#[test]
fn a_frame_is_believed_to_take_what_it_reserved_and_little_more() {
    let mut belief = Belief::default();
    belief.reserve(Span::from_ms(8));
    let mut believed = |estimate: u64, kind: GroupKind| {
        belief.submitted(Time::ZERO, GroupId(0), kind, ms(estimate)).span().as_us() / 1_000
    };
    assert_eq!(believed(3, GroupKind::Draw), 3);
    assert_eq!(believed(100, GroupKind::Draw), 5);
    assert_eq!(believed(100, GroupKind::Swap), 1, "nothing is left");
    assert_eq!(believed(100, GroupKind::Swap), 8, "of the next frame");
    assert_eq!(believed(6, GroupKind::Draw), 6);
    belief.end_frame();
    let next = belief.submitted(Time::ZERO, GroupId(0), GroupKind::Draw, ms(100));
    assert_eq!(next, ms(8), "a frame without a swap ends as well");
}

#[test]
fn without_a_reservation_nothing_is_capped() {
    let mut belief = Belief::default();
    belief.reserve(Span::ZERO);
    submit(&mut belief, 0, ms(500));
}
