//! Notices apps whose groups end later than they say.
//!
//! Only a client sees when its groups end. If it says so too early, the daemon grants the GPU again while it is busy,
//! and the next group, of another app, takes longer by the rest of the first. So the groups of an app that are
//! granted behind those of a liar take longer beyond their predictions than its other groups do, nearly always.
//!
//! A state machine without input or output: it sees the records of the core, and says which app contradicts which.
//! What counts against an app counts against its user as well: one that leaves after a few lies and comes back, or has
//! many apps that lie in turn, is found by that.
//!
//! It compares groups of one and the same app, the witness, with each other, so it does not matter whether its
//! predictions are any good, whether its clock counts the time that it waits, or that it learns from that. Why the
//! numbers are what they are is in [ADR 0132](../../../../docs/adr/0132-ends-that-contradict-others.md).

use std::collections::{BTreeMap, VecDeque};

use takt_core::{Action, AppId, Event, GroupId, Span, Time};
use takt_trace::Record;

use crate::rt::endpoint::owner;

/// A group is behind another one that ended at most so long before it could begin.
const BEHIND: Span = Span::from_ms(50);
/// Groups that are compared at once, of either kind.
const SAMPLES: usize = 16;
/// So many of the others must have ended while those behind the app did.
const MEANWHILE: usize = 12;
/// By how much nearly all groups behind an app must be worse than nearly all others.
const MARGIN: Span = Span::from_ms(10);
/// Comparisons in a row with the same outcome until that is said.
const IN_A_ROW: u32 = 2;
/// Groups of one witness that are remembered, and for how long.
const KEPT_MAX: usize = 256;
const KEPT: Span = Span::from_ms(30_000);
/// Most users that are told apart, and most accused of one witness; the oldest are forgotten.
const USERS_MAX: usize = 256;

/// A user within a domain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Party {
    pub(crate) uid: u32,
    /// The name of its domain.
    pub(crate) domain: String,
}

/// Who seems to say too early that groups ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Accused {
    /// The app in that slot.
    App(AppId),
    /// Several apps of that user, or one that left and came back.
    Party(Party),
}

/// Groups behind those of one app, or of the apps of one user, are later than others of the same witness.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Contradiction {
    pub(crate) accused: Accused,
    /// The app whose groups show that.
    pub(crate) witness: AppId,
    /// By how much at least they were later.
    pub(crate) later: Span,
}

/// What is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct EarlyEnds {
    /// Groups on the GPU, in the order of their grants.
    flying: VecDeque<Flight>,
    /// The last group that ended: whose, and when.
    last: Option<(Owner, Time)>,
    witnesses: BTreeMap<AppId, Witness>,
    /// Users with their numbers, the one that came last at the end; and whose apps are there.
    parties: VecDeque<(u64, Party)>,
    owners: BTreeMap<AppId, u64>,
    /// The number of the next user.
    next: u64,
}

/// Whose group it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Owner {
    /// None once that app has left.
    app: Option<AppId>,
    /// The number of its user, if that is known.
    party: Option<u64>,
}

impl Owner {
    fn forget(&mut self, app: AppId) {
        self.app = self.app.filter(|own| *own != app);
    }

    fn is(self, suspect: Suspect) -> bool {
        match suspect {
            Suspect::App(app) => self.app == Some(app),
            Suspect::Party(party) => self.party == Some(party),
        }
    }
}

/// An app or a user that samples may speak against.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Suspect {
    App(AppId),
    Party(u64),
}

/// A group on the GPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Flight {
    group: GroupId,
    granted: Time,
    reserved: Span,
    /// The app of the group that ended last before it could begin, and when; until then its own grant counts.
    behind: Option<(Owner, Time)>,
}

/// What the groups of one app were like.
#[derive(Clone, Debug, Default)]
struct Witness {
    samples: VecDeque<Sample>,
    /// For each app and each user that groups were behind: how many since the last comparison, and how many
    /// comparisons in a row spoke against it.
    against: BTreeMap<Suspect, (usize, u32)>,
}

