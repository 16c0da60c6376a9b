//! Claims about security name tests that are there.
//!
//! On [`PAGE`], every row of a table with a column "test" names a test or a fuzz target there. A name with
//! underscores, anywhere on the page, is that of a test or of something else in the sources, such as a key of
//! the configuration. Names behind a file and a colon are tests of that file:
//!
//! ```text
//! `takt-daemon/tests/it/rights.rs`: `one_test`, `another_test`; `a_test_of_any_file`; fuzz target `ring`
//! ```

use std::collections::BTreeSet;

use crate::lexer::is_word;
use crate::tidy::Finding;
use crate::tree::{File, Tree};

/// The page with claims.
const PAGE: &str = "SECURITY.md";
/// A short name on that page, and the folder with the tests that it stands for.
const SUITE: (&str, &str) = ("attack", "crates/takt-daemon/tests/attack/");
/// The column of a table that names tests.
const COLUMN: &str = "test";
/// What stands before the name of a fuzz target.
const FUZZED: &str = "fuzz target ";

/// Checks the page, if there is one.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.file(PAGE) else { return Vec::new() };
    let known = Known::of(tree);
    let mut findings = Vec::new();
    let mut column = None;
    for (index, line) in page.text.lines().enumerate() {
        let mut error = |message: String| findings.push(Finding::error(PAGE, index + 1, message));
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        if !line.starts_with('|') {
            column = None;
        } else if column.is_none() {
            column = Some(cells.iter().position(|cell| *cell == COLUMN));
        } else if let Some(cell) = column.flatten().and_then(|at| cells.get(at)) {
            let is_rule = !cell.is_empty() && cell.chars().all(|letter| letter == '-');
            if !is_rule && !known.names_a_test(cell) {
                error(format!("this row names no test in its column \"{COLUMN}\""));
            }
        }
        known.problems(line).into_iter().for_each(&mut error);
    }
    findings
}

/// What a page may name.
struct Known<'a> {
    tree: &'a Tree,
    /// Tests, with the path of their file.
    tests: BTreeSet<(&'a str, &'a str)>,
    /// Words of all sources.
    words: BTreeSet<&'a str>,
}

/// A piece of code in a text, and what stands around it.
struct Span<'a> {
    before: &'a str,
    text: &'a str,
}

impl<'a> Known<'a> {
    fn of(tree: &'a Tree) -> Self {
        let sources = || tree.files().iter().filter(|file| file.is_rust());
        let tests = sources().flat_map(|file| tests(file).map(|test| (test, file.path.as_str())));
        let words = sources().flat_map(|file| file.text.split(|letter| !is_word(letter)));
        Self { tree, tests: tests.collect(), words: words.filter(|word| word.contains('_')).collect() }
    }

    fn is_test(&self, name: &str, paths: Option<&[&str]>) -> bool {
        let of_name = self.tests.range((name, "")..).take_while(|(test, _)| *test == name);
        let mut found = of_name.filter(|(_, path)| paths.is_none_or(|paths| paths.contains(path)));
        found.next().is_some()
    }

    /// The files that a name stands for, if it is one of files.
    fn files(&self, name: &str) -> Option<Vec<&'a str>> {
        let of = |wanted: &dyn Fn(&str) -> bool| {
            self.tree.files().iter().map(|file| file.path.as_str()).filter(|path| wanted(path)).collect()
        };
        if name == SUITE.0 {
            return Some(of(&|path| path.starts_with(SUITE.1)));
        }
        name.ends_with(".rs").then(|| of(&|path| path == format!("crates/{name}")))
    }

    fn is_target(&self, span: &Span<'_>) -> bool {
        span.before.ends_with(FUZZED) && self.tree.exists(&format!("fuzz/targets/{}.rs", span.text))
    }

    fn names_a_test(&self, cell: &str) -> bool {
        spans(cell).any(|span| self.is_test(span.text, None) || self.is_target(&span))
    }

    /// What is wrong with the names in a line.
    fn problems(&self, line: &str) -> Vec<String> {
        let mut problems = Vec::new();
        let mut inside: Option<(&str, Vec<&str>)> = None;
        for span in spans(line) {
            let follows = span.before.ends_with(": ") || span.before == ", ";
            inside = inside.filter(|_| follows);
            let name = span.text;
            if let Some(files) = self.files(name) {
                if files.is_empty() {
                    problems.push(format!("there is no crates/{name}"));
                } else {
                    inside = Some((name, files));
                }
            } else if let Some((file, paths)) = &inside {
                if !self.is_test(name, Some(paths)) {
                    problems.push(format!("{file} has no test {name}"));
                }
            } else if span.before.ends_with(FUZZED) {
                if !self.is_target(&span) {
                    problems.push(format!("there is no fuzz target {name}"));
                }
            } else if is_name(name) && !self.is_test(name, None) && !self.words.contains(name) {
                problems.push(format!("no test and no source has the name {name}"));
            }
        }
        problems
    }
}

