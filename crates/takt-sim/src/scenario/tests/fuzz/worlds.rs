//! Random scenarios that are valid.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use takt_core::service::{Enforcement, Gaps, Level, Reservation, Reserve, Turns};
use takt_core::{AppId, AppParams, Config, Gpu, GroupKind, Margins, Priority, Service, Span, Time, Tuning};

use super::clocks::{displays, pace, timing};
use crate::model::*;

fn name() -> impl Strategy<Value = String> {
    "[A-Za-z0-9_-]{1,20}"
}

pub(super) fn span() -> impl Strategy<Value = Span> {
    prop_oneof![0..2_000_u64, 0..=60_000_000_000_u64].prop_map(Span::from_ns)
}

fn range() -> impl Strategy<Value = SpanRange> {
    (span(), span(), any::<bool>())
        .prop_map(|(a, b, fixed)| SpanRange { lo: a.min(b), hi: if fixed { a.min(b) } else { a.max(b) } })
}

fn instant(range: std::ops::RangeInclusive<u64>) -> impl Strategy<Value = Time> {
    range.prop_map(Time::from_ns)
}

fn cost() -> impl Strategy<Value = CostDist> {
    (range(), vec((1..=1000_u32, range()), 0..3)).prop_map(|(last, others)| {
        let buckets = others.into_iter().map(|(share, range)| Bucket { share_ppm: share * 300, range });
        let mut buckets: Vec<Bucket> = buckets.collect();
        let rest = SHARE_ONE - buckets.iter().map(|b| b.share_ppm).sum::<u32>();
        buckets.push(Bucket { share_ppm: rest, range: last });
        CostDist { buckets }
    })
}

fn work() -> impl Strategy<Value = Work> {
    let part = (0..50_u32, 0..50_u32, cost(), any::<bool>()).prop_map(|(a, b, cost, sync)| Part {
        count: (a.min(b), a.max(b)),
        cost,
        kind: if sync { GroupKind::Sync } else { GroupKind::Draw },
    });
    let kind = select(vec![GroupKind::Draw, GroupKind::Swap, GroupKind::Sync]);
    let group = (span(), kind, span(), option::of(span()), span()).prop_map(
        |(delay, kind, cost, predicted, make)| RecordedGroup { delay, kind, cost, predicted, make },
    );
    prop_oneof![
        (vec(part, 0..4), cost()).prop_map(|(parts, swap)| Work::Drawn { parts, swap }),
        vec(group, 1..6).prop_map(|mut groups| {
            groups.last_mut().unwrap().kind = GroupKind::Swap;
            Work::Recorded(Arc::from(groups))
        }),
    ]
}

fn prediction() -> impl Strategy<Value = Prediction> {
    let error = -60_000_000_000..=60_000_000_000_i64;
    let outliers = (0..=SHARE_ONE, error.clone(), error.clone())
        .prop_map(|(share_ppm, a, b)| Outliers { share_ppm, error_ns: (a.min(b), a.max(b)) });
    let history = option::weighted(0.2, 1..=4096_u32);
    let errors = (0..=1000_u32, error, option::of(outliers));
    (option::weighted(0.8, 0..=1_000_000_u32), errors, span(), history).prop_map(
        |(scale_permille, (noise_permille, bias_ns, outliers), floor, history)| {
            let by_cost =
                Prediction { scale_permille, noise_permille, bias_ns, outliers, floor, history: None };
            let by_history = Prediction { scale_permille, floor, history, ..Prediction::default() };
            if history.is_some() { by_history } else { by_cost }
        },
    )
}

fn phases() -> impl Strategy<Value = Vec<Phase>> {
    let phase = (
        1..1_000_000_000_u64,
        1..1_000_000_000_u64,
        option::of(range()),
        (0..=1_000_000_u32, 0..=1_000_000_u32),
        option::of(prediction()),
    );
    vec(phase, 0..3).prop_map(|phases| {
        let mut now = Time::ZERO;
        let mut next = |ns| {
            now += Span::from_ns(ns);
            now
        };
        let lower = |(gap, length, cpu, (gpu_permille, groups_permille), prediction)| Phase {
            from: next(gap),
            until: next(length),
            cpu,
            gpu_permille,
            groups_permille,
            prediction,
        };
        phases.into_iter().map(lower).collect()
    })
}

/// At least a microsecond.
pub(super) fn interval() -> impl Strategy<Value = Span> {
    prop_oneof![1_000..100_000_u64, 1_000..=60_000_000_000_u64].prop_map(Span::from_ns)
}

