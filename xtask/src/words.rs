//! Words that a reader would have to learn first.
//!
//! Each has a plain one of the field instead. Comments, documents and identifiers are checked, the
//! insides of literals are not. [`TO_CLEAN`] lists the paths that still have such words; it may
//! only shrink.

use crate::lexer::{Source, is_word, line_at};
use crate::tidy::Finding;
use crate::tree::{File, Tree};

/// A word or a phrase, why it is banned, and what to say instead. Split, lest they be found here.
const BANNED: &[(&str, &str, &str)] = &[
    (concat!("no", "body"), "names no subject", "name who does not act: `no app`, `no thread`"),
    (concat!("some", "body"), "names no subject", "name who acts: `another app`, `a client`"),
    (concat!("who", "ever"), "names no subject", "name who acts: `the app that`"),
    (concat!("let", " go"), "means dispatch and evict", "say `dispatch`, `evict` or `release`"),
    (concat!("lets", " go"), "means dispatch and evict", "say `dispatches`, `evicts` or `releases`"),
    (concat!("for le", "ave"), "reads as an exit", "say `for a grant`"),
    (concat!("vi", "gil"), "is a private word", "say `liveness check`"),
    (concat!("de", "parted"), "is a private word", "say `history` of those that left"),
    (concat!("ea", "r"), "is a private word", "say `wakeup`"),
    (concat!("a", "wake"), "is a private word", "say `realtime` or `running`"),
    (concat!("dou", "bt"), "is a private word", "say `reason` or `untrusted`"),
    (concat!("se", "at"), "is a private word", "say `endpoint`"),
    (concat!("fe", "ed"), "is a private word", "say `stream`"),
];

/// Names of other things that end in a banned word.
const ALLOWED: &[&str] = &["line feed", "line_feed"];

/// Paths that still have banned words, one per line; everything below a folder counts.
const TO_CLEAN: &str = "xtask/words_to_clean.txt";

/// How many paths [`TO_CLEAN`] may have. Lower it with the list, never raise it.
const TO_CLEAN_MAX: usize = 3;

/// Checks sources and documents against the banned words, and the list against both.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let list = tree.file(TO_CLEAN).map_or("", |file| file.text.as_str());
    let listed = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut allowed: Vec<(&str, usize)> = listed.map(|path| (path, 0)).collect();
    let mut findings = Vec::new();
    if allowed.len() > TO_CLEAN_MAX {
        let message =
            format!("{} paths, at most {TO_CLEAN_MAX} are allowed: clean the new ones", allowed.len());
        findings.push(Finding::error(TO_CLEAN, 1, message));
    }
    for file in tree.files().iter().filter(|file| file.is_rust() || file.is_markdown()) {
        let found = check_file(file);
        let below = |path: &str| file.path == path || path.ends_with('/') && file.path.starts_with(path);
        match allowed.iter_mut().find(|(path, _)| below(path)) {
            Some((_, count)) => *count += found.len(),
            None => findings.extend(found),
        }
    }
    for (path, _) in allowed.iter().filter(|(_, count)| *count == 0) {
        let message = format!("{path} has no banned words any more: take it out of the list");
        findings.push(Finding::error(TO_CLEAN, 1, message));
    }
    findings
}

fn check_file(file: &File) -> Vec<Finding> {
    let text = if file.is_rust() { Source::new(&file.text).prose } else { file.text.clone() };
    let mut findings = Vec::new();
    for (word, reason, instead) in BANNED {
        for at in find(&text, word) {
            let message = format!("`{word}` {reason}: {instead}");
            findings.push(Finding::error(&file.path, line_at(&text, at), message));
        }
    }
    findings
}

/// Where a word occurs by itself or as a part of an identifier, in any case: `no_one` and `NoOne`
/// both have the parts `no` and `one`.
fn find(text: &str, word: &str) -> Vec<usize> {
    let lower = text.to_ascii_lowercase();
    let bytes = text.as_bytes();
    let begins = |at: usize| {
        let before = text[..at].chars().next_back().unwrap_or(' ');
        !is_word(before) || before == '_' || before.is_ascii_lowercase() && bytes[at].is_ascii_uppercase()
    };
    let ends = |at: usize| {
        let after = text[at..].chars().next().unwrap_or(' ');
        let camel = after.is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase();
        !is_word(after) || after == '_' || camel
    };
    let allowed =
        |end: usize| ALLOWED.iter().any(|name| name.ends_with(word) && lower[..end].ends_with(name));
    let found = lower.match_indices(word).map(|(at, _)| at).filter(|&at| !allowed(at + word.len()));
    found.filter(|&at| begins(at) && ends(at + word.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: &str = concat!("no", "body");

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn words_are_found_in_prose_and_identifiers() {
        assert_eq!(find("a seating, seat.", "seat"), [11]);
        assert_eq!(find("a line feed, a feed", "feed"), [15]);
        assert_eq!(find("my_seat SeatBelt ASeat SEAT beSeat", "seat"), [3, 8, 23, 30]);
        let text = format!("// {WORD}\nlet a = \"{WORD}\";\n");
        let messages = found(&[("crates/new/src/a.rs", &text), ("docs/a.md", WORD)]);
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(
            messages[0].starts_with("crates/new/src/a.rs:1: error: ")
                && messages[1].starts_with("docs/a.md:1")
        );
    }

    #[test]
    fn what_is_listed_must_need_it() {
        let clean = found(&[("docs/a.md", "plain"), (TO_CLEAN, "# why\ndocs/\n")]);
        assert!(clean.iter().any(|message| message.contains("take it out")), "{clean:?}");
        let allowed = found(&[("docs/a.md", WORD), (TO_CLEAN, "docs/\n")]);
        assert!(allowed.iter().all(|message| !message.contains("docs/a.md")), "{allowed:?}");
    }
}
