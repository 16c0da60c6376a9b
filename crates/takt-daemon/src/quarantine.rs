//! Who may not come back yet.
//!
//! A client that was let go for what it did runs on unscheduled and will ask to be scheduled again.
//! It may, after a pause that doubles with each fault, so that one that always hangs disturbs the
//! others less and less; one that behaves for a while is forgiven.

use takt_core::{Span, Time};

/// The first pause.
const FIRST: Span = Span::from_ms(1_000);
/// How often it doubles at most: 64 s.
const DOUBLINGS_MAX: u32 = 6;
/// A fault is forgotten this long after its pause.
const MEMORY: Span = Span::from_ms(120_000);
/// Most offenders that are remembered.
const OFFENDERS_MAX: usize = 256;

/// A process that did something wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Offender {
    pid: u32,
    faults: u32,
    until: Time,
}

/// Everybody who did something wrong lately.
#[derive(Clone, Debug, Default)]
pub struct Quarantine {
    /// By time of the last fault.
    offenders: Vec<Offender>,
}

impl Quarantine {
    /// The process did something wrong; how long it may not come back.
    pub fn blame(&mut self, pid: u32, now: Time) -> Span {
        self.offenders.retain(|offender| now < offender.until + MEMORY);
        let before = self.offenders.iter().position(|offender| offender.pid == pid);
        let faults = before.map_or(0, |at| self.offenders.remove(at).faults);
        let pause = FIRST.times(1 << faults.min(DOUBLINGS_MAX));
        if self.offenders.len() == OFFENDERS_MAX {
            self.offenders.remove(0);
        }
        self.offenders.push(Offender { pid, faults: faults.saturating_add(1), until: now + pause });
        pause
    }

    /// How long the process may not come back.
    pub fn pause(&self, pid: u32, now: Time) -> Option<Span> {
        let offender = self.offenders.iter().find(|offender| offender.pid == pid)?;
        Some(offender.until.since(now)).filter(|pause| *pause > Span::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Time {
        Time::from_us(seconds * 1_000_000)
    }

    #[test]
    fn pauses_grow_end_and_are_forgiven() {
        let mut quarantine = Quarantine::default();
        assert_eq!(quarantine.pause(1, s(10)), None);
        assert_eq!(quarantine.blame(1, s(10)), Span::from_ms(1_000));
        assert_eq!(quarantine.pause(1, s(10)), Some(Span::from_ms(1_000)));
        assert_eq!(quarantine.pause(2, s(10)), None, "nobody else");
        assert_eq!(quarantine.pause(1, s(11)), None, "over");
        assert_eq!(quarantine.blame(1, s(12)), Span::from_ms(2_000));
        let longest = (0..100).map(|n| quarantine.blame(1, s(20 + n))).max();
        assert_eq!(longest, Some(Span::from_ms(64_000)));
        assert_eq!(quarantine.blame(1, s(1_000)), Span::from_ms(1_000), "forgiven");
    }

    #[test]
    fn crowds_are_remembered_as_far_as_there_is_room() {
        let mut quarantine = Quarantine::default();
        for pid in 0..10_000 {
            quarantine.blame(pid, s(1));
        }
        assert_eq!(quarantine.offenders.len(), OFFENDERS_MAX);
        assert!(quarantine.pause(9_999, s(1)).is_some());
    }
}
