//! A GPU that serves processes in turn: groups that are in flight together end together.

use takt_core::limits::QUEUE_MAX;
use takt_core::policy::FrameDeadline;
use takt_core::{
    Action, Adjustable, AppId, AppParams, Config, Cost, Estimate, Event, Gpu, GroupId, GroupKind, Margins,
    Priority, Scheduler, Service, Span, Stride, Time,
};

const FLOODS: [AppId; 3] = [AppId(0), AppId(1), AppId(2)];
const DIAL: AppId = AppId(3);

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// Three apps that reserve nothing, and a more important one that does.
fn scheduler(gpu: Gpu) -> Scheduler {
    scheduler_with(Config { mpcg: 2, gpu, margins: Margins::NONE, ..Config::default() })
}

fn scheduler_with(config: Config) -> Scheduler {
    let mut scheduler = Scheduler::new(config, Box::new(FrameDeadline::new()));
    for app in FLOODS.into_iter().chain([DIAL]) {
        let etpf = if app == DIAL { Span::from_ms(4) } else { Span::ZERO };
        let priority = Priority(1 + app.0);
        let params = AppParams {
            priority,
            stride: Stride::ONE,
            etpf,
            clock: takt_core::Clock::default(),
            service: Service::default(),
        };
        scheduler.handle_event(at(0), Event::Join { app, params, phase: 0 });
    }
    scheduler
}

fn submit(scheduler: &mut Scheduler, us: u64, app: AppId, ms: u64) -> Vec<(AppId, Time)> {
    let (group, estimate) = (GroupId(u64::from(app.0)), Estimate::new(Span::from_ms(ms)));
    scheduler.handle_event(at(us), Event::Submit { app, group, kind: GroupKind::Draw, estimate });
    dispatched(scheduler)
}

fn swap(scheduler: &mut Scheduler, us: u64, app: AppId, cost: Span) -> Vec<AppId> {
    let (group, estimate) = (swap_of(app), Estimate::new(cost));
    scheduler.handle_event(at(us), Event::Submit { app, group, kind: GroupKind::Swap, estimate });
    dispatched(scheduler).into_iter().map(|(app, _)| app).collect()
}

fn swap_of(app: AppId) -> GroupId {
    GroupId(100 + u64::from(app.0))
}

fn complete(scheduler: &mut Scheduler, us: u64, app: AppId) -> Vec<(AppId, Time)> {
    complete_group(scheduler, us, GroupId(u64::from(app.0)))
}

fn complete_group(scheduler: &mut Scheduler, us: u64, group: GroupId) -> Vec<(AppId, Time)> {
    let finished = at(us);
    scheduler.handle_event(finished, Event::Complete { group, finished, cost: Cost::default(), frames: 0 });
    dispatched(scheduler)
}

/// Whose groups were let go, and when the GPU is free for them.
fn dispatched(scheduler: &mut Scheduler) -> Vec<(AppId, Time)> {
    scheduler.check_invariants();
    let actions = std::iter::from_fn(|| scheduler.poll_action());
    let apps = actions.filter_map(|action| match action {
        Action::Dispatch { app, start, .. } => Some((app, start)),
        _ => None,
    });
    apps.collect()
}

#[test]
fn what_is_left_is_done_when_all_was_to_be() {
    let two_then_one = |gpu| {
        let mut scheduler = scheduler(gpu);
        assert_eq!(submit(&mut scheduler, 0, FLOODS[0], 2), [(FLOODS[0], at(0))]);
        assert_eq!(submit(&mut scheduler, 0, FLOODS[1], 2), [(FLOODS[1], at(2_000))]);
        assert_eq!(submit(&mut scheduler, 0, FLOODS[2], 2), [], "all places are taken");
        complete(&mut scheduler, 3_900, FLOODS[0])
    };
    // They had the GPU in turn, so there is no more than a tenth of a millisecond left.
    assert_eq!(two_then_one(Gpu::TURNS), [(FLOODS[2], at(4_000))]);
    // The second one has only begun.
    assert_eq!(two_then_one(Gpu::InOrder), [(FLOODS[2], at(5_900))]);
}

