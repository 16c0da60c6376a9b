//! What happened: one record per decision.

use serde::{Deserialize, Serialize};

/// Most bytes of a text in a record; longer ones are cut.
pub const TEXT_MAX: usize = 512;

/// The kind of a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The daemon serves; the configuration's hash is in `asked`.
    Started,
    /// The daemon ends.
    Stopped,
    /// A client is scheduled as an app.
    Joined,
    /// A client was refused for another reason than capacity.
    Refused,
    /// A contract does not fit beside the others; the client was refused.
    OverCapacity,
    /// An app asked for other terms.
    Changed,
    /// An app left.
    Left,
    /// An app broke a rule, was evicted, and may not come back for a while.
    Quarantined,
    /// A tool changed the terms of an app.
    Set,
    /// Another policy decides.
    Policy,
    /// A tool changed limits of all apps.
    Adjusted,
    /// A tool asked for something that it may not do.
    Denied,
    /// The configuration was read again.
    Reloaded,
    /// A protected app missed deadlines.
    Late,
    /// A protected app stopped drawing.
    Stalled,
    /// A protected app that had stopped draws again.
    Resumed,
    /// A supervised app stopped drawing.
    Silent,
    /// A supervised app that had stopped draws again.
    Back,
    /// The unit of a supervised app was restarted, or could not be.
    Restarted,
    /// The ends of groups that an app says contradict those of others.
    EarlyEnds,
    /// The apps of a domain waited, and had less than its minimum share.
    ShareMissed,
    /// They have it again, or less work.
    ShareKept,
    /// An app lost its guarantee.
    Withdrawn,
    /// An app has a guarantee that it did not have.
    Returned,
    /// An invariant of the scheduler broke; apps run unscheduled.
    Broken,
    /// Records were lost: the queue or the disk was full.
    Lost,
    /// A client of a cockpit is served.
    Connected,
    /// A client of a cockpit broke a rule, and was disconnected.
    Cut,
    /// A client of a cockpit is gone.
    Closed,
    /// A window claims what it may not.
    Claim,
    /// A window is shown, or not any more.
    Window,
    /// A tool wanted something of a window.
    Order,
    /// The vehicle moves, or stands.
    Motion,
    /// A window was not seen in time.
    Overdue,
    /// A window moved before the driver for too long.
    Animation,
    /// A window may not have what an input device did, or a dialogue was left.
    Input,
    /// Input was not taken, or nothing was seen after it, in time.
    Response,
    /// An input device is read, or not any more.
    InputDevice,
    /// A display could not be composed.
    NotDrawn,
    /// A cockpit started a program.
    ProgramStarted,
    /// A program that a cockpit started has ended.
    ProgramEnded,
    /// A rule over the records fired.
    Alarm,
}

impl Event {
    /// All kinds.
    pub const ALL: [Self; 42] = [
        Self::Started,
        Self::Stopped,
        Self::Joined,
        Self::Refused,
        Self::OverCapacity,
        Self::Changed,
        Self::Left,
        Self::Quarantined,
        Self::Set,
        Self::Policy,
        Self::Adjusted,
        Self::Denied,
        Self::Reloaded,
        Self::Late,
        Self::Stalled,
        Self::Resumed,
        Self::Silent,
        Self::Back,
        Self::Restarted,
        Self::EarlyEnds,
        Self::ShareMissed,
        Self::ShareKept,
        Self::Withdrawn,
        Self::Returned,
        Self::Broken,
        Self::Lost,
        Self::Connected,
        Self::Cut,
        Self::Closed,
        Self::Claim,
        Self::Window,
        Self::Order,
        Self::Motion,
        Self::Overdue,
        Self::Animation,
        Self::Input,
        Self::Response,
        Self::InputDevice,
        Self::NotDrawn,
        Self::ProgramStarted,
        Self::ProgramEnded,
        Self::Alarm,
    ];

