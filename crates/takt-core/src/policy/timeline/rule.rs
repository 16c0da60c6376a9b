//! The rule: may the first group of a lane go now, and if not, why?

use super::Timeline;
use super::accounts::Standing;
use super::board::{FOREVER, Free, ns};
use super::order::{note_first, stop_protecting};
use super::pass::{Again, Best, Candidate, Pass};
use crate::event::Hold;
use crate::policy::Context;
use crate::scheduler::{Head, Lane, Turn};
use crate::time::Span;

impl Timeline {
    /// Whether the first group of a lane may go, and whether it goes before those seen so far. Looks at protected
    /// groups only, or at all others; says whether it did. Without a reason to wait, a group waits for the winner.
    pub(super) fn consider(
        &mut self,
        pass: &mut Pass<'_>,
        lanes: &mut [Lane],
        index: usize,
        protected: bool,
    ) -> Result<bool, Again> {
        let Some(head) = lanes[index].head else {
            return Ok(false);
        };
        if lanes[index].divisible {
            lanes[index].hold = Some(Hold::NoSlot);
            return Ok(false);
        }
        let standing = self.standing(pass.context, lanes, index, &head);
        if standing.protected != protected {
            return Ok(false);
        }
        let group = Candidate { index, head, standing };
        if pass.context.config.gpu.excludes() && standing.behind.is_none() {
            self.note_first(pass, &lanes[index], &group);
        }
        lanes[index].hold = match self.waits(pass, lanes, &group) {
            None if !pass.best.is_some_and(|best| best.standing.goes_before(&standing)) => {
                self.choose_if_it_fits(pass, lanes, &group)?
            }
            // Whether it would fit behind the best one does not matter.
            hold => hold,
        };
        Ok(true)
    }

    /// Why a group waits whether it fits or not.
    fn waits(&mut self, pass: &Pass<'_>, lanes: &[Lane], group: &Candidate) -> Option<Hold> {
        let Candidate { index, head, standing } = group;
        let lane = &lanes[*index];
        if head.conservative >= Span::FOREVER {
            return Some(Hold::Unbounded);
        }
        if let Some(app) = lane.turn.waits_for {
            // Another app may have its slot by now.
            return Some(if lane.turn.gone { Hold::NoSlot } else { Hold::Turn { app } });
        }
        if let Some(until) = standing.rests {
            self.lapse = self.lapse.min(ns(until));
            return Some(Hold::NoBudget { until });
        }
        if let Some((next, rests)) = standing.behind {
            self.lapse = rests.map_or(self.lapse, |until| self.lapse.min(ns(until)));
            return Some(Hold::Behind { app: lanes[next].app });
        }
        if pass.best.is_some_and(|best| best.standing.goes_before(standing)) || standing.protected {
            return None;
        }
        if let Some((app, until)) = self.rest.keeps_out(lane, pass.context) {
            self.lapse = self.lapse.min(until);
            return Some(Hold::Turn { app });
        }
        let app = pass.clearance.delayed(lane, head.conservative)?;
        self.lapse = self.lapse.min(pass.clearance.lapse());
        Some(Hold::Clears { app })
    }

    /// Prefers a group to those seen so far, unless it would break a promise.
    fn choose_if_it_fits(
        &mut self,
        pass: &mut Pass<'_>,
        lanes: &mut [Lane],
        group: &Candidate,
    ) -> Result<Option<Hold>, Again> {
        let lane = &lanes[group.index];
        let length = self.checked(lane, group).as_signed_ns();
        let free = self.free_for(pass, &group.standing, length)?;
        let room = free.until - pass.ready.conservative - 1;
        let fits = length <= room;
        // Without an owner the window is the limit, and a wider one may show more.
        let wanted = if fits { pass.context.config.tuning.stretch.as_signed_ns() } else { length };
        if free.owner.is_none() && room < wanted && !self.board.is_widest() {
            return Err(Again::Wider);
        }
        if !fits {
            let protects = |owner: usize| Hold::Protects { app: lanes[owner].app };
            return Ok(Some(free.owner.map_or(Hold::LookAhead, protects)));
        }
        let room = room.min(pass.clearance.room(lane));
        pass.best = Some(Best { index: group.index, standing: group.standing, app: lane.app, room });
        stop_protecting(lanes, group.index);
        Ok(None)
    }

