//! The daemon's log of events, one line each, for people or for machines.
//!
//! A thread of its own writes. The lines per second that clients cause are bounded: each user has some
//! of each kind, and those beyond become one line with their number. Lines of the daemon itself have no
//! such bound.

mod folds;
mod writer;

use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::Value;
use takt_core::{Action, AppId};
use takt_trace::{Record, visible};

use crate::control::members::{Member, Members};
use folds::{Folds, Rank};
use writer::Writer;

/// The format of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// Time, event, then `key=value`.
    #[default]
    Text,
    /// A JSON object.
    Json,
}

/// An event.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Entry<'a> {
    /// The daemon serves.
    Serving {
        /// Path of the control socket.
        socket: &'a str,
        /// Name of the policy.
        policy: &'a str,
        /// Refresh rate.
        refresh_hz: f64,
        /// Privileges that the system denied: grants may be late on a busy machine.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        without: Vec<String>,
    },
    /// An app is scheduled.
    Joined {
        /// Which app.
        #[serde(flatten)]
        who: Who<'a>,
        /// Importance.
        priority: u32,
        /// Frames per second.
        fps: f64,
        /// Whether its deadlines are guaranteed, or why not.
        admission: &'a str,
    },
    /// An app has other terms.
    Changed {
        /// Which app.
        #[serde(flatten)]
        who: Who<'a>,
        /// Importance.
        priority: u32,
        /// Frames per second.
        fps: f64,
        /// Whether its deadlines are guaranteed, or why not.
        admission: &'a str,
    },
    /// An app left.
    Left {
        /// Which app.
        #[serde(flatten)]
        who: Who<'a>,
    },
    /// An app broke a rule and was evicted.
    Fault {
        /// Which app.
        #[serde(flatten)]
        who: Who<'a>,
        /// Which rule.
        fault: &'a str,
        /// How long it may not come back.
        pause_s: u64,
    },
    /// A connection was refused.
    Refused {
        /// Its process.
        pid: u32,
        /// Its user.
        uid: u32,
        /// Why.
        reason: &'a str,
    },
    /// Deadlines missed in the last second.
    Missed {
        /// Which app.
        #[serde(flatten)]
        who: Who<'a>,
        /// How many.
        deadlines: u64,
    },
    /// Another policy decides.
    Policy {
        /// The policy before.
        before: &'a str,
        /// The policy from now on.
        after: &'a str,
    },
    /// A tool changed limits of all apps.
    Adjusted {
        /// The changes, in words.
        changes: &'a [String],
    },
    /// The display reported its refreshes, and scheduling follows them.
    Display {
        /// Its rate.
        refresh_hz: f64,
    },
    /// The display reports no more; scheduling goes on by the clock.
    DisplayLost {
        /// Why.
        reason: &'a str,
    },
    /// The configuration was read again.
    Reloaded {
        /// The changes, in words; none if nothing differs.
        changes: &'a [String],
    },
    /// The configuration was read again and is wrong; the old one holds.
    Unreadable {
        /// The mistake.
        reason: &'a str,
    },
    /// More lines of the same kind about the same user in one second.
    Repeated {
        /// Their kind.
        kind: &'a str,
        /// The user; none if there were too many users.
        #[serde(skip_serializing_if = "Option::is_none")]
        uid: Option<u32>,
        /// How many.
        times: u64,
    },
    /// Lines that were left out, because the log takes them too slowly.
    Omitted {
        /// How many.
        lines: u64,
    },
    /// An invariant of the core broke: every app runs unscheduled.
    Broken {
        /// Which invariant.
        what: String,
        /// The app whose state broke it, if it is one app's.
        #[serde(skip_serializing_if = "Option::is_none")]
        app: Option<&'a str>,
    },
    /// The daemon ends.
    Stopping {
        /// Why.
        reason: &'a str,
    },
}

/// An app in a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Who<'a> {
    app: &'a str,
    slot: u32,
    pid: u32,
    uid: u32,
    /// Whether the configuration lists it.
    #[serde(skip)]
    listed: bool,
}

impl<'a> Who<'a> {
    /// That member.
    pub(crate) fn of(member: &'a Member) -> Self {
        let Member { app, name, pid, uid, listed, .. } = member;
        Self { app: name, slot: app.0, pid: *pid, uid: *uid, listed: *listed }
    }
}

