//! Reaching a bound, or asking for nonsense, is an answer with a reason; nothing changes.

use takt_core::event::{LostBy, Refusal};
use takt_core::limits::{APPS_MAX, FRAMES_PER_GROUP_MAX, IN_FLIGHT_MAX, QUEUE_MAX};
use takt_core::{
    Action, AppId, AppParams, Config, Cost, Estimate, Event, GroupId, GroupKind, Margins, Priority, Refresh,
    Scheduler, Service, Span, Stride, Time,
};
use takt_policies::{Fifo, FrameDeadline};

fn params(priority: u32, stride: u32) -> AppParams {
    let stride = Stride::new(stride).expect("a valid stride");
    AppParams {
        priority: Priority(priority),
        stride,
        etpf: Span::ZERO,
        clock: takt_core::Clock::default(),
        service: Service::default(),
    }
}

fn scheduler(apps_max: u32, mpcg: u32) -> Scheduler {
    let config = Config { apps_max, mpcg, margins: Margins::NONE, ..Config::default() };
    Scheduler::new(config, Box::new(Fifo))
}

fn join(scheduler: &mut Scheduler, app: u32, params: AppParams) {
    scheduler.handle_event(Time::ZERO, Event::Join { app: AppId(app), params, phase: 0 });
}

fn submit(scheduler: &mut Scheduler, now: Time, app: u32, group: u64) {
    let (app, group, estimate) = (AppId(app), GroupId(group), Estimate::new(Span::from_us(100)));
    scheduler.handle_event(now, Event::Submit { app, group, kind: GroupKind::Draw, estimate });
}

fn complete(scheduler: &mut Scheduler, now: Time, group: u64) {
    let cost = Cost::new(Span::from_us(100));
    scheduler.handle_event(now, Event::Complete { group: GroupId(group), finished: now, cost, frames: 0 });
}

fn actions(scheduler: &mut Scheduler) -> Vec<Action> {
    let actions = std::iter::from_fn(|| scheduler.poll_action()).collect();
    scheduler.check_invariants();
    actions
}

fn refusals(scheduler: &mut Scheduler) -> Vec<Refusal> {
    let refusal = |action| match action {
        Action::Refused { reason, .. } => Some(reason),
        _ => None,
    };
    actions(scheduler).into_iter().filter_map(refusal).collect()
}

#[test]
fn slots_and_priorities_are_taken_once() {
    let mut scheduler = scheduler(2, 1);
    join(&mut scheduler, 0, params(5, 1));
    join(&mut scheduler, 2, params(6, 1));
    join(&mut scheduler, 0, params(7, 1));
    join(&mut scheduler, 1, params(5, 1));
    let taken = Refusal::PriorityTaken { by: AppId(0), priority: Priority(5) };
    assert_eq!(refusals(&mut scheduler), [Refusal::NoSuchSlot, Refusal::SlotTaken, taken]);
    assert_eq!(scheduler.lanes().len(), 1);
    assert_eq!(scheduler.stats().refused, 3);

    scheduler.handle_event(Time::ZERO, Event::Leave { app: AppId(1) });
    scheduler.handle_event(Time::ZERO, Event::Leave { app: AppId(9) });
    scheduler.handle_event(Time::ZERO, Event::Change { app: AppId(1), params: params(1, 1) });
    submit(&mut scheduler, Time::ZERO, 1, 0);
    assert_eq!(refusals(&mut scheduler), [Refusal::UnknownApp; 4]);
}

