//! Turns of apps that are promised nothing, where a change of contexts costs something.
//!
//! Groups of several such apps that are in flight together make the GPU change contexts with every piece of theirs, and
//! a change costs as much as a short piece. So of those whose frames are late anyway, one goes on for
//! [`Tuning::rest_turn`](crate::Tuning::rest_turn), with as many groups in flight as it may have, before another one
//! follows.
//!
//! * An app whose frame can still be in time waits for none of that: it has something to lose.
//! * Nor does an app that is more important than the one whose turn it is.
//! * The next one is let in before the GPU runs dry ([`OVERLAP_PARTS`]).
//! * An app whose turn is over goes behind all others that wait and fit.
//!
//! It holds back only what is promised nothing, so what others are promised stays true.

use super::board::{FOREVER, ns};
use crate::app::{AppId, Priority};
use crate::config::Config;
use crate::policy::Context;
use crate::scheduler::Lane;
use crate::time::{Span, Time};

/// Another app may follow once what is in flight is over within one of so many parts of a turn, at the latest.
const OVERLAP_PARTS: u64 = 16;

/// Whose turn it is.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Rest {
    holder: Option<AppId>,
    since: Time,
    /// As long as a decision lasts.
    now: Now,
}

/// What follows from that at the moment.
#[derive(Copy, Clone, Default, Debug)]
enum Now {
    /// Nothing.
    #[default]
    Free,
    /// That app goes on until then, and no less important one follows it.
    GoesOn { app: AppId, priority: Priority, until: Time },
    /// That app had its turn.
    Over { app: AppId },
}

impl Rest {
    /// A decision begins.
    pub(super) fn open(&mut self, context: &Context, lanes: &[Lane]) {
        self.now = self.holder.map_or(Now::Free, |app| self.at(app, context, lanes));
    }

    fn at(&self, app: AppId, context: &Context, lanes: &[Lane]) -> Now {
        let over = self.since + context.config.tuning.rest_turn;
        if context.now >= over {
            return Now::Over { app };
        }
        let holder = lanes.iter().find(|lane| lane.app == app);
        let overlap = Span::from_ns(context.config.tuning.rest_turn.as_ns() / OVERLAP_PARTS);
        let until = over.min(context.free_c - overlap);
        match holder.filter(|lane| lane.is_on_gpu() && is_rest(lane, &context.config)) {
            Some(lane) if until > context.now => Now::GoesOn { app, priority: lane.priority, until },
            _ => Now::Free,
        }
    }

    /// Whose turn the group of `lane` waits for, and when to look again.
    pub(super) fn keeps_out(&self, lane: &Lane, context: &Context) -> Option<(AppId, i64)> {
        let Now::GoesOn { app, priority, until } = self.now else {
            return None;
        };
        let waits = lane.app != app && lane.priority <= priority && takes_turns(lane, context);
        waits.then_some((app, ns(until)))
    }

    /// When a group of `lane` counts as due that is due by then.
    pub(super) fn due(&self, lane: &Lane, due: i64, context: &Context) -> i64 {
        let over = matches!(self.now, Now::Over { app } if app == lane.app);
        if over && takes_turns(lane, context) { FOREVER } else { due }
    }

    /// A group of `lane` goes to the GPU.
    pub(super) fn dispatched(&mut self, lane: &Lane, context: &Context) {
        if !takes_turns(lane, context) {
            return;
        }
        let over = context.now >= self.since + context.config.tuning.rest_turn;
        if self.holder != Some(lane.app) || over {
            (self.holder, self.since) = (Some(lane.app), context.now);
        }
    }
}

/// Whether the next group of an app takes turns with those of others: it is late.
fn takes_turns(lane: &Lane, context: &Context) -> bool {
    context.now >= lane.due_of(lane.due) && is_rest(lane, &context.config)
}

/// Whether an app is promised nothing.
fn is_rest(lane: &Lane, config: &Config) -> bool {
    let takes = config.gpu.excludes() && config.tuning.rest_turn > Span::ZERO;
    takes && !lane.has_budget() && !lane.is_kept_apart() && !lane.divisible
}
