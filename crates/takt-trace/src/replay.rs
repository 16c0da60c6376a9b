//! A live run once more: the same core, the same parameters, the same events at the same times.
//!
//! The core is a state machine without any input but its events and the times it is asked at. So
//! if a log holds all of these, playing them again must give the very same actions, bit for bit.
//! If it does, what the daemon did is what the simulator would have done, and all that is tested
//! and proven there is about the daemon, too. On the way the core's own consistency is checked
//! after each turn, and the [rules](crate::rules) that hold in every run.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use takt_core::policy::Policy;
use takt_core::{Action, Broken, Config, Scheduler, Time};

use crate::record::{Observer, Record};
use crate::rules::Rules;

/// Records before a difference that are shown with it.
const CONTEXT: usize = 8;

/// Plays a log into a core of its own.
#[derive(Debug)]
pub struct Replay {
    scheduler: Scheduler,
    rules: Rules,
    recent: VecDeque<(Time, Record)>,
    /// When the last turn was, and whether it is over.
    turn: Time,
    between: bool,
    turns: u64,
    events: u64,
    actions: u64,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Replayed {
    /// Records played.
    pub records: u64,
    /// Turns of the loop.
    pub turns: u64,
    /// Actions that came out, each equal to the recorded one.
    pub actions: u64,
    /// The log ends in the middle of a turn: the core has still something to say.
    pub unfinished: bool,
}

/// Why a log is not what the core does.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// When.
    pub at: Time,
    /// What.
    pub kind: DifferenceKind,
    /// What happened before, oldest first.
    pub before: Vec<(Time, Record)>,
}

/// What differs.
#[derive(Clone, PartialEq, Debug)]
pub enum DifferenceKind {
    /// The core does something else; nothing stands for "no action".
    Action {
        /// In the log.
        recorded: Option<Action>,
        /// Of the core.
        replayed: Option<Action>,
    },
    /// The core is in another refresh period.
    Period {
        /// In the log.
        recorded: u64,
        /// Of the core.
        replayed: u64,
    },
    /// Records are missing in the log, so nothing can be said about the rest.
    Gap(u64),
    /// The log names a policy that does not exist.
    NoPolicy(String),
    /// The core contradicts itself.
    Inconsistent(String),
    /// A rule that holds in every run is broken.
    Rule(String),
    /// The core notices itself that it contradicts itself, here as it did there: from now on everything
    /// runs free, so there is nothing more to compare.
    Broken {
        /// What it says.
        broken: Broken,
        /// How many events it was told until then.
        event: u64,
        /// Whether the log says so, too.
        recorded: bool,
    },
}

impl std::fmt::Display for DifferenceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nothing = "no action";
        match self {
            Self::Action { recorded, replayed } => {
                let say = |action: &Option<Action>| {
                    action.map_or_else(|| nothing.to_owned(), |action| format!("{action:?}"))
                };
                write!(f, "the log says {}, the core says {}", say(recorded), say(replayed))
            }
            Self::Period { recorded, replayed } => {
                write!(f, "the log is in refresh period {recorded}, the core in {replayed}")
            }
            Self::Gap(records) => write!(f, "{records} records are missing; what follows cannot be judged"),
            Self::NoPolicy(name) => write!(f, "there is no policy {name}"),
            Self::Inconsistent(what) => write!(f, "the core contradicts itself: {what}"),
            Self::Rule(what) => write!(f, "a rule is broken {what}"),
            Self::Broken { broken, event, recorded } => {
                let told = if *recorded { "as the log says" } else { "of which the log says nothing" };
                write!(f, "after event {event}: {broken}, {told}")
            }
        }
    }
}

impl Replay {
    /// A core as the log's was at its start; `None` if there is no such policy.
    pub fn new(config: Config, policy: &str) -> Option<Self> {
        let mut chosen = takt_policies::by_name(policy)?;
        chosen.prepare(&config);
        Some(Self::with(config, chosen))
    }

    fn with(config: Config, policy: Box<dyn Policy>) -> Self {
        Self {
            rules: Rules::of(&config),
            scheduler: Scheduler::new(config, policy),
            recent: VecDeque::with_capacity(CONTEXT),
            turn: Time::ZERO,
            between: false,
            turns: 0,
            events: 0,
            actions: 0,
        }
    }

    /// Plays what happened next.
    pub fn play(&mut self, at: Time, record: &Record) -> Result<(), Box<Difference>> {
        self.rules.record(at, record);
        let same = match record {
            Record::In(event) => {
                let over = if at > self.turn { self.end_turn() } else { Ok(()) };
                self.events += 1;
                self.scheduler.handle_event(at, *event);
                over
            }
            Record::Out(action) => {
                self.actions += 1;
                self.expect(Some(*action))
            }
            Record::Turn => self.turn(at),
            Record::Policy(name) => match takt_policies::by_name(name) {
                Some(policy) => {
                    self.scheduler.replace_policy(policy);
                    Ok(())
                }
                None => Err(DifferenceKind::NoPolicy((*name).to_owned())),
            },
            Record::Vsync(period) => {
                let (recorded, replayed) = (period.0, self.scheduler.current_period().0);
                let same = recorded == replayed;
                same.then_some(()).ok_or(DifferenceKind::Period { recorded, replayed })
            }
            Record::Gap { records } => Err(DifferenceKind::Gap(*records)),
            Record::Gpu(_) => Ok(()),
        };
        let kept = same.and_then(|()| {
            self.rules.broken().first().map_or(Ok(()), |rule| Err(DifferenceKind::Rule(rule.clone())))
        });
        let judged = kept.map_err(|kind| self.difference(at, kind));
        if self.recent.len() == CONTEXT {
            self.recent.pop_front();
        }
        self.recent.push_back((at, *record));
        judged
    }

