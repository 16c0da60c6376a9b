//! Random operations, sensible and not: nothing panics, invariants hold after each, and looking at
//! a few periods decides exactly as looking at all of them.

use proptest::prelude::*;
use takt_core::contract::has_contract;
use takt_core::policy::{Context, Policy, Timeline};
use takt_core::service::{Enforcement, Reservation, Reserve, Turns};
use takt_core::{
    Action, Adjustable, AppId, AppParams, Clock, Config, Cost, DisplayId, Divisible, Estimate, Event, Gpu,
    GroupId, GroupKind, Hold, Lane, Margins, Priority, Refresh, Scheduler, Service, Span, Stride, Time,
};

const APPS: u32 = 6;

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Wait(u64),
    /// Time runs backwards: must be harmless.
    Rewind(u64),
    Join(u32, AppParams, u32),
    Leave(u32),
    Change(u32, AppParams),
    Submit(u32, GroupKind, u64),
    EndFrame(u32),
    /// Completes the oldest group in flight, some time ago.
    Complete(u64),
    /// Completes a later one: the ones before are lost.
    CompleteLater(usize),
    /// Completes what was just taken back from the GPU: it had finished before.
    CompleteTakenBack,
    /// Completes something that does not exist.
    CompleteNothing(u64),
    /// Of a display, which may not exist.
    Refresh(u8, u32, u64),
    Adjust(Adjustable),
    /// Revises a group that was submitted lately, so many ago.
    Revise(u32, u64, u64),
    Focus(Option<u32>),
    Timeout,
}

fn params(clock: impl Strategy<Value = Clock>) -> impl Strategy<Value = AppParams> {
    // One takes a whole period of the first display.
    let etpf = prop_oneof![
        4 => Just(0),
        4 => 0u64..20_000_000,
        1 => proptest::sample::select(vec![1, 16_666_665, 16_666_666, 16_666_667]),
        3 => Just(u64::MAX),
    ];
    (0u32..8, 1u32..=7, etpf, clock, service()).prop_map(|(priority, stride, etpf, clock, service)| {
        AppParams {
            priority: Priority(priority),
            stride: Stride::new(stride).unwrap_or(Stride::ONE),
            etpf: Span::from_ns(etpf),
            clock,
            service,
        }
    })
}

pub(crate) fn any_clock() -> impl Strategy<Value = Clock> + Clone {
    let display = any_display().prop_map(|display| Clock::Display(DisplayId(display)));
    let time = || prop_oneof![6 => 0u64..40_000_000, 1 => proptest::sample::select(&EXTREMES[..])];
    let own = (time(), proptest::option::of(time())).prop_map(|(period, deadline)| Clock::Own {
        period: Span::from_ns(period),
        deadline: Span::from_ns(deadline.unwrap_or(period)),
    });
    prop_oneof![6 => Just(Clock::default()), 1 => display, 2 => own]
}

/// From 1 ns to an hour, and the shortest and longest period that a clock may have.
const EXTREMES: [u64; 7] = [1, 1_000, 99_999, 100_000, 4_000_000_000, 4_000_000_001, 3_600_000_000_000];

/// A display, or one of many that do not exist.
fn any_display() -> impl Strategy<Value = u8> + Clone {
    prop_oneof![8 => 0u8..5, 1 => any::<u8>()]
}

fn service() -> impl Strategy<Value = Service> {
    let turns = prop_oneof![Just(Turns::Single), Just(Turns::Following)];
    let uninterruptible = proptest::bool::weighted(0.1);
    (any::<bool>(), turns, reservation(), proptest::option::of(0..APPS), uninterruptible).prop_map(
        |(follows_focus, turns, reservation, feeds, uninterruptible)| Service {
            follows_focus,
            turns,
            reservation,
            feeds: feeds.map(AppId),
            uninterruptible,
            ..Service::default()
        },
    )
}

