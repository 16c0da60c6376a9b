//! Broken invariants are noticed, and all apps run free.

use alloc::boxed::Box;
use std::vec::Vec;

use crate::app::{AppId, AppParams, GroupId, GroupKind, Priority, Stride};
use crate::config::Config;
use crate::event::{Action, Event, Refusal};
use crate::invariant::{Broken, Invariant};
use crate::limits::{IN_FLIGHT_MAX, QUEUE_MAX};
use crate::policy::{Context, Policy, Timeline};
use crate::scheduler::{Lane, Scheduler};
use crate::service::Service;
use crate::time::{Cost, Estimate, Span, Time};

const APPS: u32 = 4;

/// Two groups, of which [`Brief`] lets only one run.
const SHORT: Estimate = Estimate::new(Span::from_us(10));
const LONG: Estimate = Estimate::new(Span::from_ms(5));

/// Lets short groups run and no others.
#[derive(Debug)]
struct Brief;

impl Policy for Brief {
    fn name(&self) -> &'static str {
        "brief"
    }

    fn choose(&mut self, _context: &Context, lanes: &mut [Lane]) -> Option<usize> {
        let short = |lane: &Lane| lane.head.is_some_and(|head| head.conservative < Span::from_ms(1));
        lanes.iter().position(short)
    }
}

/// Chooses whatever it was told to, whether that is there or not.
#[derive(Debug)]
struct Blind(usize);

impl Policy for Blind {
    fn name(&self) -> &'static str {
        "blind"
    }

    fn choose(&mut self, _context: &Context, _lanes: &mut [Lane]) -> Option<usize> {
        Some(self.0)
    }
}

fn scheduler(policy: Box<dyn Policy>) -> Scheduler {
    let mut scheduler = Scheduler::new(Config { apps_max: APPS, ..Config::default() }, policy);
    for app in 0..APPS - 1 {
        join(&mut scheduler, app);
    }
    fetch(&mut scheduler);
    scheduler
}

fn join(scheduler: &mut Scheduler, app: u32) {
    let params = AppParams {
        priority: Priority(app),
        stride: Stride::ONE,
        etpf: Span::from_ms(1),
        clock: crate::Clock::default(),
        service: Service::default(),
    };
    tell(scheduler, Event::Join { app: AppId(app), params, phase: 0 });
}

fn tell(scheduler: &mut Scheduler, event: Event) {
    scheduler.handle_event(Time::from_us(100), event);
}

fn submit(scheduler: &mut Scheduler, app: u32, group: u64, kind: GroupKind, estimate: Estimate) {
    tell(scheduler, Event::Submit { app: AppId(app), group: GroupId(group), kind, estimate });
}

fn complete(scheduler: &mut Scheduler, group: u64) {
    let cost = Cost::new(Span::from_us(10));
    tell(scheduler, Event::Complete { group: GroupId(group), finished: Time::from_us(100), cost, frames: 0 });
}

fn fetch(scheduler: &mut Scheduler) -> Vec<Action> {
    core::iter::from_fn(|| scheduler.poll_action()).collect()
}

fn dispatched(actions: &[Action]) -> Vec<u64> {
    let group = |action: &Action| match action {
        Action::Dispatch { group, .. } => Some(group.0),
        _ => None,
    };
    actions.iter().filter_map(group).collect()
}

fn told(actions: &[Action]) -> Vec<Broken> {
    let broken = |action: &Action| match action {
        Action::Broken(broken) => Some(*broken),
        _ => None,
    };
    actions.iter().filter_map(broken).collect()
}

/// What is told of a scheduler whose groups 0 to 2 wait and whose group 9 is in flight, after `harm` was
/// done to it and `next` happened.
fn after(harm: fn(&mut Scheduler), next: fn(&mut Scheduler)) -> Option<(Invariant, Option<u32>)> {
    let mut scheduler = scheduler(Box::new(Brief));
    submit(&mut scheduler, 2, 9, GroupKind::Draw, SHORT);
    for app in [0, 1] {
        submit(&mut scheduler, app, app.into(), GroupKind::Draw, LONG);
    }
    submit(&mut scheduler, 2, 2, GroupKind::Draw, LONG);
    assert_eq!(dispatched(&fetch(&mut scheduler)), [9]);
    scheduler.check_invariants();
    harm(&mut scheduler);
    next(&mut scheduler);
    let actions = fetch(&mut scheduler);
    let broken = told(&actions);
    assert_eq!(broken.first().copied(), scheduler.broken());
    if !broken.is_empty() {
        let mut went = dispatched(&actions);
        went.sort_unstable();
        assert_eq!((broken.len(), &went[..3]), (1, &[0, 1, 2][..]), "all that waited goes: {actions:?}");
        assert!(went.is_sorted_by(|a, b| a < b), "none goes twice: {actions:?}");
        let judged = |action: &Action| matches!(action, Action::Missed { .. } | Action::FrameDone(_));
        scheduler.handle_timeout(Time::from_ms(99));
        assert!(!fetch(&mut scheduler).iter().any(judged), "nothing is judged any more");
    }
    broken.first().map(|broken| (broken.what, broken.app.map(|app| app.0)))
}

