//! The clients that may not come back yet.
//!
//! A client that was evicted for a fault runs on unscheduled and asks to be scheduled again. It may,
//! after a pause that doubles with each fault, so that a client that always hangs disturbs the others
//! less and less. After a while without a fault, its faults are forgotten.
//!
//! At first the pause is for clients of the same user and executable: one program of a user that hangs
//! keeps no other out. A user can copy an executable as often as it likes, so from some faults on the pause
//! is for all its programs, however many it has.
//!
//! Faults at the same moment are one event: where a driver stands still, all programs that have work there seem to
//! hang.

use std::path::PathBuf;

use takt_core::{Span, Time};

use super::identity::Identity;
use super::rights::Domain;

/// The first pause.
const FIRST: Span = Span::from_ms(1_000);
/// Faults of an origin within this time of its last event are part of that.
const EVENT: Span = Span::from_ms(500);
/// How often it doubles at most: 64 s.
const DOUBLINGS_MAX: u32 = 6;
/// A fault is forgotten this long after its pause.
const MEMORY: Span = Span::from_ms(120_000);
/// Most origins that are remembered.
const OFFENDERS_MAX: usize = 256;
/// Faults of different programs of one user after which all its programs wait.
const PROGRAMS_MAX: u32 = 4;

/// The user and the executable of a client, as the kernel knows them: a fork has the same. Its domain as well, so
/// that what a user does outside of a listed domain keeps no app of that domain out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    pub(crate) uid: u32,
    /// The name of its domain.
    pub(crate) domain: String,
    /// None where the system does not tell; then all such clients of a user count as one.
    pub(crate) executable: Option<PathBuf>,
}

impl Origin {
    pub(crate) fn of(who: &Identity, domain: &Domain) -> Self {
        let executable = who.executable.as_ref().map(|executable| executable.path.clone());
        Self { uid: who.uid, domain: domain.name.clone(), executable }
    }
}

/// An origin whose client broke a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Offender {
    origin: Origin,
    record: Record,
}

/// What is remembered of faults.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
struct Record {
    faults: u32,
    /// When the last of them was counted.
    since: Time,
    /// When the pause ends.
    until: Time,
}

/// The origins of clients that broke a rule lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quarantine {
    /// By time of the last fault.
    offenders: Vec<Offender>,
    /// Users with many programs among them, by time of the last fault.
    users: Vec<UserOffender>,
}

/// A user several of whose programs broke rules.
#[derive(Clone, PartialEq, Eq, Debug)]
struct UserOffender {
    uid: u32,
    /// In that domain.
    domain: String,
    /// Of programs of it that were evicted for the first time.
    record: Record,
}

impl Quarantine {
    /// A client broke a rule; returns how long clients of its origin may not come back.
    pub(crate) fn blame(&mut self, origin: Origin, now: Time) -> Span {
        self.offenders.retain(|offender| now < offender.record.until + MEMORY);
        self.users.retain(|user| now < user.record.until + MEMORY);
        let before = self.offenders.iter().position(|offender| offender.origin == origin);
        let of_user = self.blame_user(&origin, before.is_none(), now);
        let record = before.map_or_else(Record::default, |at| self.offenders.remove(at).record).counted(now);
        let own = pause_after(record.faults - 1);
        if self.offenders.len() == OFFENDERS_MAX {
            self.offenders.remove(0);
        }
        self.offenders.push(Offender { origin, record: Record { until: now + own, ..record } });
        own.max(of_user)
    }

    /// Several clients of a user broke a rule together; returns how long none of that user's may come back.
    pub(crate) fn blame_all(&mut self, uid: u32, domain: &str, now: Time) -> Span {
        let origin = Origin { uid, domain: domain.to_owned(), executable: None };
        if let Some(user) = self.users.iter_mut().find(|user| user.is_of(&origin)) {
            user.record.faults = user.record.faults.max(PROGRAMS_MAX - 1);
        } else {
            let record = Record { faults: PROGRAMS_MAX - 1, ..Record::default() };
            self.users.push(UserOffender { uid, domain: origin.domain.clone(), record });
        }
        self.blame_user(&origin, true, now)
    }

    /// Returns how long clients of that user may not come back, whatever their executable.
    fn blame_user(&mut self, origin: &Origin, is_new: bool, now: Time) -> Span {
        let before = self.users.iter().position(|user| user.is_of(origin));
        let record = before.map_or_else(Record::default, |at| self.users.remove(at).record);
        let record = if is_new { record.counted(now) } else { record };
        let pause = record.faults.checked_sub(PROGRAMS_MAX).map_or(Span::ZERO, pause_after);
        if self.users.len() == OFFENDERS_MAX {
            self.users.remove(0);
        }
        let Origin { uid, domain, .. } = origin.clone();
        self.users.push(UserOffender { uid, domain, record: Record { until: now + pause, ..record } });
        pause
    }

    /// How long clients of that origin may not come back.
    pub(crate) fn pause(&self, origin: &Origin, now: Time) -> Option<Span> {
        let program = self.offenders.iter().find(|offender| offender.origin == *origin);
        let user = self.users.iter().find(|user| user.is_of(origin));
        let until = program.map(|offender| offender.record.until).max(user.map(|user| user.record.until))?;
        Some(until.since(now)).filter(|pause| *pause > Span::ZERO)
    }
}

impl Record {
    /// With one fault more, unless it is part of the last event.
    fn counted(self, now: Time) -> Self {
        match self.faults > 0 && now < self.since + EVENT {
            true => self,
            false => Self { faults: self.faults.saturating_add(1), since: now, ..self },
        }
    }
}

