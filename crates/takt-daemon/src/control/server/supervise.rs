//! Supervises listed apps: says when one stops drawing, has its unit restarted, and has apps that matter less stand
//! still until it draws again.

use takt_audit::{Decision, Event};
use takt_core::{AppId, FrameDone, Time};
use takt_os::clock;

use super::Server;
use crate::control::config::Settings;
use crate::control::members::Member;
use crate::control::restarter::Restarted;
use crate::control::rights::Level;
use crate::control::supervision::Finding;
use crate::observe::journal::Entry;
use crate::rt::queues::Order;

impl Server {
    /// An app finished a frame.
    pub(super) fn drew(&mut self, at: Time, done: &FrameDone) {
        self.members.finished(at, done);
        let Some(member) = self.members.get(done.app).filter(|member| member.since <= at) else {
            return;
        };
        if let Some(back) = self.supervisor.drew(at, &member.client()) {
            self.react(&back);
        }
    }

    /// Looks whether a supervised app stopped, and what became of restarts.
    pub(super) fn supervise(&mut self) {
        let now = clock::now();
        // An app that stands still is silent because it must be.
        for member in self.members.iter().filter(|member| member.stands_still()) {
            self.supervisor.stands_still(now, &member.client());
        }
        for finding in self.supervisor.check(now) {
            self.react(&finding);
        }
        self.degrade(now);
        while let Some(Restarted { unit, error }) = self.restarter.result() {
            self.restarted(&unit, error.as_deref());
        }
    }

    /// Sets apps that matter less aside while a supervised app does not draw for which they are to make room, and
    /// lets them go on afterwards; and those whose ends are not believed. Looked at in each turn, since apps come, and
    /// files change, meanwhile.
    fn degrade(&mut self, now: Time) {
        let silent = self.supervisor.degraded().map(|app| (app.name.clone(), app.domain.clone()));
        self.members.believe(now);
        if silent.is_none() {
            self.members.all_draw();
        }
        let yields = |member: &Member| silent.is_some() && !member.excused && self.matters_less(member);
        let changes: Vec<(AppId, bool)> = self
            .members
            .iter()
            .map(|member| (member, member.distrusted.is_some() || yields(member)))
            .filter(|(member, aside)| member.set_aside != *aside)
            .map(|(member, aside)| (member.app, aside))
            .collect();
        let settings = (!changes.is_empty()).then(|| self.current());
        for (app, aside) in &changes {
            settings.iter().for_each(|settings| self.set_aside(*app, *aside, settings));
        }
        match (&silent, self.degraded.take()) {
            (Some((app, domain)), None) => {
                self.journal.tell(&Entry::Degraded { app, domain, set_aside: changes.len() });
            }
            (None, Some(_)) => {
                self.journal.tell(&Entry::Restored { go_on: changes.len() });
            }
            _ => {}
        }
        self.degraded = silent;
    }

    /// Whether an app makes room for a supervised one: it is best effort, or no domain of the file is its. One that
    /// is supervised itself does not, since it may be the one to wait for.
    fn matters_less(&self, member: &Member) -> bool {
        let is_supervised =
            || self.settings.section(&member.client()).is_some_and(|listed| listed.supervision.is_some());
        member.domain.level == Level::BestEffort && !is_supervised()
    }

    /// Sets an app aside, or lets it go on, unless a tool wants it to stand still.
    pub(super) fn set_aside(&mut self, app: AppId, aside: bool, settings: &Settings) {
        if !self.members.set_aside(app, aside, settings) {
            return;
        }
        let Some(member) = self.members.get(app).filter(|member| !member.paused) else { return };
        let params = member.params;
        self.order(if aside { Order::Pause { app } } else { Order::Resume { app, params } });
        self.state_now();
    }

    /// A unit was restarted, or not.
    fn restarted(&mut self, unit: &str, error: Option<&str>) {
        self.journal.tell(&Entry::Restarted { unit, error });
        let decision = if error.is_some() { Decision::Refused } else { Decision::Granted };
        let reason = error.map_or_else(|| unit.to_owned(), |error| format!("{unit}: {error}"));
        for app in self.settings.apps.iter().filter(|app| app.restarts(unit)) {
            self.audit.supervised(Event::Restarted, (&app.name, &app.domain), decision, reason.clone());
        }
    }

    fn react(&mut self, finding: &Finding) {
        match finding {
            Finding::Silent { app, domain, silence, restart, gave_up } => {
                let (for_s, unit) = (silence.as_ns() as f64 / 1e9, restart.as_deref());
                self.journal.tell(&Entry::Silent { app, domain, for_s, restart: unit, gave_up: *gave_up });
                let then = match (unit, gave_up) {
                    (Some(unit), _) => format!(", {unit} is restarted"),
                    (None, true) => ", it was restarted too often lately".to_owned(),
                    (None, false) => String::new(),
                };
                let reaction = self.settings.apps.iter().find(|listed| listed.name == *app);
                let supervision = reaction.and_then(|listed| listed.supervision.as_ref());
                let degrades = supervision.is_some_and(|supervision| supervision.reaction.degrades());
                let others = if degrades { ", apps that matter less stand still" } else { "" };
                let reason = format!("no frame for {for_s:.3} s{then}{others}");
                self.audit.supervised(Event::Silent, (app, domain), Decision::Noted, reason);
                if let Some(unit) = unit.filter(|unit| !self.restarter.order(unit)) {
                    self.restarted(unit, Some("too many units wait to be restarted"));
                }
            }
            Finding::Back { app, domain, silence } => {
                let after_s = silence.as_ns() as f64 / 1e9;
                self.journal.tell(&Entry::Back { app, domain, after_s });
                let reason = format!("no frame for {after_s:.3} s");
                self.audit.supervised(Event::Back, (app, domain), Decision::Noted, reason);
            }
        }
    }
}
