//! What is wrong with a scenario, where, and what to do about it.
//!
//! All texts a scenario is made of (the file and the values of overrides) lie end to end in one
//! address space, [`Sources`]; a span is a range in it. Problems are collected in a [`Report`]
//! and become [`Diagnostic`]s with lines and columns at the very end.

use std::fmt;
use std::ops::Range;

/// One error in a scenario: where it is, what is wrong, how to put it right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// File (or override) the error is in.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What is wrong, with the offending value.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message, remedy } = self;
        write!(f, "{file}:{line}:{column}: {message}\n  help: {remedy}")
    }
}

impl std::error::Error for Diagnostic {}

/// Errors listed at once; the rest is only counted.
pub const DIAGNOSTICS_MAX: usize = 100;

/// Characters of an offending value that a message quotes.
const SNIPPET_CHARS_MAX: usize = 40;

/// A value of a scenario: its key as a dotted path, and where it is written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Spot {
    pub(super) path: String,
    pub(super) span: Range<usize>,
}

/// Several texts, end to end.
#[derive(Default)]
pub(super) struct Sources<'a> {
    texts: Vec<Excerpt<'a>>,
}

struct Excerpt<'a> {
    name: String,
    text: &'a str,
    /// Address of the first byte.
    base: usize,
    /// Columns to the left of the first line.
    indent: usize,
    /// Offsets of the lines.
    lines: Vec<usize>,
}

impl<'a> Sources<'a> {
    /// Appends a text whose first line starts `indent` columns to the right; returns its address.
    pub(super) fn add(&mut self, name: String, text: &'a str, indent: usize) -> usize {
        // One address apart, so that the end of a text does not belong to the next one.
        let base = self.texts.last().map_or(0, |s| s.base + s.text.len() + 1);
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        self.texts.push(Excerpt { name, text, base, indent, lines });
        base
    }

    /// Name, line and column of an address.
    pub(super) fn locate(&self, address: usize) -> (&str, u32, u32) {
        let Some(source) = self.source(address) else {
            return ("", 1, 1);
        };
        let (index, at) = source.line(address);
        let start = source.lines.get(index).copied().unwrap_or(0);
        let before = source.text.get(start..at).unwrap_or("").chars().count();
        let indent = if index == 0 { source.indent } else { 0 };
        (&source.name, small(index + 1), small(before + indent + 1))
    }

    /// Line of an address, as people write it down.
    pub(super) fn line(&self, address: usize) -> String {
        self.source(address).map_or_else(String::new, |source| {
            let line = source.line(address).0 + 1;
            if source.base == 0 { format!("line {line}") } else { source.name.clone() }
        })
    }

    /// The text of a span, cut to one short line.
    pub(super) fn snippet(&self, span: &Range<usize>) -> String {
        let text = self
            .source(span.start)
            .and_then(|s| s.text.get(span.start - s.base..span.end.saturating_sub(s.base)))
            .unwrap_or("");
        let line = text.lines().next().unwrap_or("").trim_end();
        let mut short: String = line.chars().take(SNIPPET_CHARS_MAX).collect();
        if short.len() < text.trim_end().len() {
            short.push('…');
        }
        short
    }

    /// The line an address is in, cut to a short one.
    pub(super) fn line_text(&self, address: usize) -> String {
        self.source(address).map_or_else(String::new, |source| {
            let (index, _) = source.line(address);
            let bound = |index: usize| source.lines.get(index).copied();
            let start = bound(index).unwrap_or(0);
            let end = bound(index + 1).unwrap_or(source.text.len());
            self.snippet(&(source.base + start..source.base + end))
        })
    }

    fn source(&self, address: usize) -> Option<&Excerpt<'a>> {
        let after = self.texts.partition_point(|s| s.base <= address);
        after.checked_sub(1).and_then(|index| self.texts.get(index))
    }
}

impl Excerpt<'_> {
    /// Index of the line an address is in, and the offset of the address.
    fn line(&self, address: usize) -> (usize, usize) {
        let at = (address - self.base).min(self.text.len());
        (self.lines.partition_point(|start| *start <= at) - 1, at)
    }
}

/// The problems found so far.
pub(super) struct Report<'a> {
    pub(super) sources: &'a Sources<'a>,
    /// What the text as a whole is called.
    whole: &'static str,
    problems: Vec<Problem>,
    unlisted: usize,
}

struct Problem {
    place: Place,
    message: String,
    remedy: String,
}

