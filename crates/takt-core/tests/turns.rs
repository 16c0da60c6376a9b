//! Where a change of contexts costs something, protected apps have the GPU one at a time.

use takt_core::policy::Timeline;
use takt_core::{
    Action, AppId, AppParams, Clock, Config, Cost, Estimate, Event, Gpu, GroupId, GroupKind, Margins,
    Priority, Scheduler, Service, Span, Stride, Time,
};

const SWITCH: Span = Span::from_us(160);

fn scheduler(switch: Span) -> Scheduler {
    let gpu = Gpu::TimeShared { slice: Span::from_ms(1), switch };
    let config = Config { mpcg: 8, margins: Margins::NONE, apps_max: 4, gpu, ..Config::default() };
    Scheduler::new(config, Box::new(Timeline::new()))
}

fn join(scheduler: &mut Scheduler, app: u32, etpf: Span) {
    let (priority, stride) = (Priority(10 - app), Stride::ONE);
    let params = AppParams { priority, stride, etpf, clock: Clock::default(), service: Service::default() };
    scheduler.handle_event(Time::ZERO, Event::Join { app: AppId(app), params, phase: 0 });
}

/// A frame of two groups of a millisecond each.
fn submit_frame(scheduler: &mut Scheduler, app: u32) {
    for (number, kind) in [(0, GroupKind::Draw), (1, GroupKind::Swap)] {
        let (group, estimate) = (GroupId(u64::from(app) * 10 + number), Estimate::new(Span::from_ms(1)));
        scheduler.handle_event(Time::ZERO, Event::Submit { app: AppId(app), group, kind, estimate });
    }
}

fn complete(scheduler: &mut Scheduler, group: u64, at: Time) {
    let (group, cost) = (GroupId(group), Cost::new(Span::from_ms(1)));
    scheduler.handle_event(at, Event::Complete { group, finished: at, cost, frames: 0 });
}

/// Groups that are dispatched, and when they are taken to start.
fn dispatched(scheduler: &mut Scheduler) -> Vec<(u64, u64)> {
    let actions = std::iter::from_fn(|| scheduler.poll_action());
    let groups = actions.filter_map(|action| match action {
        Action::Dispatch { group, start, .. } => Some((group.0, start.as_ns() / 1000)),
        _ => None,
    });
    let groups = groups.collect();
    scheduler.check_invariants();
    groups
}

#[test]
fn a_protected_app_waits_for_another_one_to_end() {
    let mut scheduler = scheduler(SWITCH);
    for app in [0, 1] {
        join(&mut scheduler, app, Span::from_us(2320));
        submit_frame(&mut scheduler, app);
    }
    assert!(scheduler.lanes().iter().all(|lane| lane.protected));
    // One switch to the frame, and none between its groups.
    assert_eq!(dispatched(&mut scheduler), [(0, 0), (1, 1160)]);
    complete(&mut scheduler, 0, Time::from_us(1160));
    assert_eq!(dispatched(&mut scheduler), []);
    complete(&mut scheduler, 1, Time::from_us(2160));
    assert_eq!(dispatched(&mut scheduler), [(10, 2160), (11, 3320)]);
}

#[test]
fn changes_that_cost_nothing_keep_no_app_waiting() {
    let mut scheduler = scheduler(Span::ZERO);
    for app in [0, 1] {
        join(&mut scheduler, app, Span::from_ms(2));
        submit_frame(&mut scheduler, app);
    }
    assert_eq!(dispatched(&mut scheduler), [(0, 0), (1, 1000), (10, 2000), (11, 3000)]);
}

#[test]
fn other_apps_share_the_gpu_and_pay_for_both_ways() {
    let mut scheduler = scheduler(SWITCH);
    join(&mut scheduler, 0, Span::from_us(2320));
    join(&mut scheduler, 1, Span::ZERO);
    submit_frame(&mut scheduler, 0);
    submit_frame(&mut scheduler, 1);
    assert_eq!(dispatched(&mut scheduler), [(0, 0), (1, 1160), (10, 2160), (11, 3480)]);
}

/// Ends are not always heard in the order in which they happened, and each frame is judged by its own.
#[test]
fn a_frame_that_ended_before_another_group_is_judged_by_its_own_end() {
    let mut scheduler = scheduler(Span::ZERO);
    for app in [0, 1] {
        join(&mut scheduler, app, Span::from_ms(3));
        submit_frame(&mut scheduler, app);
    }
    assert_eq!(dispatched(&mut scheduler).len(), 4);
    let due = scheduler.config().refresh.end(scheduler.current_period());
    let heard = due + Span::from_us(20);
    for (group, ended_before) in [(0, 200), (1, 100), (10, 300), (11, 150)] {
        let (group, cost) = (GroupId(group), Cost::new(Span::from_ms(1)));
        let finished = due - Span::from_us(ended_before);
        scheduler.handle_event(heard, Event::Complete { group, finished, cost, frames: 0 });
    }
    let actions = std::iter::from_fn(|| scheduler.poll_action());
    let ends: Vec<_> = actions
        .filter_map(|action| match action {
            Action::FrameDone(done) => Some((done.app.0, due.since(done.finished).as_us())),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [(0, 100), (1, 150)]);
}
