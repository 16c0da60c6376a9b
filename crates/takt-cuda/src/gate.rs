//! The credit of the process: how much predicted time it may still give the GPU.
//!
//! One word holds the credit and how many threads are inside, that is between the moment when they took credit and the
//! return of their call to the driver. So a launch costs two exchanges of one word. A thread that finds too little
//! credit closes the gate, waits until the others have left, and asks the daemon.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// One thread inside.
const INSIDE: u64 = 1 << CREDIT_BITS;
const CREDIT_BITS: u32 = 48;
const CREDIT: u64 = INSIDE - 1;
/// Everything passes, and nothing is taken.
const OPEN: u64 = CREDIT;

/// The most credit: three days.
pub const CREDIT_MAX_NS: u64 = OPEN - 1;

/// How long one looks without sleeping whether others have left.
const LOOKS: u32 = 100;
const NAP: Duration = Duration::from_micros(50);

/// See the module.
#[derive(Default, Debug)]
pub struct Gate(AtomicU64);

/// How the gate stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Credit {
    /// Everything passes.
    Open,
    /// So much predicted time, in nanoseconds.
    Left(u64),
}

impl Gate {
    /// Takes credit and goes inside; false if there is too little.
    #[inline]
    pub fn enter(&self, need_ns: u64) -> bool {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let credit = word & CREDIT;
            let taken = match credit {
                OPEN => 0,
                credit if credit >= need_ns && credit > 0 => need_ns,
                _ => return false,
            };
            let entered = (word - taken) + INSIDE;
            match self.0.compare_exchange_weak(word, entered, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => word = other,
            }
        }
    }

    /// Leaves.
    #[inline]
    pub fn leave(&self) {
        self.0.fetch_sub(INSIDE, Ordering::AcqRel);
    }

    /// How it stands.
    pub fn credit(&self) -> Credit {
        match self.0.load(Ordering::Acquire) & CREDIT {
            OPEN => Credit::Open,
            left => Credit::Left(left),
        }
    }

    /// Everything passes from now on.
    pub fn open(&self) {
        self.set(OPEN);
    }

    /// There is so much credit from now on.
    pub fn fill(&self, ns: u64) {
        self.set(ns.min(CREDIT_MAX_NS));
    }

    /// Nothing passes from now on; waits until no thread is inside. False if one has not left by then: it is in a
    /// call of the driver that waits for something.
    pub fn shut(&self, patience: Duration) -> bool {
        self.set(0);
        for _ in 0..LOOKS {
            if self.is_empty() {
                return true;
            }
            thread::yield_now();
        }
        let begun = Instant::now();
        while !self.is_empty() {
            if begun.elapsed() >= patience {
                return false;
            }
            thread::sleep(NAP);
        }
        true
    }

    /// How many threads are inside.
    pub fn inside(&self) -> u32 {
        u32::try_from(self.0.load(Ordering::Acquire) >> CREDIT_BITS).unwrap_or(u32::MAX)
    }

    /// Whether no thread is inside.
    pub fn is_empty(&self) -> bool {
        self.0.load(Ordering::Acquire) < INSIDE
    }

    fn set(&self, credit: u64) {
        let with = |word: u64| Some((word & !CREDIT) | credit);
        // It cannot fail: there is always another word.
        let _before = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, with);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn credit_is_taken_until_it_is_used_up() {
        let gate = Gate::default();
        assert!(!gate.enter(0), "nothing passes without credit");
        gate.fill(100);
        assert!(gate.enter(60) && !gate.enter(60) && gate.enter(40));
        assert_eq!(gate.credit(), Credit::Left(0));
        assert!(!gate.enter(0) && !gate.is_empty());
        gate.leave();
        gate.leave();
        assert!(gate.is_empty() && gate.shut(Duration::ZERO));
        gate.open();
        assert!((0..1000).all(|_| gate.enter(u64::MAX >> 1)));
        assert_eq!(gate.credit(), Credit::Open);
        assert!(!gate.shut(Duration::ZERO), "a thousand are inside");
        assert_eq!(gate.inside(), 1000);
        assert!(!gate.enter(1));
        (0..1000).for_each(|_| gate.leave());
        assert!(gate.shut(Duration::ZERO));
        gate.fill(u64::MAX);
        assert_eq!(gate.credit(), Credit::Left(CREDIT_MAX_NS));
    }

    #[test]
    fn threads_never_take_more_than_there_is() {
        const NEED: u64 = 7;
        const ROUNDS: u64 = 200;
        let (gate, passed) = (Gate::default(), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while passed.load(Ordering::Relaxed) < ROUNDS * 10 {
                        if gate.enter(NEED) {
                            passed.fetch_add(1, Ordering::Relaxed);
                            gate.leave();
                        } else {
                            thread::yield_now();
                        }
                    }
                });
            }
            let mut given = 0;
            while passed.load(Ordering::Relaxed) < ROUNDS * 10 {
                assert!(gate.shut(Duration::from_secs(60)), "all leave");
                assert!(passed.load(Ordering::Relaxed) <= given, "none passes without credit");
                gate.fill(10 * NEED + 3);
                given += 10;
                while gate.credit() != Credit::Left(3) && passed.load(Ordering::Relaxed) < ROUNDS * 10 {
                    thread::yield_now();
                }
            }
        });
        assert!(gate.is_empty());
    }
}
