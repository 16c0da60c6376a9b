//! Frames that are shared by several apps are scheduled as if one app had submitted everything.

use proptest::prelude::*;
use takt_core::policy::Timeline;
use takt_core::service::Reservation;
use takt_core::{
    Action, AppId, AppParams, Clock, Config, Cost, Estimate, Event, GroupId, GroupKind, Priority, Scheduler,
    Service, Span, Stride, Time,
};

/// The owner, its sources, and an app that has nothing to do with them.
const OWNER: u32 = 1;
const SOURCES: [u32; 2] = [2, 3];
const OTHER: u32 = 0;

#[derive(Clone, Debug)]
enum Op {
    Wait(u64),
    /// One of the family submits something.
    Submit(u32, u64),
    /// The owner ends its frame, with a group or without.
    Swap(u64),
    EndFrame,
    /// The other app submits a frame.
    Disturb(u64),
    /// The oldest group in flight is over.
    Complete,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0u64..4_000_000).prop_map(Op::Wait),
        4 => (0usize..3, 0u64..150_000).prop_map(|(who, ns)| Op::Submit([OWNER, SOURCES[0], SOURCES[1]][who], ns)),
        2 => (0u64..150_000).prop_map(Op::Swap),
        1 => Just(Op::EndFrame),
        1 => (0u64..6_000_000).prop_map(Op::Disturb),
        6 => Just(Op::Complete),
    ]
}

struct Driver {
    scheduler: Scheduler,
    /// The owner submits what its sources would.
    alone: bool,
    now: Time,
    groups: u64,
    in_flight: Vec<GroupId>,
    /// Groups of the family since its last frame ended.
    open: u32,
}

impl Driver {
    fn new(config: Config, clock: Clock, alone: bool) -> Self {
        let scheduler = Scheduler::new(config, Box::new(Timeline::new()));
        let (now, groups, in_flight, open) = (Time::ZERO, 0, Vec::new(), 0);
        let mut driver = Self { scheduler, alone, now, groups, in_flight, open };
        let params = |priority, etpf, clock, reservation| AppParams {
            priority: Priority(priority),
            stride: Stride::ONE,
            etpf: Span::from_ms(etpf),
            clock,
            service: Service { reservation, ..Service::default() },
        };
        driver.join(OTHER, params(9, 0, Clock::default(), Reservation::None));
        driver.join(OWNER, params(8, 10, clock, Reservation::None));
        for source in SOURCES {
            driver.join(source, params(source, 0, Clock::default(), Reservation::Shared(AppId(OWNER))));
        }
        driver
    }

    fn join(&mut self, app: u32, params: AppParams) {
        self.scheduler.handle_event(self.now, Event::Join { app: AppId(app), params, phase: 0 });
        assert!(!self.scheduler.lanes().is_empty());
    }

    fn submit(&mut self, app: u32, kind: GroupKind, ns: u64) {
        self.groups += 1;
        let (group, estimate) = (GroupId(self.groups), Estimate::new(Span::from_ns(ns)));
        self.scheduler.handle_event(self.now, Event::Submit { app: AppId(app), group, kind, estimate });
    }

    /// What is dispatched, for which period, and from when on the GPU is expected to be free for it; and what
    /// becomes of the owner's frames.
    fn apply(&mut self, op: &Op) -> Vec<String> {
        match *op {
            Op::Wait(ns) => self.now += Span::from_ns(ns),
            // Sixteen of these fit into a frame, and a swap.
            Op::Submit(app, ns) if self.open < 16 => {
                self.open += 1;
                self.submit(if self.alone { OWNER } else { app }, GroupKind::Draw, ns);
            }
            Op::Submit(..) => {}
            Op::Swap(ns) => {
                self.open = 0;
                self.submit(OWNER, GroupKind::Swap, ns);
            }
            Op::EndFrame => {
                self.open = 0;
                self.scheduler.handle_event(self.now, Event::EndFrame { app: AppId(OWNER) });
            }
            Op::Disturb(ns) => self.submit(OTHER, GroupKind::Swap, ns),
            Op::Complete => {
                if let Some(group) = self.in_flight.first().copied() {
                    self.in_flight.remove(0);
                    let cost = Cost::new(Span::from_us(50));
                    let event = Event::Complete { group, finished: self.now, cost, frames: 0 };
                    self.scheduler.handle_event(self.now, event);
                }
            }
        }
        self.scheduler.handle_timeout(self.now);
        self.obey()
    }

    fn obey(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        while let Some(action) = self.scheduler.poll_action() {
            match action {
                Action::Dispatch { group, target, start, reserved, .. } => {
                    self.in_flight.push(group);
                    told.push(format!("{group:?} for {target:?} at {start:?}, {reserved:?}"));
                }
                Action::FrameDone(done) if done.app.0 <= OWNER => told.push(format!("{done:?}")),
                Action::Missed { app, .. } if app.0 <= OWNER => told.push(format!("{action:?}")),
                Action::Lost { group, .. } => self.in_flight.retain(|flying| *flying != group),
                _ => {}
            }
        }
        self.scheduler.check_invariants();
        told
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_shared_frame_goes_as_that_of_one_app(
        ops in proptest::collection::vec(op(), 1..150),
        mpcg in 1u32..6,
        own in any::<bool>(),
    ) {
        let period = Span::from_us(21_300);
        let clock = if own { Clock::Own { period, deadline: period } } else { Clock::default() };
        let config = Config { mpcg, apps_max: 4, ..Config::default() };
        let (mut one, mut several) = (Driver::new(config, clock, true), Driver::new(config, clock, false));
        for (number, op) in ops.iter().enumerate() {
            prop_assert_eq!(one.apply(op), several.apply(op), "after {} {:?}", number, op);
        }
    }
}
