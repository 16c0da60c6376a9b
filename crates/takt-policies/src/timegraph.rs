//! `timegraph`: fixed priorities, one app on the GPU at a time, and budgets that cap it.
//!
//! * **Turns.** While the GPU is busy, all apps wait; when it has become idle, the most
//!   important app that may run goes on (*predictable response time*, [`Turns::Single`]). An app
//!   with [`Turns::Following`] (*high throughput*) may also follow its own groups on the busy GPU,
//!   unless a more important app could run.
//! * **Reserves.** An app that is served from a reserve may run while budget is left
//!   ([`Enforcement::Posterior`](takt_core::service::Enforcement)) or if the conservative prediction of
//!   its group is left (`Apriori`). Budgets are looked at between groups and never stop a running
//!   one; a reserve therefore implies single turns. See `account` for the budget and `reserves` for
//!   admission and sharing.
//! * **Assumptions.** The GPU executes in order and tells when a group has ended; groups are
//!   short, since the longest one is what the most important app may have to wait for.
//! * **Promises.** The most important app waits for one group of another app under single turns,
//!   and for as many as fit into the GPU's queue under following ones. From its n-th period on, a
//!   reserve has used no more than `(n + 1) · C` and one group.
//! * **Source.** Kato, Lakshmanan, Rajkumar, Ishikawa, "TimeGraph: GPU scheduling for real-time
//!   multi-tasking environments", USENIX ATC 2011, sections 3 to 5.
//! * **Cost.** One pass over the apps and one over the reserves; no allocation.

use crate::reserves::Reserves;
use takt_core::app::AppId;
use takt_core::config::Config;
use takt_core::event::Hold;
use takt_core::policy::{Context, Ended, Policy};
use takt_core::scheduler::{Head, Lane};
use takt_core::service::Turns;
use takt_core::time::{Span, Time};

/// Priorities, turns and reserves.
#[derive(Clone, Default, Debug)]
pub struct TimeGraph {
    reserves: Reserves,
    /// When a budget comes back that an app waits for, while the GPU idles for want of it.
    timeout: Option<Time>,
}

impl TimeGraph {
    /// With no apps yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Why the first waiting group of an app may not run even if the GPU is idle.
    fn lacks_budget(&mut self, app: AppId, head: Head) -> Option<Hold> {
        let account = self.reserves.of(app)?;
        if account.allows(head.conservative) {
            return None;
        }
        if head.conservative >= Span::FOREVER {
            return Some(Hold::Unbounded);
        }
        Some(Hold::NoBudget { until: account.await_budget(head.conservative) })
    }

    /// Whether the lane may go on although its own groups are on the GPU.
    fn may_follow(&mut self, context: &Context, lane: &Lane) -> bool {
        let alone = lane.in_flight as usize == context.in_flight;
        alone && lane.service.turns == Turns::Following && self.reserves.of(lane.app).is_none()
    }
}

impl Policy for TimeGraph {
    fn name(&self) -> &'static str {
        "timegraph"
    }

    fn prepare(&mut self, config: &Config) {
        self.reserves.prepare(config);
    }

    fn apps_changed(&mut self, now: Time, lanes: &[Lane]) {
        self.reserves.apps_changed(now, lanes);
        self.timeout = None;
    }

    fn ended(&mut self, _now: Time, ended: &Ended, lane: &Lane) {
        if let Some(account) = self.reserves.of(lane.app) {
            account.charge(ended.occupied, ended.finished);
        }
    }

    fn timeout(&self) -> Option<Time> {
        self.timeout
    }

    fn choose(&mut self, context: &Context, lanes: &mut [Lane]) -> Option<usize> {
        self.reserves.replenish(context.now);
        let mut ready = None;
        let mut replenished = Time::NEVER;
        for (index, lane) in lanes.iter_mut().enumerate() {
            let Some(head) = lane.head else { continue };
            lane.hold = self.lacks_budget(lane.app, head);
            match lane.hold {
                Some(Hold::NoBudget { until }) => replenished = replenished.min(until),
                Some(_) => {}
                None => ready = ready.or(Some(index)),
            }
        }
        let first = ready.map(|index| lanes[index]);
        let choice = ready
            .filter(|_| context.in_flight == 0 || first.is_some_and(|lane| self.may_follow(context, &lane)));
        // A busy GPU will tell when it is idle; until then no budget is of use.
        let sleeps = choice.is_none() && context.in_flight == 0 && replenished < Time::NEVER;
        self.timeout = sleeps.then_some(replenished);
        let wait = match (choice, first, context.newest) {
            (Some(_), Some(first), _) => Some(Hold::Behind { app: first.app }),
            (_, _, Some(app)) => Some(Hold::Turn { app }),
            _ => None,
        };
        for lane in lanes.iter_mut().filter(|lane| lane.head.is_some() && lane.hold.is_none()) {
            lane.hold = wait;
        }
        choice
    }
}
