//! Applies another configuration, or other terms of an app, while the daemon runs.

use takt_audit::{Decision, Event};
use takt_core::{Adjustable, AppId, DisplayId, Refresh, Span};
use takt_ipc::message::{Hello, Message};
use takt_os::clock;

use super::Server;
use super::joining;
use super::verdict::{Outcome, Verdict};
use crate::control::config::{Client, Display, Settings};
use crate::control::identity::Identity;
use crate::control::members::{Member, Refusal};
use crate::control::terms::Terms;
use crate::control::vsync::{Follower, anchored};
use crate::observe::audit::AuditSettings;
use crate::observe::journal::{Entry, Who};
use crate::rt::queues::Order;

/// How long an app waits before it asks for other terms again: one app may not use up the orders to
/// the loop.
const RENEWAL_PAUSE: Span = Span::from_ms(20);
const TOO_SOON: &str = "it asks for other terms too often; 20 ms must pass in between";

impl Server {
    /// Applies the differences in `settings`, also to apps that are scheduled already; returns the
    /// changes in words. A value that a tool set stays, unless the file changed that value.
    pub fn apply(&mut self, settings: Settings) -> Vec<String> {
        let mut changes = Vec::new();
        let before = std::mem::replace(&mut self.settings, settings);
        if self.settings.core.gpu != before.core.gpu {
            self.settings.core.gpu = before.core.gpu;
            changes.push("gpu holds after a restart".to_owned());
        }
        self.keep_reported();
        self.renew_displays(&before, &mut changes);
        self.follow_reported();
        self.renew_core(&before, &mut changes);
        if self.settings.policy != before.policy {
            let name = self.settings.policy.clone();
            changes.push(format!("policy = {name}"));
            self.set_policy(&name);
        }
        if self.settings.admission != before.admission {
            changes.push("admission, for apps that join from now on".to_owned());
        }
        if self.settings.spin_us != before.spin_us {
            let what = format!("spin_us = {}, for apps that join from now on", self.settings.spin_us);
            changes.push(what);
        }
        if self.settings.loop_spin_us != before.loop_spin_us {
            changes.push(format!("loop_spin_us = {}", self.settings.loop_spin_us));
            self.order(Order::Spin(Span::from_us(self.settings.loop_spin_us.into())));
        }
        if self.settings.timegraph != before.timegraph {
            changes.push("timegraph".to_owned());
        }
        self.name_later(&before, &mut changes);
        if self.settings.outsiders != before.outsiders {
            changes.push("gpu.devices, gpu.beside or gpu.unseen".to_owned());
            self.watch_outsiders();
        }
        if self.settings.wake_us != before.wake_us {
            changes.push("wake_us".to_owned());
            self.limit_cpu_latency();
        }
        if self.settings.domains != before.domains || self.settings.apps != before.apps {
            self.recognise_again();
        }
        self.keep_counters();
        self.supervisor.watch(&self.settings.apps);
        self.renew_shares();
        self.renew_apps(&before, &mut changes);
        self.link();
        self.renew_audit(&before, &mut changes);
        self.journal.tell(&Entry::Reloaded { changes: &changes });
        self.audit_own(Event::Reloaded, Decision::Granted, &changes.join("; "));
        changes
    }

    /// Names the settings that hold after a restart.
    fn name_later(&self, before: &Settings, changes: &mut Vec<String>) {
        let timeout = |settings: &Settings| settings.core.completion_timeout;
        for (differs, what) in [
            (self.settings.processor != before.processor, "processor"),
            (self.settings.systemctl != before.systemctl, "systemctl"),
            (timeout(&self.settings) != timeout(before), "completion_timeout_ms"),
        ] {
            if differs {
                changes.push(format!("{what} holds after a restart"));
            }
        }
    }

    /// Applies other rules of the audit; the rest of it holds after a restart.
    fn renew_audit(&mut self, before: &Settings, changes: &mut Vec<String>) {
        self.audit.renew(&self.settings.audit.rules);
        if (AuditSettings { rules: Vec::new(), ..self.settings.audit.clone() })
            != (AuditSettings { rules: Vec::new(), ..before.audit.clone() })
        {
            changes.push("audit holds after a restart, but for its rules".to_owned());
        } else if self.settings.audit.rules != before.audit.rules {
            changes.push("audit rules".to_owned());
        }
    }