#[test]
fn an_end_that_is_over_was_none() {
    let mut scheduler = scheduler(Gpu::TURNS);
    submit(&mut scheduler, 0, FLOODS[0], 1);
    submit(&mut scheduler, 0, FLOODS[1], 3);
    submit(&mut scheduler, 0, FLOODS[2], 1);
    // All was to be done after four milliseconds; how much of the second one is left, nobody knows.
    assert_eq!(complete(&mut scheduler, 5_000, FLOODS[0]), [(FLOODS[2], at(8_000))]);
}

#[test]
fn an_app_that_is_less_urgent_waits_for_its_turn() {
    let mut scheduler = scheduler(Gpu::TURNS);
    let slow = AppId(4);
    let stride = Stride::new(4).expect("four");
    let params = AppParams {
        priority: Priority(9),
        stride,
        etpf: Span::from_ms(1),
        clock: takt_core::Clock::default(),
        service: Service::default(),
    };
    scheduler.handle_event(at(0), Event::Join { app: slow, params, phase: 0 });
    submit(&mut scheduler, 0, FLOODS[0], 2);
    submit(&mut scheduler, 0, FLOODS[1], 2);
    submit(&mut scheduler, 10, FLOODS[2], 1);
    assert_eq!(submit(&mut scheduler, 20, slow, 1), [], "its deadline is far away");
    assert_eq!(complete(&mut scheduler, 2_000, FLOODS[0]), [(FLOODS[2], at(4_000)), (slow, at(5_000))]);
}

#[test]
fn reserved_time_needs_no_place() {
    let full = |gpu| {
        let mut scheduler = scheduler(gpu);
        submit(&mut scheduler, 0, FLOODS[0], 2);
        submit(&mut scheduler, 0, FLOODS[1], 2);
        let dial = submit(&mut scheduler, 100, DIAL, 1);
        let flood = submit(&mut scheduler, 200, FLOODS[2], 1);
        (dial, flood)
    };
    assert_eq!(full(Gpu::TURNS), (vec![(DIAL, at(4_000))], vec![]));
    assert_eq!(full(Gpu::InOrder), (vec![], vec![]));
}

#[test]
fn what_comes_later_keeps_clear_of_an_end_that_is_due() {
    // The dial uses up its reserved time, and its deadline is after 16.7 ms.
    let beside_the_dial = |gpu, ms, swaps| {
        let mut scheduler = scheduler(gpu);
        assert_eq!(submit(&mut scheduler, 8_000, DIAL, 4), [(DIAL, at(8_000))]);
        if swaps {
            swap(&mut scheduler, 8_010, DIAL, Span::ZERO);
        }
        let went = submit(&mut scheduler, 8_100, FLOODS[0], ms).len();
        let later = complete(&mut scheduler, 12_000, DIAL).len();
        (went, later)
    };
    for swaps in [false, true] {
        assert_eq!(beside_the_dial(Gpu::TURNS, 4, swaps), (1, 0), "both are done by then");
        assert_eq!(beside_the_dial(Gpu::TURNS, 6, swaps), (0, 1), "together they are not");
    }
    assert_eq!(beside_the_dial(Gpu::InOrder, 6, false), (1, 0), "it is the dial's turn first");
}

#[test]
fn a_frame_that_is_late_does_not_leave_the_next_one_alone() {
    let beside_two_frames = |ms| {
        let config = Config { mpcg: 3, gpu: Gpu::TURNS, margins: Margins::NONE, ..Config::default() };
        let mut scheduler = scheduler_with(config);
        assert_eq!(submit(&mut scheduler, 12_000, DIAL, 4).len(), 1);
        swap(&mut scheduler, 12_010, DIAL, Span::ZERO);
        // It overruns, and the next frame, which is due after 33.3 ms, is there as well.
        scheduler.handle_timeout(at(16_700));
        let (group, kind) = (GroupId(50), GroupKind::Draw);
        let estimate = Estimate::new(Span::from_ms(4));
        scheduler.handle_event(at(16_800), Event::Submit { app: DIAL, group, kind, estimate });
        assert_eq!(dispatched(&mut scheduler).len(), 1);
        submit(&mut scheduler, 17_000, FLOODS[0], ms).len()
    };
    assert_eq!(beside_two_frames(13), 0, "that would be too late for it");
    assert_eq!(beside_two_frames(2), 1);
}

