//! Learning from measured times.
//!
//! Models are wrong in the same way frame after frame, so measurements correct what is
//! predicted next. [`Adaption`] keeps a correction factor per kind of scene, as the thesis
//! (section 3.6) does per program and group type, because one program may draw very different
//! things; kinds that were never measured take that of all groups of their program. On top of the
//! corrected value it tracks how far measurements scatter and turns that into a lower and an upper
//! estimate.
//!
//! A group whose time was disturbed by a context switch teaches nothing about itself; it tells
//! what a switch costs (TimeGraph's preemption impact), and that is added when one is due.
//!
//! [`History`] is TimeGraph's table, for comparison.

mod factors;
mod fingerprint;
mod history;
mod quantile;

pub use factors::{CorrectionFactor, FACTOR_MAX, FACTOR_MIN};
pub use fingerprint::Fingerprint;
pub use history::{COMMANDS_MAX, Command, History, HistoryAnswer, RECORDS};
pub use quantile::{Quantile, Spread};

use takt_core::{Cost, Margins};

use crate::cost::{GroupType, Parts, ProgramId};
use crate::estimate::Prediction;
use crate::table::{Lookup, Table};

/// What a group is, as far as its correction is concerned.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct GroupKey {
    /// The program in use when the group was submitted.
    pub program: ProgramId,
    /// What the group is about.
    pub group_type: GroupType,
    /// What kind of scene it draws.
    pub scene: Fingerprint,
}

/// Whether something else got in the way of a group while it was measured.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Disturbance {
    /// Nothing: the time is the group's own.
    None,
    /// Groups of other processes were there as well, and the GPU may have served them in between.
    Company,
    /// The GPU changed contexts just before it.
    ContextSwitch,
    /// Something else, such as a clock that changed; the time tells nothing at all.
    Unknown,
}

/// How adaption works; the defaults are the thesis's, where it has them.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct AdaptionConfig {
    /// Groups that ran shorter than this count as this long: measuring is too coarse.
    pub threshold_ns: f64,
    /// Share of groups that may run longer than the upper estimate.
    pub upper_risk: f64,
    /// Share of groups that may run shorter than the lower estimate.
    pub lower_risk: f64,
    /// Estimates until enough is known.
    pub margins: Margins,
    /// Undisturbed measurements after which a factor has settled; after as many again, enough is
    /// known about how far they scatter.
    pub warm_up: u32,
    /// Kinds of groups that are kept apart.
    pub keys: usize,
    /// Whether kinds of scenes have a factor of their own.
    pub by_scene: bool,
}

