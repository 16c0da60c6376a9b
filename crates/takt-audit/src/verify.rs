//! Finds lines that were removed, changed or moved.
//!
//! A chain says by itself that nothing between its first and its last line is missing or changed. That
//! lines at the end are missing, only a head tells that was kept elsewhere ([`Kept`], or a head that a
//! person noted). Files at the beginning are deleted on purpose when there are too many; [`Kept::first`]
//! says how many there should be.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::chain::{Entry, Hash, Head, LINE_MAX, Opening, Sealed, read_line};

/// Most findings that are told one by one.
const FINDINGS_MAX: usize = 100;

/// A file of a chain.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name, for findings.
    pub name: &'a str,
    /// What is in it.
    pub bytes: &'a [u8],
}

/// What is kept beside the files: where the chain ends and which lines there should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// The last line.
    #[serde(flatten)]
    pub head: Head,
    /// Number of the first line of the oldest file.
    pub first: u64,
}

/// What is wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The file.
    pub file: String,
    /// The line in it, counted from 1; none if it is about the whole file.
    pub line: Option<usize>,
    /// What is wrong.
    pub fault: Fault,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.fault),
            None => write!(f, "{}: {}", self.file, self.fault),
        }
    }
}

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// No line of an audit.
    #[error("not a line of an audit: it was changed, or it is not from Takt")]
    NotALine,
    /// A file does not begin as files do.
    #[error("the file does not begin with an \"opened\" line: its beginning was removed or changed")]
    NoOpening,
    /// The hash does not fit.
    #[error("record {0} was changed: its hash does not fit")]
    Changed(u64),
    /// Lines are missing before this one.
    #[error("records {0} to {1} are missing before this line")]
    Missing(u64, u64),
    /// The line was there before, or belongs elsewhere.
    #[error("record {0} is out of order: it was repeated or moved")]
    OutOfOrder(u64),
    /// The file does not follow the one before.
    #[error("the file does not continue the one before: record {0} follows another hash")]
    NotContinued(u64),
    /// The last line has no end.
    #[error(
        "the last line is cut off after {0} bytes: the file was cut, or the machine stopped while it was written"
    )]
    Torn(u64),
    /// The end is missing.
    #[error("records {0} to {1} are missing at the end")]
    EndMissing(u64, u64),
    /// The beginning is missing.
    #[error("records {0} to {1} are missing at the beginning: files were removed")]
    BeginningMissing(u64, u64),
    /// A record has another hash than the one that was kept.
    #[error("record {0} has another hash than the head that was kept: the chain was written anew")]
    OtherHead(u64),
}

/// What a check found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Lines in all files, those included that do not belong there.
    pub lines: u64,
    /// Number of the first line.
    pub first: Option<u64>,
    /// The last line.
    pub head: Option<Head>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// Further findings.
    pub more: u64,
    /// Lines after the head that was kept: written while this was read, or just before the machine
    /// stopped.
    pub after_kept: u64,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_intact(&self) -> bool {
        self.findings.is_empty()
    }
}

