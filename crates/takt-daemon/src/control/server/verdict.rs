//! What was decided about requests of clients and tools: the one place through which all decisions go.

use takt_audit::Event;
use takt_core::AppId;

use super::Server;
use crate::control::identity::Identity;
use crate::control::rights::Rule;
use crate::observe::journal::Entry;

/// What became of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// It got what it asked for.
    Granted,
    /// It got a part.
    Reduced,
    /// It got nothing.
    Refused,
}

/// A decision about a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Verdict<'a> {
    /// Who asked.
    pub(super) who: &'a Identity,
    /// The app, if it is scheduled.
    pub(super) app: Option<AppId>,
    /// What happens if it is granted.
    pub(super) event: Event,
    /// What it asked for.
    pub(super) asked: &'a str,
    pub(super) outcome: Outcome,
    /// By which rule.
    pub(super) rule: Rule,
    /// The same in words; empty if it got what it asked for.
    pub(super) reason: &'a str,
}

impl Server {
    /// Records a decision.
    pub(super) fn decided(&mut self, verdict: &Verdict<'_>) {
        self.audit_verdict(verdict);
        let Verdict { who, asked, outcome, rule, reason, .. } = *verdict;
        let domain = self.settings.domains.of(who);
        let (domain, listed) = (domain.name.as_str(), !domain.unlisted);
        let Identity { pid, uid, .. } = *who;
        match outcome {
            // Joins and changes have lines of their own.
            Outcome::Granted => {}
            Outcome::Reduced => {
                self.journal.tell(&Entry::Reduced { pid, uid, domain, asked, rule, reason, listed });
            }
            Outcome::Refused => self.journal.tell(&Entry::Refused { pid, uid, domain, rule, reason, listed }),
        }
    }
}