impl Entry<'_> {
    /// Kind, user, and whether the app is listed, if this is about a client.
    fn about(&self) -> Option<(&'static str, u32, bool)> {
        match self {
            Self::Joined { who, .. } => Some(("joined", who.uid, who.listed)),
            Self::Changed { who, .. } => Some(("changed", who.uid, who.listed)),
            Self::Left { who } => Some(("left", who.uid, who.listed)),
            Self::Fault { who, .. } => Some(("fault", who.uid, who.listed)),
            Self::Missed { who, .. } => Some(("missed", who.uid, who.listed)),
            Self::Refused { uid, .. } => Some(("refused", *uid, false)),
            _ => None,
        }
    }
}

/// Writes events.
pub struct Journal {
    writer: Option<Writer>,
    format: Format,
    own_uid: u32,
    /// The second, since 1970, to which the counts belong.
    second: u64,
    folds: Folds,
    /// Lines that found no room since the last one that did.
    omitted: u64,
    /// The second of the last sum.
    summed: u64,
    /// Deadlines missed in this second, by slot.
    missed: Vec<u64>,
}

impl Journal {
    /// Writes to `out`, on a thread of its own.
    pub fn new(out: Box<dyn Write + Send>, format: Format) -> std::io::Result<Self> {
        Ok(Self { writer: Some(Writer::start(out)?), format, ..Self::default() })
    }

    /// Tells something, unless the user whom it is about has had its lines of this second.
    pub fn tell(&mut self, entry: &Entry<'_>) {
        self.tell_at(since_1970(), entry);
    }

    fn tell_at(&mut self, now: Duration, entry: &Entry<'_>) {
        self.begin(now);
        let about = entry.about();
        let admitted = about.is_none_or(|(kind, uid, listed)| {
            let rank = match uid {
                uid if uid == 0 || uid == self.own_uid => Rank::Own,
                _ if listed => Rank::Listed,
                _ => Rank::Other,
            };
            self.folds.admit(uid, rank, kind)
        });
        if admitted {
            self.write(now, entry, about.is_none());
        }
    }

    /// Tells what the second before had more than its lines, if this is a new one.
    fn begin(&mut self, now: Duration) {
        if now.as_secs() == self.second {
            return;
        }
        self.second = now.as_secs();
        for fold in self.folds.take() {
            let entry = Entry::Repeated { kind: &fold.kind, uid: fold.uid, times: fold.times() };
            self.write(now, &entry, false);
        }
    }

    fn write(&mut self, now: Duration, entry: &Entry<'_>, is_own: bool) {
        let Some(writer) = &self.writer else {
            return;
        };
        if self.omitted > 0 {
            let omitted = Entry::Omitted { lines: self.omitted };
            if writer.put(line(now, &omitted, self.format), is_own) {
                self.omitted = 0;
            }
        }
        if self.omitted > 0 || !writer.put(line(now, entry, self.format), is_own) {
            self.omitted += 1;
        }
    }

    /// Counts missed deadlines.
    pub(crate) fn watch(&mut self, record: &Record) {
        if let Record::Out(Action::Missed { app, count, .. }) = record {
            if self.missed.len() <= app.index() {
                self.missed.resize(app.index() + 1, 0);
            }
            self.missed[app.index()] += count;
        }
    }

    /// Writes the counts, once a second.
    pub(crate) fn sum_up(&mut self, members: &Members) {
        let now = since_1970();
        self.begin(now);
        if now.as_secs() == self.summed {
            return;
        }
        self.summed = now.as_secs();
        for (slot, deadlines) in std::mem::take(&mut self.missed).into_iter().enumerate() {
            let member = u32::try_from(slot).ok().and_then(|slot| members.get(AppId(slot)));
            // Deadlines of a rate that the app did not ask for mean nothing.
            if let Some(member) = member.filter(|member| deadlines > 0 && member.is_judged()) {
                self.tell_at(now, &Entry::Missed { who: Who::of(member), deadlines });
            }
        }
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("format", &self.format).finish_non_exhaustive()
    }
}

