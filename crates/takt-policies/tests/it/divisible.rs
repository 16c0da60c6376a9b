//! Divisible work has a place of its own, beside all other work.

use takt_core::policy::Timeline;
use takt_core::{
    Action, AppId, AppParams, Clock, Config, Cost, Divisible, Estimate, Event, Gpu, GroupId, GroupKind,
    LostBy, Margins, Priority, Scheduler, Service, Span, Stride, Time,
};
use takt_policies::Fifo;

const FRAME: AppId = AppId(0);
const KERNELS: [AppId; 2] = [AppId(1), AppId(2)];

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn params(priority: u32, etpf_us: u64, divisible: bool) -> AppParams {
    AppParams {
        priority: Priority(priority),
        stride: Stride::ONE,
        etpf: Span::from_us(etpf_us),
        clock: Clock::default(),
        service: Service { divisible, ..Service::default() },
    }
}

fn config(gpu: Gpu) -> Config {
    let [slice, quantum, own_slice, switch] = [300, 0, 20_000, 0].map(Span::from_us);
    let divisible = Some(Divisible { slice, quantum, own_slice, switch });
    Config { mpcg: 1, gpu, divisible, margins: Margins::NONE, ..Config::default() }
}

/// An app with a contract of 16 ms per frame, and two without whose work is divisible.
fn scheduler(gpu: Gpu) -> Scheduler {
    let mut scheduler = Scheduler::new(config(gpu), Box::new(Timeline::new()));
    for (app, params) in [
        (FRAME, params(9, 16_000, false)),
        (KERNELS[0], params(5, 0, true)),
        (KERNELS[1], params(4, 0, true)),
    ] {
        scheduler.handle_event(at(0), Event::Join { app, params, phase: 0 });
    }
    scheduler
}

fn submit(scheduler: &mut Scheduler, now: Time, app: AppId, group: u64, us: u64) -> Vec<u64> {
    let (group, estimate) = (GroupId(group), Estimate::new(Span::from_us(us)));
    scheduler.handle_event(now, Event::Submit { app, group, kind: GroupKind::Swap, estimate });
    dispatched(scheduler)
}

fn complete(scheduler: &mut Scheduler, finished: Time, group: u64) -> Vec<u64> {
    let cost = Cost::new(Span::from_us(100));
    scheduler.handle_event(finished, Event::Complete { group: GroupId(group), finished, cost, frames: 0 });
    dispatched(scheduler)
}

fn dispatched(scheduler: &mut Scheduler) -> Vec<u64> {
    let actions = std::iter::from_fn(|| scheduler.poll_action());
    let groups = actions.filter_map(|action| match action {
        Action::Dispatch { group, .. } => Some(group.0),
        _ => None,
    });
    let groups = groups.collect();
    scheduler.check_invariants();
    groups
}

#[test]
fn one_divisible_group_goes_beside_whatever_is_in_flight() {
    for gpu in [Gpu::InOrder, Gpu::TURNS] {
        let mut scheduler = scheduler(gpu);
        // Neither its length matters, nor that the frame needs nearly all of each period.
        assert_eq!(submit(&mut scheduler, at(1), KERNELS[0], 10, 100_000), [10], "{gpu:?}");
        assert_eq!(submit(&mut scheduler, at(2), KERNELS[1], 20, u64::MAX), [], "there is one place");
        // The frame takes the only other place, and counts as if nothing else were there.
        assert_eq!(submit(&mut scheduler, at(3), FRAME, 1, 15_000), [1], "{gpu:?}");
        assert_eq!(scheduler.in_flight(), 2);
        // Each ends on its own.
        assert_eq!(complete(&mut scheduler, at(9_000), 10), [20], "{gpu:?}");
        assert_eq!(complete(&mut scheduler, at(15_300), 1), []);
        assert_eq!(submit(&mut scheduler, at(16_700), FRAME, 2, 15_000), [2], "{gpu:?}");
        assert_eq!(scheduler.stats().lost, 0);
    }
}