#[test]
fn no_group_is_stretched_beyond_an_end_that_is_due() {
    let mut config = Config { mpcg: 3, gpu: Gpu::TURNS, margins: Margins::NONE, ..Config::default() };
    config.tuning.stretch = Span::from_ms(8);
    let mut scheduler = scheduler_with(config);
    // More important than the dial, and slower: its deadline is far away.
    let (app, stride) = (AppId(4), Stride::new(4).expect("four"));
    let params = AppParams {
        priority: Priority(9),
        stride,
        etpf: Span::ZERO,
        clock: takt_core::Clock::default(),
        service: Service::default(),
    };
    scheduler.handle_event(at(0), Event::Join { app, params, phase: 0 });
    assert_eq!(submit(&mut scheduler, 8_000, DIAL, 4).len(), 1);
    let (group, kind, estimate) = (GroupId(50), GroupKind::Draw, Estimate::new(Span::from_ms(1)));
    scheduler.handle_event(at(8_100), Event::Submit { app, group, kind, estimate });
    let granted = std::iter::from_fn(|| scheduler.poll_action()).find_map(|action| match action {
        Action::Dispatch { reserved, .. } => Some(reserved),
        _ => None,
    });
    let most = Span::from_us(16_667 - 12_000);
    assert!(granted.is_some_and(|granted| granted > Span::from_ms(1) && granted < most), "{granted:?}");
}

#[test]
fn an_end_that_is_due_keeps_nobody_back_who_is_more_urgent() {
    let beside_the_dial = |ms| {
        let mut scheduler = scheduler(Gpu::TURNS);
        let (app, priority) = (AppId(4), Priority(9));
        let params = AppParams {
            priority,
            stride: Stride::ONE,
            etpf: Span::ZERO,
            clock: takt_core::Clock::default(),
            service: Service::default(),
        };
        scheduler.handle_event(at(0), Event::Join { app, params, phase: 0 });
        assert_eq!(submit(&mut scheduler, 8_000, DIAL, 4), [(DIAL, at(8_000))]);
        let went = submit(&mut scheduler, 8_100, app, ms);
        let later = complete(&mut scheduler, 12_000, DIAL);
        (went, later)
    };
    // More important and due as soon, it goes, whatever becomes of the dial.
    assert_eq!(beside_the_dial(7), (vec![(AppId(4), at(12_000))], vec![]));
    // It is late in any case, so that it can wait for what is on the GPU.
    assert_eq!(beside_the_dial(9), (vec![], vec![(AppId(4), at(12_000))]));
}

#[test]
fn a_swap_that_leaves_nothing_to_do_waits_for_no_place_and_keeps_none() {
    let full = |gpu, cost| {
        let mut scheduler = scheduler(gpu);
        submit(&mut scheduler, 0, FLOODS[0], 2);
        submit(&mut scheduler, 0, FLOODS[1], 2);
        let swap = swap(&mut scheduler, 100, FLOODS[2], cost);
        (swap, complete(&mut scheduler, 3_900, FLOODS[0]), submit(&mut scheduler, 3_950, FLOODS[0], 2))
    };
    let next = vec![(FLOODS[0], at(4_000))];
    assert_eq!(full(Gpu::TURNS, Span::ZERO), (vec![FLOODS[2]], vec![], next));
    // One that does something is work like any other, and where groups end in order it would only end
    // behind those.
    let waits = (vec![], vec![(FLOODS[2], at(4_000))], vec![]);
    assert_eq!(full(Gpu::TURNS, Span::from_us(1)), waits);
    assert_eq!(full(Gpu::InOrder, Span::ZERO).0, []);
}

