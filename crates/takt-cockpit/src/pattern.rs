//! Texts that clients claim, compared with what a rule allows.

use std::fmt;

use serde::Deserialize;

/// A text in which each `*` stands for any text, also for none.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// That text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether it fits a text. Walks over both once for each star at most.
    pub fn fits(&self, text: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else {
            return self.0 == text;
        };
        let Some(mut text) = text.strip_prefix(first) else {
            return false;
        };
        let mut parts: Vec<&str> = rest.split('*').collect();
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            let Some((_, after)) = text.split_once(part) else {
                return false;
            };
            text = after;
        }
        text.ends_with(last)
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        let fits = |pattern: &str, text: &str| Pattern::new(pattern).fits(text);
        assert!(fits("dial", "dial") && !fits("dial", "dial2") && !fits("dial", ""));
        assert!(fits("*", "") && fits("*", "dial") && fits("", "") && !fits("", "a"));
        assert!(fits("org.*.dial", "org.takt.dial") && !fits("org.*.dial", "org.dial"));
        assert!(fits("a*b*c", "a-b-b-c") && !fits("a*b*c", "a-c-b") && fits("a*", "a"));
        assert!(!fits("a*a", "a"), "no letter counts twice");
    }
}
