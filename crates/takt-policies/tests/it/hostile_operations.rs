//! Random operations of less important apps beside three apps that keep their contracts: frames of a display, frames by
//! a clock of their own, and jobs of a server. Whatever the others do, none of the three ever misses a deadline.
//!
//! The GPU executes in order. Groups take what the scheduler was told or less, delays stay within the margins. All else
//! is as hostile as [operations](super::random_operations) can be: apps come, change and go in the middle of frames,
//! contracts change while work waits, displays change their rate, estimates are revised, limits move, time is said to
//! run backwards, and ends are told of groups that there never were.

use std::collections::VecDeque;

use proptest::prelude::*;
use takt_core::contract::{claim, is_covered};
use takt_core::policy::Timeline;
use takt_core::service::{Enforcement, Reservation, Reserve};
use takt_core::{
    Action, Adjustable, AppId, AppParams, Clock, Config, Cost, DisplayId, Estimate, Event, GroupId,
    GroupKind, Margins, Priority, Refresh, Scheduler, Service, Span, Stride, Time,
};
use takt_rng::Rng;

use super::random_operations::{Op, any_clock, op};

const DISPLAY: AppId = AppId(0);
const OWN: AppId = AppId(1);
const SERVER: AppId = AppId(2);
/// The apps that keep their contracts come first.
const KEPT: u32 = 3;
const APPS: u32 = 8;

const PERIOD: Span = Span::from_ms(20);
const DEADLINE: Span = Span::from_ms(10);
const SERVER_PERIOD: Span = Span::from_ms(25);

/// What the three apps are promised, per frame or job, and in how many groups they use it.
#[derive(Clone, Debug)]
struct Set {
    spans: [Span; KEPT as usize],
    groups: [u64; KEPT as usize],
    config: Config,
}

impl Set {
    /// A set that is covered, with as much of these spans as fits.
    fn within(mut self) -> Self {
        let covered = |set: &Self| {
            let claims: Vec<_> = set.params().iter().map(|params| claim(params, &set.config)).collect();
            is_covered(&claims, &set.config)
        };
        while !covered(&self) {
            self.spans = self.spans.map(|span| span.scaled(95, 100));
        }
        self
    }

    fn params(&self) -> [AppParams; KEPT as usize] {
        let [frame, own, budget] = self.spans;
        let params = |priority, etpf, clock, service| AppParams {
            priority: Priority(priority),
            stride: Stride::ONE,
            etpf,
            clock,
            service,
        };
        let reserve = Reserve {
            budget,
            period: SERVER_PERIOD,
            deadline: SERVER_PERIOD,
            enforcement: Enforcement::Posterior,
        };
        let served = Service { reservation: Reservation::Own(reserve), ..Service::default() };
        let clock = Clock::Own { period: PERIOD, deadline: DEADLINE };
        [
            params(102, frame, Clock::default(), Service::default()),
            params(101, own, clock, Service::default()),
            params(100, Span::ZERO, Clock::default(), served),
        ]
    }

    /// The groups of a frame or job, which use all of what is promised.
    fn groups(&self, app: AppId) -> Vec<Estimate> {
        let config = &self.config;
        let (span, count) = (self.spans[app.index()], self.groups[app.index()]);
        let (per_frame, per_group) = match app {
            SERVER => (Span::ZERO, config.per_arrival()),
            _ => (config.per_frame(), config.per_group()),
        };
        let least = config.margins.conservative(Estimate::default()) + per_group;
        let all = span.saturating_sub(per_frame);
        // No group is longer than what may be promised.
        let longest = (config.tuning.group_max + per_group).as_ns();
        let count = count.min(all.as_ns() / least.as_ns().max(1)).max(all.as_ns().div_ceil(longest)).max(1);
        let room = Span::from_ns(all.as_ns() / count).saturating_sub(per_group);
        let mut predicted = config.margins.predicted_within(room);
        while config.margins.conservative(Estimate::new(predicted)) > room && predicted > Span::ZERO {
            predicted = predicted.saturating_sub(Span::from_ns(1));
        }
        vec![Estimate::new(predicted); usize::try_from(count).unwrap_or(1)]
    }
}

/// A group on the GPU.
struct Running {
    group: GroupId,
    cost: Span,
    end: Time,
    heard: Time,
}

/// The scheduler, a GPU, three apps that keep their contracts, and what hostile apps do.
struct World {
    set: Set,
    scheduler: Scheduler,
    rng: Rng,
    now: Time,
    gpu: VecDeque<Running>,
    free: Time,
    heard: Time,
    groups: u64,
    /// When each of the three begins its next frame or job.
    begins: [Time; KEPT as usize],
    done: u64,
}

