//! Cases at random: schedulable sets, and apps below them that do their worst.

use std::collections::BTreeSet;
use std::sync::Arc;

use takt_core::analysis::frames::{Demand, cycle, headroom, is_schedulable, is_schedulable_staggered};
use takt_core::{
    AppParams, Charge, Clock, Config, Divisible, Estimate, Gpu, GroupKind, Margins, Priority, Refresh,
    Service, Span, Stride, Time,
};

use super::frames::{Pays, draw_frame, group_within};
use super::{Case, Execution, Options, changes, gaps, mixed, sources};
use crate::model::{
    AppSpec, End, GpuModel, GpuSpec, Interrupts, Pace, ParamChange, Prediction, RecordedGroup, Scenario,
    SpanRange, Work, rate_mhz,
};
use crate::rng::Rng;

/// Distance between the priorities of neighbours.
const RANK_STEP: u32 = 1000;

/// How far below its place an app may move; sources have priorities between places that no app moves to.
const RANK_MOVES: u32 = 10;

/// Tells the random numbers of sources from those of all else.
const KIN: u64 = 1 << 63;

/// Draws case number `index`.
pub fn draw(options: &Options, index: u64) -> Case {
    let mut rng = Rng::new(options.seed, index);
    let config = draw_config(options, &mut rng);
    let (set, duration) = if options.mixed {
        mixed::draw_set(options, &config, &mut rng)
    } else {
        let set = draw_set(options, &config, &mut rng);
        let periods = 3 * cycle(&set) + 12;
        (set.iter().map(Wanted::of_display).collect(), config.refresh.period_span().times(periods))
    };
    let mut apps = draw_protected(options, &set, &config, &mut rng);
    let silent = options.silent.then(|| rng.below(u32::try_from(set.len()).unwrap_or(1)) as usize);
    if let Some(app) = silent.and_then(|silent| apps.get_mut(silent)) {
        app.end = Some(End::Hang(Time::from_ns(rng.between(0, duration.as_ns()))));
    }
    let mut kin = Rng::new(options.seed ^ KIN, index);
    // The scheduler does not know the staggered test, and would protect only some of such a set.
    let mut sources = match silent {
        None if !options.stagger => sources::draw_sources(&mut apps, &config, &mut kin),
        _ => Vec::new(),
    };
    apps.extend(draw_load(options, &config, duration, &mut rng));
    rank(&mut apps, &mut sources, &mut rng, &mut kin);
    let margins = &config.margins;
    let dispatch_delay = match rng.between(0, 2) {
        0 => SpanRange::fixed(margins.dispatch_upper),
        1 => SpanRange::fixed(margins.dispatch_lower),
        _ => SpanRange { lo: margins.dispatch_lower, hi: margins.dispatch_upper },
    };
    let completion_delay = match rng.between(0, 1) {
        0 => SpanRange::fixed(margins.completion_upper),
        _ => SpanRange { lo: Span::ZERO, hi: margins.completion_upper },
    };
    let mut gpu = GpuSpec { dispatch_delay, completion_delay, ..GpuSpec::default() };
    if let Execution::TimeShared { switch } = options.gpu {
        gpu = GpuSpec { model: GpuModel::Runlist, switch, late_ends: rng.chance(500_000), ..gpu };
        apps.iter_mut().for_each(|app| share_time(app, &config, &mut rng));
        sources.iter_mut().for_each(|app| share_time(app, &config, &mut kin));
    }
    apps.extend(sources);
    gpu.divisible = config.divisible.map(|Divisible { slice, quantum, .. }| Interrupts { slice, quantum });
    let scenario = Scenario {
        name: format!("prove-{}-{index}", options.seed),
        description: format!("case {index} of seed {}, {} protected apps", options.seed, set.len()),
        duration,
        warm_up: Span::ZERO,
        seed: rng.next_u64() >> 1,
        policy: "timeline".to_owned(),
        config,
        belief: false,
        gpu,
        apps,
        focus: Vec::new(),
    };
    let mut case = Case { scenario, protected: set.len(), silent, events: Vec::new() };
    if options.changes {
        changes::unsettle(&mut case, &mut Rng::new(options.seed ^ changes::CHANGES, index));
    }
    case
}

