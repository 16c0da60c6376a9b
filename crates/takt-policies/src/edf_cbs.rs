//! `edf-cbs` and `edf-cbs-hard`: the earliest deadline first, each app in a bandwidth server.
//!
//! * **Rules.** An app with a reserve of its own is served by a constant bandwidth server: a
//!   budget, and a deadline that the budget belongs to. Of all servers with work the one with the
//!   earliest deadline goes on, ties to the one that runs, then to the lower slot number. A server that has used up its
//!   budget gets another one with a deadline later by a period: at once (`edf-cbs`, *soft*), or
//!   after a rest until its old deadline (`edf-cbs-hard`). Apps without a reserve of their own are
//!   *best effort*: they run by priority when no server has anything to run.
//! * **Jobs.** A batch of command groups, up to a swap or a synchronisation point, is a job. It
//!   arrives with its first group; the deadline counts from there if the server was idle. If the
//!   rest of a batch comes after the server fell idle, the rule for arrivals applies again:
//!   keeping the deadline would hand the budget out in less time than it belongs to.
//! * **Preemption.** Where the GPU can give groups back, one is in flight at a time, and an earlier
//!   deadline or the end of a budget takes it back. Elsewhere groups run to their end, budgets are
//!   charged then, and use beyond a budget delays the next ones.
//! * **Inheritance.** While a consumer waits, the apps that produce for it, directly or through others,
//!   have its deadline if that is earlier than their own, go before it, and run on its budget. So
//!   a chain of apps never takes more than the servers in it were promised.
//! * **Assumptions.** Servers are admitted: Σ Q/min(D, P) at most one (`takt_analysis::cbs`; a
//!   deadline D shorter than the period P lets a server use its budget in every D). Then, with
//!   preemption at no cost, a job that stays within its server's budget ends by its deadline,
//!   whatever the others do. Without preemption it can be late by one group of each slot in
//!   flight, with a cost by what the switches take.
//! * **Source.** HERCULES D5.2 (2018), section 2.2; Abeni, Buttazzo 1998 (the server); Lipari,
//!   Lamastra, Abeni 2004 (who pays while a deadline is inherited).
//! * **Cost.** One pass over the apps per decision, for each its chain of consumers; no allocation.

use alloc::vec;
use alloc::vec::Vec;

use takt_core::config::Config;
use takt_core::event::Hold;
pub use takt_core::policy::bandwidth::Exhaustion;
use takt_core::policy::servers::{Claim, Deadlines, Servers};
use takt_core::policy::{Context, Ended, Policy};
use takt_core::scheduler::Lane;
use takt_core::time::{Span, Time};

/// Earliest deadline first among bandwidth servers.
#[derive(Clone, Debug)]
pub struct EdfCbs {
    exhaustion: Exhaustion,
    preemptive: bool,
    servers: Servers,
    /// Slot of the server that pays for what an app has on the GPU, by slot number.
    payers: Vec<Option<usize>>,
    /// What runs, on a preemptive GPU.
    running: Option<Running>,
    /// When the first of the servers that rest and have work goes on.
    resumes: Option<Time>,
}

#[derive(Copy, Clone, Debug)]
struct Running {
    slot: usize,
    /// Until when its time is paid.
    paid_until: Time,
    interruptible: bool,
}

impl EdfCbs {
    /// With no apps yet.
    pub fn new(exhaustion: Exhaustion) -> Self {
        let servers = Servers::default();
        Self { exhaustion, preemptive: false, servers, payers: Vec::new(), running: None, resumes: None }
    }

    /// What the lane at `index` can claim at `now`. Groups run to the end of a budget and beyond.
    fn claim(&self, now: Time, lanes: &[Lane], index: usize) -> Claim {
        self.servers.claim(now, lanes, index, Span::ZERO)
    }

    /// The best claim of all lanes that wait, except the one at `except`; servers that rest are
    /// noted, and their lanes held.
    fn best_waiting(&mut self, now: Time, lanes: &[Lane], except: Option<usize>) -> Option<(Claim, usize)> {
        self.resumes = None;
        let mut best: Option<(Claim, usize)> = None;
        for index in (0..lanes.len()).filter(|index| lanes[*index].head.is_some()) {
            let claim = self.claim(now, lanes, index);
            if let Claim::Rests { until } = claim {
                self.resumes = Some(self.resumes.map_or(until, |at| at.min(until)));
            } else if Some(index) != except && best.is_none_or(|(other, _)| claim < other) {
                best = Some((claim, index));
            }
        }
        best
    }

