//! Sentences of the manual that can be read once: a long one has two thoughts, or a list.
//!
//! Records of decisions and experiments are not changed later, so they are not checked.

use crate::documents::plain_lines;
use crate::tidy::Finding;
use crate::tree::{File, Tree};

/// Words of a sentence at most.
const WORDS_MAX: usize = 55;

/// Folders of records.
const RECORDS: &[&str] = &["docs/adr/", "docs/experiments/"];

/// Checks the pages of the manual.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let is_manual = |file: &&File| file.is_markdown() && !RECORDS.iter().any(|at| file.path.starts_with(at));
    tree.files().iter().filter(is_manual).flat_map(check_page).collect()
}

fn check_page(file: &File) -> Vec<Finding> {
    let lines = plain_lines(&file.text);
    let prose = lines.iter().filter(|(_, text)| !text.starts_with('|'));
    let long = prose.flat_map(|(line, text)| sentences(text).map(move |words| (*line, words)));
    let long = long.filter(|(_, words)| *words > WORDS_MAX);
    let message = |words| format!("a sentence of {words} words, wanted at most {WORDS_MAX}: split it");
    long.map(|(line, words)| Finding::error(&file.path, line, message(words))).collect()
}

/// Words of each sentence of a line. Code counts as a part of the word that it stands in.
fn sentences(line: &str) -> impl Iterator<Item = usize> {
    let mut counts = vec![0];
    let words = || {
        line.split_whitespace()
            .filter(|word| word.contains(|letter: char| letter.is_alphanumeric() || letter == '`'))
    };
    for (word, next) in words().zip(words().skip(1).map(Some).chain([None])) {
        *counts.last_mut().expect("there is one") += 1;
        let ends = word.trim_end_matches([')', '*', '"']).ends_with(['.', '!', '?']);
        if ends && next.is_some_and(|next| next.starts_with(|letter: char| !letter.is_lowercase())) {
            counts.push(0);
        }
    }
    counts.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_by_sentence() {
        let counts = |line| sentences(line).collect::<Vec<_>>();
        assert_eq!(counts("One two. Three — four, e.g. five (six seven.) `takt` ends."), [2, 6, 2]);
        assert_eq!(counts(""), [0]);
    }

    #[test]
    fn long_sentences_of_the_manual_are_found() {
        let long = "word ".repeat(WORDS_MAX) + "end. It is short.\n```\n" + &"code ".repeat(80) + "\n```\n";
        let table = format!("| {} |\n", "cell ".repeat(80));
        let found = |path: &str, text: &str| check(&Tree::of(&[(path, text)])).len();
        assert_eq!(found("docs/a.md", &(long.clone() + &table)), 1);
        assert_eq!(found("docs/adr/a.md", &long), 0);
        assert_eq!(found("README.md", &"Word. ".repeat(80)), 0);
    }
}