    /// Follows other displays, or the clock at other rates; if that fails, all displays stay.
    fn renew_displays(&mut self, before: &Settings, changes: &mut Vec<String>) {
        let same_source = self.settings.vsync == before.vsync;
        (self.settings.core.refresh, self.settings.core.more_displays) =
            (before.core.refresh, before.core.more_displays);
        if self.settings.displays == before.displays && same_source {
            return;
        }
        let rate = self.settings.displays[0].refresh;
        let followed = self
            .fits(before)
            .and_then(|()| Follower::start(&self.settings.vsync, rate).map_err(|error| error.to_string()));
        match followed {
            Ok(follower) => self.follower = follower,
            Err(why) => {
                // Tried again with the next file.
                self.settings.vsync = before.vsync.clone();
                self.settings.displays.clone_from(&before.displays);
                changes.push(format!("displays and vsync stay: {why}"));
                return;
            }
        }
        self.renew_grids(before, same_source, changes);
        if !same_source {
            changes.push("vsync".to_owned());
        }
    }

    /// Sends the core other grids. Phases count from the first display, so if that one changes, all do.
    fn renew_grids(&mut self, before: &Settings, same_source: bool, changes: &mut Vec<String>) {
        let (now, displays) = (clock::now(), self.settings.displays.clone());
        let rate = |display: &Display| (display.refresh.mhz(), display.phase);
        let same_first = same_source && rate(&displays[0]) == rate(&before.displays[0]);
        if !same_first {
            let grid = anchored(&displays[0].refresh, now);
            self.settings.core.refresh = grid;
            self.follow(grid);
        }
        if displays[0].refresh.mhz() != before.displays[0].refresh.mhz() {
            changes.push(format!("refresh_hz = {}", f64::from(displays[0].refresh.mhz()) / 1000.0));
        }
        let first = self.grid.start(self.grid.period_at(now));
        for (index, display) in displays.iter().enumerate().skip(1) {
            let old = before.displays.get(index);
            if same_first && old.map(rate) == Some(rate(display)) {
                continue;
            }
            let (grid, number) = (display.grid(first), u8::try_from(index).unwrap_or(u8::MAX));
            self.settings.core.more_displays[index - 1] = grid;
            self.order(Order::Refresh { display: DisplayId(number), grid });
            changes.push(format!("display {}", display.name));
        }
    }

    /// Whether all apps can keep their displays and frame rates.
    pub(super) fn fits(&self, before: &Settings) -> Result<(), String> {
        let settings = self.current();
        for member in self.members.iter() {
            let terms = self.renewed(member, before, &[]).unwrap_or_default();
            self.members
                .clone()
                .change(member.app, Terms { priority: None, ..terms }, &settings)
                .map_err(|error| format!("app {}: {error}; change that as well", member.name))?;
        }
        Ok(())
    }

    /// Sends the core the parameters that differ in the file.
    fn renew_core(&mut self, before: &Settings, changes: &mut Vec<String>) {
        let (new, old) = (self.settings.core.adjustable(), before.core.adjustable());
        changes.extend(differences(&old, &new));
        let now = self.adjustable;
        self.adjust(Adjustable {
            mpcg: if new.mpcg == old.mpcg { now.mpcg } else { new.mpcg },
            margins: if new.margins == old.margins { now.margins } else { new.margins },
            blocking: if new.blocking == old.blocking { now.blocking } else { new.blocking },
            stretch: if new.stretch == old.stretch { now.stretch } else { new.stretch },
            divisible: now.divisible,
        });
        // What the file says now counts, not what a tool said before.
        self.given.blocking &= self.settings.given == before.given;
        self.given.stretch &= self.settings.given == before.given;
        self.renew_limits();
    }

    /// Sends the core other parameters, if they differ.
    pub(super) fn adjust(&mut self, adjustable: Adjustable) {
        if adjustable != self.adjustable {
            self.adjustable = adjustable;
            self.order(Order::Adjust(adjustable));
        }
    }

