//! What a pass over the lanes has found out so far.

use super::accounts::Standing;
use super::board::{FOREVER, Free, TooNarrow, ns};
use super::clearance::Clearance;
use crate::app::AppId;
use crate::policy::Context;
use crate::scheduler::Head;

/// A pass did not settle the question.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Again {
    /// With a wider window.
    Wider,
    /// With the limits of all lanes.
    WithLimits,
    /// Without the promises that were found not to be kept.
    Shedding,
}

impl From<TooNarrow> for Again {
    fn from(TooNarrow: TooNarrow) -> Self {
        Self::Wider
    }
}

/// A group that is looked at: the first one that waits in a lane.
#[derive(Copy, Clone)]
pub(super) struct Candidate {
    pub(super) index: usize,
    pub(super) head: Head,
    pub(super) standing: Standing,
}

/// The lane to choose, unless one with an earlier due date comes.
#[derive(Copy, Clone)]
pub(super) struct Best {
    pub(super) index: usize,
    pub(super) standing: Standing,
    pub(super) app: AppId,
    pub(super) room: i64,
}

/// When the GPU is free for a group that is picked now.
#[derive(Copy, Clone)]
pub(super) struct Ready {
    pub(super) now: i64,
    /// When all that was dispatched is over at the latest.
    pub(super) over: i64,
    pub(super) conservative: i64,
    pub(super) optimistic: i64,
    pub(super) free: i64,
}

/// A pass over the lanes.
pub(super) struct Pass<'a> {
    pub(super) context: &'a Context,
    pub(super) ready: Ready,
    pub(super) clearance: Clearance,
    pub(super) best: Option<Best>,
    /// The protected group that is due first, where no other one may go before it.
    pub(super) first: Option<Best>,
    /// That one waits for a more important app, which may be due later.
    pub(super) outranked: bool,
    /// What was free for all before, at most.
    pub(super) at_most: i64,
    /// The earliest due date of a protected lane seen so far.
    pub(super) first_due: i64,
    /// A due date, and the promises before it that a protected group would have broken.
    pub(super) broken: Option<(i64, Free)>,
    /// A lane whose group waits for more important apps, though it is due first or before them.
    pub(super) yields: Option<usize>,
    /// A protected group waits for a less important app.
    pub(super) waits: bool,
}

impl Ready {
    pub(super) fn new(context: &Context) -> Self {
        Self {
            now: ns(context.now),
            over: ns(context.free_c),
            conservative: ns(context.ready_c),
            optimistic: ns(context.ready_o),
            free: ns(context.free_o),
        }
    }
}

impl<'a> Pass<'a> {
    pub(super) fn new(context: &'a Context) -> Self {
        Self {
            context,
            ready: Ready::new(context),
            clearance: Clearance::new(context),
            best: None,
            first: None,
            outranked: false,
            at_most: FOREVER,
            first_due: FOREVER,
            broken: None,
            yields: None,
            waits: false,
        }
    }

    /// Whether that group is the first by due date, of those seen so far.
    pub(super) fn is_first(&self, standing: &Standing) -> bool {
        self.first.is_some_and(|first| first.standing.contract == standing.contract)
    }
}
