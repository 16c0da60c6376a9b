//! One client that is scheduled.

use std::sync::Arc;

use takt_core::belief::Uncut;
use takt_core::contract::has_contract;
use takt_core::service::Reservation;
use takt_core::{AppId, AppParams, Span, Time};
use takt_ipc::Standing;
use takt_ipc::message::{Pacing, TimeSlices};

use super::families::Part;
use crate::control::config::Client;
use crate::control::contract::{self, Timing};
use crate::control::identity::Identity;
use crate::control::pacing::Pace;
use crate::control::quarantine::Origin;
use crate::control::rights::{BAND, Domain, Reserved, Rule};
use crate::control::statement::{self, Facts, GpuModel, Outsiders, Promise, Seen, Statement};
use crate::control::terms::Terms;

/// A client that is or will be scheduled.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Member {
    /// Its slot.
    pub(crate) app: AppId,
    pub(crate) name: String,
    pub(crate) identity: Identity,
    pub(crate) domain: Arc<Domain>,
    /// Whether the configuration lists its name for its domain.
    pub(crate) listed: bool,
    /// The rule that decided about its terms.
    pub(crate) rule: Rule,
    /// What it asked for and did not get, in words.
    pub(crate) limits: String,
    /// Its frame rate, in millihertz.
    pub(crate) fps_mhz: u32,
    /// Its parameters in the core.
    pub(crate) params: AppParams,
    pub(crate) timing: Timing,
    /// What says when it begins its frames, and what its client found to decide that.
    pub(crate) pace: Pace,
    pub(crate) pacing: Option<Pacing>,
    /// Whether it waits for itself, if it has a clock of its own: it is not held back after each frame.
    pub(crate) waits_itself: bool,
    /// The GPU interrupts its work, as its client says; `params` have whether it counts as such work.
    pub(crate) interrupted: bool,
    /// Time slices of its contexts on the GPU, as its client says.
    pub(crate) slices: Option<TimeSlices>,
    /// Longest group it may form, by its terms.
    pub(crate) max_slice: Span,
    /// Longest group it may form now; none if it was not told anything else than its terms.
    pub(crate) slice_now: Option<Span>,
    /// What becomes of its work that cannot be cut and fits nowhere.
    pub(crate) uncut: Uncut,
    /// Whether its contract is covered beside those of more important apps.
    pub(crate) protected: bool,
    /// Whether its deadlines are guaranteed, or why not.
    pub(crate) statement: Statement,
    /// Whether the audit says that it has a guarantee.
    pub(crate) promised: bool,
    /// The priority that it asked for, if another app has that.
    pub(crate) wanted_priority: Option<u32>,
    /// The GPU that it draws on, if it said so.
    pub(crate) gpu: Option<String>,
    /// Its renderer works on the CPU.
    pub(crate) on_cpu: bool,
    /// Name of the app that consumes what it produces; empty for none.
    pub(crate) feeds: String,
    /// Name of the app whose contract it shares, if it shares one.
    pub(crate) shares: String,
    /// The period of the server of another app that it runs on.
    pub(crate) served: Option<Span>,
    /// Whether it waits for its release after a swap: only with a frame rate of its own.
    pub(crate) paced: bool,
    /// The terms that it asked for itself.
    pub(crate) asked: Terms,
    /// What it is in its family, if it was started in one.
    pub(crate) family: Option<Part>,
    pub(crate) since: Time,
    /// A tool paused it.
    pub(crate) paused: bool,
    /// It stands still: until a supervised app draws again, or since its ends are not believed.
    pub(crate) set_aside: bool,
    /// It need not, for a tool said so.
    pub(crate) excused: bool,
    /// It stands still until then: its ends contradict those of a more important app.
    pub(crate) distrusted: Option<Time>,
    /// Its first frame that met its deadline: misses before that are those of its start.
    pub(crate) first_met: Option<u64>,
    /// It is about to leave: the scheduling loop removes it before another client gets its slot.
    pub(crate) leaving: bool,
}

impl Member {
    pub(crate) fn terms(&self) -> Terms {
        Terms {
            priority: Some(self.priority()),
            fps_mhz: Some(self.fps_mhz),
            etpf: Some(self.params.etpf),
            max_slice: Some(self.max_slice),
            paced: Some(self.paced),
            timing: Some(self.timing.clone()),
            pace: Some(self.pace),
            pacing: self.pacing,
            uncut: Some(self.uncut),
            gaps: Some(self.params.service.gaps),
            feeds: Some(self.feeds.clone()),
            shares: Some(self.shares.clone()),
        }
    }