fn reservation() -> impl Strategy<Value = Reservation> {
    let extreme = proptest::sample::select(&EXTREMES[..]);
    let time = prop_oneof![8 => 0u64..50_000_000, 1 => Just(u64::MAX), 1 => extreme];
    let enforcement = prop_oneof![Just(Enforcement::Posterior), Just(Enforcement::Apriori)];
    let own = (time.clone(), time, enforcement).prop_map(|(budget, period, enforcement)| {
        let (budget, period) = (Span::from_ns(budget), Span::from_ns(period));
        Reservation::Own(Reserve { budget, period, deadline: period, enforcement })
    });
    prop_oneof![
        Just(Reservation::None),
        own,
        (0..APPS + 2).prop_map(|app| Reservation::Shared(AppId(app))),
        Just(Reservation::Background),
    ]
}

fn adjustable() -> impl Strategy<Value = Adjustable> {
    let span = || prop_oneof![4 => 0u64..2_000_000, 1 => Just(u64::MAX)].prop_map(Span::from_ns);
    let short = || (0u64..1_000_000).prop_map(Span::from_ns);
    let turn = (short(), short(), short(), short())
        .prop_map(|(slice, quantum, own_slice, switch)| Divisible { slice, quantum, own_slice, switch });
    let divisible = proptest::option::of(turn);
    (0u32..70, short(), short(), short(), short(), span(), span(), divisible).prop_map(
        |(mpcg, fixed, dispatch_upper, completion_upper, group_min, blocking, stretch, divisible)| {
            Adjustable {
                mpcg,
                margins: Margins { fixed, dispatch_upper, completion_upper, group_min, ..Margins::default() },
                blocking,
                stretch,
                divisible,
            }
        },
    )
}

pub(crate) fn op(clock: impl Strategy<Value = Clock> + Clone + 'static) -> impl Strategy<Value = Op> {
    let app = 0..APPS + 1;
    let app_of_end = app.clone();
    let join = (app.clone(), params(clock.clone()), 0u32..5);
    let kind = prop_oneof![
        6 => Just(GroupKind::Draw),
        5 => Just(GroupKind::Swap),
        1 => Just(GroupKind::Sync),
        1 => Just(GroupKind::Exit),
    ];
    let length = prop_oneof![
        4 => Just(0),
        16 => 0u64..5_000_000,
        4 => 0u64..100_000_000,
        1 => Just(u64::MAX),
    ];
    prop_oneof![
        4 => (0u64..8_000_000).prop_map(Op::Wait),
        1 => (0u64..2_000_000_000).prop_map(Op::Wait),
        1 => (0u64..8_000_000).prop_map(Op::Rewind),
        2 => join.prop_map(|(app, params, phase)| Op::Join(app, params, phase)),
        1 => app.clone().prop_map(Op::Leave),
        1 => (app.clone(), params(clock)).prop_map(|(app, params)| Op::Change(app, params)),
        12 => (app, kind, length.clone()).prop_map(|(app, kind, length)| Op::Submit(app, kind, length)),
        4 => app_of_end.prop_map(Op::EndFrame),
        8 => (0u64..100_000).prop_map(Op::Complete),
        1 => (0usize..8).prop_map(Op::CompleteLater),
        1 => Just(Op::CompleteTakenBack),
        1 => (0u64..50).prop_map(Op::CompleteNothing),
        1 => (any_display(), 1_000u32..200_000, 0u64..50_000_000)
            .prop_map(|(display, mhz, origin)| Op::Refresh(display, mhz, origin)),
        1 => proptest::option::of(0..APPS).prop_map(Op::Focus),
        1 => adjustable().prop_map(Op::Adjust),
        1 => (0..APPS, 0u64..8, length).prop_map(|(app, ago, length)| Op::Revise(app, ago, length)),
        2 => Just(Op::Timeout),
    ]
}

/// The same, but apps say that their work is divisible, and apps of even priority have no contract.
fn divided(op: Op) -> Op {
    let divided = |params: AppParams| {
        let service = Service { divisible: true, ..params.service };
        match params.priority.0 % 2 {
            0 => {
                let service = Service { reservation: Reservation::None, feeds: None, ..service };
                AppParams { etpf: Span::ZERO, service, ..params }
            }
            _ => AppParams { service, ..params },
        }
    };
    match op {
        Op::Join(app, params, phase) => Op::Join(app, divided(params), phase),
        Op::Change(app, params) => Op::Change(app, divided(params)),
        op => op,
    }
}

