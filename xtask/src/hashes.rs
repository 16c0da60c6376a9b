//! Commits in running text: a reader cannot look them up, and what they stand for is said in words.
//!
//! Figures name the commit that they were measured with, in tables of docs/experiments.

use std::ops::RangeInclusive;

use crate::lexer::is_word;
use crate::tidy::Finding;
use crate::tree::{File, Tree};

/// Where figures are.
const FIGURES: &str = "docs/experiments/";

/// Digits of a commit.
const DIGITS: RangeInclusive<usize> = 7..=40;

/// Names of other things that look like a commit.
const ALLOWED: &[&str] = &["ed25519"];

/// Checks all pages, except for the tables of those with figures.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files().iter().filter(|file| file.is_markdown()).flat_map(check_page).collect()
}

fn check_page(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    for (index, line) in file.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let in_table = file.path.starts_with(FIGURES) && line.starts_with('|');
        for commit in commits(line).into_iter().filter(|_| !fenced && !in_table) {
            let message = format!(
                "{commit} looks like a commit: say what it stands for, or move it into a table of {FIGURES}"
            );
            findings.push(Finding::error(&file.path, index + 1, message));
        }
    }
    findings
}

/// Words of hexadecimal digits, both figures and letters or after "commit", that are no part of a decimal.
fn commits(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, letter) in line.char_indices().chain([(line.len(), ' ')]) {
        match (start, is_word(letter)) {
            (None, true) => start = Some(at),
            (Some(begun), false) => {
                let (before, word) = (&line[..begun], &line[begun..at]);
                if is_commit(before, word) {
                    found.push(word);
                }
                start = None;
            }
            _ => {}
        }
    }
    found
}

fn is_commit(before: &str, word: &str) -> bool {
    let is_hash = DIGITS.contains(&word.len())
        && word.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        && !ALLOWED.contains(&word);
    let has = |figures: bool| word.bytes().any(|digit| digit.is_ascii_digit() == figures);
    let named = before.trim_end_matches(['`', ' ']).ends_with("commit");
    is_hash && !before.ends_with('.') && (named || has(true) && has(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_told_from_other_words() {
        assert_eq!(commits("met 95.6 % (49ad6cb, of e55f931)"), ["49ad6cb", "e55f931"]);
        assert_eq!(commits("at commit `3639254`"), ["3639254"]);
        assert_eq!(commits(&format!("see {}.", "0123456789abcdef".repeat(2))).len(), 1);
        for other in ["3000080", "defaced", "ed25519-dalek", "1.7976931348623157e308", "0x1234abc", "12ab"] {
            assert!(commits(other).is_empty(), "{other}");
        }
    }

    #[test]
    fn tables_of_figures_and_code_keep_theirs() {
        let text = "a 49ad6cb\n```sh\ngit show 49ad6cb\n```\n| 49ad6cb |\n";
        let tree = Tree::of(&[("docs/adr/0001-a.md", text), ("docs/experiments/a.md", text), ("a.rs", text)]);
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        let at: Vec<&str> = found
            .iter()
            .filter_map(|message| message.split_once(": error: 49ad6cb"))
            .map(|(at, _)| at)
            .collect();
        assert_eq!(at, ["docs/adr/0001-a.md:1", "docs/adr/0001-a.md:5", "docs/experiments/a.md:1"]);
    }
}
