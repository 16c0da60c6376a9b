//! The clients that may not come back yet.
//!
//! A client that was evicted for a fault runs on unscheduled and asks to be scheduled again. It may,
//! after a pause that doubles with each fault, so that a client that always hangs disturbs the others
//! less and less. After a while without a fault, its faults are forgotten.

use std::path::PathBuf;

use takt_core::{Span, Time};
use takt_ipc::socket::Peer;

/// The first pause.
const FIRST: Span = Span::from_ms(1_000);
/// How often it doubles at most: 64 s.
const DOUBLINGS_MAX: u32 = 6;
/// A fault is forgotten this long after its pause.
const MEMORY: Span = Span::from_ms(120_000);
/// Most origins that are remembered.
const OFFENDERS_MAX: usize = 256;

/// The user and the executable of a client, as the kernel knows them: a fork has the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    pub(crate) uid: u32,
    /// None where the system does not tell; then all such clients of a user count as one.
    pub(crate) executable: Option<PathBuf>,
}

impl Origin {
    pub(crate) fn of(peer: Peer) -> Self {
        Self { uid: peer.uid, executable: takt_os::process::executable(peer.pid) }
    }
}

/// An origin whose client broke a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Offender {
    origin: Origin,
    faults: u32,
    until: Time,
}

/// The origins of clients that broke a rule lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quarantine {
    /// By time of the last fault.
    offenders: Vec<Offender>,
}

impl Quarantine {
    /// A client broke a rule; returns how long clients of its origin may not come back.
    pub(crate) fn blame(&mut self, origin: Origin, now: Time) -> Span {
        self.offenders.retain(|offender| now < offender.until + MEMORY);
        let before = self.offenders.iter().position(|offender| offender.origin == origin);
        let faults = before.map_or(0, |at| self.offenders.remove(at).faults);
        let pause = FIRST.times(1 << faults.min(DOUBLINGS_MAX));
        if self.offenders.len() == OFFENDERS_MAX {
            self.offenders.remove(0);
        }
        self.offenders.push(Offender { origin, faults: faults.saturating_add(1), until: now + pause });
        pause
    }

    /// How long clients of that origin may not come back.
    pub(crate) fn pause(&self, origin: &Origin, now: Time) -> Option<Span> {
        let offender = self.offenders.iter().find(|offender| offender.origin == *origin)?;
        Some(offender.until.since(now)).filter(|pause| *pause > Span::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Time {
        Time::from_us(seconds * 1_000_000)
    }

    fn program(number: u32) -> Origin {
        Origin { uid: 1000, executable: Some(PathBuf::from(format!("/bin/{number}"))) }
    }

    #[test]
    fn clients_are_told_apart_by_user_and_executable() {
        let mut quarantine = Quarantine::default();
        let hidden = |uid| Origin { uid, executable: None };
        quarantine.blame(hidden(1), s(1));
        assert!(quarantine.pause(&hidden(1), s(1)).is_some());
        assert_eq!(quarantine.pause(&hidden(2), s(1)), None);
        quarantine.blame(program(7), s(1));
        assert_eq!(quarantine.pause(&Origin { uid: 2, ..program(7) }, s(1)), None, "another user");
        let peer = Peer { pid: std::process::id(), uid: 5 };
        assert_eq!(Origin::of(peer), Origin { uid: 5, executable: std::env::current_exe().ok() });
    }

    #[test]
    fn pauses_grow_end_and_are_forgiven() {
        let mut quarantine = Quarantine::default();
        assert_eq!(quarantine.pause(&program(1), s(10)), None);
        assert_eq!(quarantine.blame(program(1), s(10)), Span::from_ms(1_000));
        assert_eq!(quarantine.pause(&program(1), s(10)), Some(Span::from_ms(1_000)));
        assert_eq!(quarantine.pause(&program(2), s(10)), None, "no other process");
        assert_eq!(quarantine.pause(&program(1), s(11)), None, "over");
        assert_eq!(quarantine.blame(program(1), s(12)), Span::from_ms(2_000));
        let longest = (0..100).map(|n| quarantine.blame(program(1), s(20 + n))).max();
        assert_eq!(longest, Some(Span::from_ms(64_000)));
        assert_eq!(quarantine.blame(program(1), s(1_000)), Span::from_ms(1_000), "forgiven");
    }

    #[test]
    fn only_so_many_processes_are_remembered() {
        let mut quarantine = Quarantine::default();
        for pid in 0..10_000 {
            quarantine.blame(program(pid), s(1));
        }
        assert_eq!(quarantine.offenders.len(), OFFENDERS_MAX);
        assert!(quarantine.pause(&program(9_999), s(1)).is_some());
    }
}