    /// Gives apps the terms that the file now has for them.
    pub(super) fn renew_apps(&mut self, before: &Settings, changes: &mut Vec<String>) {
        if self.settings.max_slice != before.max_slice {
            changes.push(format!("max_slice_ms = {}", if_bounded(self.settings.max_slice, "0")));
        }
        let moved = self.members.regroup(&self.settings);
        self.count_again();
        let new = |member: &Member| Some((member.app, self.renewed(member, before, &moved)?));
        let mut open: Vec<(AppId, Terms)> = self.members.iter().filter_map(new).collect();
        // Apps that swap priorities block each other: a change that fails at first may work when
        // another app has moved.
        let mut parked = 0;
        while !open.is_empty() {
            let waiting = open.len();
            open.retain(|(app, terms)| match self.change(*app, terms.clone()) {
                Ok(()) => {
                    let name = self.members.get(*app).map_or("", |member| member.name.as_str());
                    changes.push(format!("app {name}"));
                    false
                }
                Err(_) => true,
            });
            if open.len() < waiting {
                continue;
            }
            let (app, terms) = open[parked % waiting].clone();
            let spare = self.members.get(app).and_then(|member| {
                let wanted = terms.priority.unwrap_or(0);
                self.members.unused_priority(&member.client(), wanted, &self.settings)
            });
            let aside = Terms { priority: spare, ..Terms::default() };
            parked += 1;
            if parked > waiting || self.change(app, aside).is_err() {
                let problem = |(app, terms): &(AppId, Terms)| {
                    let name = self.members.get(*app).map_or("", |member| member.name.as_str()).to_owned();
                    let reason = self.members.clone().change(*app, terms.clone(), &self.current()).err();
                    format!("app {name} stays: {}", reason.unwrap_or_default())
                };
                changes.extend(open.iter().map(problem));
                return;
            }
        }
    }

    /// The terms of an app that change, if any do; empty ones if its terms stay but mean something else to
    /// the core. Those in `moved` have another domain, or other rights.
    fn renewed(&self, member: &Member, before: &Settings, moved: &[AppId]) -> Option<Terms> {
        let settings = &self.settings;
        let section = settings.section(&member.client());
        let domain_before = before.domains.of(&member.identity);
        let section_before = before.section(&Client { domain: domain_before, ..member.client() });
        if section != section_before || moved.contains(&member.app) {
            return self.members.renewed(member, settings).ok();
        }
        let terms = member.asked.clone().under(section.map(|section| &section.terms));
        let renewed = Terms {
            max_slice: (settings.max_slice != before.max_slice && terms.max_slice.is_none())
                .then_some(settings.max_slice),
            ..Terms::default()
        };
        let others = settings.displays != before.displays || settings.timegraph != before.timegraph;
        (others || renewed != Terms::default()).then_some(renewed)
    }

    /// A scheduled app asks for other terms; terms that it may not have change nothing.
    pub(super) fn renew(&mut self, index: usize, app: AppId, hello: &Hello) {
        let now = clock::now();
        let last = self.sessions[index].renewed;
        let too_soon = last.is_some_and(|last| now.since(last) < RENEWAL_PAUSE);
        let asked = if too_soon { Err(TOO_SOON.to_owned()) } else { Terms::try_from(hello) };
        let who = self.identity(index);
        if let Some(slices) = hello.slices.filter(|_| !too_soon) {
            self.has_slices(app, slices);
        }
        let changed = match asked {
            // It only says which slices it has.
            Ok(asked) if hello.slices.is_some() && asked == Terms::default() => Ok(()),
            Ok(asked) => self.renew_terms(app, &who, asked),
            Err(reason) => Err(Refusal::from(reason)),
        };
        let message = match changed {
            Err(refusal) => {
                let Refusal { rule, reason, .. } = refusal;
                let (asked, outcome) = (joining::asked(hello), Outcome::Refused);
                let (app, event) = (Some(app), Event::Changed);
                self.decided(&Verdict {
                    who: &who,
                    app,
                    event,
                    asked: &asked,
                    outcome,
                    rule,
                    reason: &reason,
                });
                Message::Refused { reason, again_ms: None }
            }
            Ok(()) => {
                self.state_now();
                // A refusal costs the loop nothing, so it sets no pause.
                self.sessions[index].renewed = Some(now);
                self.welcome_message(app)
            }
        };
        let session = &mut self.sessions[index];
        session.closing |= session.connection.send(&message, &[]).is_err();
    }

