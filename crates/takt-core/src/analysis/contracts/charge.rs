//! What a GPU adds to the work of an app.
//!
//! * **Delays.** The GPU may stand still, though a group waits, from the end of the last group in
//!   flight until the scheduler heard of it and dispatched the next (the *turnaround*). Why was
//!   that next group X, the first by due date, not in flight already?
//!   1. X was not there: it is the first of its frame, or the first after a gap. `per_frame` pays.
//!   2. X would have made promises to come late. The blocking of X has the turnaround in it
//!      (`lead`), so X may begin that long before the GPU runs empty, and the GPU does not. If
//!      groups end earlier than predicted, what is lost is less than what they left over.
//!   3. X could make what is in flight and due earlier late, if it were to end first
//!      ([`Order::TimeShared`] only). Whatever more there is of that frame comes before X, so its
//!      last group is in flight: each frame does this to others once. Its `per_frame` pays.
//!   4. All slots were taken. If by groups of the same frame, they end one after the other, and
//!      `per_group` has what the shortest ones do not cover. If by others: 1 or 3.
//! * **It takes** that groups of one app run in order; that the next group of a frame is there when
//!   the one before is dispatched, except for gaps; that apps without a promise take no slots from
//!   those with one; and that "late anyway" is judged without these charges.
//! * **Turns**, if all groups may be in flight together ([`Order::TimeShared`]): a turn costs one switch, and a
//!   group that runs for c needs ⌈c / slice⌉ turns.
//! * **Turns under `timeline`** ([`crate::Charge`]). There a frame pays for two switches, however many groups it
//!   has and however short slices are, since the scheduler keeps two rules. (a) A group of a protected app
//!   enters only if nothing of another protected app is in flight. (b) No protected app goes before the one that
//!   is due first, even if that one is held. Why two are enough: take all turns in their order; a switch is paid
//!   where neighbours are of different apps.
//!   1. One of them is a turn of an app that is not protected. Such a turn ends when its channel is dry or after a
//!      slice, so a group of length c has ⌈c / slice⌉ of them, and pays two switches for each: to it, and
//!      from it to the next context. What follows has that switch on its account once the group is over.
//!   2. Both are turns of protected apps, A and then B. By (a) all of A was over when B was dispatched. Either B
//!      begins a frame, which pays. Or B goes on with one; then by (b) frames that are due earlier displaced
//!      it, and the first of these pays for the way back, as in any analysis of EDF.
//!   3. Both are of the same app: no switch, whether a slice has ended or not.
//!
//!   At a change between protected apps, the GPU also stands still for a turnaround. `per_frame` has one more of
//!   them than in order: one before the frame, one when what it displaced goes on. A group that goes on has the way
//!   back on top of its length, so the blocking has it, too. Work of a protected app beyond its promise pays for
//!   both changes whenever it displaces another one, out of slack.

use super::{Claim, Kind};
use crate::config::Margins;
use crate::gpu::Divisible;
use crate::time::Span;

/// A GPU, as far as promises depend on it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct GpuCharges {
    /// How it executes what was dispatched.
    pub order: Order,
    /// How long before the GPU runs empty a group must be let in for the GPU not to stand still:
    /// the longest time from the end of a group to the arrival of one that waited for that.
    pub lead: Span,
    /// Divisible work of apps without a promise that may be on the GPU at any time.
    pub foreign: Option<Divisible>,
}

/// How a GPU executes groups that were dispatched.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// One after the other, in the order of dispatch.
    InOrder {
        /// Added to each group.
        per_group: Span,
        /// Added to each frame, and once more for each of its gaps.
        per_frame: Span,
    },
    /// Contexts take turns, so that any of the dispatched groups may be the last to end.
    TimeShared {
        /// Added to each group, besides switches.
        per_group: Span,
        /// Added to each frame, and once more for each of its gaps.
        per_frame: Span,
        /// Length of a turn.
        slice: Span,
        /// Time lost when another context takes its turn.
        switch: Span,
    },
}

impl GpuCharges {
    /// No delays: for tests on round numbers.
    pub const IDEAL: Self = Self {
        order: Order::InOrder { per_group: Span::ZERO, per_frame: Span::ZERO },
        lead: Span::ZERO,
        foreign: None,
    };

    /// A GPU that executes in order, with at most `mpcg` groups in flight.
    pub fn in_order(margins: &Margins, mpcg: u32) -> Self {
        let (per_group, per_frame) = (margins.per_group(mpcg), margins.per_frame(mpcg));
        Self { order: Order::InOrder { per_group, per_frame }, lead: per_group + per_frame, foreign: None }
    }

    /// A GPU whose contexts take turns, with at most `mpcg` groups in flight.
    pub fn time_shared(margins: &Margins, mpcg: u32, slice: Span, switch: Span) -> Self {
        let (per_group, per_frame) = (margins.per_group(mpcg), margins.per_frame(mpcg));
        let order = Order::TimeShared { per_group, per_frame, slice, switch };
        Self { order, lead: per_group + per_frame, foreign: None }
    }

    /// Time that a claim takes of the GPU: per frame, or per period of a server.
    pub(super) fn cost(&self, claim: &Claim) -> Span {
        if claim.span == Span::ZERO && claim.groups == 0 {
            return Span::ZERO;
        }
        let groups = u64::from(claim.groups.max(1));
        let (per_group, per_frame) = match self.order {
            Order::InOrder { per_group, per_frame } | Order::TimeShared { per_group, per_frame, .. } => {
                (per_group, per_frame)
            }
        };
        // Each group of a server may come when there is nothing else of it.
        let arrivals = match claim.kind {
            Kind::Server { .. } => groups,
            _ => 1 + u64::from(claim.gaps),
        };
        let delays = per_group.times(groups) + per_frame.times(arrivals);
        let turns = |slice| turns(claim.span, groups, group_max(claim), slice);
        claim.span + delays + self.per_turn(turns)
    }

    /// Time that the longest group of a claim takes, if it begins just before others are released.
    pub(super) fn longest_group(&self, claim: &Claim) -> Span {
        if claim.span == Span::ZERO && claim.groups == 0 {
            return Span::ZERO;
        }
        let group = group_max(claim);
        group + self.lead + self.per_turn(|slice| group.as_ns().div_ceil(slice.as_ns().max(1)))
    }

    /// What turns add, if there are so many of a given length.
    fn per_turn(&self, turns: impl Fn(Span) -> u64) -> Span {
        let switches = match self.order {
            Order::InOrder { .. } => Span::ZERO,
            Order::TimeShared { slice, switch, .. } => switch.times(turns(slice)),
        };
        let foreign =
            self.foreign.map_or(Span::ZERO, |foreign| foreign.turn().times(turns(foreign.own_slice)));
        switches + foreign
    }
}

/// The longest group, even if less than the mean was claimed.
fn group_max(claim: &Claim) -> Span {
    let mean = claim.span.as_ns().div_ceil(u64::from(claim.groups.max(1)));
    claim.group_max.max(Span::from_ns(mean))
}

/// How many turns so many groups need together at most.
fn turns(span: Span, groups: u64, group_max: Span, slice: Span) -> u64 {
    let slice = slice.as_ns().max(1);
    let each = groups.saturating_mul(group_max.as_ns().div_ceil(slice));
    let together = span.as_ns().saturating_add(groups.saturating_mul(slice - 1)) / slice;
    each.min(together)
}
