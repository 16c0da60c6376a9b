//! Words that a reader would have to learn first.
//!
//! Each has a plain one of the field instead. Sources in all languages are checked with their comments
//! and literals, documents without what is quoted as code.

use crate::lexer::{is_word, line_at};
use crate::tidy::Finding;
use crate::tree::{File, Tree};

/// A word or a phrase, why it is banned, and what to say instead.
const BANNED: &[(&str, &str, &str)] = &[
    ("nobody", "names no subject", "name who does not act: `no app`, `no thread`"),
    ("somebody", "names no subject", "name who acts: `another app`, `a client`"),
    ("no one", "names no subject", "name who does not act: `no app`, `no client`"),
    ("everybody", "names no subject", "name who acts: `all apps`, `every client`"),
    ("everyone", "names no subject", "name who acts: `all apps`, `every user`"),
    ("anybody", "names no subject", "name who acts: `any app`, `other clients`"),
    ("anyone", "names no subject", "name who acts: `any user`, `any program`"),
    ("someone", "names no subject", "name who acts: `another app`, `a client`"),
    ("whoever", "names no subject", "name who acts: `the app that`"),
    ("let go", "means dispatch and evict", "say `dispatch`, `evict` or `release`"),
    ("lets go", "means dispatch and evict", "say `dispatches`, `evicts` or `releases`"),
    ("for leave", "reads as an exit", "say `for a grant`"),
    ("no leave", "reads as an exit", "say `no grant`"),
    ("without leave", "reads as an exit", "say `without a grant`"),
    ("ask leave", "reads as an exit", "say `ask for a grant`"),
    ("asks leave", "reads as an exit", "say `asks for a grant`"),
    ("has leave", "reads as an exit", "say `has a grant`"),
    ("its leave", "reads as an exit", "say `its grant`"),
    ("give leave", "reads as an exit", "say `grant` or `permit`"),
    ("gives leave", "reads as an exit", "say `grants` or `permits`"),
    ("vigil", "is a private word", "say `liveness check`"),
    ("departed", "is a private word", "say `history` of those that left"),
    ("ear", "is a private word", "say `wakeup`"),
    ("awake", "is a private word", "say `realtime` or `running`"),
    ("doubt", "is a private word", "say `reason` or `untrusted`"),
    ("seat", "is a private word", "say `endpoint`"),
    ("feed", "is a private word", "say `stream`"),
];

/// Where a word is that of the field: a crate that speaks a protocol uses its words, processors are awake or halt,
/// a parser of Python's library is fed, and Debian has a user of that name.
const OF_THE_FIELD: &[(&str, &str)] = &[
    ("seat", "crates/takt-compositor/"),
    ("awake", "eval/"),
    ("feed", "scripts/book.py"),
    ("nobody", "crates/takt-cli/tests/it/browsers.rs"),
];

/// Endings and names of files that people write.
const WRITTEN: &[&str] = &[".rs", ".md", ".c", ".h", ".toml", ".py", ".sh", "eval/test", "eval/run"];

/// Names of other things that end in a banned word.
const ALLOWED: &[&str] = &["line feed", "line_feed"];

/// The file that has to name them.
const OWN: &str = "xtask/src/words.rs";

/// Checks sources and documents against the banned words.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let checked = |file: &&File| file.path != OWN && WRITTEN.iter().any(|end| file.path.ends_with(end));
    tree.files().iter().filter(checked).flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let text = if file.is_markdown() { without_code(&file.text) } else { file.text.clone() };
    let mut findings = Vec::new();
    let of_the_field =
        |word: &str| OF_THE_FIELD.iter().any(|(known, path)| *known == word && file.path.starts_with(path));
    for (word, reason, instead) in BANNED.iter().filter(|(word, ..)| !of_the_field(word)) {
        for at in find(&text, word) {
            let message = format!("`{word}` {reason}: {instead}");
            findings.push(Finding::error(&file.path, line_at(&text, at), message));
        }
    }
    findings
}

/// The text with what stands between backquotes blanked: options and output keep their names.
fn without_code(text: &str) -> String {
    let mut quoted = false;
    let blank = |letter: char| {
        quoted ^= letter == '`';
        if quoted && letter != '\n' { ' ' } else { letter }
    };
    text.chars().map(blank).collect()
}

/// Where a word occurs by itself or as a part of an identifier, in any case: `no_one` and `NoOne`
/// both have the parts `no` and `one`.
fn find(text: &str, word: &str) -> Vec<usize> {
    // A phrase is one in an identifier as well.
    let lower = text.to_ascii_lowercase();
    let lower = if word.contains(' ') { lower.replace('_', " ") } else { lower };
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

    const WORD: &str = "nobody";

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn words_are_found_in_prose_and_identifiers() {
        assert_eq!(find("a seating, seat.", "seat"), [11]);
        assert_eq!(find("a line feed, a feed", "feed"), [15]);
        assert_eq!(find("fn is_let_go() let good", "let go"), [6]);
        assert_eq!(find("my_seat SeatBelt ASeat SEAT beSeat", "seat"), [3, 8, 23, 30]);
        let text = format!("// {WORD}\nlet a = \"{WORD}\";\n");
        let page = format!("`{WORD}`\n```\n{WORD}\n```\n{WORD}");
        let messages = found(&[("crates/new/src/a.rs", &text), ("docs/a.md", &page)]);
        let at: Vec<&str> =
            messages.iter().filter_map(|message| message.split_once(": error")).map(|(at, _)| at).collect();
        assert_eq!(at, ["crates/new/src/a.rs:1", "crates/new/src/a.rs:2", "docs/a.md:5"], "{messages:?}");
    }

    #[test]
    fn every_language_is_checked() {
        let files =
            ["a.c", "a.h", "a.toml", "a.py", "a.sh", "eval/test", "Cargo.lock"].map(|path| (path, WORD));
        assert_eq!(found(&files).len(), files.len() - 1, "all but the lock file");
        assert_eq!(found(&[("a.rs", "// it needs no leave for it\n// it may leave\n")]).len(), 1);
    }

    #[test]
    fn protocols_keep_their_words() {
        assert!(found(&[("crates/takt-compositor/src/a.rs", "// a seat\n")]).is_empty());
        assert_eq!(found(&[("crates/takt-ipc/src/a.rs", "// a seat\n")]).len(), 1);
    }
}
