//! Rules over records: how often what may happen in which time before an alarm is raised.
//!
//! A rule has conditions: kinds of records and how many of them. It fires when all its conditions hold
//! within its window, for one user, domain, executable or app, or for all together. One condition is a
//! threshold or an accumulation, several are a combination. After an alarm it counts anew.
//!
//! The daemon runs the [`Engine`] as it decides; `takt audit scan` runs it over files.

mod defaults;
mod engine;
mod text;

use serde::Serialize;

use crate::record::{Decision, Event, Record, Subject};
pub use defaults::DEFAULTS;
pub use engine::Engine;
pub use text::{RuleMistake, RuleText};

/// How bad an alarm is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth a look.
    Info,
    /// An attack, or a mistake that costs other apps.
    Warning,
    /// A guarantee is lost or in danger.
    Critical,
}

impl Severity {
    /// As it is written in rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// What a rule counts separately.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Per {
    /// Nothing: all records together.
    All,
    /// Each user.
    User,
    /// Each domain.
    Domain,
    /// Each executable of a user.
    Exe,
    /// Each app.
    App,
}

/// Records that a rule counts, and how many it takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Condition {
    /// Their kinds.
    pub events: Vec<Event>,
    /// How many.
    pub count: u64,
    /// Only with this decision.
    pub decision: Option<Decision>,
    /// Only about apps with a guarantee, or only about those without.
    pub protected: Option<bool>,
    /// Only about clients that the configuration lists, or only about others.
    pub listed: Option<bool>,
}

impl Condition {
    fn counts(&self, record: &Record) -> bool {
        let Subject { protected, listed, .. } = record.subject;
        self.events.contains(&record.event)
            && self.decision.is_none_or(|decision| decision == record.decision)
            && self.protected.is_none_or(|wanted| wanted == protected)
            && self.listed.is_none_or(|wanted| wanted == listed)
    }
}

/// A checked rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Its name, which alarms carry.
    pub name: String,
    /// How bad it is.
    pub severity: Severity,
    /// What it counts separately.
    pub per: Per,
    /// The time in which all conditions must hold, in microseconds.
    pub window_us: u64,
    /// Its conditions.
    pub when: Vec<Condition>,
}

/// A rule fired.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Alarm {
    /// When: at the record that completed it, in microseconds since 1970.
    pub at_us: u64,
    /// Name of the rule.
    pub rule: String,
    /// How bad it is.
    pub severity: Severity,
    /// About whom, in words: `user 1000`.
    pub about: String,
    /// The count, in words: `20 refused in 10 s`.
    pub counted: String,
    /// The client of the record that completed it; empty if the rule counts all clients together.
    pub subject: Subject,
}

impl Alarm {
    /// The record of it.
    pub fn record(&self) -> Record {
        Record {
            subject: self.subject.clone(),
            asked: self.severity.name().to_owned(),
            reason: self.text(),
            rule: self.rule.clone(),
            ..Record::new(self.at_us, Event::Alarm)
        }
    }

    /// Whether its rule counts all clients together.
    pub fn is_about_all(&self) -> bool {
        self.subject == Subject::default()
    }

    /// What happened, in words.
    pub fn text(&self) -> String {
        format!("{}: {}", self.about, self.counted)
    }
}