    /// What decides which section of the configuration is for it.
    pub(crate) fn client(&self) -> Client<'_> {
        Client { name: &self.name, domain: &self.domain, who: &self.identity }
    }

    /// Its priority within the level of its domain.
    pub(crate) fn priority(&self) -> u32 {
        self.params.priority.0 % BAND
    }

    /// The time that it reserves.
    pub(crate) fn reserved(&self, config: &takt_core::Config) -> Reserved {
        contract::reserved(&self.params, config)
    }

    /// Its contract in a few words.
    pub(crate) fn contract(&self) -> String {
        let contract = contract::describe(&self.timing, &self.params, self.fps_mhz, self.paced);
        match (self.feeds.as_str(), self.shares.as_str()) {
            ("", "") if self.takes_part() => format!("{contract}, in the share of {}", self.domain.name),
            ("", "") => contract,
            ("", owner) if self.takes_part() => format!("shares {owner}"),
            ("", owner) => format!("shares {owner}, which is not there"),
            (feeds, _) if self.takes_part() => format!("{contract}, feeds {feeds}"),
            (feeds, _) => format!("{contract}, feeds {feeds}, which is not there"),
        }
    }

    /// Whether the app is there whose contract it takes part in.
    fn takes_part(&self) -> bool {
        let service = &self.params.service;
        service.feeds.is_some() || matches!(service.reservation, Reservation::Shared(_))
    }

    /// Whether it has a contract, of its own or with another app.
    fn is_promised(&self) -> bool {
        has_contract(&self.params) || self.takes_part()
    }

    /// Whether it has work that the GPU interrupts for others: it has no contract.
    pub(crate) fn is_divisible(&self) -> bool {
        self.params.service.divisible && !self.is_promised()
    }

    /// Whether its deadlines mean anything: those of its own frame rate, or of its server's jobs.
    pub(crate) fn is_judged(&self) -> bool {
        let has_clock = self.paced || self.params.clock.is_own();
        has_clock || self.params.server().is_some() || self.served.is_some()
    }

    pub(crate) fn standing(&self) -> Standing {
        let guaranteed = self.statement.is_guaranteed();
        let own = self.params.clock.is_own() && self.waits_itself;
        let contract = self.is_promised();
        Standing { paced: self.paced, own, contract, protected: self.protected, guaranteed }
    }

    /// Whether its deadlines are guaranteed, or why not, in words; with what it did not get.
    pub(crate) fn admission(&self) -> String {
        let (mut said, priority) = (self.statement.to_string(), self.priority());
        if let Some(wanted) = self.wanted_priority.filter(|wanted| *wanted != priority) {
            said = format!("{said} (priority {wanted} is taken, so it has {priority})");
        }
        if !self.limits.is_empty() {
            said = format!("{said}; {}", self.limits);
        }
        match self.distrusted {
            Some(_) if self.set_aside => said += "; it stands still, for its groups end later than it says",
            None if self.set_aside => said += "; it stands still until a supervised app draws again",
            _ => {}
        }
        said
    }

    /// Whether it is granted nothing.
    pub(crate) fn stands_still(&self) -> bool {
        self.paused || self.set_aside
    }

    /// What it was promised.
    pub(crate) fn promise(&self) -> Promise {
        promise(&self.params)
    }

    /// Its user, domain and executable.
    pub(crate) fn origin(&self) -> Origin {
        Origin::of(&self.identity, &self.domain)
    }
}

/// What an app with these parameters was promised. Jobs of a server with gaps are frames.
fn promise(params: &AppParams) -> Promise {
    let params = params.framed();
    match has_contract(&params) {
        false => Promise::Nothing,
        true if params.etpf == Span::ZERO => Promise::Server,
        true => Promise::Frames,
    }
}

/// What is said of an app of which nothing was seen yet.
pub(super) fn at_first(params: &AppParams, covered: bool) -> Statement {
    statement::decide(&Facts {
        promise: promise(params),
        covered,
        etpf: params.framed().etpf,
        job: None,
        on_cpu: false,
        gpu: None,
        model: &GpuModel::Given,
        outsiders: &Outsiders::default(),
        paused: false,
        lax_policy: None,
        shared_gaps: false,
        uncut: &[],
        seen: Seen::default(),
    })
}
