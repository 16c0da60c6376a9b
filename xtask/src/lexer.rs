//! Just enough of Rust's lexical grammar to tell code, comments and literals apart.
//!
//! Checks that search for words must not trip over prose and test data, and must not be fooled
//! by them either. [`Source`] keeps the lines and columns of the original, so every hit has its
//! true place.

/// Rust source in two views of the original's shape.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Comments and the insides of literals blanked.
    pub(crate) code: String,
    /// The insides of literals blanked, comments kept.
    pub(crate) prose: String,
    /// Lines, from 1, that begin inside a literal: what they hold is data, not source.
    pub(crate) data_lines: Vec<usize>,
}

/// What stands for a character inside a literal: part of a word, but of none that is searched.
const IN_LITERAL: char = '_';

impl Source {
    /// Splits `text` into its views.
    pub(crate) fn new(text: &str) -> Self {
        let mut lexer = Lexer {
            chars: text.chars().collect(),
            at: 0,
            code: String::with_capacity(text.len()),
            prose: String::with_capacity(text.len()),
            data_lines: Vec::new(),
        };
        lexer.run();
        Self { code: lexer.code, prose: lexer.prose, data_lines: lexer.data_lines }
    }
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    code: String,
    prose: String,
    data_lines: Vec<usize>,
}

impl Lexer {
    fn run(&mut self) {
        while let Some(current) = self.peek(0) {
            match (current, self.peek(1)) {
                ('/', Some('/')) => self.line_comment(),
                ('/', Some('*')) => self.block_comment(),
                ('"', _) => self.string(),
                ('r', Some('"' | '#')) if self.starts_literal() => self.raw_string(),
                ('\'', _) => self.quote(),
                _ => self.copy(),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// Takes one character of code.
    fn copy(&mut self) {
        if let Some(current) = self.peek(0) {
            self.code.push(current);
            self.prose.push(current);
            self.at += 1;
        }
    }

    /// Takes one character of a comment.
    fn comment(&mut self) {
        if let Some(current) = self.peek(0) {
            self.code.push(if current == '\n' { '\n' } else { ' ' });
            self.prose.push(current);
            self.at += 1;
        }
    }

    /// Takes one character inside a literal.
    fn literal(&mut self) {
        if let Some(current) = self.peek(0) {
            let shown = if current == '\n' { '\n' } else { IN_LITERAL };
            self.code.push(shown);
            self.prose.push(shown);
            if current == '\n' {
                self.data_lines.push(line_at(&self.code, self.code.len()));
            }
            self.at += 1;
        }
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|current| current != '\n') {
            self.comment();
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0u32;
        while self.peek(0).is_some() {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => depth += 1,
                (Some('*'), Some('/')) => depth -= 1,
                _ => {
                    self.comment();
                    continue;
                }
            }
            self.comment();
            self.comment();
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.copy();
        while let Some(current) = self.peek(0) {
            match current {
                '"' => return self.copy(),
                '\\' => {
                    self.literal();
                    self.literal();
                }
                _ => self.literal(),
            }
        }
    }

    /// Whether the `r` here begins a word (or follows the `b` or `c` that does).
    fn starts_literal(&self) -> bool {
        let before = |back: usize| self.at.checked_sub(back).map(|index| self.chars[index]);
        match before(1) {
            Some('b' | 'c') => !before(2).is_some_and(is_word),
            other => !other.is_some_and(is_word),
        }
    }

    fn raw_string(&mut self) {
        let hashes = self.chars[self.at + 1..].iter().take_while(|next| **next == '#').count();
        if self.peek(hashes + 1) != Some('"') {
            return self.copy();
        }
        for _ in 0..hashes + 2 {
            self.copy();
        }
        while self.peek(0).is_some() {
            let closes = self.peek(0) == Some('"') && (1..=hashes).all(|ahead| self.peek(ahead) == Some('#'));
            if closes {
                for _ in 0..=hashes {
                    self.copy();
                }
                return;
            }
            self.literal();
        }
    }

    /// A character literal or a lifetime.
    fn quote(&mut self) {
        let escaped = self.peek(1) == Some('\\');
        let single = self.peek(2) == Some('\'');
        self.copy();
        if escaped {
            self.literal();
            self.literal();
            while self.peek(0).is_some_and(|current| current != '\'' && current != '\n') {
                self.literal();
            }
            self.copy();
        } else if single {
            self.literal();
            self.copy();
        }
    }
}

/// Whether a character can be part of an identifier.
pub(crate) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Byte offsets at which `needle` occurs with no identifier running into either of its ends.
pub(crate) fn find_words<'a>(text: &'a str, needle: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(needle).map(|(at, _)| at).filter(move |at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + needle.len()..].chars().next();
        let open_start = needle.starts_with(is_word) && before.is_some_and(is_word);
        let open_end = needle.ends_with(is_word) && after.is_some_and(is_word);
        !open_start && !open_end
    })
}

/// The line of a byte offset, from 1.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, code: &str) {
        assert_eq!(Source::new(text).code, code);
    }

    #[test]
    fn comments_vanish_from_code_only() {
        check("a // b\nc", "a     \nc");
        check("a /* b /* c */ d */ e", "a                   e");
        check("a /* b\n */ e", "a     \n    e");
        assert_eq!(Source::new("a // b").prose, "a // b");
    }

    #[test]
    fn literals_are_opaque() {
        check(r#"f("a // \" b") + 1"#, r#"f("_________") + 1"#);
        check("r\"\\\" x", "r\"_\" x");
        check("br#\"a \" b\"# c", "br#\"_____\"# c");
        check("'\"' 'a' '\\'' '\\u{41}' x", "'_' '_' '__' '______' x");
        check("\"a\nb\"", "\"_\n_\"");
        assert_eq!(Source::new("a\n\"b\nc\"\nd").data_lines, [3]);
    }

    #[test]
    fn lifetimes_and_raw_names_are_no_literals() {
        check("fn f<'a>(r#type: &'a str) {}", "fn f<'a>(r#type: &'a str) {}");
        check("for\"x\"", "for\"_\"");
    }

    #[test]
    fn unfinished_input_ends() {
        check("\"abc", "\"___");
        check("r#\"abc", "r#\"___");
        check("/* a", "    ");
        check("'\\", "'_");
    }

    #[test]
    fn words_have_ends() {
        let found: Vec<usize> = find_words("std::fs; mystd::fs std::fstab ::std::fs::x", "std::fs").collect();
        assert_eq!(found, [0, 32]);
        assert_eq!(line_at("a\nb\nc", 4), 3);
    }
}