/// Gives all apps their priorities: in order, with sources anywhere between.
fn rank(apps: &mut [AppSpec], sources: &mut [AppSpec], rng: &mut Rng, kin: &mut Rng) {
    let above = u32::try_from(apps.len()).unwrap_or(u32::MAX / RANK_STEP);
    for (rank, app) in (0..).zip(apps) {
        app.params.priority = Priority((above - rank) * RANK_STEP);
        for change in &mut app.changes {
            // Moves within the gap to the next app, so that the ranking stays.
            change.params.priority = Priority(app.params.priority.0 - rng.below(RANK_MOVES));
        }
    }
    let mut taken = BTreeSet::new();
    let mut free = || Priority(kin.below(above + 1) * RANK_STEP + 1 + kin.below(RANK_STEP - RANK_MOVES));
    for source in sources {
        source.params.priority = free();
        while !taken.insert(source.params.priority) {
            source.params.priority = free();
        }
    }
}

/// An app of the protected set, without its frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) params: AppParams,
    /// Periods to delay the first deadline.
    pub(super) phase: u32,
    pub(super) pace: Pace,
    /// How late it begins its frames at most; more than its contract says only with a clock of its own.
    pub(super) late: Span,
}

impl Wanted {
    fn of_display(demand: &Demand) -> Self {
        let params = AppParams { stride: demand.stride, etpf: demand.etpf, ..unimportant() };
        Self { params, phase: demand.phase, pace: Pace::Released, late: Span::ZERO }
    }
}

/// Parameters of an app that wants nothing; the priority is set later.
pub(super) fn unimportant() -> AppParams {
    AppParams {
        priority: Priority(0),
        stride: Stride::ONE,
        etpf: Span::ZERO,
        clock: Clock::default(),
        service: Service::default(),
    }
}

/// An app on a GPU whose contexts take turns. What fences take is within what groups cost there, and no slice
/// is shorter than the scheduler believes. Frames of some apps end with their last group, those of others
/// without one.
fn share_time(app: &mut AppSpec, config: &Config, rng: &mut Rng) {
    let timeslice = config.tuning.timeslice.times(rng.pick(&[1, 1, 2]).copied().unwrap_or(1));
    let uninterruptible = rng.chance(500_000);
    let later = app.changes.iter_mut().map(|change| &mut change.params);
    for params in std::iter::once(&mut app.params).chain(later) {
        params.service = Service { timeslice, uninterruptible, ..params.service };
    }
    let shows = rng.chance(500_000);
    if let Work::Recorded(groups) = &mut app.work {
        let honest =
            |group: &RecordedGroup| RecordedGroup { cost: group.cost.saturating_sub(FENCES), ..*group };
        let honest = groups.iter().map(honest);
        *groups = if shows { honest.collect() } else { honest.flat_map(without_swap).collect() };
    }
}

/// A group; after one that ends its frame, the end of that frame comes apart.
fn without_swap(group: RecordedGroup) -> impl Iterator<Item = RecordedGroup> {
    let swaps = group.kind == GroupKind::Swap;
    let end = RecordedGroup {
        delay: Span::ZERO,
        cost: Span::ZERO,
        predicted: Some(Span::ZERO),
        make: Span::ZERO,
        ..group
    };
    let kind = if swaps { GroupKind::Draw } else { group.kind };
    std::iter::once(RecordedGroup { kind, ..group }).chain(swaps.then_some(end))
}

/// What fences behind a group take at most.
const FENCES: Span = Span::from_us(1);

/// Coarsest grain of all times of a case. Round numbers make groups end exactly on deadlines,
/// which odd ones never do.
const GRAIN: Span = Span::from_us(500);