/// Where a problem is.
enum Place {
    Address(usize),
    /// In a file that is not among the sources.
    Elsewhere {
        file: String,
        line: u32,
        column: u32,
    },
}

impl<'a> Report<'a> {
    pub(super) fn new(sources: &'a Sources<'a>) -> Self {
        Self::about("scenario", sources)
    }

    /// A report about a text that is no scenario.
    pub(super) fn about(whole: &'static str, sources: &'a Sources<'a>) -> Self {
        Self { sources, whole, problems: Vec::new(), unlisted: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// The value at `spot` is wrong: quotes it.
    pub(super) fn value(&mut self, spot: &Spot, problem: impl fmt::Display, remedy: impl Into<String>) {
        let text = self.sources.snippet(&spot.span);
        let message = format!("{} = {text}: {problem}", spot.path);
        self.address(spot.span.start, message, remedy);
    }

    /// Something about the table at `spot` is wrong: names it, without its text.
    pub(super) fn table(&mut self, spot: &Spot, problem: impl fmt::Display, remedy: impl Into<String>) {
        let name = if spot.path.is_empty() { self.whole } else { spot.path.as_str() };
        self.address(spot.span.start, format!("{name}: {problem}"), remedy);
    }

    /// A problem at an address of the sources.
    pub(super) fn address(&mut self, address: usize, message: String, remedy: impl Into<String>) {
        self.add(Place::Address(address), message, remedy.into());
    }

    /// A problem in another file.
    pub(super) fn elsewhere(
        &mut self,
        (file, line, column): (&str, u32, u32),
        message: String,
        remedy: impl Into<String>,
    ) {
        let place = Place::Elsewhere { file: file.to_owned(), line, column };
        self.add(place, message, remedy.into());
    }

    fn add(&mut self, place: Place, message: String, remedy: String) {
        if self.problems.len() < DIAGNOSTICS_MAX {
            self.problems.push(Problem { place, message, remedy });
        } else {
            self.unlisted += 1;
        }
    }

    /// Everything found, in order of appearance.
    pub(super) fn finish(self) -> Vec<Diagnostic> {
        let Self { sources, mut problems, unlisted, .. } = self;
        problems.sort_by_key(|p| match p.place {
            Place::Address(address) => address,
            Place::Elsewhere { .. } => usize::MAX,
        });
        let mut all: Vec<Diagnostic> = problems.into_iter().map(|p| p.locate(sources)).collect();
        if let (1.., Some(last)) = (unlisted, all.last()) {
            all.push(Diagnostic {
                message: format!("{unlisted} more errors are not listed"),
                remedy: "put the ones above right first".to_owned(),
                ..last.clone()
            });
        }
        all
    }
}

impl Problem {
    fn locate(self, sources: &Sources<'_>) -> Diagnostic {
        let (file, line, column) = match self.place {
            Place::Address(address) => {
                let (file, line, column) = sources.locate(address);
                (file.to_owned(), line, column)
            }
            Place::Elsewhere { file, line, column } => (file, line, column),
        };
        Diagnostic { file, line, column, message: self.message, remedy: self.remedy }
    }
}

/// A line or column number; texts are far shorter than 4 Gi characters.
pub(super) fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The name among `known` most like `word`, if any is like it.
pub(super) fn nearest<'n>(word: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    /// Longer words are not compared: they are no typing mistakes.
    const CHARS_MAX: usize = 64;
    let word: String = word.chars().take(CHARS_MAX + 1).collect();
    known
        .map(|name| (strsim::levenshtein(&word, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len().max(word.chars().count()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_forgives_typing_mistakes_only() {
        let known = ["mpcg", "policy", "margins"];
        assert_eq!(nearest("mpgc", known.into_iter()), Some("mpcg"));
        assert_eq!(nearest("polcy", known.into_iter()), Some("policy"));
        assert_eq!(nearest("seed", known.into_iter()), None);
    }

    #[test]
    fn addresses_become_lines_and_columns() {
        let mut sources = Sources::default();
        sources.add("a".into(), "ö = 1\nb = 2\n", 0);
        let base = sources.add("--set x=3".into(), "3", 2);
        assert_eq!(sources.locate(5), ("a", 1, 5));
        assert_eq!(sources.locate(7), ("a", 2, 1));
        assert_eq!(sources.locate(base), ("--set x=3", 1, 3));
        assert_eq!(sources.locate(usize::MAX), ("--set x=3", 1, 4));
        assert_eq!(sources.snippet(&(7..12)), "b = 2");
    }
}
