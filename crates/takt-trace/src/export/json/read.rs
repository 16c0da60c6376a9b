//! Reads what [`Json`](super::Json) wrote.

use std::io::{BufRead, Read};

use takt_core::{Config, Time};

use super::VERSION;
use super::from_line::Entry;
use super::head::Head;
use super::line::Stamped;
use crate::record::{Meta, Observer};

/// Longest line: the first one of a run with as many apps as there can be.
const LINE_MAX: u64 = 4 << 20;

/// Reads records, line by line.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    meta: Meta,
    config: Option<Config>,
    build: Option<String>,
    line: Vec<u8>,
    number: u64,
    last: Time,
    cut_off: bool,
}

/// A line that is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadLine {
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub problem: String,
}

impl std::fmt::Display for BadLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for BadLine {}

impl<R: BufRead> Reader<R> {
    /// Reads the line that describes the run.
    pub fn new(mut input: R) -> Result<Self, BadLine> {
        let bad = |problem: String| BadLine { line: 1, problem };
        let mut line = Vec::new();
        next_line(&mut input, &mut line).map_err(bad)?;
        let what = "this is no log of takt: its first line does not describe a run";
        let head: Head = serde_json::from_slice(&line).map_err(|error| bad(format!("{what} ({error})")))?;
        if head.record != "run" {
            return Err(bad(what.to_owned()));
        }
        if head.version != VERSION {
            return Err(bad(format!("version {}; this takt reads version {VERSION}", head.version)));
        }
        let build = head.build.clone();
        let (meta, config) = head.say().map_err(bad)?;
        Ok(Self { input, meta, config, build, line, number: 1, last: Time::ZERO, cut_off: false })
    }

    /// What the numbers in the records stand for.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The core's parameters, if the records are there from its very start.
    pub fn config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    /// The build of Takt whose core it was, if the log says so.
    pub fn build(&self) -> Option<&str> {
        self.build.as_deref()
    }

    /// Number of the line that was read last.
    pub fn line(&self) -> u64 {
        self.number
    }

    /// Whether the last line is only the beginning of one: the writer was interrupted.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// What comes next; `None` at the end.
    pub fn next_entry(&mut self) -> Result<Option<(Time, Entry)>, BadLine> {
        let bad = |line: u64| move |problem: String| BadLine { line, problem };
        self.number += 1;
        let whole = next_line(&mut self.input, &mut self.line).map_err(bad(self.number))?;
        if !whole {
            self.cut_off = !self.line.is_empty();
            self.number -= 1;
            return Ok(None);
        }
        let stamped: Stamped =
            serde_json::from_slice(&self.line).map_err(|error| bad(self.number)(error.to_string()))?;
        let at = Time::from_ns(stamped.at_ns);
        if at < self.last {
            return Err(bad(self.number)("at_ns is before that of the line above".to_owned()));
        }
        self.last = at;
        let entry = stamped.what.entry().map_err(bad(self.number))?;
        Ok(Some((at, entry)))
    }

    /// Shows all that comes to `observer`; returns when the last thing happened.
    pub fn show(&mut self, observer: &mut impl Observer) -> Result<Time, BadLine> {
        while let Some((at, entry)) = self.next_entry()? {
            entry.show(at, observer);
        }
        Ok(self.last)
    }
}

impl Entry {
    /// Shows it to `observer`.
    pub fn show(&self, at: Time, observer: &mut impl Observer) {
        match self {
            Self::App(app, meta) => observer.meet(at, *app, meta),
            Self::Record(record) => observer.record(at, record),
        }
    }
}

/// Reads a line without its end; says whether it had one.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, String> {
    line.clear();
    input.by_ref().take(LINE_MAX).read_until(b'\n', line).map_err(|error| error.to_string())?;
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(true);
    }
    if line.len() as u64 == LINE_MAX {
        return Err(format!("it is longer than {LINE_MAX} bytes"));
    }
    Ok(false)
}