/// The same, but two apps have frames that all others share.
fn shared(op: Op) -> Op {
    let shared = |app: u32, params: AppParams| {
        let reservation = if app < 2 { Reservation::None } else { Reservation::Shared(AppId(app % 2)) };
        let etpf = if app < 2 { params.etpf.max(Span::from_ns(1)) } else { Span::ZERO };
        AppParams { etpf, service: Service { reservation, ..params.service }, ..params }
    };
    match op {
        Op::Join(app, params, phase) => Op::Join(app, shared(app, params), phase),
        // Some come to share frames, or cease to.
        Op::Change(app, params) if params.priority.0 % 2 == 0 => Op::Change(app, shared(app, params)),
        op => op,
    }
}

/// A scheduler and what a driver must remember.
struct Driver {
    scheduler: Scheduler,
    now: Time,
    groups: u64,
    in_flight: Vec<GroupId>,
    /// The group that was taken back from the GPU last.
    taken_back: Option<GroupId>,
}

impl Driver {
    fn new(config: Config, policy: Box<dyn Policy>) -> Self {
        let scheduler = Scheduler::new(config, policy);
        Self { scheduler, now: Time::ZERO, groups: 0, in_flight: Vec::new(), taken_back: None }
    }

    fn apply(&mut self, op: &Op) -> Vec<Action> {
        self.tell(op);
        self.obey()
    }

    /// Does not ask what is to be done.
    fn tell(&mut self, op: &Op) {
        let now = self.now;
        let complete = |group, ago: u64| Event::Complete {
            group,
            finished: now - Span::from_ns(ago),
            cost: Cost::new(Span::from_ns(ago)),
            // As many as may be, and more.
            frames: u32::try_from(ago % 40).unwrap_or(0),
        };
        let event = match op.clone() {
            Op::Wait(ns) => {
                self.now += Span::from_ns(ns);
                None
            }
            Op::Rewind(ns) => {
                self.now = self.now - Span::from_ns(ns);
                None
            }
            Op::Join(app, params, phase) => Some(Event::Join { app: AppId(app), params, phase }),
            Op::Leave(app) => Some(Event::Leave { app: AppId(app) }),
            Op::Change(app, params) => Some(Event::Change { app: AppId(app), params }),
            Op::Submit(app, kind, length) => {
                self.groups += 1;
                let estimate = Estimate::new(Span::from_ns(length));
                Some(Event::Submit { app: AppId(app), group: GroupId(self.groups), kind, estimate })
            }
            Op::EndFrame(app) => Some(Event::EndFrame { app: AppId(app) }),
            Op::Complete(ago) => self.in_flight.first().map(|group| complete(*group, ago)),
            Op::CompleteLater(n) => self.in_flight.get(n).map(|group| complete(*group, 0)),
            Op::CompleteTakenBack => self.taken_back.take().map(|group| complete(group, 0)),
            Op::CompleteNothing(id) => Some(complete(GroupId(u64::MAX - id), 0)),
            Op::Refresh(display, mhz, origin) => {
                let refresh = Refresh::from_mhz(mhz).unwrap_or(Refresh::HZ_60);
                let refresh = refresh.with_origin(Time::from_ns(origin));
                Some(Event::Refresh { display: DisplayId(display), refresh })
            }
            Op::Revise(app, ago, length) => {
                let estimate = Estimate::new(Span::from_ns(length));
                let group = GroupId(self.groups.saturating_sub(ago));
                Some(Event::Revise { app: AppId(app), group, estimate })
            }
            Op::Adjust(adjustable) => Some(Event::Adjust(adjustable)),
            Op::Focus(app) => Some(Event::Focus { app: app.map(AppId) }),
            Op::Timeout => {
                self.now = self.scheduler.poll_timeout().unwrap_or(self.now).max(self.now);
                self.scheduler.handle_timeout(self.now);
                None
            }
        };
        if let Some(event) = event {
            self.scheduler.handle_event(now, event);
            // The ones before it that are lost with it are told of by `Action::Lost`.
            if let Event::Complete { group, .. } = event {
                self.in_flight.retain(|flying| *flying != group);
            }
        }
        // Guards look after each event, not only when everything is decided.
        assert_eq!(self.scheduler.broken(), None, "after {op:?}");
    }

