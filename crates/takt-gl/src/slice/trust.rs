//! How many commands a group may have.
//!
//! A group is filled by what models predict, and of a program that was never measured they know little: a thousand
//! draws
//! that they take for three milliseconds can take thirty, and delay every other client for as long. So groups begin
//! with
//! [`FIRST`] commands, have twice as many once that many took no longer than was granted, and fewer at once when they
//! took far longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use takt_core::Span;

/// Commands of the first group, and of the first one after a program comes that was never measured.
const FIRST: u64 = 8;

/// A group took far longer than was granted if it took so many times as long, and this much more: other clients'
/// turns are in what was measured.
const FAR: u64 = 2;
const FAR_NS: u64 = 500_000;

/// See the module.
#[derive(Clone, Debug)]
pub struct Trust(Arc<AtomicU64>);

/// A group that tells something about it when its time is known.
#[derive(Clone, Debug)]
pub struct Trusted {
    trust: Trust,
    commands: u64,
    credit: Span,
}

impl Default for Trust {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(FIRST)))
    }
}

impl Trust {
    /// Whether a group of so many commands may have one more.
    pub fn allows(&self, commands: u64) -> bool {
        commands < self.0.load(Relaxed)
    }

    /// Something comes of which nothing is known.
    pub fn begin(&self) {
        self.0.fetch_min(FIRST, Relaxed);
    }

    /// A group of so many commands ends, which was granted that.
    pub fn group(&self, commands: u64, credit: Span) -> Trusted {
        Trusted { trust: self.clone(), commands, credit }
    }
}

impl Trusted {
    /// It took so long.
    pub fn took(&self, cost_ns: u64) {
        let (known, credit_ns) = (&self.trust.0, self.credit.as_ns());
        if cost_ns > credit_ns.saturating_mul(FAR).saturating_add(FAR_NS) {
            let fits = u128::from(self.commands) * u128::from(credit_ns) / u128::from(cost_ns.max(1));
            known.fetch_min(u64::try_from(fits).unwrap_or(u64::MAX).max(1), Relaxed);
        } else if cost_ns <= credit_ns {
            known.fetch_max(self.commands.saturating_mul(2), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_grow_as_long_as_they_take_what_was_granted() {
        let trust = Trust::default();
        let credit = Span::from_ms(3);
        assert!(trust.allows(FIRST - 1) && !trust.allows(FIRST));
        trust.group(FIRST, credit).took(1_000_000);
        assert!(trust.allows(2 * FIRST - 1) && !trust.allows(2 * FIRST));
        trust.group(16, credit).took(4_000_000);
        assert!(!trust.allows(16), "somewhat longer, perhaps because of others: nothing changes");
        trust.group(16, credit).took(48_000_000);
        assert!(trust.allows(0) && !trust.allows(1), "one of them takes what was granted");
        trust.group(1, credit).took(3_000_000);
        assert!(trust.allows(1) && !trust.allows(2), "they grow again");
        (1..20).for_each(|times| trust.group(1 << times, credit).took(0));
        trust.begin();
        assert!(!trust.allows(FIRST), "a program came that was never measured");
    }
}
