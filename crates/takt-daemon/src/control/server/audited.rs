//! Records decisions and events in the audit, and tells people of its alarms.

use takt_audit::{Decision, Event, Record, Subject};
use takt_os::clock;

use super::Server;
use super::verdict::{Outcome, Verdict};
use crate::control::ask::{Answer, Ask};
use crate::control::identity::Identity;
use crate::control::members::Member;
use crate::control::rights::{Domain, OWN, Rule};
use crate::control::statement::Reason;
use crate::control::user::Rank;
use crate::observe::audit::{Audit, AuditSettings, News};
use crate::observe::journal::Entry;

impl Server {
    /// Begins the audit, with a record of the daemon's start.
    pub(super) fn begin_audit(&mut self) {
        let settings = &self.settings.audit;
        let started = Audit::start(settings);
        self.audit = started.unwrap_or_else(|error| {
            let reason = format!("no thread that writes it: {error}");
            self.journal.tell(&Entry::AuditFailed { reason: &reason });
            let rules_alone = AuditSettings { folder: None, dlt: None, ..settings.clone() };
            Audit::start(&rules_alone).unwrap_or_default()
        });
        let asked = format!("policy={} config=sha256:{}", self.policy, self.settings.hash);
        self.audit.tell(Record { asked, ..Record::new(0, Event::Started) }, Rank::Own);
    }

    /// Looks after the audit in each turn.
    pub(super) fn look_after_audit(&mut self) {
        for (event, times, member) in self.audit.watch.look(clock::now(), &self.members) {
            let (subject, rank) = (subject(member), rank(&member.domain));
            self.audit.tell(Record { subject, times, ..Record::new(0, event) }, rank);
        }
        self.audit.tick();
        self.tell_news();
    }

    /// Writes the rest of the audit, and says where it ends.
    pub(super) fn end_audit(&mut self) {
        self.audit.close();
        self.tell_news();
    }

    fn tell_news(&mut self) {
        for news in self.audit.news() {
            self.journal.tell(&match &news {
                News::Alarm(alarm) => Entry::Alarm {
                    rule: &alarm.rule,
                    severity: alarm.severity.name(),
                    about: &alarm.about,
                    counted: &alarm.counted,
                    uid: alarm.subject.user,
                    listed: alarm.subject.listed,
                },
                News::Failed(reason) => Entry::AuditFailed { reason },
                News::Works => Entry::AuditWorks,
                News::Head(chain, head) => {
                    Entry::AuditHead { chain: chain.name(), seq: head.seq, hash: head.hash.to_string() }
                }
            });
        }
    }

    /// Records a decision about a client's request.
    pub(super) fn audit_verdict(&mut self, verdict: &Verdict<'_>) {
        let Verdict { who, app, asked, event, outcome, rule, reason } = *verdict;
        let domain = self.settings.domains.of(who);
        let member = app.and_then(|app| self.members.get(app));
        let subject = member.map_or_else(|| subject_of(who, domain), subject);
        let (event, decision) = match (outcome, rule) {
            (Outcome::Granted, _) => (event, Decision::Granted),
            (Outcome::Reduced, _) => (event, Decision::Limited),
            (Outcome::Refused, _) if matches!(event, Event::Set | Event::Denied) => {
                (event, Decision::Refused)
            }
            (Outcome::Refused, Rule::Admission | Rule::KeptForListed) => {
                (Event::OverCapacity, Decision::Refused)
            }
            (Outcome::Refused, _) => (Event::Refused, Decision::Refused),
        };
        let (asked, reason, rule) = (asked.to_owned(), reason.to_owned(), rule.name().to_owned());
        let record = Record { subject, asked, decision, reason, rule, ..Record::new(0, event) };
        self.audit.tell(record, rank(domain));
    }

    /// Records what a tool with the right to do so ordered.
    pub(super) fn audit_order(&mut self, index: usize, ask: &Ask, answer: &Answer) {
        let who = self.identity(index);
        let domain = self.settings.domains.of(&who);
        let (decision, rule, reason) = match answer {
            Answer::Refused(reason) => (Decision::Refused, Rule::Malformed, reason.clone()),
            _ => (Decision::Granted, Rule::WithinRights, String::new()),
        };
        let event = if matches!(ask, Ask::Policy { .. }) { Event::Policy } else { Event::Adjusted };
        let (subject, asked) = (subject_of(&who, domain), serde_json::to_string(ask).unwrap_or_default());
        let rule = rule.name().to_owned();
        let record = Record { subject, asked, decision, reason, rule, ..Record::new(0, event) };
        self.audit.tell(record, rank(domain));
    }