pub(super) fn is_round(config: &Config) -> bool {
    config.refresh.period_span().as_ns().is_multiple_of(GRAIN.as_ns())
}

/// The shortest time of a case with round numbers; others have none.
pub(super) fn grain(config: &Config) -> Span {
    if is_round(config) { GRAIN } else { Span::ZERO }
}

/// Rounds down to the grain of the case.
pub(super) fn rounded(span: Span, config: &Config) -> Span {
    if is_round(config) { Span::from_ns(span.as_ns() / GRAIN.as_ns() * GRAIN.as_ns()) } else { span }
}

fn draw_config(options: &Options, rng: &mut Rng) -> Config {
    let refresh = [60_000, 60_000, 90_000, 59_940, 62_500];
    let mhz = rng.pick(&refresh).copied().unwrap_or(60_000);
    let mpcg = options.mpcg.unwrap_or_else(|| rng.pick(&[1, 2, 3, 5, 8, 16]).copied().unwrap_or(5));
    let margins = match rng.between(0, 3) {
        _ if mhz == 62_500 => Margins::NONE,
        0 => Margins::default(),
        1 => Margins::NONE,
        _ => draw_margins(rng),
    };
    let mut config = Config {
        refresh: Refresh::from_mhz(mhz).unwrap_or(Refresh::HZ_60),
        mpcg,
        margins,
        completion_timeout: Span::from_ms(500),
        ..Config::default()
    };
    if options.mixed {
        mixed::draw_clocks(&mut config, rng);
    }
    if let Execution::TimeShared { switch } = options.gpu {
        let slice = Span::from_us(rng.pick(&[100, 1_000, 2_000]).copied().unwrap_or(1_000));
        config.tuning.timeslice = slice;
        config.gpu = Gpu::TimeShared { slice, switch };
    }
    if options.divisible {
        config.divisible = Some(draw_divisible(&mut config, rng));
    }
    config
}

/// How the GPU interrupts divisible work. Where contexts take turns, all of them have long ones in some cases;
/// where work is executed in order, changes of contexts cost nothing.
fn draw_divisible(config: &mut Config, rng: &mut Rng) -> Divisible {
    let own_slice = Span::from_us(rng.pick(&[1_000, 4_000, 20_000]).copied().unwrap_or(20_000));
    let long = rng.chance(500_000);
    let switch = match &mut config.gpu {
        Gpu::TimeShared { slice, switch } => {
            if long {
                *slice = own_slice;
                config.tuning.timeslice = own_slice;
            }
            *switch
        }
        _ => {
            config.tuning.timeslice = own_slice;
            Span::ZERO
        }
    };
    let slices: &[u64] = if is_round(config) { &[500, 1_000] } else { &[50, 300, 1_000, 2_048] };
    let slice = Span::from_us(rng.pick(slices).copied().unwrap_or(300));
    let quanta: &[u64] = if is_round(config) { &[0, 500] } else { &[0, 0, 70, 400, 1_000] };
    let quantum = Span::from_us(rng.pick(quanta).copied().unwrap_or(0));
    Divisible { slice, quantum, own_slice: config.tuning.timeslice, switch }
}

fn draw_margins(rng: &mut Rng) -> Margins {
    let upper = rng.between(0, 300);
    Margins {
        fixed: Span::from_us(rng.between(0, 150)),
        upper_permille: 1000 + rng.below(200),
        lower_permille: 500 + rng.below(501),
        dispatch_upper: Span::from_us(upper),
        dispatch_lower: Span::from_us(rng.between(0, upper)),
        completion_upper: Span::from_us(rng.between(0, 1) * rng.between(0, 300)),
        group_min: Span::from_us(rng.between(1, 50)),
    }
}

/// Least budget for which a frame of one group fits.
pub(super) fn etpf_min(config: &Config) -> Span {
    config.conservative(Estimate::default(), Charge::Enters)
        + config.per_group()
        + config.per_frame()
        + Span::from_ns(2)
}