#[test]
fn frames_that_end_inside_of_a_group_count_one_by_one_up_to_a_bound() {
    let mut scheduler = scheduler(1, 2);
    join(&mut scheduler, 0, params(5, 1));
    let mut all = 0;
    let bounded = 4 + u64::from(FRAMES_PER_GROUP_MAX);
    for (group, (claimed, expected)) in (0..).zip([(0, 0), (3, 3), (1, 4), (1_000, bounded)]) {
        let now = Time::from_ms(group + 1);
        submit(&mut scheduler, now, 0, group);
        assert!(actions(&mut scheduler).iter().any(|action| matches!(action, Action::Dispatch { .. })));
        let cost = Cost::new(Span::from_us(100));
        let finished = now + Span::from_us(100);
        let complete = Event::Complete { group: GroupId(group), finished, cost, frames: claimed };
        scheduler.handle_event(finished, complete);
        for action in actions(&mut scheduler) {
            if let Action::FrameDone(done) = action {
                assert_eq!((done.frame, done.finished), (all, finished));
                all += 1;
            }
        }
        assert_eq!((all, scheduler.in_flight()), (expected, 0));
    }
}

#[test]
fn a_slot_is_free_again_after_leaving() {
    let mut scheduler = scheduler(1, 1);
    join(&mut scheduler, 0, params(5, 1));
    submit(&mut scheduler, Time::ZERO, 0, 1);
    assert_eq!(actions(&mut scheduler).len(), 2, "released and dispatched");
    scheduler.handle_event(Time::ZERO, Event::Leave { app: AppId(0) });
    join(&mut scheduler, 0, params(6, 2));
    submit(&mut scheduler, Time::ZERO, 0, 2);
    // The old group still runs; its end must not count for the new app.
    complete(&mut scheduler, Time::from_us(100), 1);
    let dispatched = actions(&mut scheduler).into_iter().filter(|a| matches!(a, Action::Dispatch { .. }));
    assert_eq!(dispatched.count(), 1);
}

#[test]
fn strides_whose_pattern_is_too_long_are_refused() {
    let mut scheduler = scheduler(4, 1);
    join(&mut scheduler, 0, params(1, 31));
    join(&mut scheduler, 1, params(2, 33));
    assert_eq!(refusals(&mut scheduler), [Refusal::LookaheadTooLong { periods: 1023 }]);
    join(&mut scheduler, 1, params(2, 32));
    scheduler.handle_event(Time::ZERO, Event::Change { app: AppId(1), params: params(2, 37) });
    assert_eq!(refusals(&mut scheduler), [Refusal::LookaheadTooLong { periods: 1147 }]);
    assert_eq!(scheduler.lanes()[0].stride.get(), 32);
}

#[test]
fn a_full_queue_refuses_and_recovers() {
    let mut scheduler = scheduler(1, 1);
    join(&mut scheduler, 0, params(1, 1));
    submit(&mut scheduler, Time::ZERO, 0, 0);
    actions(&mut scheduler);
    for group in 1..=QUEUE_MAX as u64 {
        assert_eq!(scheduler.queue_room(AppId(0)), QUEUE_MAX + 1 - usize::try_from(group).unwrap_or(0));
        submit(&mut scheduler, Time::ZERO, 0, group);
    }
    assert_eq!(scheduler.queue_room(AppId(0)), 0);
    submit(&mut scheduler, Time::ZERO, 0, 1000);
    assert_eq!(refusals(&mut scheduler), [Refusal::QueueFull]);
    complete(&mut scheduler, Time::from_us(100), 0);
    actions(&mut scheduler);
    assert_eq!(scheduler.queue_room(AppId(0)), 1);
}

#[test]
fn configured_bounds_are_enforced() {
    let config = Config { apps_max: u32::MAX, mpcg: u32::MAX, ..Config::default() }.clamped();
    assert_eq!((config.apps_max as usize, config.mpcg as usize), (APPS_MAX, IN_FLIGHT_MAX));
    let config = Config { apps_max: 0, mpcg: 0, ..Config::default() }.clamped();
    assert_eq!((config.apps_max, config.mpcg), (1, 1));
}

#[test]
fn at_most_mpcg_groups_are_in_flight() {
    let mut scheduler = scheduler(1, 64);
    join(&mut scheduler, 0, params(1, 1));
    for group in 0..64 {
        submit(&mut scheduler, Time::ZERO, 0, group);
    }
    actions(&mut scheduler);
    submit(&mut scheduler, Time::ZERO, 0, 64);
    actions(&mut scheduler);
    assert_eq!(scheduler.in_flight(), IN_FLIGHT_MAX);
}

