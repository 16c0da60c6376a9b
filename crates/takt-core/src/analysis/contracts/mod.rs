//! Which apps, by importance, can be promised what they claim on a given GPU.
//!
//! * **Question.** Each app claims frames of a display, frames by its own clock, or a server. What
//!   is the longest prefix, most important first, whose claims hold together for ever, whatever
//!   all other apps do?
//! * **Assumptions.** Protected groups go by earliest due date, without preemption, and wait for
//!   protected promises that are due earlier; all other groups need slack. No frame takes longer
//!   than its `span`. That includes the times of its gaps, since an app that waits counts as if it used the
//!   GPU, and all that the GPU adds ([`crate::Charge`]); no delay is longer than that.
//! * **Answer.** For every length t of an interval from the shortest deadline on, demand and
//!   blocking must be *less* than t. Blocking is the longest group c of one app j that may have
//!   begun before; what it does is due after the interval, and so is all that follows it, so it
//!   takes the place of the demand of j: max over j of max(0, c − demand of j in t). No blocking
//!   where all frames belong to one display and arrive with its periods: nothing that is due
//!   later begins before what is due earlier is released.
//! * **Why it holds.** Invariant: what is owed, from the end of what was dispatched on, meets every
//!   due date by *preemptive* EDF, whenever the next frames are released. A group outside of the
//!   prefix begins only if that stays true. The protected group that is due first may always
//!   begin on an empty GPU: what is due before it is not released yet, and for that the test left
//!   room for one group. What is due after it loses nothing, for it counts on this group anyway.
//! * **Source.** Baruah 2005 (EDF with limited preemption); Zhang, Burns 2009 (QPA); Abeni,
//!   Buttazzo 1998 (servers). Demand with blocking never falls as t grows, so QPA applies as it is.
//! * **Cost.** One division per claim and step; there is a limit of steps with a name.

mod demand;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use crate::app::Stride;
use crate::time::Span;

pub use demand::Workspace;

/// What an app claims.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// When work comes, and when it is due.
    pub kind: Kind,
    /// GPU time per frame, or budget of a server per period, at most, with the times of gaps and all that the GPU
    /// adds.
    pub span: Span,
    /// Longest command group. For servers it may be above the budget.
    pub group_max: Span,
}

/// When work comes, and when it is due.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Frames, each with a due date of its own.
    Frames {
        /// Shortest time between two releases.
        period: Span,
        /// Time from a release to its due date.
        deadline: Span,
        /// The display that releases them; `None` if the app has a clock of its own.
        display: Option<u32>,
    },
    /// A constant bandwidth server. Its deadline is its period.
    Server {
        /// Time in which the budget is promised.
        period: Span,
    },
    /// Nothing is promised.
    None,
}

impl Kind {
    /// Frames of a display with this refresh period.
    pub fn of_display(display: u32, period: Span, stride: Stride) -> Self {
        let periods = stride.periods();
        let deadline = period.times(periods.min(2));
        Self::Frames { period: period.times(periods), deadline, display: Some(display) }
    }
}

/// Which apps are covered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coverage {
    /// Length of the covered prefix. Apps within that claim nothing are promised nothing.
    pub covered: usize,
    /// One for each claim, in their order.
    pub verdicts: Vec<Verdict>,
}

/// What is said about one claim.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Together with all claims before it, it is met.
    Covered,
    /// It is not.
    Uncovered(Reason),
}

/// Why a claim is not covered.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Nothing was claimed. Claims that follow may be covered.
    NoClaim,
    /// A period or deadline is zero, or a length has no bound.
    Unbounded,
    /// All claims up to this one take this share of the GPU in the long run.
    Overload {
        /// At least 1000.
        permille: u64,
    },
    /// In an interval of length `at`, this much time is missing.
    Missing {
        /// By how much demand and blocking would have to shrink.
        time: Span,
        /// Length of the interval, from the release of a frame to a due date.
        at: Span,
    },
    /// The claim at this index is not covered, and it is more important.
    Follows(usize),
    /// The analysis gave up ([`crate::limits::ANALYSIS_STEPS_MAX`], [`crate::limits::APPS_MAX`]).
    Limit,
}

/// Which of the claims, most important first, are covered. A group must be let in so long before the GPU runs empty
/// (`lead`), so that the GPU does not stand still: the longest time from the end of a group to the arrival of one that
/// waited for that.
pub fn coverage(claims: &[Claim], lead: Span) -> Coverage {
    let mut verdicts = Vec::with_capacity(claims.len());
    let mut broken = None;
    for (index, claim) in claims.iter().enumerate() {
        let verdict = match broken {
            _ if claim.kind == Kind::None => Verdict::Uncovered(Reason::NoClaim),
            Some(first) => Verdict::Uncovered(Reason::Follows(first)),
            None => match test(&claims[..=index], lead) {
                Ok(()) => Verdict::Covered,
                Err(reason) => {
                    broken = Some(index);
                    Verdict::Uncovered(reason)
                }
            },
        };
        verdicts.push(verdict);
    }
    Coverage { covered: broken.unwrap_or(claims.len()), verdicts }
}

/// Whether all claims are covered together; why not, if they are not.
pub fn test(claims: &[Claim], lead: Span) -> Result<(), Reason> {
    test_in(&mut Workspace::for_claims(claims.len()), claims, lead)
}

/// The same, without taking memory from the allocator.
pub fn test_in(memory: &mut Workspace, claims: &[Claim], lead: Span) -> Result<(), Reason> {
    demand::test(memory, claims, lead)
}
