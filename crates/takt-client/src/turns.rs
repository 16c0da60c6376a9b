//! How long turns of the program's contexts on the GPU are to last, where several sessions of a process want something.
//!
//! A process has one set of time slices. A session with a contract wants long ones, one without wants short ones; the
//! longest wins, since the work of the contract would be interrupted otherwise.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What sessions want, by their numbers, in microseconds.
static WANTED: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// What a session wants.
#[derive(Default, Debug)]
pub(crate) struct Wish {
    number: AtomicU64,
}

impl Wish {
    pub(crate) const fn none() -> Self {
        Self { number: AtomicU64::new(0) }
    }

    /// The session wants so many microseconds, 0 for the driver's own; how many its process is to have.
    pub(crate) fn want(&self, us: u64) -> u64 {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let mut all = wanted();
        let mut number = self.number.load(Ordering::Relaxed);
        if number == 0 {
            number = NUMBERS.fetch_add(1, Ordering::Relaxed) + 1;
            self.number.store(number, Ordering::Relaxed);
        }
        match all.iter_mut().find(|(other, _)| *other == number) {
            Some(wish) => wish.1 = us,
            None => all.push((number, us)),
        }
        all.iter().map(|(_, us)| *us).max().unwrap_or(us)
    }
}

impl Drop for Wish {
    fn drop(&mut self) {
        let number = *self.number.get_mut();
        if number != 0 {
            wanted().retain(|(other, _)| *other != number);
        }
    }
}

fn wanted() -> MutexGuard<'static, Vec<(u64, u64)>> {
    WANTED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_that_a_session_wants_is_for_all() {
        let (frames, rest) = (Wish::none(), Wish::none());
        assert_eq!(rest.want(300), 300);
        assert_eq!((frames.want(20_000), rest.want(300)), (20_000, 20_000));
        assert_eq!((frames.want(300), rest.want(300)), (300, 300), "its contract went");
        frames.want(20_000);
        drop(frames);
        assert_eq!(rest.want(300), 300, "a session that is gone wants nothing");
    }
}