#[test]
fn a_swap_that_leaves_nothing_to_do_passes_what_protects_others() {
    let config = Config { mpcg: 2, gpu: Gpu::TURNS, ..Config::default() };
    let dial_beside = |swaps: bool| {
        let mut scheduler = scheduler_with(config);
        submit(&mut scheduler, 0, FLOODS[0], 10);
        // The dial needs the rest of its period.
        assert_eq!(submit(&mut scheduler, 10, FLOODS[1], 3), []);
        let passed = if swaps { swap(&mut scheduler, 20, FLOODS[2], Span::ZERO) } else { Vec::new() };
        (passed, submit(&mut scheduler, 30, DIAL, 2))
    };
    let (none, alone) = dial_beside(false);
    let (passed, beside) = dial_beside(true);
    assert_eq!((none, passed), (vec![], vec![FLOODS[2]]));
    assert_eq!((alone.len(), &alone), (1, &beside), "it costs nobody anything, margins included");
}

#[test]
fn a_swap_that_leaves_nothing_to_do_passes_where_blocking_is_limited() {
    let mut config = Config { mpcg: 2, gpu: Gpu::TURNS, ..Config::default() };
    config.tuning.blocking = Span::from_us(100);
    let mut scheduler = scheduler_with(config);
    assert_eq!(submit(&mut scheduler, 16_600, FLOODS[0], 2), [], "the dial is released soon");
    assert_eq!(swap(&mut scheduler, 16_610, FLOODS[1], Span::ZERO), [FLOODS[1]]);
}

#[test]
fn what_a_swap_is_said_to_cost_can_change() {
    let mut scheduler = scheduler(Gpu::TURNS);
    submit(&mut scheduler, 0, FLOODS[0], 2);
    submit(&mut scheduler, 0, FLOODS[1], 2);
    assert_eq!(swap(&mut scheduler, 10, FLOODS[2], Span::from_ms(1)), []);
    let revise = Event::Revise { app: FLOODS[2], group: swap_of(FLOODS[2]), estimate: Estimate::default() };
    scheduler.handle_event(at(20), revise);
    assert_eq!(dispatched(&mut scheduler).len(), 1);
}

#[test]
fn a_swap_that_was_queued_behind_its_draw_follows_it_at_once() {
    let mut scheduler = scheduler(Gpu::TURNS);
    submit(&mut scheduler, 0, FLOODS[0], 2);
    submit(&mut scheduler, 0, FLOODS[1], 2);
    assert_eq!(submit(&mut scheduler, 10, FLOODS[2], 2), []);
    assert_eq!(swap(&mut scheduler, 10, FLOODS[2], Span::ZERO), [], "its draw comes first");
    let went: Vec<_> = complete(&mut scheduler, 3_900, FLOODS[0]).into_iter().map(|(app, _)| app).collect();
    assert_eq!(went, [FLOODS[2], FLOODS[2]]);
}

#[test]
fn swaps_whose_end_is_never_told_keep_nobody_off_the_gpu() {
    let mut scheduler = scheduler(Gpu::TURNS);
    let (app, kind, estimate) = (FLOODS[2], GroupKind::Swap, Estimate::default());
    for number in 0..QUEUE_MAX as u64 {
        let group = GroupId(1000 + number);
        scheduler.handle_event(at(number), Event::Submit { app, group, kind, estimate });
        dispatched(&mut scheduler);
    }
    // One that is in nobody's way, and as many as there are places.
    assert_eq!(scheduler.in_flight(), 3);
    assert_eq!(submit(&mut scheduler, 100, DIAL, 4).len(), 1, "reserved time needs no place");
    complete_group(&mut scheduler, 200, GroupId(1000));
    scheduler.handle_timeout(at(10_000));
    assert_eq!(submit(&mut scheduler, 10_000, FLOODS[0], 1).len(), 1, "what is late keeps no place");
}

#[test]
fn a_swap_passes_while_more_is_in_flight_than_may_be() {
    let mut scheduler = scheduler_with(Config { mpcg: 4, gpu: Gpu::TURNS, ..Config::default() });
    for app in FLOODS {
        submit(&mut scheduler, 0, app, 1);
    }
    let fewer = scheduler.config().adjustable();
    scheduler.handle_event(at(10), Event::Adjust(Adjustable { mpcg: 1, ..fewer }));
    // `dispatched` checks that the scheduler does not contradict itself.
    assert_eq!(swap(&mut scheduler, 20, FLOODS[0], Span::ZERO), [FLOODS[0]]);
}