impl Default for Journal {
    /// Writes nothing.
    fn default() -> Self {
        Self {
            writer: None,
            format: Format::Text,
            own_uid: rustix::process::geteuid().as_raw(),
            second: 0,
            folds: Folds::default(),
            omitted: 0,
            summed: 0,
            missed: Vec::new(),
        }
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn line(now: Duration, entry: &Entry<'_>, format: Format) -> String {
    let mut value = serde_json::to_value(entry).unwrap_or_default();
    let time = utc(now);
    match (format, value.as_object_mut()) {
        (Format::Json, Some(fields)) => {
            fields.insert("time".to_owned(), time.into());
            visible::json(&value.to_string()).into_owned() + "\n"
        }
        (Format::Text, Some(fields)) => {
            let event = fields.remove("event").unwrap_or_default();
            let mut line = format!("{time} {}", event.as_str().unwrap_or_default());
            for (key, value) in fields {
                write!(line, " {key}={}", plain(value)).unwrap_or_default();
            }
            line + "\n"
        }
        (_, None) => String::new(),
    }
}

/// Words as they are, everything else as JSON, which has no line ends.
fn plain(value: &Value) -> String {
    let is_word =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && c != '"' && c != '=');
    match value {
        Value::String(text) if is_word(text) => text.clone(),
        other => visible::json(&other.to_string()).into_owned(),
    }
}

/// A time since 1970 as a date.
fn utc(since: Duration) -> String {
    let seconds = since.as_secs();
    let (days, day) = (seconds / 86_400, seconds % 86_400);
    // Years from March on, so that the leap day comes last; 719 468 days before 1970 began one.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (day / 3_600, day / 60 % 60, day % 60);
    let ms = since.subsec_millis();
    format!("{year:04}-{month:02}-{of_month:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Shared {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("no panic").clone()).expect("UTF-8")
        }
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_799, "2000-02-29T23:59:59.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(utc(Duration::from_secs(seconds)), expected);
        }
    }

    fn who(app: &str, uid: u32) -> Who<'_> {
        Who { app, slot: 3, pid: 7, uid, listed: false }
    }

    #[test]
    fn lines_stay_lines_whatever_apps_are_called() {
        let entry = Entry::Left { who: who("evil\nevent=stopping\u{202e}\u{9b}", 2) };
        let text = line(Duration::from_millis(1), &entry, Format::Text);
        let expected = "left app=\"evil\\nevent=stopping\\u202e\\u009b\" pid=7 slot=3 uid=2\n";
        assert_eq!(text, format!("1970-01-01T00:00:00.001Z {expected}"));
        let json = line(Duration::ZERO, &entry, Format::Json);
        assert!(!json.trim_end().contains(visible::is_hidden), "{json}");
        let value: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!((&value["event"], &value["slot"]), (&Value::from("left"), &Value::from(3)));
        assert_eq!(json.lines().count(), 1);
    }

    /// What a journal writes until it ends.
    fn written(told: impl FnOnce(&mut Journal)) -> String {
        let out = Shared::default();
        let mut journal = Journal::new(Box::new(out.clone()), Format::Text).expect("a thread");
        told(&mut journal);
        drop(journal);
        out.text()
    }

    #[test]
    fn a_flood_is_folded_and_hides_nothing_of_others() {
        let refused = Entry::Refused { pid: 1, uid: 2, reason: "no" };
        let text = written(|journal| {
            (0..10_000).for_each(|_| journal.tell_at(Duration::from_secs(5), &refused));
            for _ in 0..12 {
                let (who, admission) = (who("dial", 3), "protected");
                let joined = Entry::Joined { who, priority: u32::MAX, fps: 60.0, admission };
                journal.tell_at(Duration::from_secs(5), &joined);
            }
            journal.tell_at(Duration::from_secs(5), &Entry::Stopping { reason: "over" });
            journal.sum_up(&Members::new(1));
        });
        let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
        assert_eq!((count(" refused "), count(" joined "), count(" stopping ")), (16, 12, 1), "{text}");
        assert_eq!(count(" repeated kind=refused times=9984 uid=2"), 1, "{text}");
    }

    /// Sums once moved the second without a new count of lines.
    #[test]
    fn a_flood_is_over_when_its_second_is() {
        let refused = Entry::Refused { pid: 1, uid: 2, reason: "no" };
        let members = Members::new(1);
        let text = written(|journal| {
            for second in 0..20 {
                journal.second = second;
                journal.sum_up(&members);
                (0..20).for_each(|_| journal.tell(&refused));
            }
        });
        assert!(text.lines().filter(|line| line.contains(" refused ")).count() >= 16 * 20, "{text}");
    }

    #[test]
    fn a_log_that_is_not_read_delays_no_event() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let mut journal = Journal::new(Box::new(writer), Format::Text).expect("a thread");
        for second in 0..10_000 {
            let refused = Entry::Refused { pid: 1, uid: second, reason: "no" };
            journal.tell_at(Duration::from_secs(second.into()), &refused);
        }
        assert!(journal.omitted > 0);
        journal.tell_at(Duration::ZERO, &Entry::Stopping { reason: "over" });
        assert_eq!(journal.omitted, 0, "the daemon's own lines find room");
        drop(reader);
    }
}