impl Default for AdaptionConfig {
    fn default() -> Self {
        Self {
            threshold_ns: 20_000.0,
            upper_risk: 0.004,
            lower_risk: 0.01,
            margins: Margins::default(),
            warm_up: 16,
            keys: 1024,
            by_scene: true,
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Adaption {
    config: AdaptionConfig,
    programs: Table<(ProgramId, GroupType), Learnt>,
    scenes: Table<GroupKey, Learnt>,
    switch: SwitchCost,
}

/// What is known about one kind of groups.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
struct Learnt {
    factor: CorrectionFactor,
    spread: Spread,
    /// The most by which a group took longer than predicted, which fades.
    excess_ns: f64,
    samples: u32,
}

/// A mean over few values at first and over about the last hundred later.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
struct MeanOf {
    mean: f64,
    count: u32,
}

impl MeanOf {
    fn add(&mut self, value: f64) {
        self.count = (self.count + 1).min(100);
        self.mean += (value - self.mean) / f64::from(self.count);
    }
}

/// What a context switch adds to the group after it.
///
/// That is the group's excess over its prediction, so predictions must be right for it to say
/// anything. Until the first group comes whose factor has settled, the excess of others is better
/// than nothing: where every group runs after a switch, no factor ever settles.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
struct SwitchCost {
    mean: MeanOf,
    settled: bool,
}

impl SwitchCost {
    fn add(&mut self, excess_ns: f64, settled: bool) {
        if excess_ns.is_nan() || excess_ns.abs() > SWITCH_NS_MAX {
            return;
        }
        if settled && !self.settled {
            *self = Self { settled, ..Self::default() };
        }
        if settled == self.settled {
            self.mean.add(excess_ns);
        }
    }
}

impl Adaption {
    /// Has learnt nothing yet.
    pub fn new(config: AdaptionConfig) -> Self {
        let learnt = Learnt::default();
        let (programs, scenes) = (Table::new(config.keys, &learnt), Table::new(config.keys, &learnt));
        Self { config, programs, scenes, switch: SwitchCost::default() }
    }

    /// Predicts a group from what the models say. With `switch`, a context switch is due first.
    pub fn predict(&self, key: &GroupKey, parts: &Parts, switch: Disturbance) -> Prediction {
        let (learnt, seen) = self.learnt(key);
        let extra = if switch == Disturbance::ContextSwitch { self.switch_ns() } else { 0.0 };
        let value = learnt.factor.apply(parts);
        let (lower, upper) = if learnt.samples >= self.config.warm_up.saturating_mul(2) {
            let spread = &learnt.spread;
            let upper = value * if seen { spread.upper() } else { spread.upper().min(UNSEEN_MAX) };
            (value * spread.lower(), upper.min(value * EXCESS_RELATIVE + learnt.excess_ns * EXCESS_HEADROOM))
        } else {
            self.margins(value)
        };
        Prediction::from_ns(lower, value + extra, upper + extra)
    }

    /// By what the part of a group that its type stands for is multiplied.
    pub fn factor(&self, key: &GroupKey) -> f64 {
        self.learnt(key).0.factor.value()
    }

    /// Mean time that a context switch adds to the group after it.
    pub fn switch_ns(&self) -> f64 {
        self.switch.mean.mean.max(0.0)
    }

    /// What is known about groups like this one, and whether any of just that kind were seen.
    fn learnt(&self, key: &GroupKey) -> (Learnt, bool) {
        let program = self.programs.peek(&(key.program, key.group_type));
        let scene = self.scenes.peek(key);
        (scene.or(program).copied().unwrap_or_default(), scene.is_some() || !self.config.by_scene)
    }

    /// Learns from a finished group: the models' predictions, and the measured time.
    pub fn learn(&mut self, key: &GroupKey, parts: &Parts, measured: Cost, disturbance: Disturbance) {
        let measured_ns = measured.span().as_ns() as f64;
        match disturbance {
            Disturbance::Unknown => {}
            Disturbance::ContextSwitch => {
                let (learnt, _) = self.learnt(key);
                let excess_ns = measured_ns - learnt.factor.apply(parts);
                self.switch.add(excess_ns, learnt.samples >= self.config.warm_up);
            }
            Disturbance::None | Disturbance::Company => {
                // Of a short group it is only known that it is short, and that need not be learnt
                // where it was said before.
                let threshold_ns = self.config.threshold_ns;
                let predicted_ns = self.learnt(key).0.factor.apply(parts);
                if measured_ns > threshold_ns || predicted_ns > SHORT_SAID * threshold_ns {
                    let own_ns = match disturbance {
                        Disturbance::Company => in_company(measured_ns, predicted_ns.max(threshold_ns)),
                        _ => measured_ns,
                    };
                    self.learn_undisturbed(key, parts, own_ns.max(threshold_ns));
                }
            }
        }
    }

    fn learn_undisturbed(&mut self, key: &GroupKey, parts: &Parts, measured_ns: f64) {
        let config = &self.config;
        let (program, found) = self.programs.entry(&(key.program, key.group_type));
        if found == Lookup::Miss {
            *program = Learnt::default();
        }
        if !config.by_scene {
            program.learn(parts, measured_ns, config);
            return;
        }
        // Where models see next to nothing, the measured time is many times that: true of this scene,
        // and absurd for others of the program, in which they see something.
        if parts.of_type_ns >= TELLING * config.threshold_ns {
            // Of a dispatch models know how many invocations it has, and hardly what one takes: so what one
            // dispatch took says it of all others of the program.
            match key.group_type {
                GroupType::Compute => program.learn(parts, measured_ns, config),
                _ => program.weigh(parts, measured_ns, config),
            }
        }
        let start = *program;
        let (scene, found) = self.scenes.entry(key);
        if found == Lookup::Miss {
            // A new scene is better guessed from its program than from nothing, but how far its
            // times scatter is its own affair.
            let factor = CorrectionFactor::starting_at(start.factor.value());
            *scene = Learnt { factor, ..Learnt::default() };
        }
        scene.learn(parts, measured_ns, config);
    }

    fn margins(&self, value: f64) -> (f64, f64) {
        let margins = &self.config.margins;
        let fixed = margins.fixed.as_ns() as f64;
        let scale = |permille: u32| f64::from(permille) / 1000.0;
        let lower = ((value - fixed) * scale(margins.lower_permille)).max(0.0);
        (lower, (value + fixed) * scale(margins.upper_permille))
    }
}

impl Learnt {
    fn learn(&mut self, parts: &Parts, measured_ns: f64, config: &AdaptionConfig) {
        self.scatter(parts, measured_ns, config);
        self.factor.learn(parts, measured_ns);
    }

    /// The same for groups of many kinds.
    fn weigh(&mut self, parts: &Parts, measured_ns: f64, config: &AdaptionConfig) {
        self.scatter(parts, measured_ns, config);
        self.factor.weigh(parts, measured_ns);
    }

    fn scatter(&mut self, parts: &Parts, measured_ns: f64, config: &AdaptionConfig) {
        // The scatter is that around the value that would have been predicted, so it is learnt
        // before the factor moves; and not while the factor still finds its place.
        if self.samples >= config.warm_up {
            let predicted_ns = self.factor.apply(parts);
            self.spread.learn(measured_ns / predicted_ns, config);
            let excess_ns = (measured_ns - predicted_ns).clamp(0.0, EXCESS_NS_MAX);
            self.excess_ns = excess_ns.max(self.excess_ns * (1.0 - quantile::FADING));
        }
        self.samples = self.samples.saturating_add(1);
    }
}

/// How much of a time in company may be a group's own.
///
/// Turns of others are as long for a speck as for a wall, so a speck with one of them in it seems to take
/// a thousand times as long as it does, and whatever looks like it would be said to. What does take so
/// much longer does so each time, and is believed a few groups later; of what is longer than usual turns
/// are, the rest is believed at once.
fn in_company(measured_ns: f64, predicted_ns: f64) -> f64 {
    measured_ns.min((predicted_ns * COMPANY_MAX).max(measured_ns - TURNS_NS))
}

/// In company, a group is believed to take so many times its prediction at most.
const COMPANY_MAX: f64 = 4.0;
/// The time that turns of other apps usually add up to at most, where the daemon decides about turns.
const TURNS_NS: f64 = 50e6;
/// A group that is said to take no longer than so many times the threshold is said to be short.
const SHORT_SAID: f64 = 1.5;
/// A group of which models say less than this part of the threshold tells nothing about other scenes.
const TELLING: f64 = 0.1;
/// No GPU takes longer to switch; a group whose excess is larger met with something else.
const SWITCH_NS_MAX: f64 = 10e6;
/// An upper estimate is no more than that part of its prediction, which models may err by, and that much
/// of the largest excess. What gets in the way of groups, such as turns of other processes, is as long
/// for short ones as for long ones, which times of short ones, taken as multiples of their predictions,
/// do not know.
const EXCESS_RELATIVE: f64 = 1.25;
const EXCESS_HEADROOM: f64 = 1.5;
/// A group that took longer was stopped, or the machine was.
const EXCESS_NS_MAX: f64 = 10e9;
/// How many times its prediction a group of a kind that was never seen may take at most: that others of
/// its program scatter more, mostly shorter ones, tells little about it.
const UNSEEN_MAX: f64 = 4.0;

#[cfg(test)]
mod tests;
