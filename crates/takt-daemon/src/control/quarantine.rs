//! The clients that may not come back yet.
//!
//! A client that was evicted for a fault runs on unscheduled and asks to be scheduled again. It may,
//! after a pause that doubles with each fault, so that a client that always hangs disturbs the others
//! less and less. After a while without a fault, its faults are forgotten.

use takt_core::{Span, Time};
use takt_ipc::socket::Peer;

/// The first pause.
const FIRST: Span = Span::from_ms(1_000);
/// How often it doubles at most: 64 s.
const DOUBLINGS_MAX: u32 = 6;
/// A fault is forgotten this long after its pause.
const MEMORY: Span = Span::from_ms(120_000);
/// Most processes that are remembered.
const OFFENDERS_MAX: usize = 256;

/// A process that broke a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Offender {
    peer: Peer,
    faults: u32,
    until: Time,
}

impl Offender {
    /// Whether it is that process. Where the system does not show process numbers, all of one user's count
    /// as one.
    fn is(&self, peer: Peer) -> bool {
        self.peer.pid == peer.pid && (peer.pid != 0 || self.peer.uid == peer.uid)
    }
}

/// The processes that broke a rule lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quarantine {
    /// By time of the last fault.
    offenders: Vec<Offender>,
}

impl Quarantine {
    /// The process broke a rule; returns how long it may not come back.
    pub(crate) fn blame(&mut self, peer: Peer, now: Time) -> Span {
        self.offenders.retain(|offender| now < offender.until + MEMORY);
        let before = self.offenders.iter().position(|offender| offender.is(peer));
        let faults = before.map_or(0, |at| self.offenders.remove(at).faults);
        let pause = FIRST.times(1 << faults.min(DOUBLINGS_MAX));
        if self.offenders.len() == OFFENDERS_MAX {
            self.offenders.remove(0);
        }
        self.offenders.push(Offender { peer, faults: faults.saturating_add(1), until: now + pause });
        pause
    }

    /// How long the process may not come back.
    pub(crate) fn pause(&self, peer: Peer, now: Time) -> Option<Span> {
        let offender = self.offenders.iter().find(|offender| offender.is(peer))?;
        Some(offender.until.since(now)).filter(|pause| *pause > Span::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Time {
        Time::from_us(seconds * 1_000_000)
    }

    fn process(pid: u32) -> Peer {
        Peer { pid, uid: 1000 }
    }

    #[test]
    fn processes_that_cannot_be_seen_are_told_apart_by_user() {
        let mut quarantine = Quarantine::default();
        let hidden = |uid| Peer { pid: 0, uid };
        quarantine.blame(hidden(1), s(1));
        assert!(quarantine.pause(hidden(1), s(1)).is_some());
        assert_eq!(quarantine.pause(hidden(2), s(1)), None);
        quarantine.blame(Peer { pid: 7, uid: 1 }, s(1));
        assert!(quarantine.pause(Peer { pid: 7, uid: 2 }, s(1)).is_some(), "it is another user now");
    }

    #[test]
    fn pauses_grow_end_and_are_forgiven() {
        let mut quarantine = Quarantine::default();
        assert_eq!(quarantine.pause(process(1), s(10)), None);
        assert_eq!(quarantine.blame(process(1), s(10)), Span::from_ms(1_000));
        assert_eq!(quarantine.pause(process(1), s(10)), Some(Span::from_ms(1_000)));
        assert_eq!(quarantine.pause(process(2), s(10)), None, "no other process");
        assert_eq!(quarantine.pause(process(1), s(11)), None, "over");
        assert_eq!(quarantine.blame(process(1), s(12)), Span::from_ms(2_000));
        let longest = (0..100).map(|n| quarantine.blame(process(1), s(20 + n))).max();
        assert_eq!(longest, Some(Span::from_ms(64_000)));
        assert_eq!(quarantine.blame(process(1), s(1_000)), Span::from_ms(1_000), "forgiven");
    }

    #[test]
    fn only_so_many_processes_are_remembered() {
        let mut quarantine = Quarantine::default();
        for pid in 0..10_000 {
            quarantine.blame(process(pid), s(1));
        }
        assert_eq!(quarantine.offenders.len(), OFFENDERS_MAX);
        assert!(quarantine.pause(process(9_999), s(1)).is_some());
    }
}
