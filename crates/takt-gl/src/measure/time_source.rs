//! Which clock is right: the program's own work decides.
//!
//! Some drivers' timer queries tell the truth, others' do not. So the first long groups are measured by
//! both, by the fence behind them and by time stamps of the GPU around them. That needs no draw of ours
//! in the program and no time at its start. Where `takt profile` has compared both already, its result
//! counts.

use std::fmt;
use std::io::Write as _;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::stamps::Stamps;
use crate::guard;
use crate::settings::settings;

/// What measures.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TimeSource {
    /// Fences.
    Fences(TimerProblem),
    /// Timer queries of the GPU.
    Timer {
        /// What they said of long work, as a share of what fences said.
        ratio: f64,
    },
}

/// Why timer queries do not measure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TimerProblem {
    /// The driver has none.
    NoTimer,
    /// They said this of long work, as a share of what fences said.
    Wrong(f64),
    /// Nothing took long enough to compare.
    TooShort,
}

/// Times may differ so much and still agree: what is before and after the GPU's work counts for
/// fences alone.
const AGREE: RangeInclusive<f64> = 0.7..=1.1;

impl TimeSource {
    /// The better one, given what timers say of long work as a share of what fences say.
    pub fn by_ratio(ratio: f64) -> Self {
        if AGREE.contains(&ratio) { Self::Timer { ratio } } else { Self::Fences(TimerProblem::Wrong(ratio)) }
    }
}

impl fmt::Display for TimeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fences(TimerProblem::NoTimer) => f.write_str("fences (the driver has no timer queries)"),
            Self::Fences(TimerProblem::TooShort) => {
                f.write_str("fences (nothing took long enough to see whether timer queries are right)")
            }
            Self::Fences(TimerProblem::Wrong(ratio)) => {
                write!(f, "fences (timer queries are wrong here: {ratio:.3} of the time of long work)")
            }
            Self::Timer { ratio } => {
                write!(f, "timer queries (right here: {ratio:.3} of the time of long work)")
            }
        }
    }
}

/// The judge of one GPU.
#[derive(Debug)]
pub(crate) struct Judge {
    gpu: String,
    driver: String,
    source: OnceLock<TimeSource>,
    trial: Mutex<Trial>,
    /// The last end of a group, by the GPU's clock.
    last_end: Mutex<Option<u64>>,
}

/// GPUs that programs use: few, so a list does.
static JUDGES: Mutex<Vec<Arc<Judge>>> = Mutex::new(Vec::new());

impl Judge {
    /// The judge of this GPU; `ratio` is what `takt profile` found, if it did.
    pub(crate) fn of(gpu: &str, driver: &str, ratio: Option<f64>) -> Arc<Self> {
        let mut judges = JUDGES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(judge) = judges.iter().find(|judge| judge.gpu == gpu && judge.driver == driver) {
            return judge.clone();
        }
        let judge = Arc::new(Self {
            gpu: gpu.to_owned(),
            driver: driver.to_owned(),
            source: OnceLock::new(),
            trial: Mutex::default(),
            last_end: Mutex::default(),
        });
        if let Some(ratio) = ratio {
            judge.choose(TimeSource::by_ratio(ratio), "takt profile has compared");
        }
        judges.push(judge.clone());
        judge
    }

    /// There are no timer queries to compare with.
    pub(crate) fn has_no_timer(&self) {
        self.choose(TimeSource::Fences(TimerProblem::NoTimer), "nothing to compare");
    }

    /// Whether time stamps are of use.
    pub(crate) fn wants_stamps(&self) -> bool {
        !matches!(self.source.get(), Some(TimeSource::Fences(_)))
    }

    /// Whether time stamps are known to be right.
    pub(crate) fn trusts_stamps(&self) -> bool {
        matches!(self.source.get(), Some(TimeSource::Timer { .. }))
    }

