//! Supervises listed apps: says when one stops drawing, and has its unit restarted.

use takt_audit::{Decision, Event};
use takt_core::{FrameDone, Time};
use takt_os::clock;

use super::Server;
use crate::control::restarter::Restarted;
use crate::control::supervision::Finding;
use crate::observe::journal::Entry;

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
        // A paused app is silent because a tool wants that.
        for member in self.members.iter().filter(|member| member.paused) {
            self.supervisor.joined(now, &member.client());
        }
        for finding in self.supervisor.check(now) {
            self.react(&finding);
        }
        while let Some(Restarted { unit, error }) = self.restarter.result() {
            self.restarted(&unit, error.as_deref());
        }
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
                let reason = format!("no frame for {for_s:.3} s{then}");
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