fn reserve() -> impl Strategy<Value = Reserve> {
    let enforcement = select(vec![Enforcement::Posterior, Enforcement::Apriori]);
    (interval(), interval(), 0..=1000_u32, enforcement).prop_map(|(period, deadline, share, enforcement)| {
        let budget = Span::from_ns(period.min(deadline).as_ns() / 1000 * u64::from(share));
        Reserve { budget, period, deadline, enforcement }
    })
}

/// A service that names no other app.
fn service() -> impl Strategy<Value = Service> {
    let reservation = prop_oneof![
        Just(Reservation::None),
        Just(Reservation::Background),
        reserve().prop_map(Reservation::Own),
    ];
    let turns = select(vec![Turns::Single, Turns::Following]);
    let level = select(vec![Level::Low, Level::Medium, Level::High]);
    let timeslice = prop_oneof![Just(Span::ZERO), interval()];
    (reservation, turns, level, timeslice, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(reservation, turns, level, timeslice, follows_focus, uninterruptible, divisible)| Service {
            follows_focus,
            turns,
            reservation,
            feeds: None,
            level,
            timeslice,
            uninterruptible,
            divisible,
            gaps: Gaps::default(),
        },
    )
}

/// Joins within the first second, changes within the next nine, ends after that.
fn app(index: u32, displays: Config) -> impl Strategy<Value = AppSpec> {
    // No two apps ever share a priority: each has a hundred of its own.
    let params = move || {
        (0..100_u32, timing(), span()).prop_map(move |(priority, (clock, stride), etpf)| AppParams {
            priority: Priority(index * 100 + priority),
            stride,
            etpf,
            clock,
            service: Service::default(),
        })
    };
    let after = || instant(10_000_000_000..=86_400_000_000_000);
    let end = prop_oneof![
        after().prop_map(End::Leave),
        after().prop_map(End::Hang),
        (after(), span()).prop_map(|(at, notice)| End::Crash { at, notice }),
    ];
    let change =
        (1_000_000_001..10_000_000_000_u64, params()).prop_map(|(at, params)| (Time::from_ns(at), params));
    let timing = (0..=100_000_u32, instant(0..=1_000_000_000), option::of(end), any::<bool>());
    let rest = (range(), range(), work(), prediction(), phases());
    let paced = params().prop_flat_map(|params| (Just(params), pace(params.clock)));
    (name(), paced, service(), vec(change, 0..3), timing, rest).prop_map(
        move |(name, (params, pace), service, changes, (phase, join, end, synchronous), rest)| {
            let changes: std::collections::BTreeMap<_, _> = changes.into_iter().collect();
            let served = |params: AppParams| AppParams { service, ..params };
            let changes = changes.into_iter().map(|(at, params)| ParamChange { at, params: served(params) });
            let (submit_delay, cpu, work, prediction, phases) = rest;
            AppSpec {
                name: format!("{name}-{index}"),
                params: served(params),
                fps_mhz: rate_mhz(&params, pace, &displays),
                phase: if params.clock.is_own() { 0 } else { phase },
                join,
                end,
                changes: changes.collect(),
                submit_delay,
                cpu,
                work,
                prediction,
                phases,
                pace,
                synchronous,
            }
        },
    )
}

fn gpu() -> impl Strategy<Value = GpuSpec> {
    let at = || instant(0..=86_400_000_000_000);
    let clock = proptest::collection::btree_map(at(), 1..=100_000_u32, 0..3);
    let length = (1..=60_000_000_000_u64).prop_map(Span::from_ns);
    let stalls = proptest::collection::btree_map(at(), length, 0..3);
    let model = select(vec![GpuModel::InOrder, GpuModel::Preemptive, GpuModel::Runlist, GpuModel::AnyOrder]);
    let poll = prop_oneof![Just(Span::ZERO), interval()];
    let costs = (model, span(), range(), range(), poll, any::<bool>());
    let interrupts = (interval(), span()).prop_map(|(slice, quantum)| Interrupts { slice, quantum });
    let divisible = option::of(interrupts);
    (1..=4096_u32, costs, clock, stalls, 0..=SHARE_ONE, divisible).prop_map(
        |(queue, costs, clock, stalls, lost_completion_ppm, divisible)| GpuSpec {
            model: costs.0,
            queue,
            switch: costs.1,
            late_ends: costs.5,
            divisible: divisible.filter(|_| matches!(costs.0, GpuModel::InOrder | GpuModel::Runlist)),
            dispatch_delay: costs.2,
            completion_delay: costs.3,
            completion_poll: costs.4,
            clock: clock.into_iter().map(|(at, permille)| ClockChange { at, permille }).collect(),
            stalls: stalls.into_iter().map(|(at, length)| Stall { at, length }).collect(),
            lost_completion_ppm,
        },
    )
}

