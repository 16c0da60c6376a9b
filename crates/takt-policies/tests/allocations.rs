//! The scheduler takes all its memory at construction, and so does the belief in estimates.

use takt_core::belief::{Belief, Uncut};
use takt_core::limits::{IN_FLIGHT_MAX, QUEUE_MAX};
use takt_core::policy::{self, Policy};
use takt_core::service::{Enforcement, Reservation, Reserve, Turns};
use takt_core::{
    Action, AppId, AppParams, Config, Cost, Estimate, Event, Gpu, GroupId, GroupKind, Hold, Priority,
    Scheduler, Service, Span, Stride, Time,
};

const APPS: u32 = 12;

/// Reserves of all kinds, and none.
fn service(app: u32) -> Service {
    let period = Span::from_ms(5);
    let enforcement = if app < 6 { Enforcement::Posterior } else { Enforcement::Apriori };
    let own = Reserve { budget: Span::from_us(800), period, deadline: period, enforcement };
    let reservation = match app % 4 {
        0 => Reservation::Own(own),
        1 => Reservation::Shared(AppId(app - 1)),
        2 => Reservation::Background,
        _ => Reservation::None,
    };
    let feeds = app.is_multiple_of(3).then_some(AppId(app + 1));
    Service { reservation, feeds, turns: Turns::Following, ..Service::default() }
}

/// Drives all kinds of events through a scheduler; returns how many groups were dispatched.
fn exercise(scheduler: &mut Scheduler) -> u64 {
    let mut now = Time::ZERO;
    let mut group = 0;
    let mut in_flight = None;
    for round in 0..2_000u64 {
        now += Span::from_us(700);
        for app in (0..APPS).map(AppId) {
            let stride = Stride::new(1 + app.0 % 4).unwrap_or(Stride::ONE);
            let params = AppParams {
                priority: Priority(app.0),
                stride,
                etpf: Span::from_us(300),
                clock: takt_core::Clock::default(),
                service: service(app.0),
            };
            match round % 100 {
                0 => scheduler.handle_event(now, Event::Join { app, params, phase: 0 }),
                50 => scheduler.handle_event(now, Event::Change { app, params }),
                99 => scheduler.handle_event(now, Event::Leave { app }),
                // Some frames end with a group, others behind one, and others have none.
                n if n % 3 == 1 => scheduler.handle_event(now, Event::EndFrame { app }),
                n => {
                    group += 1;
                    let kind = if n % 3 == 0 { GroupKind::Swap } else { GroupKind::Draw };
                    let estimate = Estimate::new(Span::from_us(200));
                    scheduler.handle_event(now, Event::Submit { app, group: GroupId(group), kind, estimate });
                }
            }
        }
        if let Some(group) = in_flight.take() {
            let cost = Cost::new(Span::from_us(210));
            scheduler.handle_event(now, Event::Complete { group, finished: now, cost, frames: 0 });
        }
        scheduler.handle_timeout(now);
        while let Some(action) = scheduler.poll_action() {
            if let Action::Dispatch { group, .. } = action {
                in_flight = Some(group);
            }
        }
    }
    scheduler.stats().dispatched
}

/// Chooses a lane that does not exist.
#[derive(Debug)]
struct Blind;

impl Policy for Blind {
    fn name(&self) -> &'static str {
        "blind"
    }

    fn choose(&mut self, _context: &policy::Context, lanes: &mut [takt_core::Lane]) -> Option<usize> {
        Some(lanes.len())
    }
}

#[test]
fn running_free_takes_no_memory() {
    let config = Config { apps_max: APPS, ..Config::default() };
    let mut scheduler = Scheduler::new(config, Box::new(Blind));
    let mut dispatched = 0;
    let memory = allocation_counter::measure(|| dispatched = exercise(&mut scheduler));
    assert!(scheduler.broken().is_some());
    assert_eq!((memory.count_total, dispatched > 1_000), (0, true), "{dispatched}");
}

#[test]
fn a_flood_of_refusals_is_counted_and_takes_no_memory() {
    let policy = takt_policies::by_name("fifo").expect("listed policies exist");
    let mut scheduler = Scheduler::new(Config { apps_max: APPS, ..Config::default() }, policy);
    let memory = allocation_counter::measure(|| {
        for _ in 0..100_000 {
            scheduler.handle_event(Time::ZERO, Event::Leave { app: AppId(0) });
        }
    });
    assert_eq!(memory.count_total, 0);
    assert_eq!(scheduler.stats().refused, 100_000);
    let told = std::iter::from_fn(|| scheduler.poll_action()).count() as u64;
    assert!(told > 0 && told + scheduler.stats().untold == 100_000, "{told}");
}

#[test]
fn nothing_is_allocated_after_construction() {
    let switches = Gpu::TimeShared { slice: Span::from_us(500), switch: Span::from_us(160) };
    let executions = [Gpu::InOrder, Gpu::Preemptive, Gpu::TURNS, switches];
    for (name, execution) in takt_policies::NAMES.iter().flat_map(|name| executions.map(|kind| (name, kind)))
    {
        let policy: Box<dyn Policy> = takt_policies::by_name(name).expect("listed policies exist");
        let config = Config { apps_max: APPS, gpu: execution, ..Config::default() };
        let mut scheduler = Scheduler::new(config, policy);
        let mut dispatched = 0;
        let memory = allocation_counter::measure(|| dispatched = exercise(&mut scheduler));
        assert!(dispatched > 500, "{name} dispatched {dispatched} ({execution:?})");
        assert_eq!(memory.count_total, 0, "{name} allocates ({execution:?})");
    }
}

#[test]
fn belief_takes_no_memory_for_events() {
    let mut belief = Belief::default();
    belief.set_uncut(Uncut::Run);
    let memory = allocation_counter::measure(|| {
        for round in 0..100u64 {
            let now = Time::from_ms(round * 5_000);
            let groups = 2 * QUEUE_MAX as u64;
            let group = |number| GroupId(round * groups + number);
            for number in 0..groups {
                belief.submitted(now, group(number), GroupKind::Draw, Estimate::UNBOUNDED);
            }
            belief.held(Hold::Unbounded);
            assert!(belief.stuck(now + Span::from_ms(2_000)).is_some());
            assert!(belief.revise(now + Span::from_ms(2_000)).is_some());
            // As many as may wait are granted, and all of them come back.
            (0..groups).for_each(|number| belief.granted(now, group(number)));
            (0..IN_FLIGHT_MAX as u64).rev().for_each(|number| belief.preempted(now, group(number)));
            (0..groups).for_each(|number| belief.granted(now, group(number)));
            (0..groups).for_each(|number| belief.completed(now, group(number), Cost::default()));
        }
    });
    assert_eq!(memory.count_total, 0);
}