#[test]
fn other_work_is_charged_for_divisible_work() {
    let mut scheduler = scheduler(Gpu::InOrder);
    // 15.7 ms are its own, so that it fits into its contract with one turn of 0.3 ms.
    assert_eq!(submit(&mut scheduler, at(1), FRAME, 1, 15_700), [1]);
    assert_eq!(complete(&mut scheduler, at(15_900), 1), []);
    // Work without a contract is as well: 1.2 ms would leave the next frame its time, but not with a turn more.
    scheduler.handle_event(at(15_900), Event::Join { app: AppId(3), params: params(3, 0, false), phase: 0 });
    assert_eq!(submit(&mut scheduler, at(16_000), AppId(3), 30, 1_200), []);
    assert_eq!(scheduler.lanes()[3].head.map(|head| head.conservative), Some(Span::from_us(1_500)));
}

/// What divisible work adds is paid by a group whose estimate changed, as by any other.
#[test]
fn a_revised_group_is_charged_for_divisible_work() {
    let mut scheduler = scheduler(Gpu::InOrder);
    submit(&mut scheduler, at(0), FRAME, 1, 100);
    submit(&mut scheduler, at(0), FRAME, 2, 100);
    let estimate = Estimate::new(Span::from_us(900));
    scheduler.handle_event(at(0), Event::Revise { app: FRAME, group: GroupId(2), estimate });
    let waiting = scheduler.lanes()[0].head.expect("it waits");
    assert_eq!(waiting.conservative, Span::from_us(900 + 300));
}

#[test]
fn work_with_a_contract_is_not_divisible() {
    let mut scheduler = scheduler(Gpu::InOrder);
    let now_divisible = |scheduler: &Scheduler| {
        let lane = scheduler.lanes().iter().find(|lane| lane.app == KERNELS[0]);
        lane.map(|lane| (lane.divisible, lane.protected))
    };
    assert_eq!(submit(&mut scheduler, at(1), KERNELS[0], 10, 1_000), [10]);
    assert_eq!(now_divisible(&scheduler), Some((true, false)));
    // It changes when it has nothing on the GPU, and is not protected before.
    let app = KERNELS[0];
    scheduler.handle_event(at(2), Event::Change { app, params: params(5, 400, true) });
    assert_eq!(submit(&mut scheduler, at(3), app, 11, 100), []);
    assert_eq!(now_divisible(&scheduler), Some((true, false)));
    assert_eq!(complete(&mut scheduler, at(100), 10), [11]);
    assert_eq!(now_divisible(&scheduler), Some((false, true)));
    // The other way round as well.
    scheduler.handle_event(at(150), Event::Change { app, params: params(5, 0, true) });
    assert_eq!(submit(&mut scheduler, at(151), app, 12, 100_000), []);
    assert_eq!(now_divisible(&scheduler), Some((false, false)));
    assert_eq!(complete(&mut scheduler, at(200), 11), [12]);
    assert_eq!(now_divisible(&scheduler), Some((true, false)));
}

#[test]
fn other_policies_have_no_divisible_work() {
    let mut scheduler = Scheduler::new(config(Gpu::InOrder), Box::new(Fifo));
    scheduler.handle_event(at(0), Event::Join { app: KERNELS[0], params: params(5, 0, true), phase: 0 });
    assert!(!scheduler.lanes()[0].divisible);
    scheduler.replace_policy(Box::new(Timeline::new()));
    assert!(scheduler.lanes()[0].divisible);
}

/// All other work may delay it, so it is waited for longer than for other groups.
#[test]
fn an_end_that_is_not_told_frees_the_place() {
    let mut scheduler = scheduler(Gpu::InOrder);
    assert_eq!(submit(&mut scheduler, at(1), KERNELS[0], 10, 1_000), [10]);
    assert_eq!(submit(&mut scheduler, at(2), KERNELS[1], 20, 1_000), []);
    let mut lost = Vec::new();
    while scheduler.in_flight() > 0 && lost.is_empty() {
        let now = scheduler.poll_timeout().expect("there are apps");
        scheduler.handle_timeout(now);
        lost.extend(std::iter::from_fn(|| scheduler.poll_action()).filter_map(|action| match action {
            Action::Lost { group, by, .. } => Some((now, group, by)),
            _ => None,
        }));
    }
    // 1.3 ms for itself, ten seconds for others, and half a second to tell.
    assert_eq!(lost, [(at(10_501_301), GroupId(10), LostBy::Timeout)]);
    assert_eq!(scheduler.in_flight(), 1);
    scheduler.check_invariants();
}