fn config(displays: Config) -> impl Strategy<Value = Config> {
    let timeout = prop_oneof![(1..=60_000_000_000_u64).prop_map(Span::from_ns), Just(Span::FOREVER),];
    let factors = (0..=1_000_000_u32, 0..=1_000_000_u32);
    let blocking = prop_oneof![Just(Span::FOREVER), interval()];
    let group_max = prop_oneof![Just(Span::FOREVER), interval()];
    let tuning = (interval(), 0..=1000_u32, reserve(), interval(), blocking, group_max).prop_map(
        |(tick, admission_permille, background, timeslice, blocking, group_max)| Tuning {
            tick,
            admission_permille,
            background: Reserve {
                budget: background.budget.min(background.period),
                deadline: background.period,
                ..background
            },
            timeslice,
            blocking,
            group_max,
            ..Tuning::default()
        },
    );
    (1..=64_u32, timeout, 10..=4096_u32, factors, (span(), range(), span()), tuning).prop_map(
        move |(mpcg, completion_timeout, apps_max, (a, b), (fixed, dispatch, group_min), tuning)| Config {
            refresh: displays.refresh,
            more_displays: displays.more_displays,
            mpcg,
            completion_timeout,
            apps_max,
            gpu: Gpu::default(),
            divisible: None,
            singly: false,
            tuning,
            margins: Margins {
                fixed,
                upper_permille: a.max(b),
                lower_permille: a.min(b),
                dispatch_upper: dispatch.hi,
                dispatch_lower: dispatch.lo,
                completion_upper: fixed,
                group_min,
            },
        },
    )
}

pub(super) fn scenario() -> impl Strategy<Value = Scenario> {
    displays().prop_flat_map(|displays| {
        let apps = (1..6_u32)
            .prop_flat_map(move |count| (0..count).map(|index| app(index, displays)).collect::<Vec<_>>());
        let head = (name(), "[^\u{0}]{0,40}", 2..=86_400_000_000_000_u64, any::<u64>(), any::<bool>());
        let focus = proptest::collection::btree_map(
            instant(0..=86_400_000_000_000),
            option::of(any::<Index>()),
            0..3,
        );
        let others = vec((any::<Index>(), any::<Index>()), 6);
        let names = (others, focus);
        (head, select(takt_policies::NAMES), config(displays), gpu(), apps, names).prop_map(
            |(
                (name, description, duration, seed, belief),
                policy,
                config,
                gpu,
                mut apps,
                (others, focus),
            )| {
                name_others(&mut apps, &others);
                let slot = |app: Index| AppId(app.index(apps.len()).try_into().unwrap());
                let moved = |(at, app): (Time, Option<Index>)| FocusChange { at, app: app.map(slot) };
                Scenario {
                    name,
                    description,
                    duration: Span::from_ns(duration),
                    warm_up: Span::from_ns(seed % duration),
                    seed,
                    policy: (*policy).to_owned(),
                    config,
                    belief,
                    gpu,
                    focus: focus.into_iter().map(moved).collect(),
                    apps,
                }
            },
        )
    })
}

/// Lets some apps share reserves or frames of others, and produce for later ones.
fn name_others(apps: &mut [AppSpec], others: &[(Index, Index)]) {
    let count = apps.len();
    for (index, (owner, consumer)) in others.iter().enumerate().take(count) {
        let (owner, consumer) = (owner.index(count), consumer.index(count * 2));
        let owned = matches!(apps[owner].params.service.reservation, Reservation::Own(_));
        let framed = apps[owner].params.etpf > Span::ZERO
            && apps[owner].params.service.reservation == Reservation::None
            && apps[index].params.etpf == Span::ZERO;
        let slot = |index: usize| AppId(index.try_into().unwrap());
        let app = &mut apps[index];
        let changed = app.changes.iter_mut().map(|change| &mut change.params);
        for params in std::iter::once(&mut app.params).chain(changed) {
            if (owned || framed && owner < index) && params.service.reservation == Reservation::None {
                params.service.reservation = Reservation::Shared(slot(owner));
            }
            if (index + 1..count).contains(&consumer) {
                params.service.feeds = Some(slot(consumer));
            }
        }
    }
}
