//! A kind of work, and what it took.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::times::{Company, Times};

/// Nothing is known.
const UNKNOWN: u64 = u64::MAX;

/// Of so many launches of known work, one is measured by itself.
const SAMPLE: u32 = 100;
/// Work is measured each time until so many times are known.
const FIRST: u32 = 4;

/// What work will need of the GPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// So many nanoseconds, by what it took before.
    Known(u64),
    /// It was never measured.
    Unknown,
}

/// See the module.
#[derive(Debug)]
pub struct Entry {
    predicted_ns: AtomicU64,
    launches: AtomicU32,
    learned: AtomicU32,
    /// Its times depend on something else, so what came before it counts as well.
    spread: AtomicBool,
    times: Mutex<Times>,
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            predicted_ns: AtomicU64::new(UNKNOWN),
            launches: AtomicU32::new(0),
            learned: AtomicU32::new(0),
            spread: AtomicBool::new(false),
            times: Mutex::default(),
        }
    }
}

impl Entry {
    /// An entry that is taken to need so much until it is measured.
    pub fn guessed(ns: u64) -> Self {
        let entry = Self::default();
        entry.predicted_ns.store(ns, Ordering::Relaxed);
        entry
    }

    /// From now on it is for other work, of which so much is known.
    pub fn replace(&self, other: Self) {
        let Self { predicted_ns, launches, learned, spread, times } = other;
        self.launches.store(launches.into_inner(), Ordering::Relaxed);
        self.learned.store(learned.into_inner(), Ordering::Relaxed);
        self.spread.store(spread.into_inner(), Ordering::Relaxed);
        *self.times.lock().unwrap_or_else(PoisonError::into_inner) =
            times.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.predicted_ns.store(predicted_ns.into_inner(), Ordering::Relaxed);
    }

    /// Its work has changed: it is taken to need as much as before until it is measured, which is the next time.
    pub fn renew(&self) {
        *self.times.lock().unwrap_or_else(PoisonError::into_inner) = Times::default();
        self.learned.store(0, Ordering::Relaxed);
        self.spread.store(false, Ordering::Relaxed);
    }

    /// What it will need.
    #[inline]
    pub fn need(&self) -> Need {
        match self.predicted_ns.load(Ordering::Relaxed) {
            UNKNOWN => Need::Unknown,
            ns => Need::Known(ns),
        }
    }

    /// It is about to be launched: whether that is to be measured by itself. The first launch may load code, which
    /// says nothing about later ones.
    #[inline]
    pub fn launches(&self) -> bool {
        let before = self.launches.fetch_add(1, Ordering::Relaxed);
        before > 0 && (self.learned.load(Ordering::Relaxed) < FIRST || before.is_multiple_of(SAMPLE))
    }

    /// Whether it was launched before.
    pub fn is_launched(&self) -> bool {
        self.launches.load(Ordering::Relaxed) > 1
    }

    /// Whether its times depend on something else than itself.
    #[inline]
    pub fn is_spread(&self) -> bool {
        self.spread.load(Ordering::Relaxed)
    }

    /// It took so long.
    pub fn learn(&self, ns: u64, company: Company) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.learn(ns, company);
        self.learned.fetch_add(1, Ordering::Relaxed);
        if let Some(predicted) = times.predicted() {
            self.predicted_ns.store(predicted, Ordering::Relaxed);
        }
        self.spread.store(times.is_spread(), Ordering::Relaxed);
    }
}

/// What `to` takes, if `of` takes so long.
pub fn in_proportion(ns: u64, of: u64, to: u64) -> u64 {
    u64::try_from(u128::from(ns) * u128::from(to) / u128::from(of.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_launch_is_not_measured() {
        let entry = Entry::default();
        assert_eq!(entry.need(), Need::Unknown);
        assert!(!entry.launches(), "it loads code");
        assert!(entry.launches());
        entry.learn(5_000, Company::None);
        assert_eq!(entry.need(), Need::Known(5_000));
        for _ in 0..FIRST {
            entry.learn(5_000, Company::None);
        }
        let sampled = (0..1_000).filter(|_| entry.launches()).count();
        assert_eq!(sampled, 10);
    }

    #[test]
    fn work_that_changes_is_measured_anew_and_not_unknown() {
        let entry = Entry::default();
        entry.launches();
        (0..200).for_each(|_| entry.learn(5_000, Company::None));
        entry.learn(9_000, Company::Others);
        assert_eq!(entry.need(), Need::Known(5_000), "others may have had a part of it");
        entry.renew();
        assert_eq!(entry.need(), Need::Known(5_000));
        assert!(entry.launches(), "it is measured");
        entry.learn(9_000, Company::Others);
        assert_eq!(entry.need(), Need::Known(9_000));
    }

    #[test]
    fn proportions_are_kept() {
        assert_eq!(in_proportion(1_000, 4_096, 8_192), 2_000);
        assert_eq!(in_proportion(7, 1, 3), 21);
        assert_eq!(in_proportion(u64::MAX, 1, u64::MAX), u64::MAX);
    }
}