/// A schedulable set, often just below the limit.
fn draw_set(options: &Options, config: &Config, rng: &mut Rng) -> Vec<Demand> {
    let period = config.refresh.period_span();
    let test = if options.stagger { is_schedulable_staggered } else { is_schedulable };
    let count = rng.between(options.apps.0.into(), options.apps.1.into());
    let shares: Vec<u64> = (0..count).map(|_| 1 + rng.between(0, 1000) * rng.between(0, 1000)).collect();
    let total: u64 = shares.iter().sum();
    let strides: Vec<Stride> =
        (0..count).map(|_| rng.pick(&options.strides).copied().unwrap_or(Stride::ONE)).collect();
    let phases: Vec<u32> = strides.iter().map(|stride| rng.below(stride.get())).collect();
    let scaled = |permyriad: u64| -> Vec<Demand> {
        let demand = |i: usize| {
            let full = period.times(strides[i].periods()).as_ns();
            let share = full / total * shares[i] + full % total * shares[i] / total;
            let etpf = rounded(Span::from_ns(share / 10_000 * permyriad), config);
            let etpf = etpf.max(etpf_min(config)).max(grain(config));
            Demand { stride: strides[i], etpf, phase: phases[i] }
        };
        (0..strides.len()).map(demand).collect()
    };
    let mut limit = 0;
    for step in [5_000, 2_500, 1_250, 625, 312, 156, 78, 39, 20, 10, 5, 3, 2, 1] {
        if limit + step <= 10_000 && test(period, &scaled(limit + step)) {
            limit += step;
        }
    }
    let mut set = match rng.between(0, 2) {
        0 => scaled(rng.between(limit / 2, limit)),
        _ => scaled(limit),
    };
    while !test(period, &set) {
        set.pop();
    }
    if rng.between(0, 1) == 0 {
        fill_to_the_limit(period, &mut set, test, rng);
        for demand in &mut set {
            demand.etpf = rounded(demand.etpf, config).max(etpf_min(config));
        }
    }
    set
}

/// Gives all that is left to one app.
fn fill_to_the_limit(period: Span, set: &mut [Demand], test: fn(Span, &[Demand]) -> bool, rng: &mut Rng) {
    let Some(&index) = rng.pick(&(0..set.len()).collect::<Vec<_>>()) else {
        return;
    };
    if let Some(extra) = headroom(period, set, index, test) {
        set[index].etpf += extra;
    }
}

fn draw_protected(options: &Options, set: &[Wanted], config: &Config, rng: &mut Rng) -> Vec<AppSpec> {
    let mut apps = Vec::new();
    for (number, wanted) in (1..).zip(set) {
        let has_gaps = options.gaps && !options.stagger;
        let params = if has_gaps { gaps::declare(wanted.params, config, rng) } else { wanted.params };
        let mut groups = Vec::new();
        for _ in 0..rng.between(1, 4) {
            let mut frame = match mixed::server(&params.framed()) {
                Some(reserve) => draw_frame(reserve.budget, Pays::per_group(config), config, rng),
                None => draw_frame(params.framed().etpf, Pays::per_frame(&params, config), config, rng),
            };
            gaps::leave(&mut frame, params.service.gaps, config, rng);
            groups.extend(frame);
        }
        let mut app = app(format!("protected-{number}"), params, groups, config);
        (app.phase, app.pace) = (wanted.phase, wanted.pace);
        app.fps_mhz = rate_mhz(&app.params, app.pace, config);
        app.submit_delay = SpanRange { lo: Span::ZERO, hi: wanted.late };
        apps.push(app);
    }
    apps
}

pub(super) fn app(name: String, params: AppParams, groups: Vec<RecordedGroup>, config: &Config) -> AppSpec {
    AppSpec {
        name,
        params,
        fps_mhz: rate_mhz(&params, Pace::Released, config),
        phase: 0,
        join: Time::ZERO,
        end: None,
        changes: Vec::new(),
        submit_delay: SpanRange::fixed(Span::ZERO),
        cpu: SpanRange::fixed(Span::ZERO),
        work: Work::Recorded(Arc::from(groups)),
        prediction: Prediction::default(),
        phases: Vec::new(),
        pace: Pace::Released,
        synchronous: false,
    }
}