#[test]
fn swaps_pass_however_many_places_there_are() {
    for mpcg in [1, 2, 32, 62] {
        let config = Config { mpcg, gpu: Gpu::TURNS, margins: Margins::NONE, ..Config::default() };
        let mut scheduler = scheduler_with(config);
        for number in 0..u64::from(mpcg) {
            let (group, estimate) = (GroupId(1000 + number), Estimate::new(Span::from_us(10)));
            let kind = GroupKind::Draw;
            scheduler.handle_event(at(0), Event::Submit { app: FLOODS[0], group, kind, estimate });
        }
        assert_eq!(dispatched(&mut scheduler).len(), mpcg as usize);
        assert_eq!(submit(&mut scheduler, 1, FLOODS[1], 1), [], "all places are taken");
        assert_eq!(swap(&mut scheduler, 2, FLOODS[2], Span::ZERO), [FLOODS[2]], "{mpcg}");
    }
}

#[test]
fn a_swap_whose_end_is_never_told_is_given_up_while_others_go_on() {
    let mut scheduler = scheduler(Gpu::TURNS);
    submit(&mut scheduler, 0, FLOODS[2], 2);
    assert_eq!(swap(&mut scheduler, 10, FLOODS[2], Span::ZERO), [FLOODS[2]]);
    let mut lost = Vec::new();
    for ms in (2..2_000).step_by(2) {
        // Its draw ends after half a second, and somebody else's all the time.
        if ms == 500 {
            complete(&mut scheduler, ms * 1_000, FLOODS[2]);
        }
        scheduler.handle_timeout(at(ms * 1_000));
        while let Some(action) = scheduler.poll_action() {
            if let Action::Lost { group, .. } = action {
                lost.push((ms, group));
            }
        }
        submit(&mut scheduler, ms * 1_000, FLOODS[0], 1);
        complete(&mut scheduler, ms * 1_000 + 1_000, FLOODS[0]);
    }
    assert_eq!(lost, [(1_000, swap_of(FLOODS[2]))], "half a second after its draw");
}

#[test]
fn a_swap_that_passes_asks_for_no_decisions() {
    let mut scheduler = scheduler(Gpu::TURNS);
    submit(&mut scheduler, 0, FLOODS[0], 10);
    swap(&mut scheduler, 10, FLOODS[2], Span::ZERO);
    assert_eq!(submit(&mut scheduler, 20, FLOODS[1], 5), [], "the dial needs the rest");
    let runs = scheduler.stats().runs;
    for us in 30..40 {
        scheduler.handle_timeout(at(us));
        assert_eq!(dispatched(&mut scheduler), []);
    }
    assert_eq!(scheduler.stats().runs, runs);
}

/// Lets a game wait with a group; whether a flood of 2 ms may go so much later.
fn may_go_beside(scheduler: &mut Scheduler, us: u64, game: Estimate, later_us: u64) -> bool {
    let (app, group) = (FLOODS[2], GroupId(u64::from(FLOODS[2].0)));
    scheduler.handle_event(at(us), Event::Submit { app, group, kind: GroupKind::Draw, estimate: game });
    assert_eq!(dispatched(scheduler), []);
    !submit(scheduler, us + later_us, FLOODS[0], 2).is_empty()
}

const PERIOD_US: u64 = 16_667;

/// The same where the third app has a frame in two periods, so that both leave it time it cannot use.
fn scheduler_with_game() -> Scheduler {
    let mut scheduler = scheduler(Gpu::TURNS);
    let stride = Stride::new(2).expect("two");
    let params = AppParams {
        priority: Priority(3),
        stride,
        etpf: Span::ZERO,
        clock: takt_core::Clock::default(),
        service: Service::default(),
    };
    scheduler.handle_event(at(0), Event::Change { app: FLOODS[2], params });
    scheduler
}

#[test]
fn an_app_is_not_late_in_its_first_frame() {
    let mut scheduler = scheduler(Gpu::TURNS);
    // Others are served for long before it draws.
    for period in 0..=50 {
        submit(&mut scheduler, period * PERIOD_US + 100, FLOODS[1], 1);
        complete(&mut scheduler, period * PERIOD_US + 1_100, FLOODS[1]);
    }
    submit(&mut scheduler, 50 * PERIOD_US + 1_200, FLOODS[2], 13);
    let lane = scheduler.lanes().iter().find(|lane| lane.app == FLOODS[2]).expect("it has joined");
    assert!(lane.due >= scheduler.current_period(), "{lane:?}");
}

