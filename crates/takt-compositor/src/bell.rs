//! Tells threads that something may be new.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use takt_core::Time;
use takt_os::clock;

/// Counts how often it was rung.
#[derive(Debug, Default)]
pub struct Bell {
    rung: Mutex<u64>,
    news: Condvar,
}

impl Bell {
    /// Wakes all that wait.
    pub fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.news.notify_all();
    }

    /// Waits until `done`, which is asked whenever the bell rings, or until the time is over; says which.
    pub fn wait(&self, until: Time, mut done: impl FnMut() -> bool) -> bool {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if done() {
                return true;
            }
            let left = until.since(clock::now());
            if left.as_ns() == 0 {
                return false;
            }
            let waited = self.news.wait_timeout(rung, Duration::from_nanos(left.as_ns()));
            rung = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
