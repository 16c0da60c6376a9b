//! What groups take of the budgets of servers, and what they may claim for it.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::board::ns;
use crate::config::Config;
use crate::policy::bandwidth::Server;
use crate::policy::servers::{Claim, Deadlines, Servers};
use crate::policy::{Context, Ended, Paid};
use crate::scheduler::{Head, Lane};
use crate::time::{Span, Time};

/// The accounts of all servers.
#[derive(Clone, Default, Debug)]
pub(super) struct Accounts {
    pub(super) servers: Servers,
    /// By slot number.
    payers: Vec<Payer>,
    /// What each group pays besides its length ([`charge`]).
    per_arrival: Span,
    /// Which group goes next on the server in a slot, where groups of several apps may; as long as a decision lasts.
    lines: Vec<Option<Next>>,
}

/// The group that goes next on a server. It goes in the order in which groups began to wait for it, or one that is
/// shorter could take the budget that one before it counts on; of those that began together, producers go first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Next {
    since: Time,
    hops: Reverse<usize>,
    order: u64,
    /// Where its lane is.
    lane: usize,
    /// Until when it waits for the next budget.
    rests: Option<Time>,
}

/// Who pays for what an app has on the GPU.
#[derive(Copy, Clone, Default, Debug)]
struct Payer {
    slot: Option<usize>,
    /// More than one server does, so that it is not known which of them gets back what was not used.
    several: bool,
}

/// What the first group of a lane may claim.
#[derive(Copy, Clone, Debug)]
pub(super) struct Standing {
    pub(super) due: i64,
    /// It is part of what was promised.
    pub(super) protected: bool,
    /// Where the lane is whose contract that is.
    pub(super) contract: usize,
    /// The lane whose group goes before it on the same server, and when to look again if that one waits for a budget.
    pub(super) behind: Option<(usize, Option<Time>)>,
    /// It waits for the budget of its server.
    pub(super) rests: Option<Time>,
}

impl Standing {
    /// Whether it goes before another one that comes later in the order of importance.
    pub(super) fn goes_before(&self, other: &Self) -> bool {
        self.due <= other.due
    }
}

impl Accounts {
    /// Takes all memory.
    pub(super) fn prepare(&mut self, apps: usize) {
        self.servers.prepare(apps, Deadlines::AtPeriods);
        self.payers = vec![Payer::default(); apps];
        self.lines = vec![None; apps];
    }

    /// Finds out which group goes next on each server that several apps use.
    pub(super) fn line_up(&mut self, context: &Context, lanes: &[Lane]) {
        if !self.servers.several() {
            return;
        }
        self.lines.fill(None);
        for (index, lane) in lanes.iter().enumerate().filter(|(_, lane)| !lane.has_budget()) {
            let Some(head) = lane.head else { continue };
            let (now, need) = (context.now, charge(&head, &context.config));
            let claim = match self.servers.claim(now, lanes, index, need) {
                Claim::Deadline { payer, hops, since, .. } => Some((payer, hops, since, None)),
                _ => self
                    .servers
                    .next_budget(now, lanes, index, need)
                    .map(|(payer, hops, since, until)| (payer, hops, since, Some(until))),
            };
            let Some((payer, hops, since, rests)) = claim else { continue };
            let promised = |server| is_promised(server, &head, &context.config);
            if self.servers.get(payer).is_some_and(promised) {
                let next = Next { since, hops, order: head.order, lane: index, rests };
                let first = self.lines[payer].map_or(next, |first| first.min(next));
                self.lines[payer] = Some(first);
            }
        }
    }

