//! What a configuration means for the apps that it lists, before a daemon runs with it.

use serde::Serialize;
use takt_core::contract::has_contract;
use takt_core::{AppParams, Priority};

use super::{AppSettings, Settings};
use crate::control::contract::{self, Timing};
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
}

impl Settings {
    /// The listed apps, most important first.
    pub fn review(&self) -> Vec<AppReview> {
        let mut listed: Vec<(&AppSettings, AppParams, u32)> =
            self.apps.iter().filter_map(|app| self.lowered(app)).collect();
        listed.sort_by_key(|(_, params, _)| std::cmp::Reverse(params.priority));
        let mut promised = self.share_params();
        promised.extend(listed.iter().map(|(_, params, _)| params).filter(|params| has_contract(params)));
        promised.sort_by_key(|params| std::cmp::Reverse(params.priority));
        let covered = contract::covered(promised.iter(), self);
        let last = covered.checked_sub(1).and_then(|at| promised.get(at)).map(|params| params.priority);
        let is_covered = |params: &AppParams| last.is_some_and(|last| params.priority >= last);
        let review = |(app, params, fps_mhz): &(&AppSettings, AppParams, u32)| AppReview {
            name: app.name.clone(),
            domain: app.domain.clone(),
            level: self.domains.named(&app.domain).map(|domain| domain.level).unwrap_or_default(),
            priority: params.priority.0 % BAND,
            contract: describe(app, params, *fps_mhz),
            covered: has_contract(params).then(|| is_covered(params)),
        };
        listed.iter().map(review).collect()
    }

    /// The parameters and the frame rate of a listed app.
    fn lowered<'a>(&self, app: &'a AppSettings) -> Option<(&'a AppSettings, AppParams, u32)> {
        let terms = app.terms.clone().complete(self);
        let (params, fps_mhz) = terms.lower(Priority(kept_priority(app, self)?), self).ok()?;
        Some((app, params, fps_mhz))
    }
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
    }
}
