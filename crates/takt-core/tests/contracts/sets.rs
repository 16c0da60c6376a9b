//! Random claims, just at the limit of the test.

use takt_core::analysis::contracts::{self, Claim, Kind};
use takt_core::{Span, Stride};

use crate::Rng;
use crate::gpu::Delays;
use crate::promises::Costs;

/// Nanoseconds per tick: fluid demands are rounded to nanoseconds.
const TICK: u64 = 1000;

pub(crate) fn ticks(count: u64) -> Span {
    Span::from_ns(count * TICK)
}

/// A claim in ticks.
#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) period: u64,
    pub(crate) deadline: u64,
    /// Display and stride.
    pub(crate) display: Option<(u32, u64)>,
    pub(crate) server: bool,
    pub(crate) groups: Vec<u64>,
    /// Before this group the app has nothing submitted for so long.
    pub(crate) gap: Option<(usize, u64)>,
    pub(crate) jitter: u64,
}

impl App {
    pub(crate) fn work(&self) -> u64 {
        self.groups.iter().sum::<u64>() + self.gap.map_or(0, |(_, length)| length)
    }

    /// What it claims of a GPU. Each gap lets in a group of another app, the longest of which takes `other`.
    fn claim(&self, costs: &Costs, other: Span) -> Claim {
        let kind = match self.display {
            Some((display, stride)) if self.jitter == 0 => {
                let stride = u32::try_from(stride).expect("small");
                let period = ticks(self.period / u64::from(stride));
                Kind::of_display(display, period, Stride::new(stride).expect("not zero"))
            }
            _ if self.server => Kind::Server { period: ticks(self.period) },
            // What may arrive late has less time.
            _ => {
                let deadline = ticks(self.deadline.saturating_sub(self.jitter));
                Kind::Frames { period: ticks(self.period), deadline, display: None }
            }
        };
        let gaps = if self.gap.is_some() { other } else { Span::ZERO };
        Claim { kind, span: self.span(costs) + gaps, group_max: self.longest_group(costs) }
    }

    fn group_max(&self) -> Span {
        ticks(self.groups.iter().copied().max().unwrap_or(0))
    }

    /// GPU time per frame, or per period of a server, with delays and switches.
    fn span(&self, costs: &Costs) -> Span {
        let (span, groups) = (ticks(self.work()), self.groups.len() as u64);
        // Each group of a server may come when there is nothing else of it.
        let arrivals = if self.server { groups } else { 1 + u64::from(self.gap.is_some()) };
        let Charge { per_group, per_frame, .. } = costs.charge;
        let delays = ticks(per_group).times(groups) + ticks(per_frame).times(arrivals);
        span + delays + costs.switches(|slice| turns(span, groups, self.group_max(), slice))
    }

    /// Time that the longest group takes, with switches.
    fn longest_group(&self, costs: &Costs) -> Span {
        let group = self.group_max();
        group + costs.switches(|slice| group.as_ns().div_ceil(slice))
    }
}

impl Costs {
    /// What turns add, if there are so many of a given length.
    fn switches(&self, turns: impl Fn(u64) -> u64) -> Span {
        let Delays { slice, switch, .. } = self.delays;
        if self.in_order { Span::ZERO } else { ticks(switch).times(turns(ticks(slice).as_ns())) }
    }
}

/// How many turns so many groups need together at most.
fn turns(span: Span, groups: u64, group_max: Span, slice: u64) -> u64 {
    let each = groups * group_max.as_ns().div_ceil(slice);
    each.min((span.as_ns() + groups * (slice - 1)) / slice)
}

/// What is charged for delays.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Charge {
    pub(crate) per_group: u64,
    pub(crate) per_frame: u64,
    pub(crate) lead: u64,
}

impl Charge {
    /// What the scheduler charges.
    pub(crate) fn usual(delays: &Delays) -> Self {
        let (lead, per_group) = (delays.turnaround(), delays.per_group());
        Self { per_group, per_frame: lead - per_group, lead }
    }
}

pub(crate) fn covered(apps: &[App], costs: &Costs) -> bool {
    let lead = ticks(costs.charge.lead);
    let longest = |except: usize| {
        let others = apps.iter().enumerate().filter(|(index, _)| *index != except);
        others.map(|(_, app)| app.longest_group(costs) + lead).max().unwrap_or(Span::ZERO)
    };
    let claims = apps.iter().enumerate().map(|(index, app)| app.claim(costs, longest(index)));
    contracts::test(&claims.collect::<Vec<Claim>>(), lead).is_ok()
}

/// What sets may have besides frames that arrive as a whole.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Traits {
    pub(crate) servers: bool,
    pub(crate) gaps: bool,
    pub(crate) jitter: bool,
}

fn app(rng: &mut Rng, displays: &[u64], group_min: u64, traits: Traits) -> App {
    let count = if rng.percent(40) { 1 } else { rng.between(2, 5) };
    let groups: Vec<u64> = (0..count).map(|_| group_min).collect();
    let jitter = if traits.jitter && rng.percent(30) { rng.between(1, 6) } else { 0 };
    let plain = App { period: 0, deadline: 0, display: None, server: false, groups, gap: None, jitter };
    let kind = rng.between(0, 9);
    let mut app = if kind < 4 {
        let display = rng.between(0, displays.len() as u64 - 1);
        let stride = if rng.percent(60) { 1 } else { rng.between(2, 3) };
        let period = displays[usize::try_from(display).expect("small")];
        let display = Some((u32::try_from(display).expect("small"), stride));
        App { period: period * stride, deadline: period * stride.min(2), display, ..plain }
    } else if kind < 8 || !traits.servers {
        let period = rng.between(15, 90);
        let deadline = if rng.percent(40) { period } else { rng.between(12, period + 20) };
        App { period, deadline, ..plain }
    } else {
        let period = rng.between(15, 60);
        App { period, deadline: period, server: true, jitter: 0, ..plain }
    };
    if traits.gaps && !app.server && app.groups.len() > 1 && rng.percent(40) {
        app.gap = Some((1 + rng.index(app.groups.len() - 1), rng.between(1, 4)));
    }
    app
}

/// One to six apps that are covered, nearly none of which could have more.
pub(crate) fn set(rng: &mut Rng, costs: &Costs, traits: Traits) -> Option<Vec<App>> {
    let displays = [rng.between(16, 40), rng.between(16, 60), rng.between(20, 40)];
    let displays = &displays[..1 + rng.index(3)];
    let mut apps: Vec<App> = Vec::new();
    for _ in 0..rng.between(1, 6) {
        apps.push(app(rng, displays, costs.delays.group_min, traits));
        if !covered(&apps, costs) {
            apps.pop();
        }
    }
    if apps.is_empty() {
        return None;
    }
    grow(rng, &mut apps, costs);
    Some(apps)
}

/// Lets groups grow as long as the set stays covered.
fn grow(rng: &mut Rng, apps: &mut [App], costs: &Costs) {
    let mut refused = 0;
    while refused < 12 {
        let index = rng.index(apps.len());
        let group = rng.index(apps[index].groups.len());
        let before = apps[index].groups[group];
        apps[index].groups[group] += rng.between(1, 3);
        if !covered(apps, costs) {
            apps[index].groups[group] = before;
            refused += 1;
        }
    }
}