    fn obey(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        while let Some(action) = self.scheduler.poll_action() {
            match action {
                Action::Dispatch { group, .. } => self.in_flight.push(group),
                Action::Preempt { group, .. } => {
                    assert_eq!(self.in_flight.pop(), Some(group), "the last one comes back first");
                    self.taken_back = Some(group);
                }
                Action::Lost { group, .. } => self.in_flight.retain(|flying| *flying != group),
                _ => {}
            }
            actions.push(action);
        }
        self.scheduler.check_invariants();
        assert_eq!(self.in_flight.len(), self.scheduler.in_flight(), "we know what is in flight");
        if self.scheduler.policy_name() == "timeline" {
            self.check_holds();
        }
        actions
    }
}

/// Reasons are true when they are told, and as long as they are not told anew.
impl Driver {
    fn check_holds(&self) {
        let lanes = self.scheduler.lanes();
        for lane in lanes.iter().filter(|lane| lane.waiting > 0) {
            let Some(hold) = lane.hold else { panic!("{} waits for no reason", lane.app.0) };
            let named = hold.names().map(|app| lanes.iter().find(|other| other.app == app));
            let named = named.map(|named| named.unwrap_or_else(|| panic!("{hold:?}: it is not there")));
            if let Some(named) = named.filter(|_| hold.promised().is_some()) {
                // Work of apps without a contract has time kept free as long as it waits.
                let promised = has_contract(&named.params()) || named.head.is_some();
                assert!(promised, "{hold:?} names an app without a promise: {named:?}");
                let clears = matches!(hold, Hold::Clears { .. });
                assert!(!clears || has_contract(&named.params()), "{hold:?} names {named:?}");
            }
            self.check_place(lane, hold);
        }
    }

    /// A group waits for a place only where there is none, for it.
    fn check_place(&self, lane: &Lane, hold: Hold) {
        let config = self.scheduler.config();
        let counts = config.gpu == Gpu::InOrder && !lane.divisible && hold == Hold::NoSlot;
        let places = config.mpcg as usize;
        assert!(
            !counts || self.scheduler.in_flight() >= places,
            "{lane:?} waits for a place, and there is one"
        );
    }
}

fn config(mpcg: u32, margins: Margins) -> Config {
    Config { mpcg, margins, apps_max: APPS, ..Config::default() }
}

/// Serves the most important app at every instant.
#[derive(Debug)]
struct Eager;

impl Policy for Eager {
    fn name(&self) -> &'static str {
        "eager"
    }

    fn preempts(&mut self, _context: &Context, lanes: &[Lane], running: usize) -> bool {
        lanes[..running].iter().any(|lane| lane.head.is_some())
    }

    fn choose(&mut self, _context: &Context, lanes: &mut [Lane]) -> Option<usize> {
        lanes.iter().position(|lane| lane.head.is_some())
    }
}

