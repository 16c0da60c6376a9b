//! What the daemon has to say, one line each, for people or for machines.
//!
//! It is written by the thread that serves the socket; the scheduling loop never writes. Whatever
//! clients do, there is a bound on the lines per second: what is left out is counted.

use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::Value;
use takt_core::{Action, AppId};
use takt_trace::Record;

use crate::control::members::{Member, Members};

/// Most lines per second.
const LINES_MAX: u32 = 100;

/// How lines look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// Time, event, then `key=value`.
    #[default]
    Text,
    /// A JSON object.
    Json,
}

/// Something to tell.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Entry<'a> {
    /// The daemon serves.
    Serving {
        /// Where.
        socket: &'a str,
        /// Who decides.
        policy: &'a str,
        /// Refresh rate.
        refresh_hz: f64,
        /// Rights that it does not have: grants may be late on a busy machine.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        without: Vec<String>,
    },
    /// An app is scheduled.
    Joined {
        /// Who.
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
        /// Who.
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
        /// Who.
        #[serde(flatten)]
        who: Who<'a>,
    },
    /// An app did something wrong and was let go.
    Fault {
        /// Who.
        #[serde(flatten)]
        who: Who<'a>,
        /// What.
        fault: &'a str,
        /// How long it may not come back.
        pause_s: u64,
    },
    /// Somebody was turned away.
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
        /// Who.
        #[serde(flatten)]
        who: Who<'a>,
        /// How many.
        deadlines: u64,
    },
    /// Another policy decides.
    Policy {
        /// Until now.
        before: &'a str,
        /// From now on.
        after: &'a str,
    },
    /// Somebody changed what holds for all apps.
    Adjusted {
        /// What, in words.
        changes: &'a [String],
    },
    /// The display told when it refreshes, and scheduling follows it.
    Display {
        /// Its rate.
        refresh_hz: f64,
    },
    /// The display tells no more; scheduling goes on by the clock.
    DisplayLost {
        /// Why.
        reason: &'a str,
    },
    /// The configuration was read again.
    Reloaded {
        /// What is different; nothing if nothing is.
        changes: &'a [String],
    },
    /// The configuration was read again and is wrong; the old one holds.
    Unreadable {
        /// What is wrong.
        reason: &'a str,
    },
    /// Lines that were left out, because there were too many.
    Omitted {
        /// How many.
        lines: u64,
    },
    /// The core has contradicted itself: nothing is scheduled any more, and every app runs free.
    Broken {
        /// What did not hold.
        what: String,
        /// Whose state it was, if one app's.
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
}

impl<'a> Who<'a> {
    /// That member.
    pub fn of(member: &'a Member) -> Self {
        Self { app: &member.name, slot: member.app.0, pid: member.pid }
    }
}

/// Writes lines.
pub struct Journal {
    out: Box<dyn Write + Send>,
    format: Format,
    /// The second, since 1970, that is counted for.
    second: u64,
    lines: u32,
    omitted: u64,
    /// Deadlines missed in this second, by slot.
    missed: Vec<u64>,
}

impl Journal {
    /// Writes to `out`.
    pub fn new(out: Box<dyn Write + Send>, format: Format) -> Self {
        Self { out, format, second: 0, lines: 0, omitted: 0, missed: Vec::new() }
    }

    /// Tells something, unless there was too much to tell in this second.
    pub fn tell(&mut self, entry: &Entry<'_>) {
        self.tell_at(since_1970(), entry);
    }

    fn tell_at(&mut self, now: Duration, entry: &Entry<'_>) {
        if now.as_secs() != self.second {
            self.second = now.as_secs();
            self.lines = 0;
            let lines = std::mem::take(&mut self.omitted);
            if lines > 0 {
                self.write(now, &Entry::Omitted { lines });
            }
        }
        self.lines = self.lines.saturating_add(1);
        if self.lines <= LINES_MAX {
            self.write(now, entry);
        } else {
            self.omitted += 1;
        }
    }

    fn write(&mut self, now: Duration, entry: &Entry<'_>) {
        let line = line(now, entry, self.format);
        // Nobody reads it, or there is no room: no reason to stop scheduling.
        self.out.write_all(line.as_bytes()).and_then(|()| self.out.flush()).unwrap_or_default();
    }

    /// Counts what goes by.
    pub fn watch(&mut self, record: &Record) {
        if let Record::Out(Action::Missed { app, count, .. }) = record {
            if self.missed.len() <= app.index() {
                self.missed.resize(app.index() + 1, 0);
            }
            self.missed[app.index()] += count;
        }
    }

    /// Tells what was counted, once a second.
    pub fn sum_up(&mut self, members: &Members) {
        let now = since_1970();
        if now.as_secs() == self.second {
            return;
        }
        for (slot, deadlines) in std::mem::take(&mut self.missed).into_iter().enumerate() {
            let member = u32::try_from(slot).ok().and_then(|slot| members.get(AppId(slot)));
            // Deadlines of a rate that was not asked for are no news.
            if let Some(member) = member.filter(|member| deadlines > 0 && member.is_judged()) {
                self.tell_at(now, &Entry::Missed { who: Who::of(member), deadlines });
            }
        }
        self.second = now.as_secs();
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("format", &self.format).finish_non_exhaustive()
    }
}

impl Default for Journal {
    /// Tells nobody.
    fn default() -> Self {
        Self::new(Box::new(std::io::sink()), Format::Text)
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
            format!("{value}\n")
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
        other => other.to_string(),
    }
}

/// A time since 1970 as people write it.
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

    #[test]
    fn lines_stay_lines_whatever_apps_are_called() {
        let who = Who { app: "evil\nevent=stopping", slot: 3, pid: 7 };
        let entry = Entry::Left { who };
        assert_eq!(
            line(Duration::from_millis(1), &entry, Format::Text),
            "1970-01-01T00:00:00.001Z left app=\"evil\\nevent=stopping\" pid=7 slot=3\n"
        );
        let json = line(Duration::ZERO, &entry, Format::Json);
        let value: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!((&value["event"], &value["slot"]), (&Value::from("left"), &Value::from(3)));
        assert_eq!(json.lines().count(), 1);
    }

    #[test]
    fn a_flood_is_cut_off_and_counted() {
        let out = Shared::default();
        let mut journal = Journal::new(Box::new(out.clone()), Format::Text);
        let entry = Entry::Refused { pid: 1, uid: 2, reason: "no" };
        for _ in 0..10_000 {
            journal.tell_at(Duration::from_secs(5), &entry);
        }
        journal.tell_at(Duration::from_secs(6), &entry);
        let text = out.text();
        assert_eq!(text.lines().count(), LINES_MAX as usize + 2);
        assert!(text.contains(" omitted lines=9900\n"), "{text}");
    }
}