#[test]
fn a_group_without_an_end_keeps_nobody_waiting() {
    let mut scheduler = scheduler(Gpu::TURNS);
    assert!(may_go_beside(&mut scheduler, 100, Estimate::new(Span::FOREVER), 500));
}

#[test]
fn a_further_group_of_a_late_frame_is_late() {
    let mut scheduler = scheduler_with_game();
    submit(&mut scheduler, 100, FLOODS[2], 1);
    complete(&mut scheduler, 1_100, FLOODS[2]);
    // Period 4 is none of those in which time is kept free.
    let us = 4 * PERIOD_US + 100;
    scheduler.handle_timeout(at(us));
    dispatched(&mut scheduler);
    assert!(may_go_beside(&mut scheduler, us, Estimate::new(Span::from_ms(16)), 500));
}

/// In which periods a flood is let go, while games wait whose groups never fit beside the dial.
fn periods_of_a_flood(config: Config, games: u32, periods: u64) -> Vec<u64> {
    let mut scheduler = scheduler_with(config);
    let flood = FLOODS[0];
    let stride = Stride::new(2).expect("two");
    for game in 0..games {
        let (app, priority) = (AppId(4 + game), Priority(10 + game));
        let params = AppParams {
            priority,
            stride,
            etpf: Span::ZERO,
            clock: takt_core::Clock::default(),
            service: Service::default(),
        };
        scheduler.handle_event(at(0), Event::Join { app, params, phase: 0 });
    }
    let dial = AppParams {
        priority: Priority(100),
        stride: Stride::ONE,
        etpf: Span::from_ms(4),
        clock: takt_core::Clock::default(),
        service: Service::default(),
    };
    scheduler.handle_event(at(0), Event::Change { app: DIAL, params: dial });
    let mut found = Vec::new();
    for period in 0..periods {
        // Games ask one after the other, the flood in the beginning of each period, the dial in its end.
        let begin = period * 16_667 + 20;
        scheduler.handle_timeout(at(begin));
        let mut went: Vec<_> = dispatched(&mut scheduler).into_iter().map(|(app, _)| app).collect();
        if period < u64::from(games) {
            let game = AppId(4 + u32::try_from(period).expect("a few"));
            assert_eq!(submit(&mut scheduler, begin, game, 16), []);
        }
        if period == 0 || found.last() == Some(&(period - 1)) {
            went.extend(submit(&mut scheduler, begin, flood, 2).into_iter().map(|(app, _)| app));
        }
        went.extend(swap(&mut scheduler, begin + 12_000, DIAL, Span::from_ms(4)));
        assert!(went.iter().all(|app| [flood, DIAL].contains(app)), "games do not fit: {period} {went:?}");
        assert!(went.contains(&DIAL));
        if went.contains(&flood) {
            found.push(period);
            complete(&mut scheduler, begin + 12_100, flood);
        }
        complete_group(&mut scheduler, begin + 16_000, swap_of(DIAL));
    }
    found
}

#[test]
fn nobody_waits_for_long_for_a_group_that_does_not_fit() {
    let config = |gpu| Config { mpcg: 2, gpu, margins: Margins::NONE, ..Config::default() };
    for blocking in [Span::FOREVER, Span::from_ms(3)] {
        let mut config = config(Gpu::TURNS);
        config.tuning.blocking = blocking;
        // Until a game is late, and in two of sixteen periods, time is kept free for it.
        let goes_on = |from: u64| (from..40).filter(|period| period % 16 >= 2);
        let beside_one: Vec<u64> = [0].into_iter().chain(goes_on(2)).collect();
        assert_eq!(periods_of_a_flood(config, 1, 40), beside_one);
        let beside_eight = periods_of_a_flood(config, 8, 40).into_iter().filter(|period| *period >= 10);
        assert!(beside_eight.eq(goes_on(10)), "all keep it free in the same periods");
    }
    assert_eq!(periods_of_a_flood(config(Gpu::InOrder), 1, 40), [0], "there, time is kept free for ever");
}