/// A GPU on which a change of contexts costs something.
const SWITCHES: Gpu = Gpu::TimeShared { slice: Span::from_us(500), switch: Span::from_us(160) };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn invariants_hold_and_the_window_changes_no_decision(
        ops in proptest::collection::vec(op(Just(Clock::default())), 1..120),
        mpcg in 1u32..8,
        exact in any::<bool>(),
        in_turn in 0usize..3,
    ) {
        let margins = if exact { Margins::NONE } else { Margins::default() };
        let execution = [Gpu::InOrder, Gpu::TURNS, SWITCHES][in_turn];
        let config = Config { gpu: execution, ..config(mpcg, margins) };
        let mut fast = Driver::new(config, Box::new(Timeline::new()));
        let mut slow = Driver::new(config, Box::new(Timeline::with_full_lookahead()));
        for op in &ops {
            prop_assert_eq!(fast.apply(op), slow.apply(op), "after {:?}", op);
        }
        prop_assert_eq!(fast.scheduler.stats(), slow.scheduler.stats());
    }

    #[test]
    fn invariants_hold_where_frames_are_shared(
        ops in proptest::collection::vec(op(any_clock()).prop_map(shared), 1..160),
        mpcg in 1u32..8,
        execution in prop_oneof![Just(Gpu::InOrder), Just(Gpu::TURNS), Just(SWITCHES)],
        replaced in proptest::option::of((0usize..160, proptest::sample::select(takt_policies::NAMES))),
    ) {
        let config = Config { gpu: execution, ..config(mpcg, Margins::default()) };
        let mut driver = Driver::new(config, Box::new(Timeline::new()));
        // All of them are there from the start, with etpf of 5 ms where they have frames.
        for app in 0..APPS {
            let params = AppParams {
                priority: Priority(7 - app),
                stride: Stride::ONE,
                etpf: Span::from_ms(5),
                clock: Clock::default(),
                service: Service::default(),
            };
            driver.apply(&shared(Op::Join(app, params, 0)));
        }
        for (number, op) in ops.iter().enumerate() {
            match replaced {
                Some((at, name)) if at == number => {
                    driver.scheduler.replace_policy(takt_policies::by_name(name).expect("it exists"));
                }
                Some((at, _)) if at + 20 == number => {
                    driver.scheduler.replace_policy(Box::new(Timeline::new()));
                }
                _ => {}
            }
            driver.apply(op);
        }
    }

    #[test]
    fn invariants_hold_under_every_policy(
        ops in proptest::collection::vec(op(any_clock()), 1..120),
        name in proptest::sample::select(takt_policies::NAMES),
        execution in prop_oneof![
            Just(Gpu::InOrder),
            Just(Gpu::Preemptive),
            Just(Gpu::TURNS),
            Just(SWITCHES),
        ],
        mpcg in 1u32..8,
    ) {
        let policy = takt_policies::by_name(name).expect("listed policies exist");
        let config = Config { gpu: execution, ..config(mpcg, Margins::default()) };
        let mut driver = Driver::new(config, policy);
        for op in &ops {
            driver.apply(op);
            let next = driver.scheduler.poll_timeout();
            if matches!(op, Op::Timeout) {
                prop_assert!(next.is_none_or(|at| at > driver.now), "{name} asks for {next:?} again");
            }
        }
    }

    #[test]
    fn invariants_hold_with_divisible_work(
        ops in proptest::collection::vec(op(any_clock()).prop_map(divided), 1..120),
        name in proptest::sample::select(vec!["timeline", "timeline", "fifo", "edf-cbs"]),
        execution in prop_oneof![Just(Gpu::InOrder), Just(Gpu::Preemptive), Just(Gpu::TURNS)],
        mpcg in 1u32..4,
    ) {
        let policy = takt_policies::by_name(name).expect("listed policies exist");
        let [slice, quantum, own_slice, switch] = [300, 200, 2000, 50].map(Span::from_us);
        let divisible = Some(Divisible { slice, quantum, own_slice, switch });
        let config = Config { gpu: execution, divisible, ..config(mpcg, Margins::default()) };
        let mut driver = Driver::new(config, policy);
        for op in &ops {
            driver.apply(op);
            if ops.len() % 5 == 0 && matches!(op, Op::Focus(_)) {
                driver.scheduler.replace_policy(Box::new(Timeline::new()));
            }
        }
    }

    #[test]
    fn invariants_hold_when_much_happens_at_once(
        batches in proptest::collection::vec(proptest::collection::vec(op(any_clock()), 1..12), 1..20),
        name in proptest::sample::select(takt_policies::NAMES),
        execution in prop_oneof![Just(Gpu::InOrder), Just(Gpu::Preemptive), Just(Gpu::TURNS), Just(SWITCHES)],
        mpcg in 1u32..8,
    ) {
        let policy = takt_policies::by_name(name).expect("listed policies exist");
        let config = Config { gpu: execution, ..config(mpcg, Margins::default()) };
        let mut driver = Driver::new(config, policy);
        for batch in &batches {
            batch.iter().for_each(|op| driver.tell(op));
            driver.obey();
        }
    }

    #[test]
    fn invariants_hold_on_other_gpus(
        ops in proptest::collection::vec(op(any_clock()), 1..120),
        mpcg in 1u32..8,
        preemptive in any::<bool>(),
    ) {
        let execution = if preemptive { Gpu::Preemptive } else { Gpu::TURNS };
        let config = Config { gpu: execution, ..config(mpcg, Margins::default()) };
        let mut driver = Driver::new(config, Box::new(Eager));
        for op in &ops {
            driver.apply(op);
        }
    }
}

