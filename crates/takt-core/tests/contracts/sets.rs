//! Random claims, just at the limit of the test.

use takt_core::analysis::contracts::{self, Claim, GpuCharges, Kind, Order};
use takt_core::{Span, Stride};

use crate::Rng;
use crate::gpu::Delays;

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

    fn claim(&self) -> Claim {
        let kind = match self.display {
            Some((display, stride)) => {
                let stride = u32::try_from(stride).expect("small");
                let period = ticks(self.period / u64::from(stride));
                Kind::of_display(display, period, Stride::new(stride).expect("not zero"))
            }
            None if self.server => Kind::Server { period: ticks(self.period) },
            None => {
                Kind::Frames { period: ticks(self.period), deadline: ticks(self.deadline), display: None }
            }
        };
        Claim {
            kind,
            span: ticks(self.work()),
            group_max: ticks(self.groups.iter().copied().max().unwrap_or(0)),
            groups: u32::try_from(self.groups.len()).expect("few"),
            gaps: u32::from(self.gap.is_some()),
            jitter: ticks(self.jitter),
        }
    }
}

/// What is charged for delays.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Charge {
    pub(crate) per_group: u64,
    pub(crate) per_frame: u64,
    pub(crate) lead: u64,
}

impl Charge {
    /// What the constructors of [`GpuCharges`] charge.
    pub(crate) fn usual(delays: &Delays) -> Self {
        let (lead, per_group) = (delays.turnaround(), delays.per_group());
        Self { per_group, per_frame: lead - per_group, lead }
    }
}

pub(crate) fn gpu(delays: &Delays, charge: &Charge, in_order: bool) -> GpuCharges {
    let (per_group, per_frame) = (ticks(charge.per_group), ticks(charge.per_frame));
    let order = if in_order {
        Order::InOrder { per_group, per_frame }
    } else {
        let (slice, switch) = (ticks(delays.slice), ticks(delays.switch));
        Order::TimeShared { per_group, per_frame, slice, switch }
    };
    GpuCharges { order, lead: ticks(charge.lead), foreign: None }
}

pub(crate) fn covered(apps: &[App], gpu: &GpuCharges) -> bool {
    let claims: Vec<Claim> = apps.iter().map(App::claim).collect();
    contracts::test(&claims, gpu).is_ok()
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
pub(crate) fn set(rng: &mut Rng, gpu: &GpuCharges, group_min: u64, traits: Traits) -> Option<Vec<App>> {
    let displays = [rng.between(16, 40), rng.between(16, 60), rng.between(20, 40)];
    let displays = &displays[..1 + rng.index(3)];
    let mut apps: Vec<App> = Vec::new();
    for _ in 0..rng.between(1, 6) {
        apps.push(app(rng, displays, group_min, traits));
        if !covered(&apps, gpu) {
            apps.pop();
        }
    }
    if apps.is_empty() {
        return None;
    }
    grow(rng, &mut apps, gpu);
    Some(apps)
}

/// Lets groups grow as long as the set stays covered.
fn grow(rng: &mut Rng, apps: &mut [App], gpu: &GpuCharges) {
    let mut refused = 0;
    while refused < 12 {
        let index = rng.index(apps.len());
        let group = rng.index(apps[index].groups.len());
        let before = apps[index].groups[group];
        apps[index].groups[group] += rng.between(1, 3);
        if !covered(apps, gpu) {
            apps[index].groups[group] = before;
            refused += 1;
        }
    }
}
