//! Demand and blocking of a set of claims, compared with time.

use alloc::vec::Vec;

use super::{Claim, GpuCharges, Kind, Reason};
use crate::limits::{ANALYSIS_STEPS_MAX, APPS_MAX, HORIZON_MAX};
use crate::time::Span;

/// Fractional bits of a share of the GPU. Shares are rounded up.
const SHIFT: u32 = 60;

/// A million GPUs: even with a thousand times all shares, no sum overflows.
const SHARE_MAX: u128 = 1_000_000 << SHIFT;

/// Due dates that are looked at to say how much time is missing.
const REASON_STEPS_MAX: u32 = 1 << 10;

/// Bounds longer than this many of the longest periods are compared with the busy period.
const LONG_PERIODS: u64 = 16;

/// A claim with everything that the GPU adds.
#[derive(Copy, Clone, Debug)]
struct Load {
    cost: u64,
    /// What its longest group can block others for.
    group: u64,
    period: u64,
    /// From the latest arrival to the due date.
    deadline: u64,
    jitter: u64,
    fluid: bool,
}

impl Load {
    /// Work with release and due date in an interval of this length.
    fn demand(&self, interval: u64) -> u128 {
        if self.fluid {
            return (u128::from(self.cost) * u128::from(interval)).div_ceil(u128::from(self.period));
        }
        match interval.checked_sub(self.deadline) {
            Some(rest) => u128::from(rest / self.period + 1) * u128::from(self.cost),
            None => 0,
        }
    }

    /// The last due date before this one, if the first release is at zero.
    fn due_before(&self, interval: u64) -> Option<u64> {
        let rest = interval.checked_sub(self.deadline + 1)?;
        Some(self.deadline + rest / self.period * self.period)
    }

    /// Share of the GPU in the long run, rounded up; no more than [`SHARE_MAX`].
    fn share(&self) -> u128 {
        (u128::from(self.cost) << SHIFT).div_ceil(u128::from(self.period)).min(SHARE_MAX)
    }

    /// Work that arrives in an interval of this length, at most.
    fn arrivals(&self, interval: u64) -> u64 {
        let count = match self.fluid {
            false => interval.saturating_add(self.jitter).div_ceil(self.period),
            true => interval.div_ceil(self.period) + 1,
        };
        count.saturating_mul(self.cost)
    }
}

/// Whether the claims are covered together, with a delay besides that comes once.
pub(super) fn test(claims: &[Claim], gpu: &GpuCharges, delay: Span) -> Result<(), Reason> {
    test_in(&mut Workspace::for_claims(claims.len()), claims, gpu, delay)
}

/// Memory for a test.
#[derive(Clone, Debug)]
pub struct Workspace(Vec<Load>);

impl Workspace {
    /// Enough for so many claims.
    pub fn for_claims(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }
}

/// The same in memory that is there.
pub(super) fn test_in(
    memory: &mut Workspace,
    claims: &[Claim],
    gpu: &GpuCharges,
    delay: Span,
) -> Result<(), Reason> {
    if claims.len() > APPS_MAX {
        return Err(Reason::Limit);
    }
    let loads = &mut memory.0;
    fill(loads, claims, gpu)?;
    let Some(first) = loads.iter().map(|load| load.deadline).min() else {
        return Ok(());
    };
    let share: u128 = loads.iter().map(Load::share).sum();
    if share >= 1 << SHIFT {
        let permille = u64::try_from((share * 1000) >> SHIFT).unwrap_or(u64::MAX);
        return Err(Reason::Overload { permille });
    }
    let set = Set { loads, delay: delay.as_ns() };
    set.walk_down(set.longest_interval(share)?, first)
}

/// The shortest deadline of anything that is claimed.
pub(super) fn first_due(claims: &[Claim]) -> Option<Span> {
    let deadlines = claims.iter().filter_map(|claim| match claim.kind {
        Kind::Frames { deadline, .. } => Some(deadline.saturating_sub(claim.jitter)),
        Kind::Server { period } => Some(period.saturating_sub(claim.jitter)),
        Kind::None => None,
    });
    deadlines.min()
}

/// All claims that promise something and cost something.
fn fill(loads: &mut Vec<Load>, claims: &[Claim], gpu: &GpuCharges) -> Result<(), Reason> {
    loads.clear();
    let blocks = !share_a_display(claims);
    let longest = |except: usize| {
        let others = claims.iter().enumerate().filter(|(index, _)| *index != except);
        let others = others.filter(|(_, claim)| claim.kind != Kind::None);
        others.map(|(_, claim)| gpu.longest_group(claim)).max().unwrap_or(Span::ZERO)
    };
    for (index, claim) in claims.iter().enumerate() {
        let (period, deadline, fluid) = match claim.kind {
            Kind::Frames { period, deadline, .. } => (period, deadline, false),
            Kind::Server { period } => (period, period, true),
            Kind::None => continue,
        };
        // Each gap lets in a group of another app.
        let gaps = match claim.gaps {
            0 => Span::ZERO,
            gaps => longest(index).times(u64::from(gaps)),
        };
        let cost = gpu.cost(claim) + gaps;
        let group = if blocks { gpu.longest_group(claim) } else { Span::ZERO };
        let late = period == Span::ZERO || deadline <= claim.jitter;
        if late || [cost, group, period, deadline].iter().any(|span| *span >= Span::FOREVER) {
            return Err(Reason::Unbounded);
        }
        if cost > Span::ZERO {
            let deadline = deadline.saturating_sub(claim.jitter).as_ns();
            let [cost, group, period, jitter] = [cost, group, period, claim.jitter].map(Span::as_ns);
            loads.push(Load { cost, group, period, deadline, jitter, fluid });
        }
    }
    Ok(())
}

