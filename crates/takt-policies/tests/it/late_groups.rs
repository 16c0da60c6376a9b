//! Apps whose groups do not end when they should keep no other app from the GPU.

use takt_core::{
    Action, AppId, AppParams, Config, Cost, Estimate, Event, Gpu, GroupId, GroupKind, Priority, Scheduler,
    Service, Span, Stride, Time, Tuning,
};
use takt_policies::{Fifo, FrameDeadline};

const STUCK: [AppId; 2] = [AppId(0), AppId(1)];
const DIAL: AppId = AppId(2);

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// Two groups of a millisecond are in flight when that of a more important app comes.
fn scheduler(gpu: Gpu) -> Scheduler {
    scheduler_with(Config { mpcg: 2, gpu, ..Config::default() })
}

fn scheduler_with(config: Config) -> Scheduler {
    let mut scheduler = Scheduler::new(config, Box::new(FrameDeadline::new()));
    for (app, priority) in [(STUCK[0], 2), (STUCK[1], 1), (DIAL, 9)] {
        let params = AppParams {
            priority: Priority(priority),
            stride: Stride::ONE,
            etpf: Span::ZERO,
            clock: takt_core::Clock::default(),
            service: Service::default(),
        };
        scheduler.handle_event(at(0), Event::Join { app, params, phase: 0 });
    }
    for app in STUCK {
        submit(&mut scheduler, at(1), app);
    }
    assert_eq!(dispatched(&mut scheduler), STUCK);
    submit(&mut scheduler, at(2), DIAL);
    assert_eq!(dispatched(&mut scheduler), [], "all places are taken");
    scheduler
}

fn submit(scheduler: &mut Scheduler, now: Time, app: AppId) {
    let (group, estimate) = (GroupId(u64::from(app.0)), Estimate::new(Span::from_ms(1)));
    scheduler.handle_event(now, Event::Submit { app, group, kind: GroupKind::Draw, estimate });
}

fn dispatched(scheduler: &mut Scheduler) -> Vec<AppId> {
    let actions = std::iter::from_fn(|| scheduler.poll_action());
    let apps = actions.filter_map(|action| match action {
        Action::Dispatch { app, .. } => Some(app),
        _ => None,
    });
    apps.collect()
}

/// Lets time pass until `until`, as drivers do; says when something was dispatched.
fn wait(scheduler: &mut Scheduler, until: Time) -> Vec<(Time, AppId)> {
    let mut seen = Vec::new();
    while let Some(now) = scheduler.poll_timeout().filter(|at| *at < until) {
        scheduler.handle_timeout(now);
        seen.extend(dispatched(scheduler).into_iter().map(|app| (now, app)));
        scheduler.check_invariants();
    }
    seen
}

#[test]
fn late_groups_keep_no_place_where_groups_end_in_any_order() {
    let mut scheduler = scheduler(Gpu::TURNS);
    let seen = wait(&mut scheduler, at(100_000));
    let [(now, DIAL)] = seen[..] else { panic!("{seen:?}") };
    // Twice as long as predicted, and two milliseconds more.
    assert!((at(4_000)..at(6_000)).contains(&now), "{now:?}");
    assert_eq!(scheduler.in_flight(), 3);
    // They end after all.
    for (group, us) in [(0, 60_000), (2, 61_000), (1, 70_000)] {
        let (group, finished, cost) = (GroupId(group), at(100_000 + us), Cost::new(Span::from_ms(1)));
        scheduler.handle_event(finished, Event::Complete { group, finished, cost, frames: 0 });
        assert_eq!(dispatched(&mut scheduler), []);
        scheduler.check_invariants();
    }
    assert_eq!(scheduler.in_flight(), 0);
}

