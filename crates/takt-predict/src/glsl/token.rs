//! Tokens and the scanner that makes them.
//!
//! Bytes that are not ASCII occur in comments of real shaders, so they are skipped there and
//! refused elsewhere. A backslash at a line's end joins lines, which ES 3.00 demands and drivers
//! accept in ES 1.00 too.

use std::collections::BTreeMap;

use super::error::{GlslError, Result};
use super::limits::{NAME_BYTES_MAX, TOKENS_MAX};

/// Number of an interned name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Name(pub(super) u32);

/// The texts behind [`Name`]s.
#[derive(Clone, Default, Debug)]
pub(super) struct Names {
    texts: Vec<String>,
    numbers: BTreeMap<String, Name>,
}

impl Names {
    pub(super) fn intern(&mut self, text: &str) -> Name {
        if let Some(name) = self.numbers.get(text) {
            return *name;
        }
        // The number of names is bounded by the number of tokens.
        let name = Name(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), name);
        name
    }

    pub(super) fn text(&self, name: Name) -> &str {
        self.texts.get(name.0 as usize).map_or("", String::as_str)
    }

    pub(super) fn find(&self, text: &str) -> Option<Name> {
        self.numbers.get(text).copied()
    }
}

/// What a token is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Tok {
    /// A name or keyword.
    Word(Name),
    /// An integer literal, as its 32 bits.
    Int(u32),
    /// An unsigned integer literal (`1u`).
    Uint(u32),
    /// A floating-point literal.
    Float(f32),
    /// An operator or bracket.
    Punct(&'static str),
    /// A token that only directives may contain, such as a backquote.
    Junk(u8),
    /// End of the text.
    End,
}

/// A token and where it stands.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Token {
    pub(super) tok: Tok,
    pub(super) line: u32,
    /// First on its line, which makes `#` a directive.
    pub(super) first: bool,
    /// Directly behind the token before it; a macro with parameters needs to know.
    pub(super) glued: bool,
}

/// Longest first, so that the first match is the longest.
const PUNCTUATION: &[&str] = &[
    "<<=", ">>=", "<<", ">>", "++", "--", "<=", ">=", "==", "!=", "&&", "||", "^^", "*=", "/=", "+=", "-=",
    "%=", "&=", "^=", "|=", "(", ")", "[", "]", "{", "}", ".", ",", ":", "=", ";", "!", "-", "~", "+", "*",
    "/", "%", "<", ">", "|", "^", "&", "?", "#",
];

/// Cuts source text into tokens.
pub(super) fn scan(source: &str, names: &mut Names) -> Result<Vec<Token>> {
    let mut scanner = Scanner { bytes: source.as_bytes(), at: 0, line: 1, first: true, glued: false };
    let mut tokens = Vec::new();
    while scanner.skip_blanks()? {
        if tokens.len() >= TOKENS_MAX {
            return Err(GlslError::limit(scanner.line, "TOKENS_MAX"));
        }
        let (line, first, glued) = (scanner.line, scanner.first, scanner.glued);
        let tok = scanner.token(source, names)?;
        scanner.first = false;
        scanner.glued = true;
        tokens.push(Token { tok, line, first, glued });
    }
    tokens.push(Token { tok: Tok::End, line: scanner.line, first: true, glued: false });
    Ok(tokens)
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u32,
    first: bool,
    glued: bool,
}

impl Scanner<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Moves to the next token; false at the end of the text.
    fn skip_blanks(&mut self) -> Result<bool> {
        while self.at < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (b'\n', _) => {
                    self.line += 1;
                    self.first = true;
                    self.at += 1;
                }
                (b'\\', b'\n') => {
                    self.line += 1;
                    self.at += 2;
                }
                (b'\\', b'\r') if self.peek(2) == b'\n' => {
                    self.line += 1;
                    self.at += 3;
                }
                (b' ' | b'\t' | b'\r' | 0x0b | 0x0c, _) => self.at += 1,
                (b'/', b'/') => self.skip_line(),
                (b'/', b'*') => self.skip_comment()?,
                _ => return Ok(true),
            }
            self.glued = false;
        }
        Ok(false)
    }

    fn skip_line(&mut self) {
        while self.at < self.bytes.len() && self.peek(0) != b'\n' {
            if self.peek(0) == b'\\' && self.peek(1) == b'\n' {
                self.line += 1;
                self.at += 1;
            }
            self.at += 1;
        }
    }

    fn skip_comment(&mut self) -> Result<()> {
        let line = self.line;
        self.at += 2;
        while (self.peek(0), self.peek(1)) != (b'*', b'/') {
            if self.at >= self.bytes.len() {
                return Err(GlslError::syntax(line, "comment without end"));
            }
            if self.peek(0) == b'\n' {
                self.line += 1;
                self.first = true;
            }
            self.at += 1;
        }
        self.at += 2;
        Ok(())
    }

    fn token(&mut self, source: &str, names: &mut Names) -> Result<Tok> {
        let byte = self.peek(0);
        if byte.is_ascii_alphabetic() || byte == b'_' {
            let start = self.at;
            while self.peek(0).is_ascii_alphanumeric() || self.peek(0) == b'_' {
                self.at += 1;
            }
            if self.at - start > NAME_BYTES_MAX {
                return Err(GlslError::limit(self.line, "NAME_BYTES_MAX"));
            }
            return Ok(Tok::Word(names.intern(&source[start..self.at])));
        }
        if byte.is_ascii_digit() || (byte == b'.' && self.peek(1).is_ascii_digit()) {
            return self.number(source);
        }
        let rest = &self.bytes[self.at..];
        if let Some(text) = PUNCTUATION.iter().find(|text| rest.starts_with(text.as_bytes())) {
            self.at += text.len();
            return Ok(Tok::Punct(text));
        }
        self.at += 1;
        Ok(Tok::Junk(byte))
    }

    fn number(&mut self, source: &str) -> Result<Tok> {
        let start = self.at;
        let mut float = false;
        let hex = self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'X');
        if hex {
            self.at += 2;
        }
        loop {
            match self.peek(0) {
                b'.' if !hex => float = true,
                b'e' | b'E' if !hex => {
                    float = true;
                    if matches!(self.peek(1), b'+' | b'-') {
                        self.at += 1;
                    }
                }
                byte if byte.is_ascii_alphanumeric() || byte == b'_' => {}
                _ => break,
            }
            self.at += 1;
        }
        let text = &source[start..self.at];
        let bad = || GlslError::syntax(self.line, "malformed number");
        if float || (!hex && text.ends_with(['f', 'F'])) {
            let digits = text.trim_end_matches(['f', 'F']);
            return digits.parse().map(Tok::Float).map_err(|_bad| bad());
        }
        let (digits, unsigned) = match text.strip_suffix(['u', 'U']) {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        let value = match digits {
            _ if hex => u32::from_str_radix(digits.get(2..).unwrap_or(""), 16),
            _ if digits.len() > 1 && digits.starts_with('0') => u32::from_str_radix(digits, 8),
            _ => digits.parse(),
        };
        let value = value.map_err(|_bad| bad())?;
        Ok(if unsigned { Tok::Uint(value) } else { Tok::Int(value) })
    }
}