/// A group that ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sample {
    at: Time,
    /// The app that it was behind, if that is another one.
    behind: Option<Owner>,
    /// How much longer it took than predicted, in nanoseconds; less than none if it took less.
    beyond_ns: i64,
}

impl EarlyEnds {
    /// Something happened; says what that shows.
    pub(crate) fn record(&mut self, at: Time, record: &Record) -> Option<Contradiction> {
        match *record {
            Record::Out(Action::Dispatch { group, reserved, .. }) => {
                self.granted(at, group, reserved);
                None
            }
            Record::In(Event::Complete { group, finished, .. }) => self.ended(group, finished),
            Record::Out(Action::Lost { group, .. } | Action::Preempt { group, .. }) => {
                self.flying.retain(|flight| flight.group != group);
                None
            }
            Record::In(Event::Leave { app }) => {
                self.forget(app);
                None
            }
            _ => None,
        }
    }

    /// An app came, of that user.
    pub(crate) fn came(&mut self, app: AppId, party: Party) {
        let known = self.parties.iter().position(|(_, other)| *other == party);
        let known = known.and_then(|at| self.parties.remove(at));
        let (number, party) = known.unwrap_or_else(|| {
            self.next += 1;
            (self.next, party)
        });
        if self.parties.len() == USERS_MAX {
            self.parties.pop_front();
        }
        self.parties.push_back((number, party));
        self.owners.insert(app, number);
    }

    /// An app has left, or is another one from now on. What counts against its user is kept.
    pub(crate) fn forget(&mut self, app: AppId) {
        self.owners.remove(&app);
        self.flying.retain(|flight| owner(flight.group) != app);
        let behind = self.flying.iter_mut().filter_map(|flight| flight.behind.as_mut());
        self.last.iter_mut().chain(behind).for_each(|(owner, _)| owner.forget(app));
        self.witnesses.remove(&app);
        for witness in self.witnesses.values_mut() {
            witness.against.remove(&Suspect::App(app));
            let behind = witness.samples.iter_mut().filter_map(|sample| sample.behind.as_mut());
            behind.for_each(|owner| owner.forget(app));
        }
    }

    fn owner(&self, app: AppId) -> Owner {
        Owner { app: Some(app), party: self.owners.get(&app).copied() }
    }

    fn granted(&mut self, granted: Time, group: GroupId, reserved: Span) {
        let behind = self.last.filter(|(_, ended)| granted.since(*ended) <= BEHIND);
        self.flying.push_back(Flight { group, granted, reserved, behind });
    }

    fn ended(&mut self, group: GroupId, finished: Time) -> Option<Contradiction> {
        let at = self.flying.iter().position(|flight| flight.group == group)?;
        let flight = self.flying.remove(at)?;
        let app = owner(group);
        let own = self.owner(app);
        if self.last.is_none_or(|(_, ended)| ended <= finished) {
            self.last = Some((own, finished));
        }
        // Those that were granted later begin behind this one.
        for later in self.flying.range_mut(at..) {
            if later.behind.is_none_or(|(_, ended)| ended <= finished) {
                later.behind = Some((own, finished));
            }
        }
        // One that was granted before it and is said to run still may be what it waited for.
        if at > 0 || flight.reserved == Span::FOREVER {
            return None;
        }
        let begun = flight.behind.map_or(flight.granted, |(_, ended)| flight.granted.max(ended));
        let took = i64::try_from(finished.since(begun).as_ns()).unwrap_or(i64::MAX);
        let beyond_ns = took.saturating_sub(i64::try_from(flight.reserved.as_ns()).unwrap_or(i64::MAX));
        let behind = flight.behind.map(|(other, _)| other).filter(|other| other.app != Some(app));
        let sample = Sample { at: finished, behind, beyond_ns };
        let (suspect, later) = self.witnesses.entry(app).or_default().saw(sample, own.party)?;
        let accused = match suspect {
            Suspect::App(app) => Accused::App(app),
            Suspect::Party(number) => {
                let party = self.parties.iter().find(|(known, _)| *known == number);
                Accused::Party(party.map(|(_, party)| party.clone())?)
            }
        };
        Some(Contradiction { accused, witness: app, later })
    }
}

