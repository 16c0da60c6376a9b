//! What windows claim to be, compared with the rules of their domain.

use std::fmt;

use takt_core::Time;

use super::{Action, Refusal, WindowId, Windows};
use crate::config::{Rule, Shell};

/// What a window claims to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Claims {
    /// A window of `xdg_wm_base`.
    Xdg {
        /// How it calls its app; empty if it does not say.
        app_id: String,
        /// Its title.
        title: String,
    },
    /// A window of `ivi_application`, with its number.
    Ivi(u32),
}

impl Claims {
    /// The shell that it is made with.
    pub fn shell(&self) -> Shell {
        match self {
            Self::Xdg { .. } => Shell::Xdg,
            Self::Ivi(_) => Shell::Ivi,
        }
    }

    /// Whether a rule is for such windows.
    fn fit(&self, rule: &Rule) -> bool {
        match self {
            Self::Ivi(id) => rule.ivi_id == Some(*id),
            Self::Xdg { app_id, title } => {
                rule.is_for(Shell::Xdg)
                    && rule.app_id.as_ref().is_none_or(|pattern| pattern.fits(app_id))
                    && rule.title.as_ref().is_none_or(|pattern| pattern.fits(title))
            }
        }
    }
}

impl fmt::Display for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Xdg { app_id, title } if title.is_empty() => write!(f, "app_id {app_id:?}"),
            Self::Xdg { app_id, title } => write!(f, "app_id {app_id:?}, title {title:?}"),
            Self::Ivi(id) => write!(f, "ivi_id {id}"),
        }
    }
}

impl Windows {
    /// Finds the rule that a window is shown by.
    pub(super) fn choose(&mut self, now: Time, id: WindowId) {
        let Some(window) = self.windows.get(&id) else {
            return;
        };
        let (client, domain, before) = (window.client, window.domain, window.rule);
        let claims = window.claims.clone();
        let found = self.rule_for(id, domain, &claims);
        let rule = found.as_ref().ok().copied();
        let full = found.as_ref().err().and_then(|refusal| refusal.full);
        if let Err(refusal) = found {
            self.refuse(client, domain, &claims, refusal);
        }
        if let Some(window) = self.windows.get_mut(&id) {
            (window.rule, window.full) = (rule, full);
        }
        match rule.map(|rule| &self.config.rules[rule]) {
            Some(found) if before != rule => {
                let size = (!found.own_size).then_some(found.area.size);
                self.act(Action::Configure(id, size));
            }
            // A window that is never shown gets an answer all the same, lest it wait for one.
            None => self.act(Action::Configure(id, None)),
            Some(_) => {}
        }
        self.arrange(now);
    }

    /// Windows that came when their rule had as many as it may get the places of those that are gone: a program
    /// that was started again may be heard of before the end of the one before.
    pub(super) fn fill(&mut self, now: Time) {
        let has_place = |rule: usize| {
            let there = self.windows.values().filter(|window| window.rule == Some(rule)).count();
            there < self.config.rules[rule].instances_max
        };
        let waiting = self.windows.iter().filter(|(_, window)| window.full.is_some_and(has_place));
        let mut waiting: Vec<(u64, WindowId)> = waiting.map(|(id, window)| (window.arrival, *id)).collect();
        waiting.sort_unstable();
        for (_, id) in waiting {
            let window = &self.windows[&id];
            if self.rule_for(id, window.domain, &window.claims).is_ok() {
                self.choose(now, id);
            }
        }
    }

    fn rule_for(&self, id: WindowId, domain: usize, claims: &Claims) -> Result<usize, Refusal> {
        let rules = || self.config.rules.iter().enumerate().filter(|(_, rule)| claims.fit(rule));
        let own = rules().find(|(_, rule)| rule.domain == domain);
        let asked = claims.to_string();
        let Some((index, rule)) = own else {
            let refusal = match rules().next() {
                Some((_, rule)) => {
                    let owner = &self.config.domains[rule.domain].name;
                    let reason = format!("window {:?} belongs to domain {owner:?}", rule.name);
                    Refusal { asked, reason, rule: "claim-of-another-domain", full: None }
                }
                None => {
                    let reason = "no rule of its domain fits".to_owned();
                    Refusal { asked, reason, rule: "no-rule", full: None }
                }
            };
            return Err(refusal);
        };
        let others = self.windows.iter().filter(|(other, _)| **other != id);
        let same = others.filter(|(_, window)| window.rule == Some(index)).count();
        if same >= rule.instances_max {
            let reason = format!("window {:?} is there {same} times already", rule.name);
            return Err(Refusal { asked, reason, rule: "instances-max", full: Some(index) });
        }
        Ok(index)
    }
}