    /// Records what happened to a domain.
    pub(super) fn audit_domain(&mut self, event: Event, decision: Decision, name: &str, reason: &str) {
        let Some(domain) = self.settings.domains.named(name) else { return };
        let subject =
            Subject { domain: Some(name.to_owned()), listed: !domain.unlisted, ..Subject::default() };
        let (reason, rule) = (reason.to_owned(), Rule::ShareMin.name().to_owned());
        let record = Record { subject, decision, reason, rule, ..Record::new(0, event) };
        self.audit.tell(record, rank(domain));
    }

    /// Records an event of the daemon itself.
    pub(super) fn audit_own(&mut self, event: Event, decision: Decision, reason: &str) {
        let asked = match event {
            Event::Reloaded => format!("config=sha256:{}", self.settings.hash),
            _ => String::new(),
        };
        let reason = reason.to_owned();
        self.audit.tell(Record { asked, decision, reason, ..Record::new(0, event) }, Rank::Own);
    }
}

impl Audit {
    /// Records what happened to a member.
    pub(super) fn about(&mut self, event: Event, member: &Member, reason: &str) {
        let (subject, reason) = (subject(member), reason.to_owned());
        self.tell(Record { subject, reason, ..Record::new(0, event) }, rank(&member.domain));
    }

    /// Records what happened to the apps of a user in a domain.
    pub(super) fn about_user(&mut self, event: Event, uid: u32, domain: &Domain, reason: &str) {
        let name = Some(domain.name.clone());
        let subject =
            Subject { domain: name, user: Some(uid), listed: !domain.unlisted, ..Subject::default() };
        let reason = reason.to_owned();
        self.tell(Record { subject, reason, ..Record::new(0, event) }, rank(domain));
    }

    /// Records that a member broke a rule.
    pub(super) fn quarantined(&mut self, member: &Member, rule: &str, reason: &str) {
        let (subject, reason, rule) = (subject(member), reason.to_owned(), rule.to_owned());
        let record = Record { subject, reason, rule, ..Record::new(0, Event::Quarantined) };
        self.tell(record, rank(&member.domain));
    }

    /// Records whether a member has a guarantee from now on, and why not.
    pub(super) fn guarantee(&mut self, member: &Member) {
        let event = if member.promised { Event::Returned } else { Event::Withdrawn };
        let rule = member.statement.reason().map(Reason::name).unwrap_or_default().to_owned();
        let (subject, reason) = (subject(member), member.admission());
        let record = Record { subject, reason, rule, ..Record::new(0, event) };
        self.tell(record, rank(&member.domain));
    }

    /// Records what supervision noticed or did about a listed app; whose process it is may not be known any
    /// more.
    pub(super) fn supervised(
        &mut self,
        event: Event,
        about: (&str, &str),
        decision: Decision,
        reason: String,
    ) {
        let (app, domain) = about;
        let (app, domain) = (Some(app.to_owned()), Some(domain.to_owned()));
        let subject = Subject { app, domain, listed: true, ..Subject::default() };
        self.tell(Record { subject, decision, reason, ..Record::new(0, event) }, Rank::Listed);
    }
}

/// A member in a record.
fn subject(member: &Member) -> Subject {
    let Member { name, protected, domain, identity, .. } = member;
    Subject { app: Some(name.clone()), protected: *protected, ..subject_of(identity, domain) }
}

/// A client or tool in a record.
fn subject_of(who: &Identity, domain: &Domain) -> Subject {
    let exe = who.executable.as_ref().map(|found| found.path.to_string_lossy().into_owned());
    Subject {
        domain: Some(domain.name.clone()),
        user: Some(who.uid),
        pid: Some(who.pid),
        exe,
        listed: !domain.unlisted,
        ..Subject::default()
    }
}

/// How well the clients of a domain are known.
fn rank(domain: &Domain) -> Rank {
    match domain {
        domain if domain.unlisted => Rank::Other,
        domain if domain.name == OWN => Rank::Own,
        _ => Rank::Listed,
    }
}