/// Whether everything that is claimed are frames of one display, which arrive with its periods.
fn share_a_display(claims: &[Claim]) -> bool {
    let mut displays = claims.iter().filter(|claim| claim.kind != Kind::None).map(|claim| match claim.kind {
        Kind::Frames { display, .. } if claim.jitter == Span::ZERO => display,
        _ => None,
    });
    let first = displays.next().flatten();
    first.is_some() && displays.all(|display| display == first)
}

struct Set<'a> {
    loads: &'a [Load],
    delay: u64,
}

impl Set<'_> {
    /// Demand and blocking in an interval of this length. Never falls as the interval grows.
    fn demand(&self, interval: u64) -> u64 {
        let (mut sum, mut blocking) = (u128::from(self.delay), 0);
        for load in self.loads {
            let demand = load.demand(interval);
            sum += demand;
            blocking = u128::from(load.group).saturating_sub(demand).max(blocking);
        }
        u64::try_from(sum + blocking).unwrap_or(u64::MAX - 1)
    }

    /// QPA: no interval longer than its own demand, up to the one with that demand, has too much.
    fn walk_down(&self, from: u64, first: u64) -> Result<(), Reason> {
        let mut interval = from.max(first);
        for _ in 0..ANALYSIS_STEPS_MAX {
            let demand = self.demand(interval);
            if demand >= interval {
                return Err(self.most_missing(interval));
            }
            if demand < first {
                return Ok(());
            }
            interval = demand;
        }
        Err(Reason::Limit)
    }

    /// The interval that lacks most time, among many from a lacking one down.
    fn most_missing(&self, from: u64) -> Reason {
        let mut worst = (0, from);
        let mut interval = Some(from);
        for _ in 0..REASON_STEPS_MAX {
            let Some(at) = interval else { break };
            let time = (self.demand(at) + 1).saturating_sub(at);
            worst = worst.max((time, at));
            interval = self.loads.iter().filter_map(|load| load.due_before(at)).max();
        }
        Reason::Missing { time: Span::from_ns(worst.0), at: Span::from_ns(worst.1) }
    }

    /// If an interval has too much demand, one no longer than this has. `share` is below one.
    fn longest_interval(&self, share: u128) -> Result<u64, Reason> {
        let rest = (1u128 << SHIFT) - share;
        let mut early = u128::from(self.once()) << SHIFT;
        for load in self.loads.iter().filter(|load| !load.fluid) {
            let lead = load.period.saturating_sub(load.deadline);
            early = early.saturating_add(u128::from(lead).saturating_mul(load.share()));
        }
        // Fluid demands are rounded up, each by less than one.
        early = early.saturating_add((self.loads.len() as u128) << SHIFT);
        let bound = u64::try_from(early / rest).map_or(HORIZON_MAX, |bound| bound.saturating_add(1));
        let longest = self.loads.iter().map(|load| load.period.max(load.deadline)).max().unwrap_or(0);
        if bound <= longest.saturating_mul(LONG_PERIODS) {
            return Ok(bound);
        }
        match self.busy_period(bound.min(HORIZON_MAX)) {
            Some(busy) => Ok(busy),
            None if bound < HORIZON_MAX => Ok(bound),
            None => Err(Reason::Limit),
        }
    }

    /// The longest blocking and the delay.
    fn once(&self) -> u64 {
        self.loads.iter().map(|load| load.group).max().unwrap_or(0).saturating_add(self.delay)
    }

    /// How long the GPU is busy at most, or `enough` if that is longer.
    fn busy_period(&self, enough: u64) -> Option<u64> {
        let once = self.once();
        let mut busy = self.loads.iter().fold(once, |sum, load| sum.saturating_add(load.cost));
        for _ in 0..ANALYSIS_STEPS_MAX {
            if busy >= enough {
                return Some(enough);
            }
            let arrived = self.loads.iter().fold(once, |sum, load| sum.saturating_add(load.arrivals(busy)));
            if arrived == busy {
                return Some(busy);
            }
            busy = arrived;
        }
        None
    }
}

/// The definition: every interval up to a length, one by one.
#[cfg(test)]
pub(super) fn all_intervals(claims: &[Claim], gpu: &GpuCharges, longest: u64) -> Result<(), Reason> {
    let mut loads = Vec::new();
    fill(&mut loads, claims, gpu)?;
    let set = Set { loads: &loads, delay: 0 };
    let first = set.loads.iter().map(|load| load.deadline).min().unwrap_or(u64::MAX);
    match (first..=longest).find(|interval| set.demand(*interval) >= *interval) {
        Some(at) => Err(Reason::Missing { time: Span::ZERO, at: Span::from_ns(at) }),
        None => Ok(()),
    }
}
