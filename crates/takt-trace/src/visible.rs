//! Escapes characters that hide or reorder text on terminals, in logs and in pages.
//!
//! Control characters steer terminals, and marks that turn the direction of writing or take no space
//! make one name look like another. None of them is ever printed; an escape stands in their place.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character shows nothing of itself.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// `text` for people: hidden characters as escapes, but for ends of lines and tabs.
pub fn shown(text: &str) -> Cow<'_, str> {
    escaped(
        text,
        |c| is_hidden(c) && c != '\n' && c != '\t',
        |out, c| write!(out, "\\u{{{:x}}}", u32::from(c)),
    )
}

/// The same on one line: names of files and processes can have ends of lines, with which one entry of a list
/// looks like several.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden, |out, c| write!(out, "\\u{{{:x}}}", u32::from(c)))
}

/// JSON in which hidden characters are escapes; it says the same. Ends of lines between its parts stay.
pub fn json(text: &str) -> Cow<'_, str> {
    let escape = |out: &mut String, c: char| {
        c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(out, "\\u{unit:04x}"))
    };
    escaped(text, |c| is_hidden(c) && c != '\n', escape)
}

fn escaped(
    text: &str,
    is_bad: impl Fn(char) -> bool,
    escape: impl Fn(&mut String, char) -> std::fmt::Result,
) -> Cow<'_, str> {
    if !text.contains(&is_bad) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_bad(c) {
            // Formatting into a string cannot fail.
            escape(&mut out, c).unwrap_or_default();
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_become_visible() {
        assert_eq!(shown("dial é 速"), "dial é 速");
        assert_eq!(shown("a\u{1b}[2Jb\u{202e}c\n\td"), "a\\u{1b}[2Jb\\u{202e}c\n\td");
        for c in ['\0', '\r', '\u{7f}', '\u{9b}', '\u{200b}', '\u{2066}', '\u{feff}', '\u{e0041}'] {
            assert!(is_hidden(c), "{c:?}");
            assert!(!shown(&c.to_string()).contains(is_hidden));
        }
    }

    #[test]
    fn a_line_stays_one() {
        assert_eq!(line("dial é 速"), "dial é 速");
        assert_eq!(line("a\nb\tc\u{2028}d\u{1b}"), "a\\u{a}b\\u{9}c\\u{2028}d\\u{1b}");
    }

    #[test]
    fn json_says_the_same() {
        let value = serde_json::json!({ "a\u{202e}": "b\u{7f}\u{9b}\u{e0041}\n\t é" });
        let text = serde_json::to_string_pretty(&value).expect("JSON");
        let escaped = json(&text);
        assert!(!escaped.contains(|c| is_hidden(c) && c != '\n'), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).expect("JSON"), value);
    }
}