/// The names of all tests of a file.
fn tests(file: &File) -> impl Iterator<Item = &str> {
    let mut marked = false;
    file.text.lines().filter_map(move |line| {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("fn ").filter(|_| marked) {
            marked = false;
            return rest.split(|letter| !is_word(letter)).next();
        }
        // Other attributes, comments, and attributes of several lines may stand between.
        marked = line == "#[test]" || marked && !line.is_empty() && !line.ends_with('}');
        None
    })
}

/// The code spans of a line: every second part between backquotes.
fn spans(line: &str) -> impl Iterator<Item = Span<'_>> {
    let parts: Vec<&str> = line.split('`').collect();
    let pairs: Vec<Span<'_>> =
        parts.chunks_exact(2).map(|pair| Span { before: pair[0], text: pair[1] }).collect();
    pairs.into_iter()
}

/// Whether it looks like the name of a function or of a key.
fn is_name(text: &str) -> bool {
    let fits = |letter: char| letter == '_' || letter.is_ascii_lowercase() || letter.is_ascii_digit();
    text.contains('_') && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "#[test]\n#[expect(\n    clippy::x\n)]\nfn one_test() {}\n\nfn no_test() {}\n\
                          struct A {\n    some_key: u32,\n}\n";

    fn found(page: &str) -> Vec<String> {
        let files = [
            (PAGE, page),
            ("crates/a/tests/b.rs", SOURCE),
            ("crates/takt-daemon/tests/attack/c.rs", "#[test]\nfn flood() {}\n"),
            ("fuzz/targets/ring.rs", ""),
        ];
        check(&Tree::of(&files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn tests_that_are_there_pass() {
        let page = "| attack | test |\n|---|---|\n| x | `one_test` |\n| y | `attack`: `flood` |\n\
                    | z | `a/tests/b.rs`: `one_test`; fuzz target `ring` |\n\nAlso `some_key` and `a = 1`.\n";
        assert_eq!(found(page), [""; 0]);
    }

    #[test]
    fn a_test_that_is_gone_is_named() {
        let page = "`lost_test` (`a/tests/b.rs`: `one_test`, `flood`), `a/tests/gone.rs`,\n\
                    `attack`: `one_test`; `some_key`; fuzz target `rings`\n";
        let wanted = [
            "SECURITY.md:1: error: a/tests/b.rs has no test flood",
            "SECURITY.md:1: error: no test and no source has the name lost_test",
            "SECURITY.md:1: error: there is no crates/a/tests/gone.rs",
            "SECURITY.md:2: error: attack has no test one_test",
            "SECURITY.md:2: error: there is no fuzz target rings",
        ];
        let mut found = found(page);
        found.sort();
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_row_without_a_test_is_named() {
        let page = "| attack | what | test |\n|---|---|---|\n| x | y | |\n| x | y | `no_test` |\n\
                    | x | y | `one_test` |\n\n| who | what |\n|---|---|\n| x | y |\n";
        let message = "error: this row names no test in its column \"test\"";
        assert_eq!(found(page), [format!("SECURITY.md:3: {message}"), format!("SECURITY.md:4: {message}")]);
    }
}