    /// What a group cost by its stamps, if these are right. `fence_ns` is what it cost by its fence.
    pub(crate) fn cost_ns(&self, stamps: &Stamps, fence_ns: u64) -> Option<u64> {
        let mut last_end = self.last_end.lock().unwrap_or_else(PoisonError::into_inner);
        let timer_ns = stamps.cost_ns(*last_end);
        *last_end = Some(stamps.end_ns());
        drop(last_end);
        if self.source.get().is_none() {
            let mut trial = self.trial.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(source) = trial.compare(timer_ns, fence_ns) {
                self.choose(source, "the program's own groups were compared");
            }
        }
        self.trusts_stamps().then_some(timer_ns)
    }

    fn choose(&self, source: TimeSource, why: &str) {
        if self.source.set(source).is_err() {
            return;
        }
        if settings().verbose {
            guard::say(&format!("{} is measured by {source}; {why}", self.gpu));
        }
        if let Some(path) = &settings().facts {
            let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
            if let Err(error) = file.and_then(|mut file| writeln!(file, "source={source}")) {
                guard::say(&format!("cannot write {}: {error}", path.display()));
            }
        }
    }
}

/// Groups measured by both clocks.
#[derive(Default, Debug)]
struct Trial {
    ratios: Vec<f64>,
    groups: u32,
}

/// A group is long enough to compare clocks from here on.
const LONG_NS: u64 = 300_000;
/// Long groups that are compared.
const COMPARED: usize = 9;
/// Groups after which it is given up to wait for long ones.
const GROUPS_MAX: u32 = 4096;

impl Trial {
    /// Compares a group; the choice, once it can be made.
    ///
    /// Everything else that happens on the machine makes the time of a fence longer and a ratio smaller, so
    /// the upper quartile of ratios says whether the timer is right.
    fn compare(&mut self, timer_ns: u64, fence_ns: u64) -> Option<TimeSource> {
        self.groups += 1;
        if fence_ns >= LONG_NS {
            self.ratios.push(timer_ns as f64 / fence_ns as f64);
        }
        if self.ratios.len() >= COMPARED {
            self.ratios.sort_by(f64::total_cmp);
            return Some(TimeSource::by_ratio(self.ratios[COMPARED * 3 / 4]));
        }
        (self.groups >= GROUPS_MAX).then_some(TimeSource::Fences(TimerProblem::TooShort))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(mut group: impl FnMut(u64) -> (u64, u64)) -> Option<TimeSource> {
        let mut trial = Trial::default();
        (0..10_000).map(&mut group).find_map(|(timer_ns, fence_ns)| trial.compare(timer_ns, fence_ns))
    }

    #[test]
    fn a_right_timer_is_chosen_though_fences_are_late_now_and_then() {
        let source = judged(|n| (900_000, if n % 2 == 0 { 950_000 } else { 5_000_000 }));
        assert!(matches!(source, Some(TimeSource::Timer { ratio }) if ratio > 0.9), "{source:?}");
    }

    #[test]
    fn a_wrong_timer_is_rejected() {
        for wrong in [0, 9_000, 2_000_000, u64::MAX] {
            let source = judged(|_| (wrong, 950_000));
            assert!(
                matches!(source, Some(TimeSource::Fences(TimerProblem::Wrong(_)))),
                "{wrong}: {source:?}"
            );
        }
    }

    #[test]
    fn short_groups_say_nothing() {
        assert_eq!(judged(|_| (50_000, 55_000)), Some(TimeSource::Fences(TimerProblem::TooShort)));
    }

    #[test]
    fn what_cannot_be_right_is_wrong() {
        for ratio in [0.0, 0.69, 1.11, f64::NAN, f64::INFINITY] {
            assert!(
                matches!(TimeSource::by_ratio(ratio), TimeSource::Fences(TimerProblem::Wrong(_))),
                "{ratio}"
            );
        }
        assert_eq!(TimeSource::by_ratio(0.98), TimeSource::Timer { ratio: 0.98 });
    }
}
