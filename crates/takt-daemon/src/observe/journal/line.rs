//! An event as a line, for people or for machines.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;
use takt_audit::time::utc;
use takt_trace::visible;

use super::Entry;

/// The format of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// Time, event, then `key=value`.
    #[default]
    Text,
    /// A JSON object.
    Json,
}

/// Longest text in a line about a client, in bytes, before what is hidden in it is escaped: it may be the client's.
const CLIENTS_TEXT_MAX: usize = 1 << 10;
/// The same in any other line.
const TEXT_MAX: usize = 1 << 12;
const CUT: &str = "...";

/// The line, with its end.
pub(super) fn line(now: Duration, entry: &Entry<'_>, format: Format) -> String {
    let mut value = serde_json::to_value(entry).unwrap_or_default();
    cut(&mut value, if entry.about().is_some() { CLIENTS_TEXT_MAX } else { TEXT_MAX });
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

/// Cuts texts that are longer than so many bytes.
fn cut(value: &mut Value, most: usize) {
    match value {
        Value::String(text) if text.len() > most => {
            text.truncate(text.floor_char_boundary(most - CUT.len()));
            text.push_str(CUT);
        }
        Value::Array(values) => values.iter_mut().for_each(|value| cut(value, most)),
        Value::Object(fields) => fields.values_mut().for_each(|value| cut(value, most)),
        _ => {}
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::journal::Who;

    #[test]
    fn lines_stay_lines_whatever_apps_are_called() {
        let entry = Entry::Left {
            who: Who {
                app: "evil\nevent=stopping\u{202e}\u{9b}",
                slot: 3,
                pid: 7,
                uid: 2,
                domain: "own",
                listed: false,
            },
        };
        let text = line(Duration::from_millis(1), &entry, Format::Text);
        let expected = "left app=\"evil\\nevent=stopping\\u202e\\u009b\" domain=own pid=7 slot=3 uid=2\n";
        assert_eq!(text, format!("1970-01-01T00:00:00.001Z {expected}"));
        let json = line(Duration::ZERO, &entry, Format::Json);
        assert!(!json.trim_end().contains(visible::is_hidden), "{json}");
        let value: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!((&value["event"], &value["slot"]), (&Value::from("left"), &Value::from(3)));
        assert_eq!(json.lines().count(), 1);
    }

    #[test]
    fn lines_have_a_bound_whatever_clients_say() {
        let reason = "\u{1b}".repeat(60_000);
        let (domain, rule) = ("unlisted", crate::control::rights::Rule::Malformed);
        let refused = Entry::Refused { pid: 7, uid: 2, domain, rule, reason: &reason, listed: false };
        let entries = [(Entry::Stopping { reason: &reason }, TEXT_MAX), (refused, CLIENTS_TEXT_MAX)];
        for (entry, most) in entries {
            for format in [Format::Text, Format::Json] {
                let line = line(Duration::ZERO, &entry, format);
                assert!(line.len() < 6 * most + 200, "{} bytes", line.len());
                assert!(line.contains("\\u001b..."), "{line}");
            }
        }
    }
}