fn more_of_0(scheduler: &mut Scheduler) {
    submit(scheduler, 0, 77, GroupKind::Draw, LONG);
}

fn end_of_9(scheduler: &mut Scheduler) {
    complete(scheduler, 9);
}

fn time_passes(scheduler: &mut Scheduler) {
    scheduler.handle_timeout(Time::from_us(200));
}

/// The event itself comes after what time has brought.
fn more_of_0_later(scheduler: &mut Scheduler) {
    let (app, group, kind, estimate) = (AppId(0), GroupId(77), GroupKind::Draw, LONG);
    scheduler.handle_event(Time::from_ms(17), Event::Submit { app, group, kind, estimate });
    assert_eq!(scheduler.broken().map(|broken| broken.at), scheduler.broken().map(|_| Time::from_ms(17)));
}

fn period_ends(scheduler: &mut Scheduler) {
    scheduler.handle_timeout(Time::from_ms(17));
}

fn focus(scheduler: &mut Scheduler) {
    tell(scheduler, Event::Focus { app: Some(AppId(1)) });
}

fn lane(scheduler: &mut Scheduler, app: u32) -> &mut Lane {
    scheduler.lanes.iter_mut().find(|lane| lane.app.0 == app).expect("attached")
}

#[test]
fn nothing_is_broken_unless_something_is() {
    for next in [more_of_0, more_of_0_later, end_of_9, time_passes, period_ends, focus] {
        assert_eq!(after(|_| {}, next), None);
    }
}

#[test]
fn what_is_wrong_with_a_lane_is_noticed_at_its_next_event() {
    let about_0 = |what| Some((what, Some(0)));
    let head = |scheduler: &mut Scheduler| lane(scheduler, 0).head.as_mut().expect("it waits").order += 1;
    assert_eq!(after(head, more_of_0), about_0(Invariant::Head));
    assert_eq!(after(|s| lane(s, 0).waiting += 1, more_of_0), about_0(Invariant::Queue));
    assert_eq!(after(|s| lane(s, 0).batches = 3, more_of_0), about_0(Invariant::Queue));
    let ledger = |s: &mut Scheduler| lane(s, 0).front.enqueued = Span::ZERO;
    assert_eq!(after(ledger, end_of_9), None, "that was about another lane");
    assert_eq!(after(|s| lane(s, 0).front.complete = true, focus), about_0(Invariant::Ledger));
    assert_eq!(after(|s| lane(s, 0).app = AppId(3), more_of_0), about_0(Invariant::Slot));
    let target = |s: &mut Scheduler| {
        let period = lane(s, 0).target;
        s.slots[0].frames.rebase(|_| period + 9);
    };
    assert_eq!(after(target, more_of_0), about_0(Invariant::Target));
}

#[test]
fn what_is_wrong_with_the_gpu_is_noticed_when_a_group_ends() {
    let about_2 = |what| Some((what, Some(2)));
    assert_eq!(after(|s| lane(s, 2).in_flight += 1, end_of_9), about_2(Invariant::InFlight));
    assert_eq!(after(|s| s.in_flight.clear(), time_passes), Some((Invariant::Balance, None)));
    assert_eq!(after(|s| s.stats.lost += 1, more_of_0), Some((Invariant::Balance, None)));
}

#[test]
fn what_is_wrong_with_sums_and_order_is_noticed() {
    let of_all = |what| Some((what, None));
    assert_eq!(after(|s| s.waiting = 9, time_passes), of_all(Invariant::Waiting));
    assert_eq!(after(|s| s.waiting -= 1, more_of_0), None, "others may wait as well");
    assert_eq!(after(|s| s.waiting -= 1, period_ends), of_all(Invariant::Waiting), "all are looked at");
    assert_eq!(after(|s| s.waiting -= 1, more_of_0_later), of_all(Invariant::Waiting));
    assert_eq!(after(|s| s.guarded = Time::from_ms(9), time_passes), of_all(Invariant::Time));
    // Sorting repairs lanes that are out of order, but not two of the same priority.
    assert_eq!(after(|s| s.slots[0].priority = Priority(1), focus), of_all(Invariant::Order));
    assert_eq!(after(|s| s.slots[3].lane = Some(0), focus), of_all(Invariant::Slot));
}

#[test]
fn a_policy_that_chooses_nonsense_decides_no_more() {
    for index in [0, 1, APPS as usize + 3] {
        let mut scheduler = scheduler(Box::new(Blind(index)));
        submit(&mut scheduler, 0, 5, GroupKind::Draw, SHORT);
        let actions = fetch(&mut scheduler);
        assert_eq!(told(&actions).first().map(|broken| broken.what), Some(Invariant::Choice), "{index}");
        assert_eq!(dispatched(&actions), [5]);
    }
}

