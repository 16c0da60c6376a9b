//! What a client's thread tells the manager.

use std::collections::VecDeque;
use std::sync::Arc;

use takt_cockpit::geometry::{Rect, Size};
use takt_cockpit::windows::{Claims, WindowId};
use takt_core::{Span, Time};

use crate::manager::Teller;
use crate::picture::Window;

/// Most notes that wait in a client's thread; one that has more is disconnected.
const NOTES_MAX: usize = 1024;
/// Notes that a client may send at once.
const BURST: u32 = 128;
/// One more after so long.
const EVERY: Span = Span::from_ms(2);

/// What a client did.
#[derive(Debug)]
pub enum FromClient {
    /// It wants to show a window, which claims to be that.
    Appeared(Arc<Window>, Claims),
    /// A window claims to be something else.
    Claimed(WindowId, Claims),
    /// A window has a picture of that size, and takes input there.
    Mapped(WindowId, Size, Vec<Rect>),
    /// A window has no picture any more.
    Unmapped(WindowId),
    /// A window is gone.
    Vanished(WindowId),
    /// It broke a rule, and is disconnected.
    Offended {
        /// The rule.
        rule: &'static str,
        /// In words.
        reason: String,
    },
    /// Its connection is over.
    Gone(String),
}

/// Notes on their way, at a bounded rate.
#[derive(Debug)]
pub(super) struct Notes {
    manager: Teller,
    waiting: VecDeque<FromClient>,
    credit: u32,
    at: Time,
}

impl Notes {
    pub(super) fn new(manager: Teller, now: Time) -> Self {
        Self { manager, waiting: VecDeque::new(), credit: BURST, at: now }
    }

    /// Adds one. A newer note about the same thing takes the place of an older one.
    pub(super) fn put(&mut self, note: FromClient) {
        let same = |other: &FromClient| match (other, &note) {
            (FromClient::Claimed(a, _), FromClient::Claimed(b, _))
            | (FromClient::Mapped(a, ..), FromClient::Mapped(b, ..)) => a == b,
            _ => false,
        };
        match self.waiting.back_mut().filter(|last| same(last)) {
            Some(last) => *last = note,
            None => self.waiting.push_back(note),
        }
    }

    /// Whether there are too many.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() > NOTES_MAX
    }

    /// Sends what may be sent now.
    pub(super) fn send(&mut self, now: Time) {
        let more = u32::try_from(now.since(self.at).as_ns() / EVERY.as_ns()).unwrap_or(u32::MAX);
        if more > 0 {
            (self.credit, self.at) = (self.credit.saturating_add(more).min(BURST), now);
        }
        while self.credit > 0
            && let Some(note) = self.waiting.pop_front()
        {
            self.credit -= 1;
            self.manager.note(note);
        }
    }

    /// Sends the last note, whatever the rate.
    pub(super) fn end(&mut self, note: FromClient) {
        self.waiting.clear();
        self.manager.note(note);
    }

    /// When more may be sent, if anything waits.
    pub(super) fn next(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then(|| self.at + EVERY)
    }
}
