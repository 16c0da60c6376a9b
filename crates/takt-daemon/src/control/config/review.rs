//! What a configuration means for the apps that it lists, before a daemon runs with it.

use serde::Serialize;
use takt_core::contract::has_contract;
use takt_core::{AppParams, Priority, Span};

use super::{AppSettings, Settings};
use crate::control::contract::{self, Timing};
use crate::control::coverage::{self, Contract, Lack};
use crate::control::members::kept_priority;
use crate::control::rights::{BAND, Level};

/// A listed app.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AppReview {
    /// Its name.
    pub name: String,
    /// The name of its domain.
    pub domain: String,
    /// The level of that.
    pub level: Level,
    /// Importance within the level.
    pub priority: u32,
    /// Its contract, in a few words.
    pub contract: String,
    /// Whether that can be kept beside the contracts of all more important listed apps; none if it has none.
    pub covered: Option<bool>,
    /// Why not; none if it can.
    pub why_not: Option<String>,
    /// GPU time that is missing for it, in microseconds, where that is known.
    pub missing_us: Option<f64>,
}

/// A listed app in the terms of the core, with its frame rate.
type Listed<'a> = (&'a AppSettings, AppParams, u32);

impl Settings {
    /// The listed apps, most important first.
    pub fn review(&self) -> Vec<AppReview> {
        let mut listed: Vec<Listed<'_>> = self.apps.iter().filter_map(|app| self.lowered(app)).collect();
        listed.sort_by_key(|(_, params, _)| std::cmp::Reverse(params.priority));
        let mut lacks = self.lacks(&listed);
        let review = |(index, (app, params, fps_mhz)): (usize, &Listed<'_>)| {
            let lack = has_contract(params).then(|| lacks[index].take());
            AppReview {
                name: app.name.clone(),
                domain: app.domain.clone(),
                level: self.domains.named(&app.domain).map(|domain| domain.level).unwrap_or_default(),
                priority: params.priority.0 % BAND,
                contract: describe(app, params, *fps_mhz),
                covered: lack.as_ref().map(Option::is_none),
                missing_us: lack.as_ref().and_then(|lack| Some(us(lack.as_ref()?.missing?))),
                why_not: lack.flatten().map(|lack| lack.why),
            }
        };
        listed.iter().enumerate().map(review).collect()
    }

    /// Why the contract of each listed app does not hold beside those of more important ones and shares of domains.
    fn lacks(&self, listed: &[Listed<'_>]) -> Vec<Option<Lack>> {
        let shares = self.share_params();
        let kept = shares
            .iter()
            .map(|params| (None, Contract { name: "a share of a domain", params: *params, shared: false }));
        let apps = listed.iter().enumerate().filter(|(_, (_, params, _))| has_contract(params));
        let apps = apps.map(|(index, (app, params, _))| {
            (Some(index), Contract { name: &app.name, params: *params, shared: self.is_shared(app) })
        });
        let mut promised: Vec<(Option<usize>, Contract<'_>)> = kept.chain(apps).collect();
        promised.sort_by_key(|(_, contract)| std::cmp::Reverse(contract.params.priority));
        let contracts: Vec<Contract<'_>> = promised.iter().map(|(_, contract)| *contract).collect();
        let mut lacks: Vec<Option<Lack>> = listed.iter().map(|_| None).collect();
        for ((index, _), lack) in promised.iter().zip(coverage::lacks(&contracts, &self.core)) {
            if let Some(index) = index {
                lacks[*index] = lack;
            }
        }
        lacks
    }

    /// Whether a listed app shares the contract of that one.
    fn is_shared(&self, owner: &AppSettings) -> bool {
        let shares = |app: &AppSettings| app.terms.shares.as_deref() == Some(owner.name.as_str());
        self.apps.iter().any(|app| app.domain == owner.domain && shares(app))
    }

    /// The parameters and the frame rate of a listed app.
    fn lowered<'a>(&self, app: &'a AppSettings) -> Option<Listed<'a>> {
        let terms = app.terms.clone().complete(self);
        let (params, fps_mhz) = terms.lower(Priority(kept_priority(app, self)?), self).ok()?;
        Some((app, params, fps_mhz))
    }
}

fn us(span: Span) -> f64 {
    span.as_ns() as f64 / 1000.0
}

fn describe(app: &AppSettings, params: &AppParams, fps_mhz: u32) -> String {
    let timing: Timing = app.terms.timing.clone().unwrap_or_default();
    contract::describe(&timing, params, fps_mhz, app.terms.paced.unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_contracts_are_judged_together() {
        let text = "[[domain]]\nname='cluster'\nuser=0\nlevel='safety-critical'\n\
            [[app]]\nname='game'\npriority=90\nfps=60\netpf_ms=9\n\
            [[app]]\nname='dial'\ndomain='cluster'\npriority=1\nfps=60\netpf_ms=9\n\
            [[app]]\nname='menu'\npriority=5";
        let review = Settings::parse(text).expect("fine").review();
        let found: Vec<(&str, Option<bool>)> =
            review.iter().map(|app| (app.name.as_str(), app.covered)).collect();
        assert_eq!(found, [("dial", Some(true)), ("game", Some(false)), ("menu", None)]);
        assert_eq!((review[0].priority, review[0].level), (1, Level::SafetyCritical));
        assert_eq!(review[0].contract, "60 fps, 9.0 ms");
        let needs = "needs 1334 us less per period: all down to it claim 108.0 % of the GPU";
        assert_eq!(review[1].why_not.as_deref(), Some(needs));
        let missing_us = review[1].missing_us.expect("it is known");
        assert!((1333.0..1334.0).contains(&missing_us), "{missing_us}");
        assert_eq!((&review[0].why_not, review[0].missing_us), (&None, None));
    }

    #[test]
    fn nothing_is_promised_to_frames_with_gaps_that_are_shared() {
        let text = |shares: &str| {
            format!(
                "[[app]]\nname='game'\npriority=9\nfps=60\netpf_ms=4\ngaps=1\ngap_ms=0.5\n\
                 [[app]]\nname='worker'\npriority=5\nshares='{shares}'"
            )
        };
        let review = |shares| Settings::parse(&text(shares)).expect("fine").review();
        assert_eq!(review("other")[0].covered, Some(true));
        let shared = review("game");
        assert_eq!(
            (shared[0].covered, shared[0].why_not.as_deref()),
            (Some(false), Some(coverage::SHARED_GAPS))
        );
        assert_eq!((shared[1].covered, &shared[1].why_not), (None, &None));
    }
}
