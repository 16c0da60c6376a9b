//! Records as lines of JSON, each with a hash over itself and all lines before it.
//!
//! ```text
//! {"seq":7,"time":"2026-11-18T08:17:35.123Z","at_us":…,"event":"joined",…,"hash":"64 hex digits"}
//! ```
//!
//! The hash is SHA-256 over the 32 bytes of the hash before and the line's bytes up to `,"hash":`. The
//! first line of a file is an [`Opening`], which says where the chain was, so that a file can be checked
//! without the files before it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::record::Record;
use crate::time::utc;

/// The format of lines.
pub const FORMAT: u32 = 1;
/// Longest line that is read, its end included.
pub const LINE_MAX: usize = 64 << 10;

const MARK: &[u8] = br#","hash":""#;
const DIGITS: usize = 64;
const END: &[u8] = br#""}"#;

/// SHA-256 of a line and all lines before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    /// What the first line of a chain follows.
    pub fn genesis(chain: &str) -> Self {
        Self(Sha256::digest(format!("takt audit {FORMAT} {chain}").as_bytes()).into())
    }

    /// The hash of any bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    fn then(self, body: &[u8]) -> Self {
        let mut state = Sha256::new();
        state.update(self.0);
        state.update(body);
        Self(state.finalize().into())
    }

    /// From exactly 64 lower-case hexadecimal digits.
    fn read(digits: &[u8]) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 32];
        if digits.len() != DIGITS {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Hash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::read(text.as_bytes()).ok_or_else(|| format!("not 64 hexadecimal digits in lower case: {text}"))
    }
}

impl Serialize for Hash {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The end of a chain: its last line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Head {
    /// The line's number.
    pub seq: u64,
    /// Its hash.
    pub hash: Hash,
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

impl FromStr for Head {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("not a head: {text}; it is NUMBER:HASH, as `takt audit verify` prints it");
        let (seq, hash) = text.split_once(':').ok_or_else(wrong)?;
        Ok(Self {
            seq: seq.parse().map_err(|_error| wrong())?,
            hash: hash.parse().map_err(|_error| wrong())?,
        })
    }
}

/// The first line of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Opening {
    /// When, in microseconds since 1970.
    pub at_us: u64,
    /// The format of lines.
    pub format: u32,
    /// Name of the chain.
    pub chain: String,
    /// The hash of the line before, in another file.
    pub previous: Hash,
    /// Bytes of an unfinished line at the end of the file before, if there was one: the daemon or the
    /// machine stopped while it was written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub torn: u64,
    /// What was wrong with the files before when the daemon continued them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Continues a chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
    name: String,
    next: u64,
    last: Hash,
}

/// What a line contains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// The beginning of a file.
    Opening(Opening),
    /// A record.
    Record(Box<Record>),
}

#[derive(Serialize)]
struct Line<'a, T> {
    seq: u64,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'static str>,
    #[serde(flatten)]
    content: &'a T,
}

impl Chain {
    /// A chain without lines.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), next: 0, last: Hash::genesis(name) }
    }

    /// The chain that ends there.
    pub fn after(name: &str, head: Head) -> Self {
        Self { name: name.to_owned(), next: head.seq.saturating_add(1), last: head.hash }
    }

    /// Its last line, if it has any.
    pub fn head(&self) -> Option<Head> {
        Some(Head { seq: self.next.checked_sub(1)?, hash: self.last })
    }

    /// Number of the next line.
    pub fn next_seq(&self) -> u64 {
        self.next
    }

    /// The first line of a file.
    pub fn open(&mut self, at_us: u64, torn: u64, found: Option<String>) -> String {
        let (chain, previous) = (self.name.clone(), self.last);
        let opening = Opening { at_us, format: FORMAT, chain, previous, torn, found };
        self.seal(at_us, Some("opened"), &opening)
    }

    /// The line of a record.
    pub fn record(&mut self, record: &Record) -> String {
        self.seal(record.at_us, None, &record.clone().bounded())
    }

    fn seal(&mut self, at_us: u64, event: Option<&'static str>, content: &impl Serialize) -> String {
        let time = utc(Duration::from_micros(at_us));
        let line = Line { seq: self.next, time, event, content };
        // These structures have nothing that JSON cannot express.
        let mut text = ascii(&serde_json::to_string(&line).unwrap_or_default());
        text.pop();
        self.last = self.last.then(text.as_bytes());
        self.next = self.next.saturating_add(1);
        format!("{text},\"hash\":\"{}\"}}\n", self.last)
    }
}