impl World {
    fn new(set: Set, seed: u64) -> Self {
        let scheduler = Scheduler::new(set.config, Box::new(Timeline::new()));
        let mut world = Self {
            set,
            scheduler,
            rng: Rng::seeded(seed),
            now: Time::ZERO,
            gpu: VecDeque::new(),
            free: Time::ZERO,
            heard: Time::ZERO,
            groups: 0,
            begins: [Time::NEVER; KEPT as usize],
            done: 0,
        };
        for (app, params) in (0..).map(AppId).zip(world.set.params()) {
            world.scheduler.handle_event(Time::ZERO, Event::Join { app, params, phase: 0 });
        }
        world.begins[OWN.index()] = Time::from_ns(world.rng.between(0, PERIOD.as_ns()));
        world.begins[SERVER.index()] = Time::from_ns(world.rng.between(0, SERVER_PERIOD.as_ns()));
        world.obey();
        world
    }

    /// Plays until then.
    fn play(&mut self, until: Time) {
        loop {
            let end = self.gpu.front().map_or(Time::NEVER, |running| running.heard);
            let timeout = self.scheduler.poll_timeout().unwrap_or(Time::NEVER);
            let begin = self.begins.iter().copied().min().unwrap_or(Time::NEVER);
            let next = end.min(timeout).min(begin);
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            while let Some(Running { group, cost, end, .. }) =
                self.gpu.pop_front_if(|running| running.heard <= self.now)
            {
                let cost = Cost::new(cost);
                self.tell(Event::Complete { group, finished: end, cost, frames: 0 });
            }
            if timeout <= self.now {
                self.scheduler.handle_timeout(self.now);
            }
            for app in (0..KEPT).map(AppId) {
                if self.begins[app.index()] <= self.now {
                    self.begin(app);
                }
            }
            self.obey();
        }
    }

    /// One of the three submits a frame or job.
    fn begin(&mut self, app: AppId) {
        let period = match app {
            DISPLAY => Span::FOREVER,
            OWN => PERIOD,
            _ => SERVER_PERIOD,
        };
        let late = Span::from_ns(self.rng.between(0, 1) * self.rng.between(0, 4_000_000));
        self.begins[app.index()] = self.now + period + late;
        let groups = self.set.groups(app);
        let last = groups.len() - 1;
        for (number, estimate) in groups.into_iter().enumerate() {
            let kind = if number == last { GroupKind::Swap } else { GroupKind::Draw };
            self.submit(app, kind, estimate);
        }
    }

    fn submit(&mut self, app: AppId, kind: GroupKind, estimate: Estimate) {
        self.groups += 1;
        self.tell(Event::Submit { app, group: GroupId(self.groups), kind, estimate });
    }

    fn tell(&mut self, event: Event) {
        self.scheduler.handle_event(self.now, event);
        assert_eq!(self.scheduler.broken(), None, "after {event:?}");
    }

    fn obey(&mut self) {
        while let Some(action) = self.scheduler.poll_action() {
            match action {
                Action::Dispatch { group, reserved, .. } => self.run(group, reserved),
                Action::Release { app: DISPLAY, at } => self.begins[DISPLAY.index()] = at.max(self.now),
                Action::Missed { app, deadline, .. } if app.0 < KEPT => {
                    panic!("app {} missed {deadline:?} with {:?}", app.0, self.set)
                }
                Action::FrameDone(done) if done.app.0 < KEPT => {
                    assert!(done.met, "{done:?} with {:?}", self.set);
                    self.done += 1;
                }
                Action::Lost { .. } => panic!("{action:?}: all ends are told"),
                _ => {}
            }
        }
        self.scheduler.check_invariants();
        let kept = &self.scheduler.lanes()[..KEPT as usize];
        assert!(kept.iter().all(|lane| lane.protected && lane.app.0 < KEPT), "{kept:?}");
    }

    /// A group goes to the GPU, and runs for as long as it may or less.
    fn run(&mut self, group: GroupId, reserved: Span) {
        let Margins { dispatch_lower, dispatch_upper, completion_upper, group_min, .. } =
            self.set.config.margins;
        let mut within = |lo: Span, hi: Span| match self.rng.between(0, 2) {
            0 => Span::from_ns(self.rng.between(lo.as_ns(), hi.as_ns())),
            _ => hi,
        };
        let cost = within(group_min, reserved);
        let arrives = self.now + within(dispatch_lower, dispatch_upper);
        let end = self.free.max(arrives) + cost;
        let heard = self.heard.max(end + within(Span::ZERO, completion_upper));
        (self.free, self.heard) = (end, heard);
        self.gpu.push_back(Running { group, cost, end, heard });
    }

