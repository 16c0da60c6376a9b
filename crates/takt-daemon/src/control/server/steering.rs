//! Steering: a tool pauses or evicts an app, or asks what an order would do before it gives it.

use takt_audit::Event;
use takt_core::{AppId, Span};
use takt_os::clock;

use super::Server;
use super::verdict::{Outcome, Verdict};
use crate::control::ask::{Answer, Ask, WrittenTerms};
use crate::control::config::Settings;
use crate::control::evicted;
use crate::control::members::{Members, Refusal};
use crate::control::preview::{World, compare};
use crate::control::rights::Rule;
use crate::control::terms::Terms;
use crate::control::view::View;
use crate::observe::journal::{Entry, Who};
use crate::rt::queues::Order;

/// Terms that a tool gets for an app, and by which rule.
pub(super) struct Allowed {
    pub(super) app: AppId,
    pub(super) terms: Terms,
    pub(super) rule: Rule,
}

impl Server {
    /// Carries out an order about one app that is no change of terms, and records it.
    pub(super) fn steer(&mut self, index: usize, ask: &Ask) -> Answer {
        let tool = self.identity(index);
        let (asked, done) = match ask {
            Ask::Pause { app } => (format!("pause {}", app.escape_default()), self.pause(index, app)),
            Ask::Resume { app } => (format!("resume {}", app.escape_default()), self.resume(index, app)),
            Ask::Evict { app, for_s } => {
                let for_s = for_s.unwrap_or(evicted::DEFAULT_S);
                (format!("evict {} for_s={for_s}", app.escape_default()), self.evict(index, app, for_s))
            }
            Ask::Readmit { app } => (format!("readmit {}", app.escape_default()), self.readmit(index, app)),
            _ => (String::new(), Err("that is no such order".to_owned())),
        };
        let (outcome, rule, reason) = match done {
            Ok(()) => (Outcome::Granted, Rule::WithinRights, String::new()),
            Err(reason) => (Outcome::Refused, Rule::Malformed, reason),
        };
        let (app, event) = (None, Event::Set);
        self.decided(&Verdict { who: &tool, app, event, asked: &asked, outcome, rule, reason: &reason });
        if reason.is_empty() { self.apps(index) } else { Answer::refused(reason) }
    }

    /// The app that a tool means, of those that it may change.
    pub(super) fn meant(&mut self, index: usize, who: &str) -> Result<AppId, String> {
        let tool = self.identity(index);
        let domain = self.settings.domains.of(&tool);
        let view = if domain.rights.change { View::of(&tool, domain) } else { View::own(&tool, domain) };
        Ok(self.members.find(who, &view).map(|member| member.app)?)
    }

    fn pause(&mut self, index: usize, who: &str) -> Result<(), String> {
        let app = self.meant(index, who)?;
        if !self.members.set_paused(app, true, &self.current()) {
            return Err(format!("{who} is paused already"));
        }
        if self.members.get(app).is_some_and(|member| !member.set_aside) {
            self.order(Order::Pause { app });
        }
        self.steered(app, "paused");
        Ok(())
    }

    fn resume(&mut self, index: usize, who: &str) -> Result<(), String> {
        let (app, settings) = (self.meant(index, who)?, self.current());
        let was_paused = self.members.set_paused(app, false, &settings);
        let is_aside = self.members.get(app).is_some_and(|member| member.set_aside);
        if is_aside {
            self.excuse(index, app, was_paused, &settings)?;
        } else if !was_paused {
            return Err(format!("{who} is not paused"));
        } else if let Some(member) = self.members.get(app) {
            let params = member.params;
            self.order(Order::Resume { app, params });
        }
        self.steered(app, "resumed");
        Ok(())
    }

    /// Lets an app go on that stands still for a supervised one. Without the right to change others' apps, a tool
    /// can only take back its own pause.
    fn excuse(
        &mut self,
        index: usize,
        app: AppId,
        was_paused: bool,
        settings: &Settings,
    ) -> Result<(), String> {
        let tool = self.identity(index);
        if self.settings.domains.of(&tool).rights.change {
            self.members.excuse(app);
            self.set_aside(app, false, settings);
            return Ok(());
        }
        match was_paused {
            true => Ok(()),
            false => {
                Err("it stands still for other apps (takt list says why); a tool with the right to change \
                          others' apps can let it go on"
                    .to_owned())
            }
        }
    }