#[test]
#[should_panic(expected = "broken invariant 'head'")]
fn the_full_check_panics_for_what_was_broken_before() {
    let mut scheduler = scheduler(Box::new(Brief));
    scheduler.break_off(Invariant::Head, None);
    scheduler.check_invariants();
}

/// More groups wait than may be in flight, and more than that come: all of them go, in the order in which
/// they came, and it is told once.
#[test]
fn everything_runs_free_and_goes_on_so() {
    let mut scheduler = scheduler(Box::new(Brief));
    let most = (APPS as usize - 1) * QUEUE_MAX;
    assert!(most > IN_FLIGHT_MAX);
    for group in 0..most as u64 {
        submit(&mut scheduler, (group % 3) as u32, group, GroupKind::Draw, LONG);
    }
    assert_eq!(dispatched(&fetch(&mut scheduler)), []);
    lane(&mut scheduler, 0).waiting = 0;
    let overflow = most as u64;
    submit(&mut scheduler, 0, overflow, GroupKind::Draw, LONG);
    scheduler.handle_timeout(Time::from_us(200));
    let actions = fetch(&mut scheduler);
    assert_eq!(dispatched(&actions), (0..overflow).collect::<Vec<_>>());
    let refused =
        Action::Refused { app: AppId(0), group: Some(GroupId(overflow)), reason: Refusal::QueueFull };
    assert!(actions.contains(&refused), "an answer, not a loss");
    assert_eq!(told(&actions).len(), 1);
    assert_eq!((scheduler.in_flight(), scheduler.poll_timeout()), (0, None));
    assert!(scheduler.lanes().iter().all(|lane| !lane.protected), "nothing is promised");
    for group in 1000..1000 + 3 * IN_FLIGHT_MAX as u64 {
        submit(&mut scheduler, 1, group, GroupKind::Draw, LONG);
        assert_eq!(dispatched(&fetch(&mut scheduler)), [group]);
    }
    complete(&mut scheduler, 1000);
    assert_eq!(fetch(&mut scheduler), [], "ends have no effect any more");
}

#[test]
fn apps_come_and_go_and_are_released_while_everything_runs_free() {
    let mut scheduler = scheduler(Box::new(Brief));
    submit(&mut scheduler, 0, 0, GroupKind::Swap, LONG);
    scheduler.break_off(Invariant::Time, None);
    let actions = fetch(&mut scheduler);
    let next = scheduler.config().refresh.end(scheduler.current_period());
    assert_eq!(actions.last(), Some(&Action::Release { app: AppId(0), at: next }));
    join(&mut scheduler, 3);
    submit(&mut scheduler, 3, 1, GroupKind::Exit, LONG);
    let actions = fetch(&mut scheduler);
    assert!(matches!(actions[0], Action::Release { app: AppId(3), .. }), "{actions:?}");
    assert_eq!(dispatched(&actions), [1]);
    assert_eq!(actions.last(), Some(&Action::Left { app: AppId(3), dropped: 0 }));
    submit(&mut scheduler, 1, 2, GroupKind::Draw, LONG);
    tell(&mut scheduler, Event::Leave { app: AppId(1) });
    assert_eq!(fetch(&mut scheduler), [Action::Left { app: AppId(1), dropped: 1 }]);
    for (event, reason) in [
        (Event::Leave { app: AppId(1) }, Refusal::UnknownApp),
        (Event::Leave { app: AppId(77) }, Refusal::UnknownApp),
    ] {
        tell(&mut scheduler, event);
        assert!(
            matches!(fetch(&mut scheduler)[..], [Action::Refused { reason: told, .. }] if told == reason)
        );
    }
    join(&mut scheduler, 0);
    join(&mut scheduler, 99);
    let refused = fetch(&mut scheduler);
    assert!(refused.iter().all(|action| matches!(action, Action::Refused { .. })) && refused.len() == 2);
    let before = scheduler.replace_policy(Box::new(Timeline::new()));
    assert_eq!((before.name(), fetch(&mut scheduler)), ("brief", Vec::new()));
}

/// The same events give the same violation at the same event.
#[test]
fn a_violation_happens_again() {
    let play = || {
        // It chooses the least important app, which has nothing that waits at the fourth event.
        let mut scheduler = scheduler(Box::new(Blind(2)));
        let mut all = Vec::new();
        for group in 0..6 {
            submit(&mut scheduler, u32::from(group >= 3), group, GroupKind::Draw, SHORT);
            all.push(fetch(&mut scheduler));
        }
        all
    };
    let (first, again) = (play(), play());
    assert_eq!(first, again);
    let events: Vec<usize> = (0..6).filter(|event| !told(&first[*event]).is_empty()).collect();
    assert_eq!(events, [3]);
    assert!((0..6).all(|event| dispatched(&first[event]) == [event as u64]), "each goes at once");
}