    /// The log ends here; all of it was equal.
    pub fn finish(mut self) -> Replayed {
        Replayed {
            records: self.rules.records(),
            turns: self.turns,
            actions: self.actions,
            unfinished: self.scheduler.poll_action().is_some(),
        }
    }

    /// Nothing was left to be done in the turn that is over. What happens before the next one is decided
    /// about then.
    fn end_turn(&mut self) -> Result<(), DifferenceKind> {
        if !std::mem::replace(&mut self.between, true) {
            self.expect(None)?;
        }
        Ok(())
    }

    fn turn(&mut self, at: Time) -> Result<(), DifferenceKind> {
        self.end_turn()?;
        (self.turn, self.between) = (at, false);
        self.turns += 1;
        let scheduler = AssertUnwindSafe(&self.scheduler);
        catch_unwind(|| scheduler.check_invariants())
            .map_err(|panic| DifferenceKind::Inconsistent(message(&*panic)))?;
        self.scheduler.handle_timeout(at);
        Ok(())
    }

    fn expect(&mut self, recorded: Option<Action>) -> Result<(), DifferenceKind> {
        let replayed = self.scheduler.poll_action();
        if let Some(Action::Broken(broken)) = replayed {
            let recorded = recorded == replayed;
            return Err(DifferenceKind::Broken { broken, event: self.events, recorded });
        }
        let same = recorded == replayed;
        same.then_some(()).ok_or(DifferenceKind::Action { recorded, replayed })
    }

    fn difference(&self, at: Time, kind: DifferenceKind) -> Box<Difference> {
        Box::new(Difference { at, kind, before: self.recent.iter().copied().collect() })
    }
}