    fn evict(&mut self, index: usize, who: &str, for_s: u32) -> Result<(), String> {
        let app = self.meant(index, who)?;
        if !(1..=evicted::LONGEST_S).contains(&for_s) {
            return Err(format!("for_s = {for_s}: use 1 to {}", evicted::LONGEST_S));
        }
        let now = clock::now();
        let until = now + Span::from_ms(u64::from(for_s) * 1000);
        let tool = self.identity(index);
        let by_operator = self.settings.domains.of(&tool).rights.change;
        if let Some(member) = self.members.get(app) {
            self.evicted.add(now, (&member.name, member.origin()), until, by_operator);
        }
        self.steered(app, "evicted");
        self.members.leaves(app);
        self.order(Order::Leave { app });
        Ok(())
    }

    fn readmit(&mut self, index: usize, who: &str) -> Result<(), String> {
        let tool = self.identity(index);
        let others = self.settings.domains.of(&tool).rights.change;
        self.evicted.readmit(who, (!others).then_some(tool.uid), clock::now())
    }

    /// Tells people and apps of an order that is carried out.
    fn steered(&mut self, app: AppId, what: &'static str) {
        self.state_now();
        if let Some(member) = self.members.get(app) {
            self.journal.tell(&Entry::Steered { who: Who::of(member), what });
        }
    }

    /// Which of the terms that a tool wants for an app it gets: all, or without the right to change others'
    /// apps, what the app itself would get.
    pub(super) fn allowed_terms(
        &mut self,
        index: usize,
        who: &str,
        terms: &WrittenTerms,
    ) -> Result<Allowed, Refusal> {
        let tool = self.identity(index);
        let app = self.meant(index, who).map_err(Refusal::from)?;
        let terms = terms.checked().map_err(Refusal::from)?;
        if self.settings.domains.of(&tool).rights.change {
            return Ok(Allowed { app, terms, rule: Rule::WithinRights });
        }
        let (decision, granted) = self.members.allowed(app, terms, &self.current())?;
        if !decision.limits.is_empty() {
            return Err(Refusal { rule: decision.rule(), reason: decision.text(), again: None });
        }
        Ok(Allowed { app, terms: granted, rule: decision.rule() })
    }

    /// What an order would do to the contracts of all apps.
    pub(super) fn preview(&mut self, index: usize, order: &Ask) -> Answer {
        if let Some((_, reason)) = self.forbidden(index, order) {
            return Answer::preview_refused(reason);
        }
        let (settings, view) = (self.current(), self.view(index));
        let (mut members, mut after) = (self.members.clone(), settings.clone());
        let notes = match self.imagine(index, order, &mut members, &mut after) {
            Ok(notes) => notes,
            Err(reason) => return Answer::preview_refused(reason),
        };
        let (now, then) = (view.masked(self.members.clone()), view.masked(members));
        let mut preview = compare(
            &World { members: &now, settings: &settings },
            &World { members: &then, settings: &after },
        );
        preview.notes.extend(notes);
        Answer::Preview(preview)
    }

    /// Does to copies what an order would do; returns what else is to be said of it.
    fn imagine(
        &mut self,
        index: usize,
        order: &Ask,
        members: &mut Members,
        settings: &mut Settings,
    ) -> Result<Vec<String>, String> {
        match order {
            Ask::Set { app, terms } => {
                let allowed = self.allowed_terms(index, app, terms).map_err(|refusal| refusal.reason)?;
                members.change(allowed.app, allowed.terms, settings)?;
            }
            Ask::Policy { name } => {
                if !takt_policies::NAMES.contains(&name.as_str()) {
                    return Err(format!("no policy {name}; there are {}", takt_policies::NAMES.join(", ")));
                }
                settings.policy.clone_from(name);
                let apps: Vec<AppId> = members.iter().map(|member| member.app).collect();
                // One that cannot be lowered stays as it is, as when the policy really changes.
                apps.into_iter().for_each(|app| drop(members.change(app, Terms::default(), settings)));
                if !takt_policies::keeps_contracts(name) {
                    return Ok(vec![format!("Policy {name} keeps no contracts.")]);
                }
            }
            Ask::Adjust(limits) => {
                settings.core = settings.core.adjusted(limits.checked(self.adjustable)?);
            }
            Ask::Pause { app } | Ask::Resume { app } => {
                let paused = matches!(order, Ask::Pause { .. });
                let meant = self.meant(index, app)?;
                if !members.set_paused(meant, paused, settings) {
                    return Err(format!("{app} is {}paused already", if paused { "" } else { "not " }));
                }
                if paused {
                    return Ok(vec![format!(
                        "{app} stands still in its next GPU command until it is resumed."
                    )]);
                }
            }
            Ask::Evict { app, .. } => {
                let meant = self.meant(index, app)?;
                members.leaves(meant);
                let note = format!(
                    "{app} runs on unscheduled: while it uses the GPU, nothing can be guaranteed to others."
                );
                return Ok(vec![note]);
            }
            _ => return Err("there is nothing to preview in that".to_owned()),
        }
        Ok(Vec::new())
    }
}