#[test]
fn reserved_time_has_its_place_as_soon_as_one_is_late() {
    let mut scheduler = scheduler(Gpu::TURNS);
    scheduler.handle_event(at(3), Event::Leave { app: DIAL });
    for (app, priority) in [(AppId(3), 7), (AppId(4), 8)] {
        let etpf = Span::from_ms(1);
        let params = AppParams {
            priority: Priority(priority),
            stride: Stride::ONE,
            etpf,
            clock: takt_core::Clock::default(),
            service: Service::default(),
        };
        scheduler.handle_event(at(3), Event::Join { app, params, phase: 0 });
    }
    submit(&mut scheduler, at(4), AppId(3));
    assert_eq!(dispatched(&mut scheduler), [AppId(3)], "beyond the two");
    submit(&mut scheduler, at(5), AppId(4));
    assert_eq!(dispatched(&mut scheduler), [], "one of them");
    let seen = wait(&mut scheduler, at(100_000));
    let first_late = at(3_000)..at(4_500);
    assert!(seen.first().is_some_and(|(now, app)| *app == AppId(4) && first_late.contains(now)), "{seen:?}");
}

#[test]
fn on_a_gpu_that_runs_in_order_all_wait_for_the_first() {
    let mut scheduler = scheduler(Gpu::InOrder);
    assert_eq!(wait(&mut scheduler, at(100_000)), []);
}

#[test]
fn how_late_a_group_must_be_is_tuned() {
    let tuning = Tuning { late_after: Span::from_ms(7), ..Tuning::default() };
    let mut scheduler = scheduler_with(Config { mpcg: 2, gpu: Gpu::TURNS, tuning, ..Config::default() });
    let seen = wait(&mut scheduler, at(100_000));
    let [(now, DIAL)] = seen[..] else { panic!("{seen:?}") };
    assert!((at(9_000)..at(11_000)).contains(&now), "{now:?}");
}

/// A scheduler whose only app has a group of unknown length in flight since the start.
fn behind_the_unknown(tuning: Tuning) -> Scheduler {
    let mut scheduler = Scheduler::new(Config { tuning, ..Config::default() }, Box::new(Fifo));
    join(&mut scheduler, at(0), STUCK[0]);
    let (app, group, kind) = (STUCK[0], GroupId(0), GroupKind::Draw);
    let estimate = Estimate::UNBOUNDED;
    scheduler.handle_event(at(0), Event::Submit { app, group, kind, estimate });
    assert_eq!(dispatched(&mut scheduler), [STUCK[0]]);
    scheduler
}

fn join(scheduler: &mut Scheduler, now: Time, app: AppId) {
    let params = AppParams {
        priority: Priority(app.0),
        stride: Stride::ONE,
        etpf: Span::ZERO,
        clock: takt_core::Clock::default(),
        service: Service::default(),
    };
    scheduler.handle_event(now, Event::Join { app, params, phase: 0 });
}

#[test]
fn how_long_the_unknown_may_take_is_tuned() {
    for ms in [50, 250] {
        let tuning = Tuning { unknown_runs_max: Span::from_ms(ms), ..Tuning::default() };
        let mut scheduler = behind_the_unknown(tuning);
        let mut lost = None;
        while let Some(now) = scheduler.poll_timeout().filter(|now| lost.is_none() && *now < at(2_000_000)) {
            scheduler.handle_timeout(now);
            let is_lost = |action: Action| matches!(action, Action::Lost { .. });
            lost = std::iter::from_fn(|| scheduler.poll_action()).any(is_lost).then_some(now);
        }
        let given_up = at((ms + 500) * 1000) + scheduler.config().margins.dispatch_upper;
        assert_eq!(lost, Some(given_up), "{ms} ms");
    }
}

#[test]
fn how_long_who_joins_may_have_to_wait_is_tuned() {
    for ms in [100, 400] {
        let tuning = Tuning { join_delay_max: Span::from_ms(ms), ..Tuning::default() };
        let mut scheduler = behind_the_unknown(tuning);
        join(&mut scheduler, at(1_000), DIAL);
        let released = std::iter::from_fn(|| scheduler.poll_action()).find_map(|action| match action {
            Action::Release { app: DIAL, at } => Some(at),
            _ => None,
        });
        let earliest = at(1_000) + Span::from_ms(ms);
        let first_whole = scheduler.config().refresh.period_from(earliest);
        assert_eq!(released, Some(scheduler.config().refresh.start(first_whole)), "{ms} ms");
    }
}
