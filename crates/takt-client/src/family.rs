//! What one command starts: the program itself, and all that this one starts.

use std::fmt;
use std::fs;
use std::str::FromStr;

/// What becomes of programs that the program starts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Children {
    /// They belong to the app: all of them have one contract together.
    #[default]
    Inherit,
    /// They are apps of their own, without what was asked for the program that starts them.
    Own,
    /// Takt has nothing to do with them.
    None,
}

/// A program and what it starts, as `takt run` tells them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Family {
    /// What becomes of children.
    pub children: Children,
    /// The process of the program itself.
    pub root: u32,
    /// Tells it from other families of the user.
    pub number: u64,
    /// The name of the command that was typed.
    pub command: String,
}

/// What a process is in its family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// It shares nothing with others.
    Alone,
    /// It is part of the app.
    Member,
    /// It is an app of its own.
    OnItsOwn,
    /// It is none of ours.
    LeftOut,
}

impl Family {
    /// What a process is in it. One whose number belongs to another name space counts as started.
    pub(crate) fn role(&self, process: u32) -> Role {
        match self.children {
            Children::Inherit => Role::Member,
            _ if process == self.root => Role::Alone,
            Children::Own => Role::OnItsOwn,
            Children::None => Role::LeftOut,
        }
    }

    /// The command, if this process is a script of that name: its first word is that of its interpreter.
    pub(crate) fn script(&self) -> Option<String> {
        const SHOWN: usize = 15;
        let called = fs::read_to_string("/proc/self/comm").ok()?;
        let shown = &self.command[..self.command.floor_char_boundary(SHOWN)];
        (called.trim_end_matches('\n') == shown).then(|| self.command.clone())
    }
}

impl fmt::Display for Children {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inherit => "inherit",
            Self::Own => "own",
            Self::None => "none",
        })
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}:{}", self.children, self.root, self.number, self.command)
    }
}

/// It is not what `takt run` writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreadable;

impl FromStr for Family {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        let mut parts = text.splitn(4, ':');
        let mut next = || parts.next().ok_or(Unreadable);
        let children = match next()? {
            "inherit" => Children::Inherit,
            "own" => Children::Own,
            "none" => Children::None,
            _ => return Err(Unreadable),
        };
        let root = next()?.parse().ok().ok_or(Unreadable)?;
        let number = next()?.parse().ok().ok_or(Unreadable)?;
        Ok(Self { children, root, number, command: next()?.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(children: Children) -> Family {
        Family { children, root: 10, number: 7, command: "a:b c".to_owned() }
    }

    #[test]
    fn families_are_read_as_they_are_written() {
        for children in [Children::Inherit, Children::Own, Children::None] {
            assert_eq!(family(children).to_string().parse(), Ok(family(children)));
        }
        for text in ["", "own", "own:1", "own:1:2", "some:1:2:x", "own:x:2:x", "own:1:x:x"] {
            assert_eq!(text.parse::<Family>(), Err(Unreadable), "{text}");
        }
    }

    #[test]
    fn children_are_what_the_user_says() {
        let roles = |children| [10, 11].map(|process| family(children).role(process));
        assert_eq!(roles(Children::Inherit), [Role::Member; 2]);
        assert_eq!(roles(Children::Own), [Role::Alone, Role::OnItsOwn]);
        assert_eq!(roles(Children::None), [Role::Alone, Role::LeftOut]);
    }

    #[test]
    fn a_program_is_no_script_of_another_name() {
        assert_eq!(family(Children::Inherit).script(), None);
    }
}
