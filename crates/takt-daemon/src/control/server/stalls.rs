//! How long the control thread did not look at its connections.
//!
//! All that happens between two waits counts, also what the program around the server does then.

use takt_core::{Span, Time};

/// The times between waits.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    /// When the last wait ended.
    busy: Option<Time>,
    longest: Option<(Time, Time)>,
}

impl Stalls {
    /// A wait begins.
    pub(super) fn wait(&mut self, now: Time) {
        let Some(busy) = self.busy.take() else { return };
        if now.since(busy) > self.length() {
            self.longest = Some((busy, now));
        }
    }

    /// It ended.
    pub(super) fn wake(&mut self, now: Time) {
        self.busy = Some(now);
    }

    /// The longest one: when it began and ended.
    pub(super) fn longest(&self) -> Option<(Time, Time)> {
        self.longest
    }

    /// How long that took.
    pub(super) fn length(&self) -> Span {
        self.longest.map_or(Span::ZERO, |(began, ended)| ended.since(began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_time_between_waits_counts() {
        let mut stalls = Stalls::default();
        let ms = Time::from_ms;
        stalls.wait(ms(90));
        assert_eq!((stalls.longest(), stalls.length()), (None, Span::ZERO), "the start is no stall");
        for (wake, wait) in [(100, 103), (200, 250), (300, 304)] {
            stalls.wake(ms(wake));
            stalls.wait(ms(wait));
        }
        assert_eq!((stalls.longest(), stalls.length()), (Some((ms(200), ms(250))), Span::from_ms(50)));
    }
}