    /// The group that goes next on the server in that slot, and since when it waits.
    fn next<'a>(&self, slot: usize, lanes: &'a [Lane]) -> Option<(&'a Head, Time)> {
        let next = self.lines[slot].filter(|_| self.servers.several())?;
        Some((lanes[next.lane].head.as_ref()?, next.since))
    }

    /// What the first group of the lane at `index` may claim. `framed` is what it may claim by its frame.
    pub(super) fn standing(
        &self,
        context: &Context,
        lanes: &[Lane],
        index: usize,
        head: &Head,
        framed: Standing,
    ) -> Standing {
        let need = charge(head, &context.config);
        match self.servers.claim(context.now, lanes, index, need) {
            Claim::Rests { until } => Standing { rests: Some(until), ..framed },
            // What runs on a hard server waits for its next budget, whichever app it belongs to.
            Claim::BestEffort { .. } => Standing { rests: self.rests(context, lanes, index, head), ..framed },
            Claim::Deadline { at, payer, .. } => {
                let contract = self.servers.lane(payer).unwrap_or(index);
                let promised = |server| is_promised(server, head, &context.config);
                // An app with frames was promised those, and not its server.
                let serves = lanes[contract].protected && !lanes[contract].has_budget();
                let protected = serves && self.servers.get(payer).is_some_and(promised);
                let next = self.lines[payer].filter(|_| protected && self.servers.several());
                let behind = next.filter(|next| next.lane != index).map(|next| (next.lane, next.rests));
                Standing { due: ns(at), protected, contract, behind, rests: None }
            }
        }
    }

    /// Until when the first group of the lane at `index` waits for a budget that it is promised.
    fn rests(&self, context: &Context, lanes: &[Lane], index: usize, head: &Head) -> Option<Time> {
        let need = charge(head, &context.config);
        let (payer, _, _, until) = self.servers.next_budget(context.now, lanes, index, need)?;
        is_promised(self.servers.get(payer)?, head, &context.config).then_some(until)
    }

    /// What the server in that slot is promised: for the group that waits and is due first, or for work that may
    /// come.
    pub(super) fn promise(&self, slot: usize, context: &Context, lanes: &[Lane]) -> Option<(Time, Span)> {
        let (config, now) = (&context.config, context.now);
        let server = self.servers.get(slot)?;
        let promised = |(head, since): (&Head, Time)| {
            let need = charge(head, config);
            server.promising(need, since, now).promise(need, since)
        };
        if self.servers.several()
            && let Some(next) = self.next(slot, lanes)
        {
            return Some(promised(next));
        }
        let head = self.servers.lane(slot).and_then(|index| lanes.get(index)?.head.as_ref());
        let alone = self.servers.is_alone(slot);
        Some(match head {
            Some(head) if alone && is_promised(server, head, config) => promised((head, head.submitted)),
            // Whatever else the app has comes behind a group that is promised nothing, and pays after it.
            Some(head) if alone => server.after(charge(head, config)).postponed(now).promise(Span::ZERO, now),
            _ if !self.servers.is_busy(slot) => server.promise_idle(now),
            _ => server.promising(Span::ZERO, now, now).promise(Span::ZERO, now),
        })
    }

    /// When the first group of the lane at `index` came, if it is a job that its server owes its budget from then on;
    /// none for what a server has used up its budgets for, which is in no hurry.
    pub(super) fn came(&self, context: &Context, lanes: &[Lane], index: usize) -> Option<Time> {
        let lane = &lanes[index];
        let head = lane.head.filter(|_| self.servers.any() && lane.protected && !lane.has_budget())?;
        let need = charge(&head, &context.config);
        let Claim::Deadline { at, payer, since, .. } = self.servers.claim(context.now, lanes, index, need)
        else {
            return None;
        };
        let server = self.servers.get(payer)?;
        let owed = at <= since + server.reserve().period && is_promised(server, &head, &context.config);
        owed.then_some(since)
    }

    /// By when the first group of the lane at `index` is to run and how much it needs, if a server pays for it and
    /// promises it nothing, because it is longer than what the server promises.
    pub(super) fn beyond(&self, context: &Context, lanes: &[Lane], index: usize) -> Option<(Time, Span)> {
        let lane = &lanes[index];
        let head = lane.head.filter(|_| !lane.has_budget() && !lane.divisible)?;
        let need = charge(&head, &context.config);
        let Claim::Deadline { at, payer, .. } = self.servers.claim(context.now, lanes, index, need) else {
            return None;
        };
        let contract = self.servers.lane(payer).unwrap_or(index);
        let is_promised =
            lanes[contract].protected && is_promised(self.servers.get(payer)?, &head, &context.config);
        (!is_promised && need < Span::FOREVER).then_some((at, need))
    }

    /// The first waiting group of the lane at `index` is dispatched; says when it is due, if a server says so.
    pub(super) fn dispatched(&mut self, context: &Context, lanes: &[Lane], index: usize) -> Option<Paid> {
        let lane = &lanes[index];
        let Some(head) = lane.head.filter(|_| self.servers.any() && !lane.has_budget()) else {
            // No server pays.
            let payer = &mut self.payers[lane.app.index()];
            payer.several = lane.in_flight > 0 && (payer.several || payer.slot.is_some());
            payer.slot = None;
            return None;
        };
        let (need, now) = (charge(&head, &context.config), context.now);
        self.per_arrival = context.config.per_arrival();
        let claim = self.servers.claim(now, lanes, index, need);
        let slot = claim.payer();
        let payer = &mut self.payers[lane.app.index()];
        let alone = lane.in_flight == 0;
        *payer = Payer { slot, several: !alone && (payer.several || payer.slot != slot) };
        let Claim::Deadline { at, payer, since, .. } = claim else { return None };
        let contract = self.servers.lane(payer).unwrap_or(index);
        let server = self.servers.get_mut(payer)?;
        *server = server.promising(need, since, now).after(need);
        let promised = is_promised(server, &head, &context.config);
        if !promised {
            // It waited for slack, however long that took; what waits behind it counts as if it came now.
            *server = server.postponed(now);
        }
        let promised = promised && lanes[contract].protected && !lanes[contract].has_budget();
        Some(Paid { by: lanes[contract].app, due: at, promised })
    }

    /// A group of the app of `lane` ended: what it left over is used for others.
    ///
    /// Not if one that waits counts on a later budget by now: it would be due earlier than what was dispatched
    /// since then has left room for.
    pub(super) fn ended(&mut self, ended: &Ended, lane: &Lane) {
        self.servers.ended(lane);
        let payer = self.payers[lane.app.index()];
        let Some(slot) = payer.slot.filter(|_| !payer.several) else {
            return;
        };
        let alone = slot == lane.app.index() && self.servers.is_alone(slot);
        let waits = match lane.head {
            Some(head) if alone => Some(head.conservative + self.per_arrival),
            None if alone => None,
            _ => self.servers.is_busy(slot).then_some(Span::FOREVER),
        };
        if let Some(server) = self.servers.get_mut(slot)
            && waits.is_none_or(|need| need <= server.budget())
        {
            server.refund(ended.believed.saturating_sub(ended.occupied).min(ended.freed));
        }
    }
}

/// Whether a group can be part of what a server is promised. A longer one needs slack, and pays all the same.
fn is_promised(server: &Server, head: &Head, config: &Config) -> bool {
    charge(head, config) <= server.reserve().budget && head.conservative <= config.longest_group()
}

/// What a group takes of the budget of a server: each may find the GPU idle, and wait for its way there.
fn charge(head: &Head, config: &Config) -> Span {
    head.conservative + config.per_arrival()
}
