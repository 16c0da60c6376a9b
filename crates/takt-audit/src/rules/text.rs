//! Rules as a configuration file has them.

use serde::{Deserialize, Serialize};

use super::{Condition, Per, Rule, Severity};
use crate::record::{Decision, Event};

/// Longest window.
const WINDOW_MAX_S: f64 = 86_400.0;
/// Most records that a condition counts.
const COUNT_MAX: u64 = 1_000;
/// Most conditions of a rule.
const CONDITIONS_MAX: usize = 8;

/// A rule as it is written.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleText {
    /// Its name.
    pub name: String,
    /// `info`, `warning` or `critical`. Default: `warning`.
    pub severity: Option<String>,
    /// What it counts separately: `all`, `user`, `domain`, `exe` or `app`. Default: `all`.
    pub per: Option<String>,
    /// The time in which all conditions must hold, in seconds.
    pub window_s: f64,
    /// Its conditions.
    pub when: Vec<ConditionText>,
}

/// A condition as it is written.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionText {
    /// Kinds of records.
    pub events: Vec<String>,
    /// How many. Default: 1.
    pub count: Option<u64>,
    /// `granted`, `limited`, `refused` or `noted`. Default: any.
    pub decision: Option<String>,
    /// Whether the app has a guarantee. Default: any.
    pub protected: Option<bool>,
    /// Whether the configuration lists the client. Default: any.
    pub listed: Option<bool>,
}

/// A value that a rule cannot have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key} = {value}: {remedy}")]
pub struct RuleMistake {
    /// The key.
    pub key: &'static str,
    /// The value.
    pub value: String,
    /// What to write instead.
    pub remedy: String,
}

fn mistake(key: &'static str, value: impl ToString, remedy: impl Into<String>) -> RuleMistake {
    RuleMistake { key, value: value.to_string(), remedy: remedy.into() }
}

impl RuleText {
    /// The rule, if it makes sense.
    pub fn check(&self) -> Result<Rule, RuleMistake> {
        if !(0.001..=WINDOW_MAX_S).contains(&self.window_s) {
            return Err(mistake("window_s", self.window_s, format!("use 0.001 to {WINDOW_MAX_S}")));
        }
        if self.when.is_empty() || self.when.len() > CONDITIONS_MAX {
            return Err(mistake("when", self.when.len(), format!("use 1 to {CONDITIONS_MAX} conditions")));
        }
        let severity = [Severity::Info, Severity::Warning, Severity::Critical];
        let per = [Per::All, Per::User, Per::Domain, Per::Exe, Per::App];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
        let window_us = (self.window_s * 1e6) as u64;
        Ok(Rule {
            name: self.name.clone(),
            severity: named("severity", self.severity.as_deref(), &severity, Severity::name)?
                .unwrap_or(Severity::Warning),
            per: named("per", self.per.as_deref(), &per, Per::name)?.unwrap_or(Per::All),
            window_us,
            when: self.when.iter().map(ConditionText::check).collect::<Result<_, _>>()?,
        })
    }
}

impl ConditionText {
    fn check(&self) -> Result<Condition, RuleMistake> {
        let kinds: Vec<Event> = Event::ALL.into_iter().filter(|event| *event != Event::Alarm).collect();
        let event = |name: &String| named("events", Some(name), &kinds, Event::name);
        let events = self.events.iter().filter_map(|name| event(name).transpose());
        let events: Vec<Event> = events.collect::<Result<_, _>>()?;
        if events.is_empty() {
            return Err(mistake("events", "[]", "name at least one kind of record"));
        }
        let count = self.count.unwrap_or(1);
        if !(1..=COUNT_MAX).contains(&count) {
            return Err(mistake("count", count, format!("use 1 to {COUNT_MAX}")));
        }
        let decisions = [Decision::Noted, Decision::Granted, Decision::Limited, Decision::Refused];
        let decision = named("decision", self.decision.as_deref(), &decisions, Decision::name)?;
        Ok(Condition { events, count, decision, protected: self.protected, listed: self.listed })
    }
}

/// The value of that name.
fn named<T: Copy>(
    key: &'static str,
    name: Option<&str>,
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
) -> Result<Option<T>, RuleMistake> {
    let Some(name) = name else {
        return Ok(None);
    };
    let found = all.iter().copied().find(|value| name_of(*value) == name);
    let names = || all.iter().map(|value| name_of(*value)).collect::<Vec<_>>().join(", ");
    found.map(Some).ok_or_else(|| mistake(key, name, format!("use one of {}", names())))
}

impl Per {
    /// As it is written in rules.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::User => "user",
            Self::Domain => "domain",
            Self::Exe => "exe",
            Self::App => "app",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> RuleText {
        let condition = ConditionText {
            events: vec!["refused".to_owned()],
            count: None,
            decision: None,
            protected: None,
            listed: None,
        };
        let (severity, per) = (None, None);
        RuleText { name: "a".to_owned(), severity, per, window_s: 1.0, when: vec![condition] }
    }

    fn problem(change: impl FnOnce(&mut RuleText)) -> String {
        let mut text = text();
        change(&mut text);
        text.check().expect_err("a mistake").to_string()
    }

    #[test]
    fn mistakes_name_key_value_and_remedy() {
        let rule = text().check().expect("fine");
        assert_eq!((rule.severity, rule.per, rule.window_us), (Severity::Warning, Per::All, 1_000_000));
        assert_eq!(problem(|rule| rule.window_s = 0.0), "window_s = 0: use 0.001 to 86400");
        assert_eq!(problem(|rule| rule.window_s = f64::NAN), "window_s = NaN: use 0.001 to 86400");
        assert_eq!(problem(|rule| rule.when.clear()), "when = 0: use 1 to 8 conditions");
        assert_eq!(
            problem(|rule| rule.per = Some("x".to_owned())),
            "per = x: use one of all, user, domain, exe, app"
        );
        assert_eq!(problem(|rule| rule.when[0].count = Some(0)), "count = 0: use 1 to 1000");
        assert_eq!(
            problem(|rule| rule.when[0].events.clear()),
            "events = []: name at least one kind of record"
        );
        let own = problem(|rule| rule.when[0].events[0] = "alarm".to_owned());
        assert!(own.starts_with("events = alarm: use one of started, "), "alarms would raise alarms: {own}");
    }
}