    /// A hostile app does something, or the world does.
    fn suffer(&mut self, op: &Op) {
        match op.clone() {
            Op::Wait(ns) => self.play(self.now + Span::from_ns(ns.min(200_000_000))),
            Op::Rewind(ns) => self.scheduler.handle_timeout(self.now - Span::from_ns(ns)),
            Op::Join(app, params, phase) => {
                self.tell(Event::Join { app: hostile(app), params: harmless(params), phase });
            }
            Op::Leave(app) => self.tell(Event::Leave { app: hostile(app) }),
            Op::Change(app, params) => {
                self.tell(Event::Change { app: hostile(app), params: harmless(params) });
            }
            Op::Submit(app, kind, length) => {
                self.submit(hostile(app), kind, Estimate::new(Span::from_ns(length)));
            }
            Op::EndFrame(app) => self.tell(Event::EndFrame { app: hostile(app) }),
            Op::Refresh(display, mhz, origin) => {
                let refresh = Refresh::from_mhz(mhz).unwrap_or(Refresh::HZ_60);
                let refresh = refresh.with_origin(Time::from_ns(origin));
                self.tell(Event::Refresh { display: DisplayId(display.max(1)), refresh });
            }
            Op::Adjust(adjustable) => {
                let Adjustable { blocking, stretch, .. } = adjustable;
                let stretch = stretch.min(Span::from_ms(2));
                let before = self.set.config.adjustable();
                self.tell(Event::Adjust(Adjustable { blocking, stretch, ..before }));
            }
            Op::Revise(app, ago, length) => {
                let group = GroupId(self.groups.saturating_sub(ago));
                let estimate = Estimate::new(Span::from_ns(length));
                self.tell(Event::Revise { app: hostile(app), group, estimate });
            }
            Op::Focus(app) => self.tell(Event::Focus { app: app.map(hostile) }),
            Op::Timeout => self.scheduler.handle_timeout(self.now),
            Op::CompleteNothing(id) => {
                let (group, finished, cost) = (GroupId(u64::MAX - id), self.now, Cost::default());
                self.tell(Event::Complete { group, finished, cost, frames: 40 });
            }
            // All ends of what is there are told as they are.
            Op::Complete(_) | Op::CompleteLater(_) | Op::CompleteTakenBack => {}
        }
        self.obey();
    }
}

fn hostile(app: u32) -> AppId {
    AppId(KEPT + app % (APPS - KEPT))
}

/// An app that runs on a contract of the three uses it up: whom that is allowed is not for the scheduler to say.
fn harmless(params: AppParams) -> AppParams {
    let service = params.service;
    let reservation = match service.reservation {
        Reservation::Shared(app) => Reservation::Shared(hostile(app.0)),
        reservation => reservation,
    };
    let feeds = service.feeds.map(|app| hostile(app.0));
    AppParams { service: Service { reservation, feeds, ..service }, ..params }
}

fn set() -> impl Strategy<Value = Set> {
    let span = || (1_000_000u64..9_000_000).prop_map(Span::from_ns);
    let groups = || 1u64..5;
    let margins = prop_oneof![
        Just(Margins::NONE),
        Just(Margins::default()),
        Just(Margins { completion_upper: Span::from_us(120), ..Margins::default() }),
    ];
    let group_max = prop_oneof![Just(Span::FOREVER), Just(Span::from_us(1_500))];
    ((span(), span(), span()), (groups(), groups(), groups()), 1u32..8, margins, group_max).prop_map(
        |((a, b, c), (d, e, f), mpcg, margins, group_max)| {
            let mut config = Config { mpcg, margins, apps_max: APPS, ..Config::default() };
            config.tuning.group_max = group_max;
            Set { spans: [a, b, c], groups: [d, e, f], config }.within()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_contract_is_broken_by_what_less_important_apps_do(
        set in set(),
        seed in any::<u64>(),
        ops in proptest::collection::vec((0u64..6_000_000, op(any_clock())), 1..120),
    ) {
        let mut world = World::new(set, seed);
        for (after, op) in &ops {
            world.play(world.now + Span::from_ns(*after));
            world.suffer(op);
        }
        world.play(world.now + Span::from_ms(300));
        prop_assert!(world.done > 20, "{} frames", world.done);
    }
}
