//! Operation counts per instance.
//!
//! Counted is what remains after inlining, folding and unrolling, and what the results depend on.
//! Both sides of a branch count, because neighbours that take different sides run both. A
//! multiplication whose only use is an addition counts as one multiply-add with it.

use std::collections::BTreeSet;
use std::fmt;

use super::code::{Code, Id};
use super::live::Live;
use super::lower::Facts;
use super::op::{Cost, Op};

/// Kinds of operations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Additions, multiplications, minima, rounding, bit operations.
    Alu,
    /// Multiply-adds.
    Mad,
    /// Uses of the special-function unit: roots, reciprocals, exponentials, sines.
    Special,
    /// Texture lookups.
    Texture,
    /// Comparisons.
    Compare,
    /// Choices between two values, from `?:` and from joined branches.
    Select,
    /// Conversions between integers and floats.
    Convert,
    /// Conditions of branches and loops that are not constants.
    Branch,
}

impl Kind {
    /// All kinds, in the order of [`OpCounts::scalar`].
    pub const ALL: [Self; 8] = [
        Self::Alu,
        Self::Mad,
        Self::Special,
        Self::Texture,
        Self::Compare,
        Self::Select,
        Self::Convert,
        Self::Branch,
    ];
}

/// How far a count can be trusted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum CountTrust {
    /// Every instance does exactly this, both sides of branches taken.
    #[default]
    Exact,
    /// A loop may end earlier for some instances: no instance does more.
    UpperBound,
    /// A loop's iterations are not known;
    /// [`TRIPS_ASSUMED`](super::limits::TRIPS_ASSUMED) was put in their place.
    Assumed,
}

/// Operations of one instance of a shader.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct OpCounts {
    /// Per kind, each component of a vector by itself: what a scalar GPU executes.
    pub scalar: [u64; 8],
    /// Per kind, operations on up to four components as one: what a vector GPU executes.
    pub vector: [u64; 8],
    /// How far to trust them.
    pub trust: CountTrust,
}

impl OpCounts {
    /// Scalar operations of a kind.
    #[must_use]
    pub const fn of(&self, kind: Kind) -> u64 {
        self.scalar[kind as usize]
    }

    /// Scalar operations of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.scalar.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    fn add(&mut self, kind: Kind, count: u64) {
        let total = &mut self.scalar[kind as usize];
        *total = total.saturating_add(count);
    }
}

impl fmt::Display for OpCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for kind in Kind::ALL {
            let (scalar, vector) = (self.scalar[kind as usize], self.vector[kind as usize]);
            if scalar > 0 {
                parts.push(format!("{kind:?} {scalar}/{vector}"));
            }
        }
        let trust = match self.trust {
            CountTrust::Exact => "",
            CountTrust::UpperBound => " (upper bound)",
            CountTrust::Assumed => " (assumed iterations)",
        };
        write!(f, "{}{trust}", if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") })
    }
}

/// Counts what is live.
pub(super) fn count(code: &Code, live: &Live, branches: &[Id], facts: Facts) -> OpCounts {
    let branches: BTreeSet<Id> = branches.iter().copied().collect();
    let mut counts = OpCounts { trust: trust(code, live, facts), ..OpCounts::default() };
    let mut groups = Vec::new();
    let mut trips: Vec<u64> = vec![1];
    let fused = fused_products(code, live);
    // A GPU keeps lanes that left a loop from changing by its execution mask, at no cost.
    let carried = code.loops.iter().flat_map(|info| &info.carried);
    let masked: BTreeSet<Id> = carried.map(|carried| carried.next).collect();
    for id in 0..u32::try_from(code.len()).unwrap_or(u32::MAX) {
        let instr = code.instr(id);
        let times = trips.last().copied().unwrap_or(1);
        match instr.op {
            Op::LoopBegin => {
                let inner = code.loops.get(instr.a as usize).map_or(1, |info| u64::from(info.trips));
                trips.push(times.saturating_mul(inner));
            }
            Op::LoopEnd => {
                trips.pop();
            }
            Op::Branch if live.instrs[instr.a as usize] && branches.contains(&id) => {
                counts.add(Kind::Branch, times);
                groups.push((code.groups[id as usize], Kind::Branch, times, 1));
            }
            Op::Select if masked.contains(&id) => {}
            _ if live.instrs[id as usize] => {
                for (kind, weight) in kinds(code, &fused, id) {
                    counts.add(kind, times.saturating_mul(u64::from(weight)));
                    groups.push((code.groups[id as usize], kind, times, u64::from(weight)));
                }
            }
            _ => {}
        }
    }
    // One operation on a vector left several instructions behind, but is one operation.
    groups.sort_unstable();
    groups.dedup_by_key(|(group, kind, _, _)| (*group, *kind));
    for (_, kind, times, weight) in groups {
        let total = &mut counts.vector[kind as usize];
        *total = total.saturating_add(times.saturating_mul(weight));
    }
    counts
}

fn trust(code: &Code, live: &Live, facts: Facts) -> CountTrust {
    let kept = live.loops.iter().take(code.loops.len()).any(|live| *live);
    match facts {
        Facts { assumed_trips: true, .. } if kept => CountTrust::Assumed,
        Facts { early_exit: true, .. } => CountTrust::UpperBound,
        Facts { kept_loop: true, .. } if kept => CountTrust::UpperBound,
        _ => CountTrust::Exact,
    }
}

/// Multiplications that an addition takes up.
fn fused_products(code: &Code, live: &Live) -> Vec<bool> {
    let mut fused = vec![false; code.len()];
    for (instr, _) in code.instrs.iter().zip(&live.instrs).filter(|(_, live)| **live) {
        if !matches!(instr.op, Op::FAdd | Op::FSub) {
            continue;
        }
        let product = |id: &Id| code.instr(*id).op == Op::FMul && live.uses[*id as usize] == 1;
        if let Some(id) = [instr.b, instr.a].into_iter().find(product) {
            fused[id as usize] = true;
        }
    }
    fused
}

fn kinds(code: &Code, fused: &[bool], id: Id) -> impl Iterator<Item = (Kind, u8)> {
    let instr = code.instr(id);
    let adds = matches!(instr.op, Op::FAdd | Op::FSub);
    let absorbs = adds && (fused[instr.a as usize] || fused[instr.b as usize]);
    // A division by a constant is a multiplication by its reciprocal.
    let by_constant = instr.op == Op::FDiv && code.constant(instr.b).is_some();
    let (first, second) = match instr.op.cost() {
        _ if fused[id as usize] => (None, None),
        _ if absorbs => (Some((Kind::Mad, 1)), None),
        _ if by_constant => (Some((Kind::Alu, 1)), None),
        Cost::Free => (None, None),
        Cost::Alu(weight) => (Some((Kind::Alu, weight)), None),
        Cost::Special(special, alu) => {
            (Some((Kind::Special, special)), Some((Kind::Alu, alu)).filter(|(_, alu)| *alu > 0))
        }
        Cost::Compare => (Some((Kind::Compare, 1)), None),
        Cost::Select => (Some((Kind::Select, 1)), None),
        Cost::Convert => (Some((Kind::Convert, 1)), None),
        Cost::Texture => (Some((Kind::Texture, 1)), None),
    };
    first.into_iter().chain(second)
}
