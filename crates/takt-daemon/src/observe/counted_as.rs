//! As what an app is counted.
//!
//! A name is what a client says of itself, so counters of a name alone would be any client's. They are those of a name
//! in a domain, and those of an app that the configuration lists are its own. [`Totals`](takt_trace::totals::Totals)
//! counts by one text, which this makes and reads; there are never more of them than it has room for.

use takt_trace::totals::OTHERS;

/// Stands between a name and its domain; neither has it.
const IN: char = '@';
/// Ends the text of a listed app.
const LISTED: char = '!';

/// What an app is counted as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CountedAs<'a> {
    pub(crate) name: &'a str,
    /// Its domain; empty for those that found no room of their own.
    pub(crate) domain: &'a str,
    /// Whether the configuration lists it.
    pub(crate) listed: bool,
}

impl<'a> CountedAs<'a> {
    /// The text for that.
    pub(crate) fn text(&self) -> String {
        let listed = if self.listed { LISTED.to_string() } else { String::new() };
        format!("{}{IN}{}{listed}", self.name, self.domain)
    }

    /// What a text is for.
    pub(crate) fn of(text: &'a str) -> Self {
        if text == OTHERS {
            return Self { name: OTHERS, domain: "", listed: false };
        }
        let (name, rest) = text.split_once(IN).unwrap_or((text, ""));
        let domain = rest.strip_suffix(LISTED);
        Self { name, domain: domain.unwrap_or(rest), listed: domain.is_some() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_can_be_read() {
        for listed in [false, true] {
            let dial = CountedAs { name: "dial", domain: "cluster", listed };
            assert_eq!(CountedAs::of(&dial.text()), dial);
        }
        assert_eq!(CountedAs::of(OTHERS), CountedAs { name: OTHERS, domain: "", listed: false });
    }
}