impl Witness {
    /// A group of the witness, which is of that user, ended. Says whom it speaks against, if that is enough now, and by
    /// how much.
    fn saw(&mut self, sample: Sample, own: Option<u64>) -> Option<(Suspect, Span)> {
        while self.samples.len() == KEPT_MAX
            || self.samples.front().is_some_and(|first| sample.at.since(first.at) > KEPT)
        {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        let behind = sample.behind?;
        // Of two apps of one user, each is one by itself.
        let party = behind.party.filter(|party| Some(*party) != own).map(Suspect::Party);
        let app = behind.app.map(Suspect::App).and_then(|app| self.accuses(app));
        let user = party.and_then(|party| self.accuses(party));
        app.or(user)
    }

    /// One more group was behind a suspect. Says whether that is enough, and by how much it was later.
    fn accuses(&mut self, suspect: Suspect) -> Option<(Suspect, Span)> {
        if self.against.len() >= USERS_MAX && !self.against.contains_key(&suspect) {
            let samples = &self.samples;
            let is_there = |suspect: Suspect| samples.iter().any(|sample| sample.is_behind(suspect));
            self.against.retain(|suspect, _| is_there(*suspect));
        }
        let (since, _) = self.against.entry(suspect).or_default();
        *since += 1;
        if *since < SAMPLES {
            return None;
        }
        let later = self.later(suspect);
        let (since, in_a_row) = self.against.get_mut(&suspect)?;
        (*since, *in_a_row) = (0, if later.is_some() { *in_a_row + 1 } else { 0 });
        if *in_a_row < IN_A_ROW {
            return None;
        }
        *in_a_row = 0;
        later.map(|later| (suspect, later))
    }

    /// By how much all but one of the last groups behind a suspect were later than all but one of the others, if that
    /// is enough.
    fn later(&self, suspect: Suspect) -> Option<Span> {
        let is_behind = |sample: &&Sample| sample.is_behind(suspect);
        let since = self.samples.iter().rev().filter(is_behind).nth(SAMPLES - 1)?.at;
        // Noise comes and goes, so both kinds must be of the same time.
        let meanwhile = self.samples.iter().filter(|sample| !is_behind(sample) && sample.at >= since).count();
        if meanwhile < MEANWHILE {
            return None;
        }
        let last = |is_behind: bool| -> Option<Vec<i64>> {
            let of_kind = |sample: &&Sample| sample.is_behind(suspect) == is_behind;
            let last = self.samples.iter().rev().filter(of_kind).take(SAMPLES);
            let mut beyond: Vec<i64> = last.map(|sample| sample.beyond_ns).collect();
            beyond.sort_unstable();
            (beyond.len() == SAMPLES).then_some(beyond)
        };
        let (behind, others) = (last(true)?, last(false)?);
        let later_ns = u64::try_from(behind[1].saturating_sub(others[SAMPLES - 2])).ok()?;
        Some(Span::from_ns(later_ns)).filter(|later| *later >= MARGIN)
    }
}

impl Sample {
    fn is_behind(&self, suspect: Suspect) -> bool {
        self.behind.is_some_and(|owner| owner.is(suspect))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_core::{Cost, Period};
    use takt_rng::Rng;

    use crate::rt::endpoint::GROUP_BITS;

    const LIAR: AppId = AppId(0);
    const VICTIM: AppId = AppId(1);
    const OTHER: AppId = AppId(2);

    /// A GPU that runs groups in order, and a daemon that grants one at a time, as soon as the one before is said to
    /// have ended.
    struct Gpu {
        found: EarlyEnds,
        now: Time,
        /// When it is really free.
        free: Time,
        groups: u64,
        said: Vec<Contradiction>,
    }

    fn us(us: u64) -> Span {
        Span::from_us(us)
    }

    /// A group of that app.
    fn of(app: AppId, number: u64) -> GroupId {
        GroupId((u64::from(app.0) << GROUP_BITS) | number)
    }

    impl Gpu {
        fn new() -> Self {
            let (found, now) = (EarlyEnds::default(), Time::from_ms(1_000));
            Self { found, now, free: now, groups: 0, said: Vec::new() }
        }

        /// A group that is predicted to take that long, takes another time, and whose end is said so much too early.
        fn run(&mut self, app: AppId, predicted: Span, takes: Span, early: Span) {
            let group = of(app, self.groups);
            self.groups += 1;
            let (target, start) = (Period(0), self.now);
            let dispatch = Action::Dispatch { app, group, target, start, reserved: predicted };
            self.tell(&Record::Out(dispatch));
            let end = self.now.max(self.free) + takes;
            self.free = end;
            let finished = (end - early).max(self.now);
            self.now = finished;
            let cost = Cost::new(takes);
            self.tell(&Record::In(Event::Complete { group, finished, cost, frames: 0 }));
        }

        fn tell(&mut self, record: &Record) {
            self.said.extend(self.found.record(self.now, record));
        }

        fn idle(&mut self, span: Span) {
            self.now += span;
        }

        /// So many frames of two apps with two groups each, and a group of a third app before one of these.
        fn frames(&mut self, frames: u32, mut third: impl FnMut(&mut Self), mut noise: impl FnMut() -> Span) {
            for _ in 0..frames {
                for app in [VICTIM, OTHER] {
                    third(self);
                    self.run(app, us(2_100), us(2_000) + noise(), Span::ZERO);
                    self.run(app, us(1_100), us(1_000) + noise(), Span::ZERO);
                }
                self.idle(Span::from_ms(60));
            }
        }
    }

    /// It says 1 ms, and others see 20 ms more.
    #[test]
    fn a_liar_is_found_by_those_behind_it() {
        let mut gpu = Gpu::new();
        gpu.frames(60, |gpu| gpu.run(LIAR, us(1_100), us(21_000), us(20_000)), || Span::ZERO);
        assert!(gpu.said.iter().all(|said| said.accused == Accused::App(LIAR)), "{:?}", gpu.said);
        for witness in [VICTIM, OTHER] {
            let said: Vec<&Contradiction> = gpu.said.iter().filter(|said| said.witness == witness).collect();
            assert_eq!(said.len(), 1, "once for 60 groups: {said:?}");
            assert!(said[0].later >= Span::from_ms(18) && said[0].later <= Span::from_ms(21), "{said:?}");
        }
    }

    #[test]
    fn honest_apps_are_not_accused_however_noisy_the_gpu_is() {
        let mut rng = Rng::new(26, 0);
        for round in 0..50 {
            let mut gpu = Gpu::new();
            let (mut a, mut b) = (Rng::new(rng.next_u64(), 1), Rng::new(rng.next_u64(), 2));
            // From none to groups that take up to 100 ms more at times, whichever was before.
            let often = 1 + round % 10;
            let mut noise = move || us(if a.below(10) < often { a.between(0, 100_000) } else { 0 });
            gpu.frames(
                400,
                |gpu| gpu.run(LIAR, us(1_100), us(b.between(1_000, 31_000)), Span::ZERO),
                &mut noise,
            );
            assert_eq!(gpu.said, [], "round {round}");
        }
    }

    /// Its own groups take as long behind itself as behind others.
    #[test]
    fn an_app_that_predicts_badly_accuses_none() {
        let mut gpu = Gpu::new();
        for _ in 0..500 {
            gpu.run(LIAR, us(1_100), us(1_000), Span::ZERO);
            gpu.run(VICTIM, us(1_000), us(25_000), Span::ZERO);
            gpu.run(VICTIM, us(1_000), us(25_000), Span::ZERO);
        }
        assert_eq!(gpu.said, []);
    }

    /// It learns from what it sees, so its predictions contain the lie after a while; the others are too long then.
    #[test]
    fn a_witness_that_learns_the_lie_is_one_still() {
        let mut gpu = Gpu::new();
        for _ in 0..60 {
            gpu.run(LIAR, us(1_100), us(21_000), us(20_000));
            gpu.run(VICTIM, us(21_500), us(1_000), Span::ZERO);
            gpu.run(VICTIM, us(21_500), us(1_000), Span::ZERO);
        }
        assert_eq!(
            gpu.said.first().map(|said| (&said.accused, said.witness)),
            Some((&Accused::App(LIAR), VICTIM))
        );
    }

    #[test]
    fn small_lies_and_single_ones_are_not_enough() {
        let mut gpu = Gpu::new();
        gpu.frames(200, |gpu| gpu.run(LIAR, us(1_100), us(6_000), us(5_000)), || Span::ZERO);
        assert_eq!(gpu.said, [], "5 ms may be a process that has the processor");
        let mut turn = 0;
        let mut gpu = Gpu::new();
        let sometimes = |gpu: &mut Gpu| {
            turn += 1;
            let early = if turn % 4 < 2 { us(20_000) } else { Span::ZERO };
            gpu.run(LIAR, us(1_100), us(21_000), early);
        };
        gpu.frames(200, sometimes, || Span::ZERO);
        assert_eq!(gpu.said, [], "half of them");
    }

    #[test]
    fn groups_of_a_calm_time_are_not_compared_with_those_of_a_noisy_one() {
        let mut gpu = Gpu::new();
        let both = |gpu: &mut Gpu, noise: Span| {
            gpu.run(LIAR, us(1_100), us(1_000), Span::ZERO);
            gpu.run(VICTIM, us(1_100), us(1_000) + noise, Span::ZERO);
        };
        for _ in 0..100 {
            gpu.run(VICTIM, us(1_100), us(1_000), Span::ZERO);
        }
        for _ in 0..100 {
            both(&mut gpu, us(30_000));
        }
        assert_eq!(gpu.said, []);
    }

    /// Two groups in flight at a time: one begins when the one before it is said to have ended.
    #[test]
    fn groups_in_flight_together_are_in_their_order() {
        let mut found = EarlyEnds::default();
        let mut said = Vec::new();
        let mut tell = |at: Time, record: Record| said.extend(found.record(at, &record));
        let dispatch = |app: AppId, number: u64, at: Time| {
            let (group, target, reserved) = (of(app, number), Period(0), us(1_100));
            Record::Out(Action::Dispatch { app, group, target, start: at, reserved })
        };
        let complete = |app: AppId, number: u64, finished: Time| {
            let (group, cost) = (of(app, number), Cost::new(us(1_000)));
            Record::In(Event::Complete { group, finished, cost, frames: 0 })
        };
        for number in 0..60 {
            let began = Time::from_ms(1_000 + number * 40);
            tell(began, dispatch(LIAR, number, began));
            tell(began, dispatch(VICTIM, 2 * number, began));
            // It says 1 ms and takes 21; the victim takes 1.
            tell(began + us(1_000), complete(LIAR, number, began + us(1_000)));
            tell(began + us(1_000), dispatch(VICTIM, 2 * number + 1, began + us(1_000)));
            tell(began + us(22_000), complete(VICTIM, 2 * number, began + us(22_000)));
            tell(began + us(23_000), complete(VICTIM, 2 * number + 1, began + us(23_000)));
        }
        assert_eq!(said.len(), 1, "{said:?}");
        assert_eq!((&said[0].accused, said[0].witness), (&Accused::App(LIAR), VICTIM));
        assert!(found.flying.is_empty());
    }

    fn stranger() -> Party {
        Party { uid: 64_001, domain: "unlisted".to_owned() }
    }

    /// It leaves after each lie and comes back, as another app at any slot.
    #[test]
    fn a_liar_that_leaves_and_comes_back_is_found_by_its_user() {
        let mut gpu = Gpu::new();
        for (app, uid) in [(VICTIM, 1), (OTHER, 2)] {
            gpu.found.came(app, Party { uid, ..stranger() });
        }
        let mut slot = 10;
        let lie = |gpu: &mut Gpu| {
            slot = if slot == 10 { 11 } else { 10 };
            let liar = AppId(slot);
            gpu.found.came(liar, stranger());
            gpu.run(liar, us(1_100), us(21_000), us(20_000));
            gpu.tell(&Record::In(Event::Leave { app: liar }));
        };
        gpu.frames(60, lie, || Span::ZERO);
        let accused: Vec<(Accused, AppId)> =
            gpu.said.iter().map(|said| (said.accused.clone(), said.witness)).collect();
        assert_eq!(accused, [VICTIM, OTHER].map(|witness| (Accused::Party(stranger()), witness)));
    }

    /// Each of its apps says too little to be found.
    #[test]
    fn apps_of_one_user_that_lie_in_turn_are_found_together() {
        let mut gpu = Gpu::new();
        gpu.found.came(VICTIM, Party { uid: 1, ..stranger() });
        let liars: Vec<AppId> = (10..58).map(AppId).collect();
        liars.iter().for_each(|liar| gpu.found.came(*liar, stranger()));
        for round in 0..100 {
            gpu.run(liars[round % liars.len()], us(1_100), us(21_000), us(20_000));
            gpu.run(VICTIM, us(2_100), us(2_000), Span::ZERO);
            gpu.run(VICTIM, us(1_100), us(1_000), Span::ZERO);
        }
        assert!(!gpu.said.is_empty());
        assert!(gpu.said.iter().all(|said| said.accused == Accused::Party(stranger())), "{:?}", gpu.said);
    }

    /// Honest apps of one user, which come and go, whatever the noise.
    #[test]
    fn no_user_is_accused_for_noise() {
        let mut rng = Rng::new(26, 5);
        for round in 0..20 {
            let mut gpu = Gpu::new();
            let (mut a, mut b) = (Rng::new(rng.next_u64(), 1), Rng::new(rng.next_u64(), 2));
            let mut noise = move || us(if a.below(10) < 1 + round % 10 { a.between(0, 100_000) } else { 0 });
            let honest = |gpu: &mut Gpu| {
                let app = AppId(u32::try_from(b.between(10, 14)).expect("small"));
                gpu.found.came(app, stranger());
                gpu.run(app, us(1_100), us(b.between(1_000, 31_000)), Span::ZERO);
            };
            gpu.frames(400, honest, &mut noise);
            assert_eq!(gpu.said, [], "round {round}");
        }
    }

    #[test]
    fn only_so_many_users_are_remembered() {
        let mut gpu = Gpu::new();
        for uid in 0..2_000 {
            gpu.found.came(LIAR, Party { uid, ..stranger() });
            gpu.run(LIAR, us(1_100), us(1_000), Span::ZERO);
            gpu.run(VICTIM, us(1_100), us(1_000), Span::ZERO);
            gpu.tell(&Record::In(Event::Leave { app: LIAR }));
        }
        assert_eq!((gpu.found.parties.len(), gpu.found.owners.len()), (USERS_MAX, 0));
        assert!(gpu.found.witnesses[&VICTIM].against.len() <= USERS_MAX + 1);
    }

    #[test]
    fn the_next_app_at_a_slot_begins_anew_and_memory_is_bounded() {
        let mut gpu = Gpu::new();
        let lie = |gpu: &mut Gpu| gpu.run(LIAR, us(1_100), us(21_000), us(20_000));
        gpu.frames(30, lie, || Span::ZERO);
        gpu.tell(&Record::In(Event::Leave { app: LIAR }));
        gpu.frames(30, lie, || Span::ZERO);
        assert_eq!(gpu.said, [], "32 groups of one app");
        gpu.frames(500, |_| {}, || Span::ZERO);
        assert!(gpu.found.witnesses.values().all(|witness| witness.samples.len() <= KEPT_MAX));
        gpu.tell(&Record::In(Event::Leave { app: VICTIM }));
        assert!(!gpu.found.witnesses.contains_key(&VICTIM));
    }
}