    /// As it is written in records and rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Stopped => "stopped",
            Self::Joined => "joined",
            Self::Refused => "refused",
            Self::OverCapacity => "over-capacity",
            Self::Changed => "changed",
            Self::Left => "left",
            Self::Quarantined => "quarantined",
            Self::Set => "set",
            Self::Policy => "policy",
            Self::Adjusted => "adjusted",
            Self::Denied => "denied",
            Self::Reloaded => "reloaded",
            Self::Late => "late",
            Self::Stalled => "stalled",
            Self::Resumed => "resumed",
            Self::Silent => "silent",
            Self::Back => "back",
            Self::Restarted => "restarted",
            Self::EarlyEnds => "early-ends",
            Self::ShareMissed => "share-missed",
            Self::ShareKept => "share-kept",
            Self::Withdrawn => "withdrawn",
            Self::Returned => "returned",
            Self::Broken => "broken",
            Self::Lost => "lost",
            Self::Connected => "connected",
            Self::Cut => "cut",
            Self::Closed => "closed",
            Self::Claim => "claim",
            Self::Window => "window",
            Self::Order => "order",
            Self::Motion => "motion",
            Self::Overdue => "overdue",
            Self::Animation => "animation",
            Self::Input => "input",
            Self::Response => "response",
            Self::InputDevice => "input-device",
            Self::NotDrawn => "not-drawn",
            Self::ProgramStarted => "program-started",
            Self::ProgramEnded => "program-ended",
            Self::Alarm => "alarm",
        }
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }
}

/// The decision.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Nothing: the record tells what happened.
    #[default]
    Noted,
    /// Everything was granted.
    Granted,
    /// Granted, but less than the request.
    Limited,
    /// Refused.
    Refused,
}

impl Decision {
    /// As it is written in records and rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Noted => "noted",
            Self::Granted => "granted",
            Self::Limited => "limited",
            Self::Refused => "refused",
        }
    }
}

/// The client or tool that a record is about, as the kernel knows it; empty if it is the daemon itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Subject {
    /// Its domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Its user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<u32>,
    /// Its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Its executable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exe: Option<String>,
    /// Name of the app, which the client chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Whether the configuration lists it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub listed: bool,
    /// Whether its contract is guaranteed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub protected: bool,
}

/// A record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// When, in microseconds since 1970.
    pub at_us: u64,
    /// What happened.
    pub event: Event,
    /// To which client.
    #[serde(flatten)]
    pub subject: Subject,
    /// The request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub asked: String,
    /// The decision.
    pub decision: Decision,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The rule that decided: a key of the configuration, a rule of rights, a rule over the audit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// How often: deadlines missed, records lost, or records of this kind that were not written one by one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub times: u64,
}

impl Record {
    /// A record without details.
    pub fn new(at_us: u64, event: Event) -> Self {
        let (asked, reason, rule) = (String::new(), String::new(), String::new());
        let (subject, decision) = (Subject::default(), Decision::Noted);
        Self { at_us, event, subject, asked, decision, reason, rule, times: 1 }
    }

    /// The same with each text cut to [`TEXT_MAX`], so that a line has a bound.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let subject = &mut self.subject;
        let optional = [&mut subject.domain, &mut subject.exe, &mut subject.app];
        let texts = [&mut self.asked, &mut self.reason, &mut self.rule];
        for text in optional.into_iter().flatten().chain(texts) {
            if text.len() > TEXT_MAX {
                text.truncate(text.floor_char_boundary(TEXT_MAX - 3));
                text.push_str("...");
            }
        }
        self
    }
}

fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_one(times: &u64) -> bool {
    *times == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_lines() {
        for event in Event::ALL {
            assert_eq!(serde_json::to_value(event).expect("JSON"), event.name());
            assert_eq!(Event::named(event.name()), Some(event));
        }
        assert_eq!(Event::named("opened"), None, "that one begins a file");
        for decision in [Decision::Noted, Decision::Granted, Decision::Limited, Decision::Refused] {
            assert_eq!(serde_json::to_value(decision).expect("JSON"), decision.name());
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let mut record = Record::new(0, Event::Joined);
        record.subject.exe = Some("é".repeat(5_000));
        record.reason = "short".to_owned();
        let record = record.bounded();
        let exe = record.subject.exe.as_deref().unwrap_or_default();
        assert!(exe.len() <= TEXT_MAX && exe.ends_with("é..."), "{exe}");
        assert_eq!(record.reason, "short");
    }
}