/// Less important apps that do their worst.
fn draw_load(options: &Options, config: &Config, duration: Span, rng: &mut Rng) -> Vec<AppSpec> {
    let mut apps = Vec::new();
    for number in 1..=rng.between(0, 6) {
        let longest = rng.pick(&[200, 2_000, 20_000, 200_000]).copied().unwrap_or(200);
        let mut groups = Vec::new();
        for _ in 0..rng.between(1, 4) {
            for _ in 0..rng.between(0, 12) {
                groups.push(load_group(longest, GroupKind::Draw, config, rng));
            }
            groups.push(load_group(longest, GroupKind::Swap, config, rng));
        }
        let params = draw_params(options, config, rng);
        let mut load = app(format!("load-{number}"), params, groups, config);
        load.pace = mixed::pace(params.clock);
        if rng.between(0, 2) == 0 {
            load.pace = Pace::Unpaced;
        }
        load.fps_mhz = rate_mhz(&load.params, load.pace, config);
        let late = rounded(Span::from_us(rng.between(0, 20_000)), config);
        load.submit_delay = SpanRange { lo: if is_round(config) { late } else { Span::ZERO }, hi: late };
        load.join = Time::from_ns(rng.between(0, 2) * rng.between(0, duration.as_ns() / 3));
        let after = |rng: &mut Rng| Time::from_ns(rng.between(load.join.as_ns(), duration.as_ns()));
        for _ in 0..rng.between(0, 2) {
            let at = after(rng);
            // A scenario file cannot take a server away.
            let changed = AppParams { service: params.service, ..draw_params(options, config, rng) };
            load.changes.push(ParamChange { at, params: changed });
        }
        load.changes.sort_by_key(|change| change.at);
        load.end = match rng.between(0, 5) {
            0 => Some(End::Leave(after(rng))),
            1 => Some(End::Crash { at: after(rng), notice: Span::from_us(rng.between(0, 50_000)) }),
            2 => Some(End::Hang(after(rng))),
            _ => None,
        };
        if options.divisible && rng.chance(600_000) {
            divide(&mut load);
        }
        apps.push(load);
    }
    apps
}

/// The GPU interrupts the work of the app, which is divisible as long as it has no contract.
fn divide(app: &mut AppSpec) {
    let later = app.changes.iter_mut().map(|change| &mut change.params);
    std::iter::once(&mut app.params).chain(later).for_each(|params| params.service.divisible = true);
}

/// Parameters of a less important app. The priority is set later; changes keep their rank.
fn draw_params(options: &Options, config: &Config, rng: &mut Rng) -> AppParams {
    if options.mixed && rng.chance(200_000) {
        return mixed::draw_reserve(config, rng);
    }
    let stride = Stride::new(1 + rng.below(4)).unwrap_or(Stride::ONE);
    let etpf = match rng.between(0, 2) {
        0 => Span::ZERO,
        _ => Span::from_ns(rng.between(0, 2 * config.refresh.period_span().as_ns())),
    };
    let clock = if options.mixed { mixed::draw_clock(config, rng) } else { Clock::default() };
    let stride = if clock.is_own() { Stride::ONE } else { stride };
    AppParams { stride, etpf, clock, ..unimportant() }
}

fn load_group(longest_us: u64, kind: GroupKind, config: &Config, rng: &mut Rng) -> RecordedGroup {
    let least = config.conservative(Estimate::default(), Charge::Stays);
    let room = Span::from_us(rng.between(1, longest_us)).max(least);
    let mut group = group_within(room, kind, config, rng);
    group.delay = rounded(Span::from_us(rng.between(0, 3) * rng.between(0, 500)), config);
    group
}