/// The files of each chain, by name of the chain, in the order in which they were written.
pub fn sorted<'a>(files: &[Source<'a>]) -> Vec<(String, Vec<Source<'a>>)> {
    let mut all: Vec<(String, u64, Source<'a>)> = Vec::new();
    for file in files {
        let first = file.bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        all.push(match read_line(first) {
            Some((seq, Entry::Opening(opening))) => (opening.chain, seq, *file),
            // It belongs to a chain by its name, if it belongs to any.
            _ => (chain_of(file.name).to_owned(), u64::MAX, *file),
        });
    }
    all.sort_by(|a, b| (&a.0, a.1, a.2.name).cmp(&(&b.0, b.1, b.2.name)));
    let mut chains: Vec<(String, Vec<Source<'a>>)> = Vec::new();
    for (chain, _, file) in all {
        match chains.last_mut().filter(|(name, _)| *name == chain) {
            Some((_, files)) => files.push(file),
            None => chains.push((chain, vec![file])),
        }
    }
    chains
}

/// The chain that a file's name says: `listed-00000001.jsonl` is of `listed`.
fn chain_of(name: &str) -> &str {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.split_once('-').map_or("", |(chain, _)| chain)
}

/// Checks the files of one chain, in the order in which they were written; `heads` are what is known of
/// it from elsewhere.
pub fn verify(files: &[Source<'_>], kept: Option<Kept>, heads: &[Head]) -> Report {
    let mut walk = Walk { kept, heads, ..Walk::default() };
    for file in files {
        walk.file(file);
    }
    walk.end(files.last().map_or("", |file| file.name));
    walk.report
}

#[derive(Debug, Default)]
struct Walk<'a> {
    report: Report,
    kept: Option<Kept>,
    heads: &'a [Head],
    /// What the last line should have had for a hash, if that differs from what it says.
    computed: Option<Hash>,
    /// The last file ends with so many bytes of a line that has no end.
    torn: Option<(Finding, u64)>,
}

impl Walk<'_> {
    fn find(&mut self, file: &str, line: impl Into<Option<usize>>, fault: Fault) {
        self.add(Finding { file: file.to_owned(), line: line.into(), fault });
    }

    fn add(&mut self, finding: Finding) {
        if self.report.findings.len() < FINDINGS_MAX {
            self.report.findings.push(finding);
        } else {
            self.report.more += 1;
        }
    }

    fn file(&mut self, file: &Source<'_>) {
        let (whole, rest) = match file.bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => (&file.bytes[..end], &file.bytes[end + 1..]),
            None => (&[][..], file.bytes),
        };
        let mut opened = false;
        let mut number = 0;
        // `split` makes one empty line of nothing.
        let lines = whole.split(|byte| *byte == b'\n').filter(|_| whole.len() < file.bytes.len());
        for line in lines {
            number += 1;
            self.report.lines += 1;
            opened = self.line(file.name, number, line, opened);
        }
        if !opened {
            self.find(file.name, 1, Fault::NoOpening);
        }
        if !rest.is_empty() {
            self.settle_torn(0);
            let (bytes, line) = (rest.len() as u64, Some(number + 1));
            let finding = Finding { file: file.name.to_owned(), line, fault: Fault::Torn(bytes) };
            self.torn = Some((finding, bytes));
        }
    }

    /// Checks a line; says whether the file has begun.
    fn line(&mut self, file: &str, number: usize, line: &[u8], opened: bool) -> bool {
        let sealed = Sealed::read(line).filter(|_| line.len() < LINE_MAX);
        let Some(sealed) = sealed else {
            self.find(file, number, Fault::NotALine);
            return opened;
        };
        let Some((seq, entry)) = read_line(line) else {
            let next = self.report.head.map_or(0, |head| head.seq.saturating_add(1));
            self.find(file, number, Fault::Changed(next));
            return opened;
        };
        let fault = match (&entry, opened) {
            (Entry::Opening(opening), false) => self.opening(seq, opening, &sealed),
            (Entry::Record(_), false) => {
                // There is one finding for what it follows.
                self.next(seq, &sealed);
                Some(Fault::NoOpening)
            }
            // An opening in the middle of a file has lost what was before it.
            (Entry::Opening(_) | Entry::Record(_), true) => self.next(seq, &sealed),
        };
        if let Some(fault) = fault {
            self.find(file, number, fault);
        }
        self.compare(file, number, Head { seq, hash: sealed.hash });
        true
    }

    fn opening(&mut self, seq: u64, opening: &Opening, sealed: &Sealed<'_>) -> Option<Fault> {
        self.settle_torn(opening.torn);
        self.report.first.get_or_insert(seq);
        let intact = sealed.follows(opening.previous);
        let begins = seq != 0 || opening.previous == Hash::genesis(&opening.chain);
        let before = self.report.head.replace(Head { seq, hash: sealed.hash });
        self.computed = None;
        match before {
            _ if !intact || !begins => Some(Fault::Changed(seq)),
            None => None,
            Some(before) if opening.previous == before.hash && seq == before.seq.saturating_add(1) => None,
            Some(before) => Some(gap(before.seq, seq).unwrap_or(Fault::NotContinued(seq))),
        }
    }

    fn next(&mut self, seq: u64, sealed: &Sealed<'_>) -> Option<Fault> {
        let Some(before) = self.report.head.replace(Head { seq, hash: sealed.hash }) else {
            self.report.first.get_or_insert(seq);
            return None;
        };
        let follows = sealed.follows(before.hash) || self.computed.is_some_and(|hash| sealed.follows(hash));
        self.computed = (!follows).then(|| sealed.computed(before.hash));
        match gap(before.seq, seq) {
            Some(fault) => Some(fault),
            None if !follows => Some(Fault::Changed(seq)),
            None => None,
        }
    }

    /// Compares a line with what is known from elsewhere.
    fn compare(&mut self, file: &str, number: usize, line: Head) {
        let kept = self.kept.map(|kept| kept.head);
        if self.heads.iter().chain(&kept).any(|head| head.seq == line.seq && head.hash != line.hash) {
            self.find(file, number, Fault::OtherHead(line.seq));
        }
    }

    /// An unfinished line is explained if the next file says that it was there.
    fn settle_torn(&mut self, explained: u64) {
        if let Some((finding, bytes)) = self.torn.take()
            && bytes != explained
        {
            self.add(finding);
        }
    }

    fn end(&mut self, file: &str) {
        self.settle_torn(0);
        let next = self.report.head.map_or(0, |head| head.seq.saturating_add(1));
        let kept = self.kept.map(|kept| kept.head);
        let last = self.heads.iter().chain(&kept).map(|head| head.seq).max();
        if let Some(last) = last.filter(|last| *last >= next) {
            self.find(file, None, Fault::EndMissing(next, last));
        }
        if let (Some(kept), Some(first)) = (self.kept, self.report.first)
            && first > kept.first
        {
            self.find(file, None, Fault::BeginningMissing(kept.first, first - 1));
        }
        if let Some(kept) = kept {
            self.report.after_kept = next.saturating_sub(kept.seq.saturating_add(1));
        }
    }
}

/// What is wrong if these are the numbers of two lines that follow each other.
fn gap(before: u64, seq: u64) -> Option<Fault> {
    match before.checked_add(1) {
        Some(next) if seq > next => Some(Fault::Missing(next, seq - 1)),
        Some(next) if seq == next => None,
        _ => Some(Fault::OutOfOrder(seq)),
    }
}
