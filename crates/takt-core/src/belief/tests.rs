use super::*;
use crate::app::AppId;
use crate::time::Cost;

const PROTECTS: Hold = Hold::Protects { app: AppId(1) };

fn ms(ms: u64) -> Estimate {
    Estimate::new(Span::from_ms(ms))
}

fn submit(belief: &mut Belief, group: u64, estimate: Estimate) {
    assert_eq!(belief.submitted(Time::ZERO, GroupId(group), GroupKind::Swap, estimate), estimate);
}

fn running() -> Belief {
    let mut belief = Belief::default();
    belief.set_uncut(Uncut::Run);
    belief
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
    belief.completed(Time::from_ms(held_ms), GroupId(0), Cost::default());
    believed
}

#[test]
fn work_that_fits_nowhere_keeps_its_estimate() {
    let mut belief = Belief::default();
    for estimate in [ms(160), Estimate::UNBOUNDED] {
        assert_eq!(believed_after(&mut belief, estimate, PROTECTS, 600_000), estimate);
    }
    assert_eq!(belief.next_timeout(), None);
}

#[test]
fn work_that_may_run_does_so_after_two_seconds() {
    let mut belief = running();
    assert_eq!(believed_after(&mut belief, ms(160), PROTECTS, 1_900), ms(160));
    assert_eq!(believed_after(&mut belief, ms(160), PROTECTS, 2_000), ms(1));
    assert_eq!(believed_after(&mut belief, Estimate::UNBOUNDED, Hold::Unbounded, 2_000), ms(1));
    let short = Estimate::new(Span::from_us(900));
    assert_eq!(believed_after(&mut belief, short, PROTECTS, 9_000), short);
}

#[test]
fn work_of_unknown_length_runs_where_no_contract_opposes() {
    let mut belief = Belief::default();
    submit(&mut belief, 0, Estimate::UNBOUNDED);
    assert_eq!(belief.revise_unopposed(), None, "it is not held");
    belief.held(Hold::Unbounded);
    let revision = belief.revise_unopposed().expect("held for its length");
    assert_eq!((revision.group, revision.estimate), (GroupId(0), ms(1)));
    assert_eq!(belief.revise_unopposed(), None, "once");
    let mut belief = Belief::default();
    submit(&mut belief, 0, ms(160));
    belief.held(PROTECTS);
    assert_eq!(belief.revise_unopposed(), None, "a known length needs none of that");
}

#[test]
fn only_holds_for_length_count() {
    let behind = Hold::Behind { app: AppId(1) };
    for reason in [behind, Hold::NoSlot, Hold::Turn { app: AppId(1) }] {
        assert_eq!(believed_after(&mut running(), ms(160), reason, 60_000), ms(160), "{reason:?}");
        let mut belief = Belief::default();
        submit(&mut belief, 0, ms(160));
        belief.held(reason);
        assert_eq!(belief.stuck(Time::from_ms(60_000)), None, "{reason:?}");
    }
}

#[test]
fn each_group_that_is_stuck_is_told_once() {
    let mut belief = Belief::default();
    submit(&mut belief, 0, ms(160));
    submit(&mut belief, 1, ms(80));
    belief.held(PROTECTS);
    assert_eq!(belief.stuck(Time::from_ms(1_999)), None);
    assert_eq!(belief.stuck(Time::from_ms(2_000)), Some(Stuck { group: GroupId(0), estimate: ms(160) }));
    assert_eq!(belief.stuck(Time::from_ms(9_000)), None);
    belief.granted(Time::from_ms(9_000), GroupId(0));
    assert_eq!(belief.stuck(Time::from_ms(10_900)), None, "it is the first since 9 s");
    assert_eq!(belief.stuck(Time::from_ms(11_000)), Some(Stuck { group: GroupId(1), estimate: ms(80) }));
}

#[test]
fn patience_starts_anew_for_each_group() {
    let mut belief = running();
    submit(&mut belief, 0, ms(160));
    submit(&mut belief, 1, ms(160));
    belief.held(PROTECTS);
    let least = |group| Some(Revision { group: GroupId(group), estimate: ms(1) });
    assert_eq!(belief.next_timeout(), Some(Time::from_ms(2_000)));
    assert_eq!(belief.revise(Time::from_ms(2_000)), least(0));
    belief.granted(Time::from_ms(2_100), GroupId(0));
    assert_eq!(belief.next_timeout(), Some(Time::from_ms(4_100)));
    assert_eq!(belief.revise(Time::from_ms(4_000)), None, "it is the first since 2100 ms");
    assert_eq!(belief.revise(Time::from_ms(4_100)), least(1));
}

#[test]
fn a_preempted_group_is_not_revised() {
    let mut belief = running();
    submit(&mut belief, 0, ms(160));
    submit(&mut belief, 1, ms(160));
    belief.granted(Time::ZERO, GroupId(0));
    belief.preempted(Time::from_ms(50), GroupId(0));
    belief.held(PROTECTS);
    assert_eq!((belief.next_timeout(), belief.revise(Time::from_ms(9_000))), (None, None));
    // It had finished when it was taken back: its completion was already on its way.
    belief.completed(Time::from_ms(1_000), GroupId(0), Cost::default());
    assert_eq!(belief.next_timeout(), Some(Time::from_ms(3_000)), "the next group is the first now");
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

/// A frame of one group that says and takes so much; what is believed of it.
fn frame(belief: &mut Belief, says: u64, takes: u64) -> Estimate {
    let believed = belief.submitted(Time::ZERO, GroupId(0), GroupKind::Swap, ms(says));
    belief.granted(Time::ZERO, GroupId(0));
    belief.completed(Time::ZERO, GroupId(0), Cost::new(Span::from_ms(takes)));
    believed
}

#[test]
fn a_cap_that_measurements_contradict_is_lifted() {
    let mut belief = Belief::default();
    belief.reserve(Span::from_ms(8));
    assert_eq!(frame(&mut belief, 100, 100), ms(8));
    assert_eq!(frame(&mut belief, 100, 100), ms(8));
    assert_eq!(frame(&mut belief, 100, 100), ms(100), "twice is enough");
    (0..100).for_each(|_| assert_eq!(frame(&mut belief, 1, 1), ms(1), "right all the time"));
    (0..8).for_each(|_| assert_eq!(frame(&mut belief, 100, 5), ms(100)));
    assert_eq!(frame(&mut belief, 100, 100), ms(8), "wrong eight times");
    assert_eq!(frame(&mut belief, 100, 100), ms(100));
}

#[test]
fn wrong_estimates_stay_capped() {
    let mut belief = Belief::default();
    belief.reserve(Span::from_ms(8));
    for number in 0..64 {
        // A driver compiles in a frame now and then, and no frame keeps quite to its reservation.
        let takes = if number % 16 == 0 { 170 } else { 7 };
        assert_eq!(frame(&mut belief, 100, takes), ms(8), "frame {number}");
        assert_eq!(frame(&mut belief, 7, 170), ms(7), "what it did not say does not count");
        assert_eq!(frame(&mut belief, 100, 16), ms(8));
    }
}

#[test]
fn without_a_reservation_nothing_is_capped() {
    let mut belief = Belief::default();
    belief.reserve(Span::ZERO);
    submit(&mut belief, 0, ms(500));
}
