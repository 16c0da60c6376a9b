//! Names of commands, as records carry them.

use std::fmt;

/// Characters that a word holds, at six bits each.
const PER_WORD: usize = 10;
const WORDS: usize = 4;

/// What names are made of, by their numbers from 1; 0 ends a name.
const CHARACTERS: &[u8; 63] = b"_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The name of a command such as `glBlitFramebuffer`: at most forty letters, digits and underscores.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Command([u64; WORDS]);

impl Command {
    /// That name. It ends before the first character that names do not have, and after forty.
    pub fn new(name: &str) -> Self {
        let number = |character: u8| CHARACTERS.iter().position(|other| *other == character);
        let mut words = [0; WORDS];
        for (at, number) in name.bytes().map_while(number).take(WORDS * PER_WORD).enumerate() {
            words[at / PER_WORD] |= (number as u64 + 1) << (at % PER_WORD * 6);
        }
        Self(words)
    }

    /// Whether it names nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// As words of a record.
    pub fn words(&self) -> [u64; WORDS] {
        self.0
    }

    /// Words of a record, if they are those of a name.
    pub fn read(words: [u64; WORDS]) -> Option<Self> {
        let read = Self(words);
        (Self::new(&read.to_string()) == read).then_some(read)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for at in 0..WORDS * PER_WORD {
            let number = self.0[at / PER_WORD] >> (at % PER_WORD * 6) & 63;
            let Some(character) =
                usize::try_from(number).ok().and_then(|n| CHARACTERS.get(n.checked_sub(1)?))
            else {
                break;
            };
            write!(f, "{}", char::from(*character))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_come_back(name in "[A-Za-z0-9_]{0,40}", rest in "[^A-Za-z0-9_][ -~]*") {
            let command = Command::new(&name);
            prop_assert_eq!(command.to_string(), name.clone());
            prop_assert_eq!(Command::read(command.words()), Some(command));
            prop_assert_eq!(Command::new(&(name + &rest)), command);
        }

        #[test]
        fn no_other_words_are_names(words in proptest::array::uniform4(any::<u64>())) {
            if let Some(command) = Command::read(words) {
                prop_assert_eq!(Command::new(&command.to_string()).words(), words);
            }
        }
    }

    #[test]
    fn long_names_are_cut_short() {
        let longest = "glDrawElementsInstancedBaseVertexBaseInstanceEXT";
        assert_eq!(Command::new(longest).to_string(), &longest[..40]);
        assert!(Command::new("").is_empty() && Command::new("\n").is_empty());
        assert_eq!(Command::read([1 << 60, 0, 0, 0]), None, "there are ten to a word");
        assert_eq!(Command::read([0, 1, 0, 0]), None, "nothing follows the end");
    }
}