    /// Gives an app the terms that it asks for, as far as it may have them.
    fn renew_terms(&mut self, app: AppId, who: &Identity, asked: Terms) -> Result<(), Refusal> {
        let (decision, terms) = self.members.allowed(app, asked.clone(), &self.current())?;
        self.change(app, terms)?;
        let name = self.members.get(app).map_or("", |member| member.name.as_str());
        let (text, reason) = (format!("change {name} {asked}"), decision.text());
        self.members.ask_again(app, asked);
        let outcome = if reason.is_empty() { Outcome::Granted } else { Outcome::Reduced };
        let (app, event, rule) = (Some(app), Event::Changed, decision.rule());
        self.decided(&Verdict { who, app, event, asked: &text, outcome, rule, reason: &reason });
        Ok(())
    }

    /// Changes an app's terms everywhere, or says why not.
    pub(super) fn change(&mut self, app: AppId, terms: Terms) -> Result<(), String> {
        let settings = self.current();
        let member = self.members.change(app, terms, &settings)?;
        let (params, max_slice) = (member.params, member.max_slice);
        let (standing, uncut) = (member.standing(), member.uncut);
        // Those that it may delay are told before it runs.
        self.state_now();
        self.order(Order::Change { app, params });
        self.order(Order::Limit { app, max_slice, standing, uncut });
        self.renew_limits();
        self.limit_cpu_latency();
        self.tell_changed(app);
        Ok(())
    }

    /// Uses this grid from now on.
    pub(super) fn follow(&mut self, grid: Refresh) {
        self.grid = grid;
        self.order(Order::Refresh { display: DisplayId::default(), grid });
        self.show_displays();
    }

    /// Takes over the grid that the display reports.
    pub(super) fn follow_display(&mut self) {
        match self.follower.as_ref().and_then(Follower::news) {
            None => {}
            Some(Ok(grid)) => {
                let (display, refresh_hz) =
                    (self.settings.displays[0].name.as_str(), f64::from(grid.mhz()) / 1000.0);
                self.journal.tell(&Entry::Display { display, refresh_hz });
                self.follow(grid);
            }
            Some(Err(error)) => {
                // The grid stays and runs on the clock.
                self.follower = None;
                self.journal.tell(&Entry::DisplayLost { reason: &error.to_string() });
            }
        }
    }

    /// Takes the core's verdict whether an app is protected.
    pub(super) fn judged(&mut self, app: AppId, protected: bool) {
        if self.members.judged(app, protected).is_some() {
            self.tell_changed(app);
        }
    }

    /// Logs an app's terms, with what is to be said of it now.
    fn tell_changed(&mut self, app: AppId) {
        self.state_quietly(app);
        if let Some(member) = self.members.get(app) {
            self.journal.tell(&Entry::Changed {
                who: Who::of(member),
                priority: member.priority(),
                fps: f64::from(member.fps_mhz) / 1000.0,
                admission: &member.admission(),
            });
        }
    }

    /// Limits how deeply processors sleep while an app with a frame rate is scheduled.
    pub(super) fn limit_cpu_latency(&mut self) {
        let limit = self.settings.wake_us.filter(|_| self.members.iter().any(|member| member.paced));
        // If that is denied, the event at the start said so.
        self.cpu_latency.limit_to(limit).unwrap_or_default();
    }
}

/// The differences, in the words of the configuration.
pub(super) fn differences(before: &Adjustable, after: &Adjustable) -> Vec<String> {
    let mut differences = Vec::new();
    if before.mpcg != after.mpcg {
        differences.push(format!("mpcg = {}", after.mpcg));
    }
    if before.blocking != after.blocking {
        differences.push(format!("max_blocking_ms = {}", if_bounded(after.blocking, "inf")));
    }
    if before.stretch != after.stretch {
        differences.push(format!("max_stretch_ms = {}", ms(after.stretch)));
    }
    if before.margins != after.margins {
        differences.push("margins".to_owned());
    }
    differences
}

fn if_bounded(span: Span, otherwise: &str) -> String {
    if span == Span::FOREVER { otherwise.to_owned() } else { ms(span) }
}

fn ms(span: Span) -> String {
    (span.as_ns() as f64 / 1e6).to_string()
}
