//! What `timegraph` promises, on random apps and a GPU that measures for itself: no reserve uses
//! more than its budgets and one group, and no important app waits for more than one group.

use std::collections::VecDeque;

use proptest::prelude::*;
use takt_analysis::cbs::Server;
use takt_analysis::supply;
use takt_core::service::{Enforcement, Reservation, Reserve, Turns};
use takt_core::{
    Action, AppId, AppParams, Config, Cost, Estimate, Event, GroupId, GroupKind, Margins, Priority,
    Scheduler, Service, Span, Stride, Time,
};
use takt_policies::TimeGraph;

const UNTIL: Time = Time::from_us(3_000);

/// An app and the groups that it submits: when, how long they run, and their predictions.
#[derive(Clone, Debug)]
struct App {
    service: Service,
    groups: Vec<(u64, u64, u64)>,
}

/// A group that ran.
#[derive(Clone, Copy, Debug)]
struct Ran {
    app: usize,
    submitted: Time,
    from: Time,
    to: Time,
}

fn index(group: GroupId) -> usize {
    usize::try_from(group.0).unwrap_or(usize::MAX)
}

/// The apps by falling priority on a GPU that runs one group at a time.
fn play(apps: &[App], mpcg: u32) -> Vec<Ran> {
    let config = Config { mpcg, margins: Margins::NONE, apps_max: 8, ..Config::default() };
    let mut scheduler = Scheduler::new(config, Box::new(TimeGraph::new()));
    let mut pending: Vec<(Time, usize, u64, u64)> = Vec::new();
    for (slot, (index, app)) in (0..).zip(apps.iter().enumerate()) {
        let params = AppParams {
            priority: Priority(100 - slot),
            stride: Stride::ONE,
            etpf: Span::ZERO,
            clock: takt_core::Clock::default(),
            service: app.service,
        };
        scheduler.handle_event(Time::ZERO, Event::Join { app: AppId(slot), params, phase: 0 });
        pending.extend(app.groups.iter().map(|(at, cost, guess)| (Time::from_us(*at), index, *cost, *guess)));
    }
    pending.sort_by_key(|(at, index, ..)| (*at, *index));
    let mut pending = VecDeque::from(pending);
    let mut submitted: Vec<(Time, usize, Span)> = Vec::new();
    let mut gpu: VecDeque<(GroupId, Time)> = VecDeque::new();
    let mut ran = Vec::new();
    let mut now = Time::ZERO;
    while now < UNTIL {
        while let Some((at, index, cost, guess)) = pending.front().copied().filter(|(at, ..)| *at <= now) {
            pending.pop_front();
            let group = GroupId(submitted.len() as u64);
            submitted.push((at, index, Span::from_us(cost)));
            let estimate = Estimate::new(Span::from_us(guess));
            let app = AppId(u32::try_from(index).unwrap_or(u32::MAX));
            scheduler.handle_event(now, Event::Submit { app, group, kind: GroupKind::Draw, estimate });
        }
        while let Some(action) = scheduler.poll_action() {
            if let Action::Dispatch { group, .. } = action {
                let (at, app, cost) = submitted[index(group)];
                let from = gpu.back().map_or(now, |(_, end)| *end);
                gpu.push_back((group, from + cost));
                ran.push(Ran { app, submitted: at, from, to: from + cost });
            }
        }
        let arrival = pending.front().map(|(at, ..)| *at);
        let end = gpu.front().map(|(_, end)| *end);
        now = [arrival, end, scheduler.poll_timeout()].into_iter().flatten().min().unwrap_or(UNTIL);
        if end.is_some_and(|end| end <= now)
            && let Some((group, finished)) = gpu.pop_front()
        {
            let cost = Cost::new(submitted[index(group)].2);
            scheduler.handle_event(now, Event::Complete { group, finished, cost, frames: 0 });
        }
        scheduler.handle_timeout(now);
    }
    ran
}

fn groups() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    proptest::collection::vec((0u64..2_000, 1u64..60, 0u64..60), 0..40)
}

fn reserve() -> impl Strategy<Value = Reserve> {
    (1u64..100, 50u64..300, any::<bool>()).prop_map(|(budget, period, apriori)| Reserve {
        budget: Span::from_us(budget),
        period: Span::from_us(period),
        deadline: Span::from_us(period),
        enforcement: if apriori { Enforcement::Apriori } else { Enforcement::Posterior },
    })
}

fn service(reservation: Reservation, turns: Turns) -> Service {
    Service { reservation, turns, ..Service::default() }
}