/// What a panic said.
fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_core::{
        AppId, AppParams, Cost, Estimate, Event, GroupId, GroupKind, Period, Priority, Service, Span, Stride,
    };

    /// Drives a core the way the daemon does, and writes down what happens.
    struct Rig {
        scheduler: Scheduler,
        log: Vec<(Time, Record)>,
        now: Time,
    }

    impl Rig {
        fn turn(&mut self, events: &[Event]) {
            self.now += Span::from_us(700);
            self.log.push((self.now, Record::Turn));
            self.scheduler.handle_timeout(self.now);
            for event in events {
                self.tell(*event);
            }
            while let Some(action) = self.scheduler.poll_action() {
                self.log.push((self.now, Record::Out(action)));
                if let Action::Dispatch { group, .. } = action
                    && group.0 % 5 == 0
                {
                    // In the middle of fetching, as when a client is found dead.
                    let cost = Cost::default();
                    self.tell(Event::Complete { group, finished: self.now, cost, frames: 0 });
                }
            }
        }

        fn tell(&mut self, event: Event) {
            self.log.push((self.now, Record::In(event)));
            self.scheduler.handle_event(self.now, event);
        }
    }

    fn config() -> Config {
        Config { mpcg: 2, gpu: takt_core::Gpu::TURNS, ..Config::default() }
    }

    fn story() -> Vec<(Time, Record)> {
        let policy = takt_policies::by_name("frame-deadline").expect("it exists");
        let scheduler = Scheduler::new(config(), policy);
        let mut rig = Rig { scheduler, log: Vec::new(), now: Time::ZERO };
        let params = |priority| AppParams {
            priority: Priority(priority),
            stride: Stride::ONE,
            etpf: Span::from_us(900),
            clock: takt_core::Clock::default(),
            service: Service::default(),
        };
        for app in 0..3 {
            rig.turn(&[Event::Join { app: AppId(app), params: params(app), phase: 0 }]);
        }
        for round in 0..200u64 {
            let kind = if round % 4 == 3 { GroupKind::Swap } else { GroupKind::Draw };
            let estimate = Estimate::new(Span::from_us(300 + round));
            let submit = |app: u32| {
                let group = GroupId(u64::from(app) << 40 | round);
                Event::Submit { app: AppId(app), group, kind, estimate }
            };
            let done = rig.log.iter().rev().find_map(|(_, record)| match record {
                Record::Out(Action::Dispatch { group, .. }) => Some(*group),
                _ => None,
            });
            let mut events = vec![submit(0), submit(1), submit(2)];
            let cost = Cost::new(Span::from_us(100));
            events.extend(done.map(|group| Event::Complete { group, finished: rig.now, cost, frames: 0 }));
            rig.turn(&events);
            if round == 100 {
                rig.log.push((rig.now, Record::Policy("edf-cbs")));
                rig.scheduler.replace_policy(takt_policies::by_name("edf-cbs").expect("it exists"));
            }
        }
        rig.turn(&[Event::Leave { app: AppId(1) }]);
        rig.log
    }

    fn replay(log: &[(Time, Record)]) -> Result<Replayed, Box<Difference>> {
        let mut replay = Replay::new(config(), "frame-deadline").expect("it exists");
        for (at, record) in log {
            replay.play(*at, record)?;
        }
        Ok(replay.finish())
    }

    #[test]
    fn what_happened_happens_again() {
        let log = story();
        let replayed = replay(&log).unwrap_or_else(|difference| panic!("{}", difference.kind));
        assert_eq!(replayed.records, log.len() as u64);
        assert_eq!((replayed.turns, replayed.unfinished), (204, false));
        let end = log.iter().rposition(|(_, record)| matches!(record, Record::Out(_))).expect("an action");
        assert!(replay(&log[..end]).expect("equal so far").unfinished);
        assert!(replayed.actions > 200, "{replayed:?}");
    }

    /// Chooses the most important app, whether it has anything to do or not.
    #[derive(Debug)]
    struct Blind;

    impl Policy for Blind {
        fn name(&self) -> &'static str {
            "fifo"
        }

        fn choose(
            &mut self,
            _context: &takt_core::policy::Context,
            _lanes: &mut [takt_core::Lane],
        ) -> Option<usize> {
            Some(0)
        }
    }

    #[test]
    fn a_core_that_contradicted_itself_does_so_again() {
        let scheduler = Scheduler::new(config(), Box::new(Blind));
        let mut rig = Rig { scheduler, log: Vec::new(), now: Time::ZERO };
        let params = |priority| AppParams {
            priority: Priority(priority),
            stride: Stride::ONE,
            etpf: Span::ZERO,
            clock: takt_core::Clock::default(),
            service: Service::default(),
        };
        let estimate = Estimate::new(Span::from_us(300));
        let submit = |app, group| {
            let (app, group) = (AppId(app), GroupId(group));
            Event::Submit { app, group, kind: GroupKind::Draw, estimate }
        };
        for app in 0..2 {
            rig.turn(&[Event::Join { app: AppId(app), params: params(app), phase: 0 }]);
        }
        rig.turn(&[submit(1, 1)]);
        rig.turn(&[submit(0, 2)]);
        rig.turn(&[submit(0, 3)]);
        let broken = rig.scheduler.broken().expect("it chose what was not there");
        let play = |log: &[(Time, Record)], policy: Box<dyn Policy>| {
            let mut replay = Replay::with(config(), policy);
            log.iter().try_for_each(|(at, record)| replay.play(*at, record)).expect_err("a difference").kind
        };
        let again = play(&rig.log, Box::new(Blind));
        assert_eq!(again, DifferenceKind::Broken { broken, event: 4, recorded: true });
        assert!(again.to_string().starts_with("after event 4: broken invariant 'choice'"), "{again}");
        let is_broken = |record: &Record| matches!(record, Record::Out(Action::Broken(_)));
        let untold: Vec<_> = rig.log.iter().filter(|(_, record)| !is_broken(record)).copied().collect();
        let noticed = play(&untold, Box::new(Blind));
        assert_eq!(noticed, DifferenceKind::Broken { broken, event: 4, recorded: false });
        let other = play(&rig.log, Box::new(takt_policies::Fifo));
        assert!(matches!(other, DifferenceKind::Action { .. }), "a sound core does not: {other}");
    }

    #[test]
    fn every_change_is_noticed() {
        let log = story();
        let dispatch = log
            .iter()
            .position(|(_, record)| matches!(record, Record::Out(Action::Dispatch { .. })))
            .expect("a dispatch");
        let mut missing = log.clone();
        missing.remove(dispatch);
        let difference = replay(&missing).expect_err("a dispatch is missing");
        assert!(difference.kind.to_string().contains("the core says Dispatch"), "{}", difference.kind);
        assert!(!difference.before.is_empty());
        let mut later = log.clone();
        let submit = log
            .iter()
            .position(|(_, record)| matches!(record, Record::In(Event::Submit { .. })))
            .expect("a submission");
        let Record::In(Event::Submit { estimate, .. }) = &mut later[submit].1 else { unreachable!() };
        *estimate = Estimate::new(Span::from_us(301));
        assert!(replay(&later).is_err(), "a microsecond more is a different prediction");
        let mut other = log.clone();
        other.push((other[log.len() - 1].0, Record::Vsync(Period(77))));
        assert!(matches!(replay(&other).expect_err("another period").kind, DifferenceKind::Period { .. }));
        let gap = [(Time::ZERO, Record::Gap { records: 1 })];
        assert_eq!(replay(&gap).expect_err("a gap").kind, DifferenceKind::Gap(1));
        assert!(Replay::new(config(), "no such").is_none());
    }
}
