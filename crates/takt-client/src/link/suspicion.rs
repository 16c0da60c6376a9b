//! Whether a daemon that is silent hangs, or is only late.
//!
//! A daemon beats before it falls asleep, and wakes for its next beat. So a late daemon that sleeps is
//! blocked by something else, and a late one that had the processor meanwhile does something else: both
//! hang. One that would run but has no processor is late because the machine is busy, for an unknown
//! time. One look cannot tell: after a pause of the whole machine its sleepers wake up one after the
//! other. Two looks can.

use takt_core::{Span, Time};

use takt_os::process::ThreadState;

/// Time between two looks. With 11 ms until the first one that is less than a frame at 60 Hz.
pub(super) const BETWEEN: Span = Span::from_ms(3);

/// What was seen of a daemon that is silent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Look {
    pub(super) at: Time,
    /// The last beat.
    pub(super) beat: Time,
    pub(super) doing: Option<ThreadState>,
}

impl Look {
    /// Whether the daemon has not beaten since an earlier look, but it is too early to judge.
    pub(super) fn is_too_early(&self, first: &Self) -> bool {
        self.beat == first.beat && self.at.since(first.at) < BETWEEN
    }

    /// Whether two looks show that the daemon hangs.
    pub(super) fn hangs(&self, first: &Self) -> bool {
        let (Some(now), Some(then)) = (self.doing, first.doing) else {
            return false;
        };
        if self.beat != first.beat || self.is_too_early(first) {
            return false;
        }
        let ran = now.ran.zip(then.ran).map(|(now, then)| now.saturating_sub(then));
        let sleeps = !now.runnable && !then.runnable && ran.is_none_or(|ran| ran == Span::ZERO);
        // Most of the time it had a processor.
        let elapsed = self.at.since(first.at);
        let runs = now.runnable && ran.is_some_and(|ran| ran.times(4) >= elapsed.times(3));
        sleeps || runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at_ms: u64, runnable: bool, ran_ms: u64) -> Look {
        let doing = ThreadState { runnable, ran: Some(Span::from_ms(ran_ms)) };
        Look { at: Time::from_ms(at_ms), beat: Time::from_ms(1), doing: Some(doing) }
    }

    #[test]
    fn who_sleeps_beyond_a_beat_hangs() {
        let first = look(20, false, 5);
        assert!(look(23, false, 5).hangs(&first));
        assert!(!look(22, false, 5).hangs(&first), "it may just wake up");
        assert!(!look(23, true, 5).hangs(&first), "it has woken up");
        assert!(!look(23, false, 6).hangs(&first), "it ran meanwhile");
        let beaten = Look { beat: Time::from_ms(21), ..look(23, false, 5) };
        assert!(!beaten.hangs(&first));
        let unknown = Look { doing: None, ..first };
        assert!(!look(90, false, 5).hangs(&unknown) && !unknown.hangs(&first));
    }

    #[test]
    fn who_runs_and_does_not_beat_hangs() {
        let first = look(20, true, 5);
        assert!(look(24, true, 8).hangs(&first));
        assert!(!look(24, true, 5).hangs(&first), "it has no processor");
        assert!(!look(24, true, 6).hangs(&first), "and little of one");
    }
}