    /// Until when the GPU may be busy with a group: an unprotected one is bound by all protected promises.
    fn free_for(&mut self, pass: &mut Pass<'_>, standing: &Standing, length: i64) -> Result<Free, Again> {
        if standing.protected {
            return self.free_for_protected(pass, standing, length);
        }
        let free = self.board.free_for_all(pass.ready.conservative)?;
        pass.at_most = free.until - pass.ready.conservative;
        Ok(free)
    }

    /// The same for a protected one: it is bound by the promises that are due before its own, and by those of more
    /// important apps.
    fn free_for_protected(
        &mut self,
        pass: &mut Pass<'_>,
        standing: &Standing,
        length: i64,
    ) -> Result<Free, Again> {
        let (ready, due) = (pass.ready.conservative, standing.due);
        let end = ready + length;
        if let Some((_, free)) = pass.broken.filter(|(first, free)| *first <= due && free.until <= end) {
            pass.waits |= free.owner.is_some_and(|owner| owner > standing.contract);
            return Ok(free);
        }
        let before = self.board.free_before(ready, due, standing.contract)?;
        if before.until <= end {
            if !self.shed.is_sought() && !self.is_feasible(pass)? {
                self.shed.seek();
                return Err(Again::Shedding);
            }
            pass.broken = Some((due, before));
            pass.waits |= before.owner.is_some_and(|owner| owner > standing.contract);
            return Ok(before);
        }
        let above = match self.limits[standing.contract] {
            None if !self.all_limits => return Err(Again::WithLimits),
            limit => limit.unwrap_or(Free { until: FOREVER, owner: None }),
        };
        if above.until <= end {
            pass.outranked |= pass.is_first(standing);
            pass.yields = pass.yields.or(Some(standing.contract));
        }
        Ok(if above.until < before.until { above } else { before })
    }
}

/// What a group claims, and what it must fit into.
impl Timeline {
    /// What the first group of the lane at `index` may claim.
    fn standing(&self, context: &Context, lanes: &[Lane], index: usize, head: &Head) -> Standing {
        let lane = &lanes[index];
        let protected = lane.is_protected_now() && head.conservative <= self.sizes.longest_group;
        let due = self.rest.due(lane, self.frames[index].due, context);
        let framed = Standing { due, protected, contract: index, behind: None, rests: None };
        let standing = if lane.has_budget() || !self.accounts.servers.any() {
            framed
        } else {
            self.accounts.standing(context, lanes, index, head, framed)
        };
        // Where promises cannot be kept that are more important, a group needs slack.
        Standing { protected: standing.protected && standing.contract <= self.shed.first(), ..standing }
    }

    /// How long the GPU must be free for a group. Only what was promised to its own frame has paid for the GPU that
    /// stands still behind it.
    fn checked(&self, lane: &Lane, group: &Candidate) -> Span {
        let Turn { checked, disturbs, .. } = lane.turn;
        let unpaid = disturbs > Span::ZERO && !self.is_paid(lane, group);
        group.head.conservative + checked + if unpaid { disturbs } else { Span::ZERO }
    }

    /// Whether a group is part of what was promised to its frame, or comes by a server.
    fn is_paid(&self, lane: &Lane, group: &Candidate) -> bool {
        group.standing.protected && (!lane.has_budget() || !self.frames[group.index].is_exceeded)
    }

    /// Notes a group that has the GPU to itself when it goes, if it is due before those seen so far.
    fn note_first(&self, pass: &mut Pass<'_>, lane: &Lane, group: &Candidate) {
        if self.is_paid(lane, group) && !self.frames[group.index].is_late {
            note_first(pass, lane, group);
        }
    }
}