fn join(app: u32, priority: u32) -> Op {
    let params = AppParams {
        priority: Priority(priority),
        stride: Stride::ONE,
        etpf: Span::ZERO,
        clock: Clock::default(),
        service: Service::default(),
    };
    Op::Join(app, params, 0)
}

/// Found at random: the swap and a draw of one frame come back from the GPU together.
#[test]
fn a_frame_comes_back_whole() {
    let config = Config { gpu: Gpu::Preemptive, ..config(2, Margins::default()) };
    let mut driver = Driver::new(config, Box::new(Eager));
    for op in [
        join(1, 0),
        Op::Submit(1, GroupKind::Draw, 1000),
        Op::Submit(1, GroupKind::Swap, 1000),
        join(4, 1),
        Op::Submit(4, GroupKind::Draw, 1000),
    ] {
        driver.apply(&op);
    }
    assert_eq!(driver.scheduler.stats().preempted, 2);
}

/// Frames that ended behind a group that comes back from the GPU end when it has run, once.
#[test]
fn ends_of_frames_come_back_with_their_group() {
    let config = Config { gpu: Gpu::Preemptive, ..config(2, Margins::default()) };
    let mut driver = Driver::new(config, Box::new(Eager));
    let mut done = Vec::new();
    for op in [
        join(1, 0),
        Op::Submit(1, GroupKind::Draw, 1000),
        Op::EndFrame(1),
        Op::EndFrame(1),
        join(4, 1),
        Op::Submit(4, GroupKind::Draw, 1000),
        Op::EndFrame(1),
        Op::Complete(0),
        Op::Submit(1, GroupKind::Draw, 1000),
        Op::Complete(0),
    ] {
        let frames = driver.apply(&op).into_iter().filter_map(|action| match action {
            Action::FrameDone(done) => Some((done.app.0, done.frame)),
            _ => None,
        });
        done.push(frames.collect::<Vec<_>>());
    }
    assert_eq!(driver.scheduler.stats().preempted, 1);
    assert_eq!(done.pop(), Some(vec![(1, 0), (1, 1), (1, 2)]));
    assert_eq!(done.concat(), []);
}

/// Found at random: the decision never ended. An app with frames and a server was promised its frames, so what shares
/// that server claims nothing of a promise.
#[test]
fn a_server_of_an_app_with_frames_promises_nothing() {
    let reserve = Reserve {
        budget: Span::from_ms(5),
        period: Span::from_ms(20),
        deadline: Span::from_ms(20),
        enforcement: Enforcement::Posterior,
    };
    let params = |priority, etpf, reservation| AppParams {
        priority: Priority(priority),
        stride: Stride::ONE,
        etpf: Span::from_ms(etpf),
        clock: Clock::default(),
        service: Service { reservation, ..Service::default() },
    };
    let mut driver = Driver::new(config(1, Margins::NONE), Box::new(Timeline::new()));
    driver.apply(&Op::Join(0, params(2, 4, Reservation::Own(reserve)), 0));
    driver.apply(&Op::Join(1, params(1, 0, Reservation::Shared(AppId(0))), 0));
    driver.apply(&Op::Submit(1, GroupKind::Draw, 1_000_000));
    assert_eq!(driver.in_flight, [GroupId(1)]);
}
