//! A terminal: lines on it, keys from it, and as it was before when we are done.

use std::io::{self, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use rustix::time::Timespec;

use super::view::{Line, Tone};

/// What somebody wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Key {
    Quit,
    Pause,
    Sort,
    Wider,
    Narrower,
}

/// Another page of the terminal, without a cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Columns and rows if the terminal does not say.
const SIZE: (usize, usize) = (80, 24);

/// The terminal, ours until dropped.
pub(crate) struct Screen {
    before: Termios,
}

impl Screen {
    /// Takes the terminal over. Ctrl-C stays a signal.
    pub(crate) fn open() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut ours = before.clone();
        ours.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(stdin(), OptionalActions::Now, &ours)?;
        let screen = Self { before };
        write(ENTER)?;
        Ok(screen)
    }

    /// Columns of the terminal.
    pub(crate) fn width(&self) -> usize {
        size().0
    }

    /// Shows lines, and nothing else.
    pub(crate) fn show(&mut self, lines: &[Line]) -> io::Result<()> {
        let rows = size().1;
        let mut text = String::from("\x1b[H");
        for (index, line) in lines.iter().take(rows).enumerate() {
            if index > 0 {
                text.push_str("\r\n");
            }
            let (begin, end) = match line.tone {
                Tone::Plain => ("", ""),
                Tone::Head => ("\x1b[1m", "\x1b[0m"),
                Tone::Alarm => ("\x1b[31m", "\x1b[0m"),
            };
            text.push_str(begin);
            text.push_str(&printable(&line.text));
            text.push_str(end);
            text.push_str("\x1b[K");
        }
        text.push_str("\x1b[J");
        write(&text)
    }

    /// The next key that means something, if one comes within `patience`.
    pub(crate) fn key(&mut self, patience: Duration) -> io::Result<Option<Key>> {
        let mut keyboard = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
        let timeout = Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().into() };
        match poll(&mut keyboard, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut byte = [0];
        match rustix::io::read(stdin(), &mut byte)? {
            // Nobody can press anything any more.
            0 => Ok(Some(Key::Quit)),
            _ => Ok(meaning(byte[0])),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing is left to do if the terminal is gone.
        write(LEAVE).unwrap_or_default();
        tcsetattr(stdin(), OptionalActions::Now, &self.before).unwrap_or_default();
    }
}

fn meaning(byte: u8) -> Option<Key> {
    match byte {
        b'q' | b'Q' => Some(Key::Quit),
        b'p' | b' ' => Some(Key::Pause),
        b's' => Some(Key::Sort),
        b'+' => Some(Key::Wider),
        b'-' => Some(Key::Narrower),
        _ => None,
    }
}

/// Names come from programs; what would steer the terminal is not shown.
fn printable(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect()
}

fn size() -> (usize, usize) {
    match tcgetwinsize(stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => SIZE,
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
    }

    #[test]
    fn keys_mean_what_the_help_says() {
        let keys: Vec<_> = "qps+- x".bytes().map(meaning).collect();
        let pause = Some(Key::Pause);
        let expected =
            [Some(Key::Quit), pause, Some(Key::Sort), Some(Key::Wider), Some(Key::Narrower), pause, None];
        assert_eq!(keys, expected);
    }
}
