//! Keeps the slice that is wanted, whatever the driver does meanwhile.
//!
//! A driver makes channel groups late, some only when a program first computes, and sets slices of its own after that.
//! So setting once is not enough: a [`Keeper`] looks before each grant whether something changed, which is two loads.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::own::Report;
use crate::table::Slices;

/// The slice that a process is to have.
#[derive(Debug, Default)]
pub struct Keeper {
    slices: Option<Slices>,
    /// In microseconds; 0 for the driver's own.
    wanted_us: AtomicU64,
    /// What was wanted when slices were set last.
    kept_us: AtomicU64,
    /// The state of the groups then.
    kept_epoch: AtomicU32,
}

impl Keeper {
    /// Keeps slices where the preloaded library is there, and does nothing otherwise.
    pub fn new(slices: Option<Slices>) -> Self {
        Self { slices, ..Self::default() }
    }

    /// Whether slices could be set at all.
    pub const fn is_able(&self) -> bool {
        self.slices.is_some()
    }

    /// From now on this is wanted, in microseconds; none for the driver's own.
    pub fn want(&self, us: Option<u64>) {
        self.wanted_us.store(us.unwrap_or(0), Ordering::Release);
    }

    /// Sets slices if something changed; what came of it, or none if nothing did. One of the threads that find a change
    /// sets them.
    #[inline]
    pub fn keep(&self) -> Option<Report> {
        let slices = self.slices.as_ref()?;
        let (wanted, epoch) = (self.wanted_us.load(Ordering::Acquire), slices.epoch());
        let is_kept = self.kept_us.load(Ordering::Acquire) == wanted
            && (wanted == 0 || self.kept_epoch.load(Ordering::Acquire) == epoch);
        if is_kept { None } else { self.change(slices, wanted, epoch) }
    }

    #[cold]
    fn change(&self, slices: &Slices, wanted: u64, epoch: u32) -> Option<Report> {
        let us_before = self.kept_us.swap(wanted, Ordering::AcqRel);
        let epoch_before = self.kept_epoch.swap(epoch, Ordering::AcqRel);
        if (us_before, epoch_before) == (wanted, epoch) {
            return None;
        }
        Some(if wanted == 0 { slices.restore() } else { slices.set(wanted) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;
    use std::sync::Mutex;

    static EPOCH: AtomicU32 = AtomicU32::new(0);
    static CALLS: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    static TABLE: Table = Table { epoch, set, read: Report::default_c, restore };

    impl Report {
        extern "C" fn default_c() -> Self {
            Self::default()
        }
    }

    extern "C" fn epoch() -> u32 {
        EPOCH.load(Ordering::Relaxed)
    }

    extern "C" fn set(us: u64) -> Report {
        CALLS.lock().unwrap().push(us);
        Report::default()
    }

    extern "C" fn restore() -> Report {
        set(0)
    }

    fn calls() -> Vec<u64> {
        std::mem::take(&mut *CALLS.lock().unwrap())
    }

    #[test]
    fn slices_are_set_again_only_after_a_change() {
        let keeper = Keeper::new(Some(Slices::behind(&TABLE)));
        assert_eq!((keeper.keep(), calls()), (None, vec![]), "nothing was wanted");
        EPOCH.store(1, Ordering::Relaxed);
        assert_eq!(keeper.keep(), None, "the driver's own are wanted");
        keeper.want(Some(300));
        assert!(keeper.keep().is_some() && keeper.keep().is_none());
        EPOCH.store(2, Ordering::Relaxed);
        assert!(keeper.keep().is_some() && keeper.keep().is_none());
        keeper.want(Some(20_000));
        keeper.keep();
        keeper.want(None);
        assert!(keeper.keep().is_some() && keeper.keep().is_none());
        assert_eq!(calls(), [300, 300, 20_000, 0]);
        assert_eq!(Keeper::default().keep(), None);
    }
}