#[test]
fn completions_of_strangers_are_refused() {
    let mut scheduler = scheduler(1, 1);
    complete(&mut scheduler, Time::ZERO, 7);
    assert_eq!(refusals(&mut scheduler), [Refusal::UnknownGroup]);
}

#[test]
fn a_later_completion_tells_that_an_earlier_one_was_lost() {
    let mut scheduler = scheduler(1, 3);
    join(&mut scheduler, 0, params(1, 1));
    for group in 0..3 {
        submit(&mut scheduler, Time::ZERO, 0, group);
    }
    actions(&mut scheduler);
    complete(&mut scheduler, Time::from_us(300), 2);
    let lost = |group| Action::Lost { app: AppId(0), group: GroupId(group), by: LostBy::Order };
    assert_eq!(actions(&mut scheduler), [lost(0), lost(1)]);
    assert_eq!((scheduler.in_flight(), scheduler.stats().lost, scheduler.stats().completed), (0, 2, 1));
}

#[test]
fn an_overdue_completion_is_given_up() {
    let mut scheduler = scheduler(1, 1);
    join(&mut scheduler, 0, params(1, 1));
    submit(&mut scheduler, Time::ZERO, 0, 0);
    submit(&mut scheduler, Time::ZERO, 0, 1);
    actions(&mut scheduler);
    let timeout = scheduler.config().completion_timeout;
    let due = Time::from_us(100) + timeout;
    scheduler.handle_timeout(due - Span::from_ns(1));
    assert_eq!(scheduler.in_flight(), 1);
    assert!(scheduler.poll_timeout().is_some_and(|at| at <= due));
    actions(&mut scheduler);
    scheduler.handle_timeout(due);
    let given_up = Action::Lost { app: AppId(0), group: GroupId(0), by: LostBy::Timeout };
    let actions = actions(&mut scheduler);
    assert!(actions.contains(&given_up), "{actions:?}");
    assert!(actions.iter().any(|action| matches!(action, Action::Dispatch { group: GroupId(1), .. })));
}

#[test]
fn a_new_refresh_grid_keeps_distances() {
    let mut scheduler = scheduler(1, 1);
    join(&mut scheduler, 0, params(1, 2));
    scheduler.handle_timeout(Time::from_ms(100));
    let ahead = scheduler.lanes()[0].target.0.saturating_sub(scheduler.current_period().0);
    let refresh = Refresh::from_mhz(90_000).expect("a valid rate").with_origin(Time::from_ms(3));
    scheduler.handle_event(Time::from_ms(100), Event::Refresh { display: takt_core::DisplayId(0), refresh });
    actions(&mut scheduler);
    assert_eq!(scheduler.current_period(), refresh.period_at(Time::from_ms(100)));
    assert_eq!(scheduler.lanes()[0].target.0.saturating_sub(scheduler.current_period().0), ahead);
}

#[test]
fn another_policy_takes_over_at_once() {
    let mut scheduler = scheduler(2, 1);
    drop(scheduler.replace_policy(Box::new(FrameDeadline::new())));
    assert_eq!(scheduler.policy_name(), "frame-deadline");
    // Nearly all of the period is reserved for an app that is absent, so the other one is held.
    join(&mut scheduler, 0, AppParams { etpf: Span::from_us(16_600), ..params(2, 1) });
    join(&mut scheduler, 1, params(1, 1));
    submit(&mut scheduler, Time::ZERO, 1, 1);
    let held = actions(&mut scheduler);
    assert!(held.iter().all(|action| !matches!(action, Action::Dispatch { .. })), "{held:?}");
    drop(scheduler.replace_policy(Box::new(Fifo)));
    assert_eq!(scheduler.policy_name(), "fifo");
    let first = actions(&mut scheduler).into_iter().find_map(|action| match action {
        Action::Dispatch { app, .. } => Some(app),
        _ => None,
    });
    assert_eq!(first, Some(AppId(1)));
}
