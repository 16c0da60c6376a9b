//! The order of protected apps, the promises that are given up where not all can be kept, and what others are told
//! about it.

use super::Timeline;
use super::board::{FOREVER, Free, ns};
use super::pass::{Again, Best, Candidate, Pass};
use crate::event::Hold;
use crate::scheduler::Lane;
use crate::time::Span;

/// What binds protected lanes.
impl Timeline {
    /// Puts the promises of a protected lane on the board, below those of more important apps.
    pub(super) fn enter(&mut self, pass: &mut Pass<'_>, lanes: &[Lane], index: usize) -> Result<(), Again> {
        let lane = &lanes[index];
        // Work beyond a promise must leave room for the next ones of its own app, too.
        let beyond = lane.has_budget() && self.frames[index].is_exceeded;
        if beyond {
            self.promise(lanes, index, pass);
        }
        self.limit(pass, lanes, index)?;
        if !beyond && !self.shed.contains(index) {
            self.promise(lanes, index, pass);
        }
        if self.shed.is_sought() && !self.shed.contains(index) && !self.is_feasible(pass)? {
            self.shed.add(index);
            return Err(Again::Shedding);
        }
        Ok(())
    }

    /// Whether all promises on the board can be kept. What the first group waits for on its way to the GPU is
    /// part of its promise, and over by the time that it is free for it.
    pub(super) fn is_feasible(&mut self, pass: &Pass<'_>) -> Result<bool, Again> {
        let (ready, early) = (pass.ready.conservative, self.sizes.under_way.as_signed_ns());
        Ok(self.board.is_feasible(ready, early, ns(pass.context.free_c))?)
    }

    /// Notes until when the GPU may be busy for the promises of more important apps, which are on the board by
    /// now; only for lanes that are due before all of those, unless the others turned out to be held.
    fn limit(&mut self, pass: &mut Pass<'_>, lanes: &[Lane], index: usize) -> Result<(), Again> {
        let lane = &lanes[index];
        let first = match lane.head {
            // Others may run on the budget of a server.
            _ if !lane.has_budget() => true,
            None => return Ok(()),
            Some(_) => {
                let due = self.frames[index].due;
                let first = due < pass.first_due;
                pass.first_due = pass.first_due.min(due);
                first
            }
        };
        let beyond = lane.has_budget() && self.frames[index].is_exceeded;
        self.limits[index] = if self.board.is_full() && !beyond {
            // Where the look-ahead is exhausted, protected groups go, and work beyond a promise waits.
            Some(Free { until: FOREVER, owner: None })
        } else if first || self.all_limits {
            Some(self.board.free_for_all(pass.ready.conservative)?)
        } else {
            None
        };
        Ok(())
    }
}

/// What keeps protected lanes apart.
impl Timeline {
    /// No protected app goes before the one that is due first, or both would have to come back. Where promises
    /// cannot be kept, it may have to wait for ever; so it may for a more important app that is due later.
    pub(super) fn keep_order(&mut self, pass: &mut Pass<'_>, lanes: &mut [Lane]) -> Result<(), Again> {
        if let (Some(first), Some(best), false) = (pass.first, pass.best, pass.outranked)
            && (first.standing.due, first.index) < (best.standing.due, best.index)
            && self.is_feasible(pass)?
        {
            pass.best = None;
            let promised = lanes.iter_mut().zip(&self.promised).filter(|(_, promised)| **promised);
            for (lane, _) in promised.filter(|(lane, _)| lane.head.is_some()) {
                lane.hold.get_or_insert(Hold::Behind { app: first.app });
            }
        }
        Ok(())
    }

    /// Where one protected group waits for a more important app, and that one for what is due first, neither would
    /// ever go. Promises that meet so closely cannot all be kept: importance decides.
    pub(super) fn keep_going(&mut self, pass: &Pass<'_>) -> Result<(), Again> {
        let stuck = |lane: &usize| pass.best.is_none() && pass.waits && !self.shed.contains(*lane);
        let Some(lane) = pass.yields.filter(stuck) else {
            return Ok(());
        };
        self.shed.add(lane);
        Err(Again::Shedding)
    }
}

/// Notes a protected group that waits, if it is due before those seen so far.
pub(super) fn note_first(pass: &mut Pass<'_>, lane: &Lane, group: &Candidate) {
    let Candidate { index, standing, .. } = *group;
    let counts = lane.is_kept_apart() && standing.rests.is_none();
    if counts && !pass.first.is_some_and(|first| first.standing.goes_before(&standing)) {
        pass.first = Some(Best { index, standing, app: lane.app, room: 0 });
        pass.outranked = false;
    }
}

/// Whether no time is kept free for the group that waits: it is divisible work; or it waits behind a group that is part
/// of another app's frame, which could wait for it in turn; or it does not fit, and its deadline is over, so that
/// holding others back has no use; or its length is unknown, so that it never goes.
///
/// In some periods time is kept free all the same, for all such groups at once: or one that would fit if
/// others paused might never do so.
pub(super) fn gives_way(lane: &Lane, pass: &Pass<'_>) -> bool {
    // What waits behind a group that is part of another app's frame goes after that one in any case.
    let behind_booked = lane.head.is_none() && lane.waiting > 0 && !lane.has_budget();
    // What waits for another app's turn must not take that one's time.
    let turn = !lane.has_budget() && matches!(lane.hold, Some(Hold::Turn { .. }));
    if lane.divisible || behind_booked || turn && !lane.is_kept_apart() {
        return true;
    }
    let Some(head) = lane.head.filter(|_| !lane.has_budget()) else {
        return false;
    };
    let tuning = &pass.context.config.tuning;
    let held = matches!(lane.hold, Some(Hold::Protects { .. } | Hold::Clears { .. }));
    let too_long = held || head.conservative.as_signed_ns() >= pass.at_most;
    let late = pass.context.now >= lane.due_of(lane.due);
    let relief =
        pass.context.current.0 % u64::from(tuning.relief_every.max(1)) < u64::from(tuning.relief_periods);
    head.conservative >= Span::FOREVER || too_long && late && !relief
}

/// The first group of the lane at `index` goes before all that were looked at: those that were kept from breaking its
/// promise wait for it in any case.
pub(super) fn stop_protecting(lanes: &mut [Lane], index: usize) {
    let app = lanes[index].app;
    for lane in lanes.iter_mut().filter(|lane| lane.hold == Some(Hold::Protects { app })) {
        lane.hold = None;
    }
}

/// Names the winner to all groups that wait for it.
pub(super) fn tell_winner(pass: &Pass<'_>, lanes: &mut [Lane]) {
    let Some(Best { app, index: winner, .. }) = pass.best else {
        return;
    };
    for (index, lane) in lanes.iter_mut().enumerate() {
        if lane.head.is_some() && index != winner {
            lane.hold.get_or_insert(Hold::Behind { app });
        }
    }
}
