//! What groups take of the budgets of servers, and what they may claim for it.

use alloc::vec;
use alloc::vec::Vec;

use super::board::ns;
use crate::config::Config;
use crate::policy::bandwidth::Server;
use crate::policy::servers::{Claim, Deadlines, Servers};
use crate::policy::{Context, Ended};
use crate::scheduler::{Head, Lane};
use crate::time::{Span, Time};

/// The accounts of all servers.
#[derive(Clone, Default, Debug)]
pub(super) struct Accounts {
    pub(super) servers: Servers,
    /// By slot number.
    payers: Vec<Payer>,
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
    /// It feeds that one, so many apps down the chain, and goes before it.
    pub(super) hops: usize,
    /// It waits for the budget of its server.
    pub(super) rests: Option<Time>,
}

impl Standing {
    /// Whether it goes before another one that comes later in the order of importance.
    pub(super) fn goes_before(&self, other: &Self) -> bool {
        let feeds = other.contract == self.contract && other.hops > self.hops;
        self.due < other.due || self.due == other.due && !feeds
    }
}

impl Accounts {
    /// Takes all memory.
    pub(super) fn prepare(&mut self, apps: usize) {
        self.servers.prepare(apps, Deadlines::AtPeriods);
        self.payers = vec![Payer::default(); apps];
    }

    /// What the first group of the lane at `index` may claim. `framed` is what it may claim by its frame; no group is
    /// part of a promise that is longer than `group_max`.
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
            Claim::BestEffort { .. } => framed,
            Claim::Deadline { at, payer, hops, .. } => {
                // A deadline that is nearer was not counted on by what went before.
                let at =
                    self.servers.get(payer).map_or(at, |server| server.promised_by(need, head.submitted));
                let contract = self.servers.lane(payer).unwrap_or(index);
                let covers = |server: &Server| need <= server.reserve().budget;
                let protected = lanes[contract].protected
                    && self.servers.get(payer).is_some_and(covers)
                    && head.conservative <= context.config.tuning.group_max;
                Standing { due: ns(at), protected, contract, hops: hops.0, rests: None }
            }
        }
    }

    /// What the server in that slot is promised: for the group that waits and needs least of it, or for work that
    /// may come.
    pub(super) fn promise(&self, slot: usize, context: &Context, lanes: &[Lane]) -> Option<(Time, Span)> {
        let server = self.servers.get(slot)?;
        let heads = self.servers.served_lanes(slot, lanes).filter_map(|lane| lane.head);
        let first = heads.min_by_key(|head| charge(head, &context.config));
        Some(match first {
            Some(head) => server.promise(charge(&head, &context.config), head.submitted),
            None if self.servers.is_busy(slot) => server.promise(Span::ZERO, context.now),
            None => server.promise_idle(context.now),
        })
    }

    /// The first waiting group of the lane at `index` is dispatched; says when it is due, if a server says so.
    pub(super) fn dispatched(&mut self, context: &Context, lanes: &[Lane], index: usize) -> Option<Time> {
        let lane = &lanes[index];
        let head = lane.head.filter(|_| self.servers.any() && !lane.has_budget())?;
        let need = charge(&head, &context.config);
        let slot = self.servers.claim(context.now, lanes, index, need).payer();
        let payer = &mut self.payers[lane.app.index()];
        let alone = lane.in_flight == 0;
        *payer = Payer { slot, several: !alone && (payer.several || payer.slot != slot) };
        let server = self.servers.get_mut(slot?)?;
        let due = server.promised_by(need, head.submitted);
        server.dispatch(need);
        Some(due)
    }

    /// A group of the app of `lane` ended: what it left over is used for others.
    pub(super) fn ended(&mut self, ended: &Ended, lane: &Lane) {
        self.servers.ended(lane);
        let payer = self.payers[lane.app.index()];
        if let Some(server) =
            payer.slot.filter(|_| !payer.several).and_then(|slot| self.servers.get_mut(slot))
        {
            server.refund(ended.believed.saturating_sub(ended.occupied));
        }
    }
}

/// What a group takes of the budget of a server: each may find the GPU idle, and wait for its way there.
fn charge(head: &Head, config: &Config) -> Span {
    head.conservative + config.per_arrival()
}