/// How many random worlds each test plays.
fn cases() -> u32 {
    if std::env::var_os("TAKT_SLOW_TESTS").is_some_and(|value| value == "1") { 100_000 } else { 300 }
}

/// The most that the analysis allows a reserve in a window, if no group is longer than `group`.
fn usage_bound(terms: &Reserve, group: Span, window: Span) -> Option<u64> {
    let reserve = Server::new(terms.budget.as_ns(), terms.period.as_ns())?;
    let enforcement = match terms.enforcement {
        Enforcement::Posterior => supply::Enforcement::Posterior,
        Enforcement::Apriori => supply::Enforcement::Apriori,
    };
    Some(supply::usage(&reserve, enforcement, group.as_ns(), window.as_ns()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// Two apps on one reserve, with right predictions, below an important app.
    #[test]
    fn no_window_sees_more_than_the_analysis_allows(
        terms in reserve().prop_filter("admitted", |terms| terms.budget <= terms.period),
        work in proptest::collection::vec(groups(), 3),
    ) {
        let reservations = [Reservation::None, Reservation::Own(terms), Reservation::Shared(AppId(1))];
        let apps: Vec<App> = reservations
            .iter()
            .zip(work)
            .map(|(&reservation, groups)| App {
                service: service(reservation, Turns::Single),
                groups: groups.into_iter().map(|(at, cost, _)| (at, cost, cost)).collect(),
            })
            .collect();
        let ran = play(&apps, 2);
        let capped: Vec<&Ran> = ran.iter().filter(|ran| ran.app > 0).collect();
        // Budget is saved for groups that wait, be it in vain.
        let longest = apps[1..].iter().flat_map(|app| &app.groups).map(|(_, cost, _)| *cost).max();
        let longest = Span::from_us(longest.unwrap_or(0));
        for (index, first) in capped.iter().enumerate() {
            let mut used = 0;
            for last in &capped[index..] {
                used += last.to.since(last.from).as_ns();
                let bound = usage_bound(&terms, longest, last.to.since(first.from));
                prop_assert!(Some(used) <= bound, "{used} > {bound:?} from {first:?} to {last:?}");
            }
        }
    }

    /// An owner and an app that shares its reserve, below an important app and above a flood.
    #[test]
    fn no_reserve_uses_more_than_its_budgets_and_one_group(
        terms in reserve(),
        work in proptest::collection::vec(groups(), 4),
        mpcg in 1u32..6,
    ) {
        let services = [
            service(Reservation::None, Turns::Following),
            service(Reservation::Own(terms), Turns::Following),
            service(Reservation::Shared(AppId(1)), Turns::Single),
            service(Reservation::None, Turns::Single),
        ];
        let admitted = terms.budget <= terms.period;
        let apps: Vec<App> = services.iter().zip(work).map(|(&service, groups)| App { service, groups }).collect();
        let ran = play(&apps, mpcg);
        let capped = || ran.iter().filter(|ran| ran.app == 1 || ran.app == 2);
        let mut used = 0;
        let terms = if admitted { terms } else { Config::default().tuning.background };
        for group in capped() {
            let replenished = group.from.as_ns() / terms.period.as_ns();
            let budgets = terms.budget.times(replenished + 1).as_ns();
            prop_assert!(used < budgets, "{group:?} begins with {used} of {budgets} used");
            used += group.to.since(group.from).as_ns();
        }
        let everything: usize = apps.iter().map(|app| app.groups.len()).sum();
        prop_assert!(ran.len() <= everything);
    }

    #[test]
    fn under_single_turns_the_most_important_waits_for_one_group(
        work in proptest::collection::vec(groups(), 3),
        mpcg in 1u32..6,
    ) {
        let service = service(Reservation::None, Turns::Single);
        let apps: Vec<App> = work.into_iter().map(|groups| App { service, groups }).collect();
        let ran = play(&apps, mpcg);
        let mut own_end = Time::ZERO;
        for group in ran.iter().filter(|ran| ran.app == 0) {
            let ready = group.submitted.max(own_end);
            let before = ran.iter().filter(|other| other.app != 0 && other.to > ready && other.from < group.from);
            prop_assert!(before.count() <= 1, "{group:?}");
            own_end = group.to;
        }
        let all: usize = apps.iter().map(|app| app.groups.len()).sum();
        let total: u64 = apps.iter().flat_map(|app| &app.groups).map(|(_, cost, _)| cost).sum();
        prop_assert!(total > 1_000 || ran.len() == all, "nothing is forgotten");
    }
}
