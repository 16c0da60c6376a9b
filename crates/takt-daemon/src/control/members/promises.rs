//! Whether contracts can be kept together: those of apps that are there, and those that the configuration
//! lists for apps that are not.

use takt_core::contract::has_contract;
use takt_core::{AppId, AppParams, Priority};

use super::admission::{Refusal, kept_priority};
use super::member::at_first;
use super::{Member, Members};
use crate::control::config::{Admission, AppSettings, Client, Settings};
use crate::control::contract;
use crate::control::rights::{Rule, ShareServer};

/// What an app can do whose contract does not fit.
const LESS: &str = "lower its etpf, runtime or frame rate";

/// An app that wants a contract.
pub(super) struct Candidate<'a> {
    pub(super) app: AppId,
    pub(super) client: Client<'a>,
    pub(super) params: &'a AppParams,
}

/// A contract that is kept or to be kept.
struct KeptContract {
    name: String,
    params: AppParams,
    listed: bool,
    absent: bool,
}

impl KeptContract {
    fn of(member: &Member) -> Self {
        let Member { name, params, listed, .. } = member;
        Self { name: name.clone(), params: *params, listed: *listed, absent: false }
    }

    fn share(server: ShareServer) -> Self {
        let name = format!("the minimum share of {}", server.domain);
        Self { name, params: server.params, listed: true, absent: true }
    }

    fn for_later(listed: &AppSettings, settings: &Settings) -> Option<Self> {
        let terms = listed.terms.clone().complete(settings);
        let (params, _) = terms.lower(Priority(kept_priority(listed, settings)?), settings).ok()?;
        Some(Self { name: listed.name.clone(), params, listed: true, absent: true })
    }
}

impl Members {
    /// Where the configuration refuses apps whose contract cannot be kept: whether that of an app can, and
    /// with it those of all listed apps, be they there or not.
    pub(super) fn check_promises(
        &self,
        candidate: &Candidate<'_>,
        settings: &Settings,
    ) -> Result<(), Refusal> {
        let params = candidate.params;
        if settings.admission != Admission::Refuse || !has_contract(params) {
            return Ok(());
        }
        let mut all = self.promises(candidate, settings);
        let before = covered(all.iter(), settings);
        let kept: Vec<String> = all
            .iter()
            .take(before)
            .filter(|promise| promise.listed)
            .map(|promise| promise.name.clone())
            .collect();
        let own = all.partition_point(|promise| promise.params.priority > params.priority);
        let name = candidate.client.name.to_owned();
        all.insert(own, KeptContract { name, params: *params, listed: false, absent: false });
        let after = covered(all.iter(), settings);
        let still = |name: &str| all[..after].iter().any(|promise| promise.listed && promise.name == name);
        if let Some(listed) = kept.iter().find(|name| !still(name)) {
            return Err(is_kept_for(listed));
        }
        if own < after {
            return Ok(());
        }
        // Without those that are not there, would it fit?
        let there = || all[..=own].iter().filter(|promise| !promise.absent);
        match all[..own].iter().find(|promise| promise.absent) {
            Some(listed) if covered(there(), settings) == there().count() => Err(is_kept_for(&listed.name)),
            _ => Err(Refusal::for_now(Rule::Admission, at_first(params, false).to_string())),
        }
    }

    /// The contracts of all others, most important first.
    fn promises(&self, candidate: &Candidate<'_>, settings: &Settings) -> Vec<KeptContract> {
        let there = self.staying().filter(|other| other.app != candidate.app).map(KeptContract::of);
        let absent = self.absent(settings).filter(|listed| !listed.is_for(&candidate.client));
        let absent = absent.filter_map(|listed| KeptContract::for_later(listed, settings));
        let shares = settings.share_servers().into_iter().map(KeptContract::share);
        let mut all: Vec<KeptContract> =
            there.chain(absent).chain(shares).filter(|promise| has_contract(&promise.params)).collect();
        all.sort_by_key(|promise| std::cmp::Reverse(promise.params.priority));
        all
    }
}

/// How many of these, most important first, are covered together.
fn covered<'a>(promises: impl Iterator<Item = &'a KeptContract>, settings: &Settings) -> usize {
    contract::covered(promises.map(|promise| &promise.params), settings)
}

fn is_kept_for(listed: &str) -> Refusal {
    let what = format!("the time that it asks for is kept for {listed}, which the configuration lists");
    Refusal::for_now(Rule::KeptForListed, format!("{what} (rule {}): {LESS}", Rule::KeptForListed))
}
