//! No two types of one name in one crate: a reader should know what is meant without looking at imports.

use std::collections::BTreeMap;

use crate::lexer::{Source, is_word};
use crate::tidy::Finding;
use crate::tree::{File, Tree};

/// What makes a type.
const KEYWORDS: &[&str] = &["struct ", "enum ", "union ", "trait ", "type "];

/// Where the tests of a file begin.
const TESTS: &str = "#[cfg(test)]\nmod ";

/// Compares the types of each crate, without those of tests.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut known: BTreeMap<(&str, String), (&str, usize)> = BTreeMap::new();
    for (root, file) in tree.files().iter().filter_map(|file| Some((root(file)?, file))) {
        for (line, name) in types(&file.text) {
            let (path, first) = *known.entry((root, name.clone())).or_insert((&file.path, line));
            if (path, first) != (&file.path, line) {
                let message =
                    format!("{path}:{first} has a type `{name}` as well: name what tells them apart");
                findings.push(Finding::error(&file.path, line, message));
            }
        }
    }
    findings
}

/// The crate of a source that is no test.
fn root(file: &File) -> Option<&str> {
    let (root, below) = file.path.split_once("/src/")?;
    (file.is_rust() && !below.ends_with("tests.rs") && !below.contains("tests/")).then_some(root)
}

/// The types that a file defines, with their lines.
fn types(text: &str) -> Vec<(usize, String)> {
    let code = Source::new(text).code;
    let defined = |(index, line)| Some((index + 1, name(line)?.to_owned()));
    without_tests(&code).lines().enumerate().filter_map(defined).collect()
}

/// A source up to its tests.
pub(crate) fn without_tests(code: &str) -> &str {
    &code[..code.find(TESTS).unwrap_or(code.len())]
}

/// The type that is defined in a line. Types of traits and of their implementations stand in others.
fn name(line: &str) -> Option<&str> {
    let item = line.trim_start();
    let rest = item.strip_prefix("pub").map_or(item, |rest| match rest.split_once(") ") {
        Some((within, rest)) if within.starts_with('(') => rest,
        _ => rest.trim_start(),
    });
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let keyword = KEYWORDS.iter().find(|keyword| rest.starts_with(**keyword))?;
    let is_associated = *keyword == "type " && item.len() < line.len();
    let name = rest[keyword.len()..].split(|letter| !is_word(letter)).next()?;
    (!is_associated && name.starts_with(char::is_uppercase)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn two_types_of_one_name_are_found_within_a_crate_only() {
        let one = "/// A part.\npub(super) struct Part<'a> {}\n";
        let other = "enum Whole {}\n\npub enum Part {}\n";
        let twice = found(&[("crates/a/src/b.rs", one), ("crates/a/src/c/d.rs", other)]);
        assert_eq!(twice.len(), 1, "{twice:?}");
        assert!(twice[0].starts_with("crates/a/src/c/d.rs:3: error: crates/a/src/b.rs:2"), "{twice:?}");
        assert!(found(&[("crates/a/src/b.rs", one), ("crates/e/src/c.rs", other)]).is_empty());
        assert_eq!(
            found(&[("crates/a/src/b.rs", "struct A;\nmod b {\n    pub(crate) struct A;\n}\n")]).len(),
            1
        );
    }

    #[test]
    fn tests_and_types_of_traits_may_have_the_same_names() {
        let types =
            "struct A;\nimpl B for A {\n    type Item = u8;\n}\nimpl C for A {\n    type Item = u8;\n}\n";
        let with_tests = format!("{types}\n#[cfg(test)]\nmod tests {{\n    struct A;\n}}\n");
        assert!(
            found(&[("crates/a/src/b.rs", &with_tests), ("crates/a/src/tests.rs", "struct A;")]).is_empty()
        );
        assert!(found(&[("crates/a/src/b.rs", types), ("crates/a/tests/c.rs", "struct A;")]).is_empty());
    }

    #[test]
    fn definitions_are_told_from_other_lines() {
        assert_eq!(name("pub(in crate::a) union B<C> {"), Some("B"));
        assert_eq!(name("pub unsafe trait Shareable {"), Some("Shareable"));
        assert_eq!(name("type Row = [u8; 4];"), Some("Row"));
        for other in
            ["    type Row = u8;", "structure A", "let enum_of = A;", "// struct A;", "pub fn a() {}"]
        {
            assert_eq!(name(other), None, "{other}");
        }
    }
}
