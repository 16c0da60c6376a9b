//! Which clock is right, decided by the program's own work.
//!
//! The first long groups are measured by both, by the fence behind them and by time stamps of the
//! GPU around them. That needs no draw of ours in somebody else's process and no time at its start.
//! Where `takt profile` has compared both already, its result is taken.

use std::io::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::Source;
use super::source::Doubt;
use super::stamps::Stamps;
use crate::guard;
use crate::settings::settings;

/// The judge of one GPU.
#[derive(Debug)]
pub(crate) struct Judge {
    gpu: String,
    driver: String,
    source: OnceLock<Source>,
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
            judge.choose(Source::by_ratio(ratio), "takt profile has compared");
        }
        judges.push(judge.clone());
        judge
    }

    /// There are no timer queries to compare with.
    pub(crate) fn has_no_timer(&self) {
        self.choose(Source::Fences(Doubt::NoTimer), "nothing to compare");
    }

    /// Whether time stamps are of use.
    pub(crate) fn wants_stamps(&self) -> bool {
        !matches!(self.source.get(), Some(Source::Fences(_)))
    }

    /// Whether time stamps are known to be right.
    pub(crate) fn trusts_stamps(&self) -> bool {
        matches!(self.source.get(), Some(Source::Timer { .. }))
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

    fn choose(&self, source: Source, why: &str) {
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
    /// Whatever else happens on the machine makes the time of a fence longer and a ratio smaller, so
    /// the upper quartile of ratios says whether the timer is right.
    fn compare(&mut self, timer_ns: u64, fence_ns: u64) -> Option<Source> {
        self.groups += 1;
        if fence_ns >= LONG_NS {
            self.ratios.push(timer_ns as f64 / fence_ns as f64);
        }
        if self.ratios.len() >= COMPARED {
            self.ratios.sort_by(f64::total_cmp);
            return Some(Source::by_ratio(self.ratios[COMPARED * 3 / 4]));
        }
        (self.groups >= GROUPS_MAX).then_some(Source::Fences(Doubt::TooShort))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(mut group: impl FnMut(u64) -> (u64, u64)) -> Option<Source> {
        let mut trial = Trial::default();
        (0..10_000).map(&mut group).find_map(|(timer_ns, fence_ns)| trial.compare(timer_ns, fence_ns))
    }

    #[test]
    fn a_right_timer_is_chosen_though_fences_are_late_now_and_then() {
        let source = judged(|n| (900_000, if n % 2 == 0 { 950_000 } else { 5_000_000 }));
        assert!(matches!(source, Some(Source::Timer { ratio }) if ratio > 0.9), "{source:?}");
    }

    #[test]
    fn a_wrong_timer_is_rejected() {
        for wrong in [0, 9_000, 2_000_000, u64::MAX] {
            let source = judged(|_| (wrong, 950_000));
            assert!(matches!(source, Some(Source::Fences(Doubt::Wrong(_)))), "{wrong}: {source:?}");
        }
    }

    #[test]
    fn short_groups_say_nothing() {
        assert_eq!(judged(|_| (50_000, 55_000)), Some(Source::Fences(Doubt::TooShort)));
    }
}
