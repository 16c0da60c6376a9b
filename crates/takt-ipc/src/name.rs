//! Names of apps and displays.
//!
//! They are shown on terminals, written to logs and metrics, and typed in commands, so they have
//! letters, digits, `-`, `_` and `.` only, all of ASCII: no name looks like another or steers anything.

use crate::message::NAME_MAX;

/// What a name may have, for messages.
pub const ALLOWED: &str = "letters, digits, -, _ and .";

/// Whether this is a name.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= NAME_MAX && text.chars().all(is_plain)
}

/// The nearest name: `_` stands for what names do not have.
pub fn nearest(text: &str) -> String {
    let name: String = text.chars().map(|c| if is_plain(c) { c } else { '_' }).take(NAME_MAX).collect();
    if name.is_empty() { "app".to_owned() } else { name }
}

/// Which app a tool means by what it was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted<'a> {
    /// `3`: the one in that slot.
    Slot(u32),
    /// `pid:1234`: the one of that process.
    Process(u32),
    /// `dial`, or `dial@1000`: the one of that name, of that user alone if one is given.
    Name(&'a str, Option<u32>),
}

/// Reads which app is meant. No name has `:` or `@`, so none captures another way to name an app.
pub fn wanted(text: &str) -> Wanted<'_> {
    if let Some(slot) = slot(text) {
        return Wanted::Slot(slot);
    }
    if let Some(process) = text.strip_prefix("pid:").and_then(slot) {
        return Wanted::Process(process);
    }
    match text.rsplit_once('@').and_then(|(name, user)| Some((name, slot(user)?))) {
        Some((name, user)) => Wanted::Name(name, Some(user)),
        None => Wanted::Name(text, None),
    }
}

/// The slot that is meant, if this is a number. A number always means a slot, whatever apps are called.
pub fn slot(text: &str) -> Option<u32> {
    text.parse().ok().filter(|slot: &u32| slot.to_string() == text)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in ["dial", "org.kde.app-2_x", "2048"] {
            assert!(is_name(good), "{good}");
            assert_eq!(nearest(good), good);
        }
        let long = "x".repeat(NAME_MAX + 1);
        for bad in ["", "a b", "a\nb", "é", "a\u{202e}b", "a/b", "a=b", "\"", &long] {
            assert!(!is_name(bad), "{bad:?}");
            assert!(is_name(&nearest(bad)), "{bad:?}");
        }
        assert_eq!(nearest("My App é"), "My_App__");
    }

    #[test]
    fn numbers_are_slots() {
        assert_eq!([slot("0"), slot("17")], [Some(0), Some(17)]);
        assert_eq!([slot("007"), slot("+7"), slot("x"), slot(""), slot("99999999999")], [None; 5]);
    }

    #[test]
    fn an_app_can_be_named_by_slot_process_and_user() {
        assert_eq!([wanted("3"), wanted("pid:3")], [Wanted::Slot(3), Wanted::Process(3)]);
        assert_eq!(
            [wanted("dial"), wanted("dial@7")],
            [Wanted::Name("dial", None), Wanted::Name("dial", Some(7))]
        );
        // What is none of these is a name that no app has.
        for odd in ["pid:x", "pid:", "dial@", "dial@x"] {
            assert_eq!(wanted(odd), Wanted::Name(odd, None));
            assert!(!is_name(odd), "{odd}");
        }
    }
}
