//! Demand and blocking of a set of claims, compared with time.

use alloc::vec::Vec;

use super::{Claim, Kind, Reason};
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

/// A claim that costs something.
#[derive(Copy, Clone, Debug)]
struct Load {
    cost: u64,
    /// What its longest group can block others for.
    group: u64,
    period: u64,
    deadline: u64,
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
            false => interval.div_ceil(self.period),
            true => interval.div_ceil(self.period) + 1,
        };
        count.saturating_mul(self.cost)
    }
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

/// Whether the claims are covered together.
pub(super) fn test(memory: &mut Workspace, claims: &[Claim], lead: Span) -> Result<(), Reason> {
    if claims.len() > APPS_MAX {
        return Err(Reason::Limit);
    }
    let loads = &mut memory.0;
    fill(loads, claims, lead)?;
    let Some(first) = loads.iter().map(|load| load.deadline).min() else {
        return Ok(());
    };
    let share: u128 = loads.iter().map(Load::share).sum();
    if share >= 1 << SHIFT {
        let permille = u64::try_from((share * 1000) >> SHIFT).unwrap_or(u64::MAX);
        return Err(Reason::Overload { permille });
    }
    let set = Set(loads);
    set.walk_down(set.longest_interval(share)?, first)
}

/// All claims that promise something and cost something.
fn fill(loads: &mut Vec<Load>, claims: &[Claim], lead: Span) -> Result<(), Reason> {
    loads.clear();
    let blocks = !share_a_display(claims);
    for claim in claims {
        let (period, deadline, fluid) = match claim.kind {
            Kind::Frames { period, deadline, .. } => (period, deadline, false),
            Kind::Server { period } => (period, period, true),
            Kind::None => continue,
        };
        let group = if blocks { claim.group_max + lead } else { Span::ZERO };
        let never = period == Span::ZERO || deadline == Span::ZERO;
        if never || [claim.span, group, period, deadline].iter().any(|span| *span >= Span::FOREVER) {
            return Err(Reason::Unbounded);
        }
        if claim.span > Span::ZERO {
            let [cost, group, period, deadline] = [claim.span, group, period, deadline].map(Span::as_ns);
            loads.push(Load { cost, group, period, deadline, fluid });
        }
    }
    Ok(())
}

/// Whether everything that is claimed are frames of one display, which arrive with its periods.
fn share_a_display(claims: &[Claim]) -> bool {
    let mut displays = claims.iter().filter(|claim| claim.kind != Kind::None).map(|claim| match claim.kind {
        Kind::Frames { display, .. } => display,
        _ => None,
    });
    let first = displays.next().flatten();
    first.is_some() && displays.all(|display| display == first)
}

struct Set<'a>(&'a [Load]);

impl Set<'_> {
    /// Demand and blocking in an interval of this length. Never falls as the interval grows.
    fn demand(&self, interval: u64) -> u64 {
        let (mut sum, mut blocking) = (0, 0);
        for load in self.0 {
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
            interval = self.0.iter().filter_map(|load| load.due_before(at)).max();
        }
        Reason::Missing { time: Span::from_ns(worst.0), at: Span::from_ns(worst.1) }
    }

    /// If an interval has too much demand, one no longer than this has. `share` is below one.
    fn longest_interval(&self, share: u128) -> Result<u64, Reason> {
        let rest = (1u128 << SHIFT) - share;
        let mut early = u128::from(self.once()) << SHIFT;
        for load in self.0.iter().filter(|load| !load.fluid) {
            let lead = load.period.saturating_sub(load.deadline);
            early = early.saturating_add(u128::from(lead).saturating_mul(load.share()));
        }
        // Fluid demands are rounded up, each by less than one.
        early = early.saturating_add((self.0.len() as u128) << SHIFT);
        let bound = u64::try_from(early / rest).map_or(HORIZON_MAX, |bound| bound.saturating_add(1));
        let longest = self.0.iter().map(|load| load.period.max(load.deadline)).max().unwrap_or(0);
        if bound <= longest.saturating_mul(LONG_PERIODS) {
            return Ok(bound);
        }
        match self.busy_period(bound.min(HORIZON_MAX)) {
            Some(busy) => Ok(busy),
            None if bound < HORIZON_MAX => Ok(bound),
            None => Err(Reason::Limit),
        }
    }

    /// The longest blocking.
    fn once(&self) -> u64 {
        self.0.iter().map(|load| load.group).max().unwrap_or(0)
    }

    /// How long the GPU is busy at most, or `enough` if that is longer.
    fn busy_period(&self, enough: u64) -> Option<u64> {
        let once = self.once();
        let mut busy = self.0.iter().fold(once, |sum, load| sum.saturating_add(load.cost));
        for _ in 0..ANALYSIS_STEPS_MAX {
            if busy >= enough {
                return Some(enough);
            }
            let arrived = self.0.iter().fold(once, |sum, load| sum.saturating_add(load.arrivals(busy)));
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
pub(super) fn all_intervals(claims: &[Claim], lead: Span, longest: u64) -> Result<(), Reason> {
    let mut loads = Vec::new();
    fill(&mut loads, claims, lead)?;
    let set = Set(&loads);
    let first = set.0.iter().map(|load| load.deadline).min().unwrap_or(u64::MAX);
    match (first..=longest).find(|interval| set.demand(*interval) >= *interval) {
        Some(at) => Err(Reason::Missing { time: Span::ZERO, at: Span::from_ns(at) }),
        None => Ok(()),
    }
}
