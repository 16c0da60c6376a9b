//! Supervises listed apps: says when one stops drawing, and has its unit restarted.

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
            self.journal.tell(&Entry::Restarted { unit: &unit, error: error.as_deref() });
        }
    }

    fn react(&mut self, finding: &Finding) {
        match finding {
            Finding::Silent { app, domain, silence, restart, gave_up } => {
                let (for_s, unit) = (silence.as_ns() as f64 / 1e9, restart.as_deref());
                self.journal.tell(&Entry::Silent { app, domain, for_s, restart: unit, gave_up: *gave_up });
                if let Some(unit) = unit.filter(|unit| !self.restarter.order(unit)) {
                    let error = Some("too many units wait to be restarted");
                    self.journal.tell(&Entry::Restarted { unit, error });
                }
            }
            Finding::Back { app, domain, silence } => {
                let after_s = silence.as_ns() as f64 / 1e9;
                self.journal.tell(&Entry::Back { app, domain, after_s });
            }
        }
    }
}