/// JSON in ASCII without control characters: escapes say the same.
fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() && c != '\u{7f}' {
            out.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        }
    }
    out
}

/// A line that says which hash it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sealed<'a> {
    body: &'a [u8],
    pub(crate) hash: Hash,
}

impl<'a> Sealed<'a> {
    /// From a line without its end; none if it does not end as lines do.
    pub(crate) fn read(line: &'a [u8]) -> Option<Self> {
        let line = line.strip_suffix(END)?;
        let (rest, digits) = line.split_at(line.len().checked_sub(DIGITS)?);
        Some(Self { body: rest.strip_suffix(MARK)?, hash: Hash::read(digits)? })
    }

    /// Whether it is the line that was written after the one with that hash.
    pub(crate) fn follows(&self, last: Hash) -> bool {
        self.computed(last) == self.hash
    }

    /// The hash that it has after that line.
    pub(crate) fn computed(&self, last: Hash) -> Hash {
        last.then(self.body)
    }
}

/// The number and the content of a line, if it has the format of lines; whether it is unchanged is
/// [`verify`](crate::verify::verify)'s question.
pub fn read_line(line: &[u8]) -> Option<(u64, Entry)> {
    #[derive(Deserialize)]
    struct Envelope {
        seq: u64,
        event: String,
    }
    if line.len() > LINE_MAX {
        return None;
    }
    let Envelope { seq, event } = serde_json::from_slice(line).ok()?;
    let entry = match event.as_str() {
        "opened" => Entry::Opening(serde_json::from_slice(line).ok()?),
        _ => Entry::Record(Box::new(serde_json::from_slice(line).ok()?)),
    };
    Some((seq, entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Decision, Event, Subject};

    #[test]
    fn lines_are_what_the_documents_say() {
        let mut chain = Chain::new("listed");
        assert_eq!(chain.head(), None);
        let opening = chain.open(1_500_000, 0, None);
        let expected = concat!(
            r#"{"seq":0,"time":"1970-01-01T00:00:01.500Z","event":"opened","at_us":1500000,"format":1,"#,
            r#""chain":"listed","previous":"f"#
        );
        assert!(opening.starts_with(&expected[..expected.len() - 1]), "{opening}");
        let record = Record {
            subject: Subject {
                user: Some(7),
                app: Some("d\u{202e}\u{7f}\n".to_owned()),
                ..Subject::default()
            },
            asked: "priority=3".to_owned(),
            decision: Decision::Granted,
            ..Record::new(2_000_000, Event::Joined)
        };
        let line = chain.record(&record);
        let expected = concat!(
            r#"{"seq":1,"time":"1970-01-01T00:00:02.000Z","at_us":2000000,"event":"joined","user":7,"#,
            r#""app":"d\u202e\u007f\n","asked":"priority=3","decision":"granted","hash":""#
        );
        assert!(line.starts_with(expected) && line.is_ascii() && line.ends_with("\"}\n"), "{line}");
        assert_eq!(read_line(line.trim_end().as_bytes()), Some((1, Entry::Record(Box::new(record)))));
        // SHA-256 of the hash before and of the line's beginning, as any tool computes it.
        let sealed = Sealed::read(line.trim_end().as_bytes()).expect("sealed");
        let first = Sealed::read(opening.trim_end().as_bytes()).expect("sealed");
        assert!(first.follows(Hash::genesis("listed")) && sealed.follows(first.hash));
        assert_eq!(chain.head(), Some(Head { seq: 1, hash: sealed.hash }));
        let head = chain.head().expect("it has lines");
        assert_eq!(head.to_string().parse(), Ok(head));
        assert!("7".parse::<Head>().is_err() && "x:00".parse::<Head>().is_err());
    }

    #[test]
    fn hashes_are_those_of_the_standard() {
        // The example of FIPS 180-4.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Hash::of(b"abc").to_string(), abc);
        assert!(abc.to_uppercase().parse::<Hash>().is_err(), "one spelling only");
    }

    #[test]
    fn the_longest_record_fits_a_line() {
        let long = || "\u{7f}".repeat(5_000);
        let subject =
            Subject { domain: Some(long()), exe: Some(long()), app: Some(long()), ..Subject::default() };
        let (asked, reason, rule) = (long(), long(), long());
        let record = Record { subject, asked, reason, rule, ..Record::new(u64::MAX, Event::OverCapacity) };
        let line = Chain::new("x").record(&record);
        assert!(line.len() < LINE_MAX, "{}", line.len());
    }
}