impl UserOffender {
    fn is_of(&self, origin: &Origin) -> bool {
        (self.uid, &self.domain) == (origin.uid, &origin.domain)
    }
}

/// The pause after so many earlier faults.
fn pause_after(faults: u32) -> Span {
    FIRST.times(1 << faults.min(DOUBLINGS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::identity::Executable;
    use crate::control::rights::Domains;

    fn s(seconds: u64) -> Time {
        Time::from_us(seconds * 1_000_000)
    }

    fn program(number: u32) -> Origin {
        let executable = Some(PathBuf::from(format!("/bin/{number}")));
        Origin { uid: 1000, domain: "unlisted".to_owned(), executable }
    }

    #[test]
    fn clients_are_told_apart_by_user_and_executable() {
        let mut quarantine = Quarantine::default();
        let hidden = |uid| Origin { uid, executable: None, ..program(0) };
        quarantine.blame(hidden(1), s(1));
        assert!(quarantine.pause(&hidden(1), s(1)).is_some());
        assert_eq!(quarantine.pause(&hidden(2), s(1)), None);
        quarantine.blame(program(7), s(1));
        assert_eq!(quarantine.pause(&Origin { uid: 2, ..program(7) }, s(1)), None, "another user");
        let executable = Some(Executable { path: "/bin/7".into(), trusted: false });
        let who = Identity { uid: 1000, executable, ..Identity::default() };
        assert_eq!(Origin::of(&who, &Domains::default().unlisted), program(7));
    }

    #[test]
    fn what_a_user_does_outside_of_a_domain_keeps_no_app_of_it_out() {
        let mut quarantine = Quarantine::default();
        for number in 1..10 {
            quarantine.blame(program(number), s(number.into()));
        }
        assert!(quarantine.pause(&program(100), s(9)).is_some(), "all of its other programs");
        for number in [1, 100] {
            let of_cluster = Origin { domain: "cluster".to_owned(), ..program(number) };
            assert_eq!(quarantine.pause(&of_cluster, s(9)), None, "the same executable too");
        }
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
    fn copies_of_an_executable_do_not_evade() {
        let mut quarantine = Quarantine::default();
        for copy in 1..PROGRAMS_MAX {
            quarantine.blame(program(copy), s(copy.into()));
        }
        assert_eq!(quarantine.pause(&program(100), s(3)), None, "another program of the user");
        assert_eq!(quarantine.blame(program(50), s(4)), Span::from_ms(1_000));
        assert_eq!(quarantine.pause(&program(100), s(4)), Some(Span::from_ms(1_000)), "all of its programs");
        assert_eq!(quarantine.pause(&Origin { uid: 2, ..program(1) }, s(4)), None, "no other user");
        // Each copy costs more than the one before.
        let pauses: Vec<Span> =
            (51..54).map(|copy| quarantine.blame(program(copy), s((copy - 46).into()))).collect();
        assert_eq!(pauses, [2, 4, 8].map(|seconds| Span::from_ms(seconds * 1_000)));
        assert_eq!(quarantine.pause(&program(100), s(200)), None);
        assert_eq!(quarantine.blame(program(100), s(400)), Span::from_ms(1_000), "forgiven");
        assert_eq!(quarantine.pause(&program(101), s(400)), None);
    }

    #[test]
    fn a_user_can_be_blamed_for_all_its_programs() {
        let mut quarantine = Quarantine::default();
        assert_eq!(quarantine.blame_all(1000, "unlisted", s(10)), Span::from_ms(1_000));
        assert_eq!(quarantine.pause(&program(7), s(10)), Some(Span::from_ms(1_000)));
        assert_eq!(quarantine.pause(&Origin { uid: 2, ..program(7) }, s(10)), None, "no other user");
        assert_eq!(quarantine.blame_all(1000, "unlisted", s(20)), Span::from_ms(2_000), "longer each time");
        for uid in 0..10_000 {
            quarantine.blame_all(uid, "unlisted", s(20));
        }
        assert_eq!(quarantine.users.len(), OFFENDERS_MAX);
    }

    #[test]
    fn faults_at_one_moment_are_one_event() {
        let mut quarantine = Quarantine::default();
        let at = |ms: u64| Time::from_us(1_000 * ms);
        // The GPU stands still for all programs: six of one executable, and five others.
        for process in 0..6 {
            assert_eq!(quarantine.blame(program(1), at(1_000 + process)), Span::from_ms(1_000));
        }
        for number in 2..7 {
            assert_eq!(quarantine.blame(program(number), at(1_010)), Span::from_ms(1_000));
        }
        assert_eq!(quarantine.pause(&program(100), at(1_010)), None, "no other program of the user");
        assert_eq!(quarantine.blame(program(1), at(1_400)), Span::from_ms(1_000), "still the same");
        assert_eq!(quarantine.blame(program(1), at(1_600)), Span::from_ms(2_000), "another one");
    }

    #[test]
    fn only_so_many_processes_are_remembered() {
        let mut quarantine = Quarantine::default();
        for pid in 0..10_000 {
            quarantine.blame(program(pid), s(1));
        }
        assert_eq!(quarantine.offenders.len(), OFFENDERS_MAX);
        for uid in 0..10_000 {
            quarantine.blame(Origin { uid, executable: None, ..program(0) }, s(1));
        }
        assert_eq!(quarantine.users.len(), OFFENDERS_MAX);
        assert!(quarantine.pause(&Origin { uid: 9_999, executable: None, ..program(0) }, s(1)).is_some());
    }
}