    /// Pays for the running group until `now`.
    fn pay_until(&mut self, now: Time) {
        if let Some(running) = &mut self.running {
            let used = now.since(running.paid_until);
            running.paid_until = running.paid_until.max(now);
            let payer = self.payers[running.slot];
            if let Some(server) = payer.and_then(|payer| self.servers.get_mut(payer)) {
                server.charge(used, self.exhaustion);
            }
        }
    }

    fn runs(&mut self, now: Time, lane: &Lane) {
        let interruptible = !lane.service.uninterruptible;
        self.running = Some(Running { slot: lane.app.index(), paid_until: now, interruptible });
    }
}

impl Policy for EdfCbs {
    fn name(&self) -> &'static str {
        match self.exhaustion {
            Exhaustion::Soft => "edf-cbs",
            Exhaustion::Hard => "edf-cbs-hard",
        }
    }

    fn prepare(&mut self, config: &Config) {
        self.preemptive = config.gpu.gives_back();
        self.servers.prepare(config.apps_max as usize, Deadlines::AsReserved);
        self.payers = vec![None; config.apps_max as usize];
    }

    fn apps_changed(&mut self, now: Time, lanes: &[Lane]) {
        self.pay_until(now);
        self.servers.apps_changed(now, lanes);
        for (slot, payer) in self.payers.iter_mut().enumerate() {
            *payer =
                payer.filter(|payer| self.servers.lane(slot).is_some() && self.servers.get(*payer).is_some());
        }
        if let Some(running) = &mut self.running {
            let lane = self.servers.lane(running.slot).map(|index| &lanes[index]);
            // The group of an app that has left is not asked about.
            running.interruptible = lane.is_some_and(|lane| !lane.service.uninterruptible);
        }
    }

    fn submitted(&mut self, now: Time, lane: &Lane, _was_idle: bool) {
        self.servers.submitted(now, lane);
    }

    fn ended(&mut self, _now: Time, ended: &Ended, lane: &Lane) {
        let slot = lane.app.index();
        self.servers.ended(lane);
        if !self.preemptive {
            if let Some(server) = self.payers[slot].and_then(|payer| self.servers.get_mut(payer)) {
                server.charge(ended.occupied, self.exhaustion);
            }
        } else if self.running.is_some_and(|running| running.slot == slot) {
            self.pay_until(ended.finished);
            self.running = None;
        }
    }

    fn preempts(&mut self, context: &Context, lanes: &[Lane], running: usize) -> bool {
        let now = context.now;
        let slot = lanes[running].app.index();
        if self.running.is_none_or(|running| running.slot != slot) {
            self.runs(now, &lanes[running]);
        }
        self.pay_until(now);
        let claim = self.claim(now, lanes, running);
        let best = self.best_waiting(now, lanes, Some(running));
        let yields =
            matches!(claim, Claim::Rests { .. }) || best.is_some_and(|(other, _)| other.preempts(claim));
        if yields {
            self.running = None;
        } else {
            self.payers[slot] = claim.payer();
        }
        yields
    }

    fn timeout(&self) -> Option<Time> {
        let Some(running) = &self.running else {
            return self.resumes;
        };
        let server = self.payers[running.slot].and_then(|payer| self.servers.get(payer));
        let exhausted = server.map(|server| running.paid_until + server.budget());
        // What cannot be taken back leaves nothing to decide.
        exhausted.into_iter().chain(self.resumes).min().filter(|_| running.interruptible)
    }

    fn choose(&mut self, context: &Context, lanes: &mut [Lane]) -> Option<usize> {
        let now = context.now;
        if context.in_flight == 0 {
            self.running = None;
        }
        let best = self.best_waiting(now, lanes, None);
        let follows = context.newest.filter(|_| self.preemptive);
        for index in 0..lanes.len() {
            let hold = match (self.claim(now, lanes, index), follows, best) {
                (Claim::Rests { until }, ..) => Some(Hold::NoBudget { until }),
                (_, Some(app), _) => Some(Hold::Turn { app }),
                (_, None, best) => best.map(|(_, index)| Hold::Behind { app: lanes[index].app }),
            };
            lanes[index].hold = hold.filter(|_| lanes[index].head.is_some());
        }
        let (claim, index) = best.filter(|_| follows.is_none())?;
        self.payers[lanes[index].app.index()] = claim.payer();
        if self.preemptive {
            self.runs(now, &lanes[index]);
        } else {
            // The next decision comes with a free slot.
            self.resumes = None;
        }
        Some(index)
    }
}
