//! A bounded queue with one reader, which the writer need not wake.
//!
//! Waking a thread costs the one that wakes it, and on small machines takes a processor away from
//! the renderer. An item that can wait does so until the reader looks again by itself, which it does
//! soon as long as such items come.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long an item that can wait does so at most: about a frame, since predictions learn from it.
const SOON: Duration = Duration::from_millis(5);

/// A queue for one reader, of limited length.
#[derive(Debug)]
pub struct Queue<T> {
    max: usize,
    inner: Mutex<Inner<T>>,
    wake: Condvar,
}

#[derive(Debug)]
struct Inner<T> {
    waiting: VecDeque<T>,
    /// An item that can wait came since the reader last looked for it.
    patient: bool,
    /// The reader sleeps until it is woken.
    asleep: bool,
}

impl<T> Queue<T> {
    /// An empty queue of that length.
    pub fn new(max: usize) -> Self {
        let inner = Inner { waiting: VecDeque::new(), patient: false, asleep: false };
        Self { max, inner: Mutex::new(inner), wake: Condvar::new() }
    }

    /// Adds something, and wakes the reader; gives it back if the queue is full.
    pub fn push(&self, item: T) -> Result<(), T> {
        self.add(item, false)
    }

    /// The same for an item that can wait.
    pub fn push_patiently(&self, item: T) -> Result<(), T> {
        self.add(item, true)
    }

    fn add(&self, item: T, patient: bool) -> Result<(), T> {
        let mut inner = self.lock();
        if inner.waiting.len() >= self.max {
            return Err(item);
        }
        inner.waiting.push_back(item);
        inner.patient |= patient;
        let wakes = !patient || inner.asleep;
        drop(inner);
        if wakes {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Takes what came first, if there is anything.
    pub fn take(&self) -> Option<T> {
        self.lock().waiting.pop_front()
    }

    /// The same, but waits so long for something to come.
    pub fn take_within(&self, time: Duration) -> Option<T> {
        let mut inner = self.lock();
        if inner.waiting.is_empty() && std::mem::take(&mut inner.patient) {
            inner = self.sleep(inner, SOON.min(time));
        }
        if inner.waiting.is_empty() {
            inner.asleep = true;
            inner = self.sleep(inner, time);
            inner.asleep = false;
        }
        inner.waiting.pop_front()
    }

    fn sleep<'a>(&self, inner: MutexGuard<'a, Inner<T>>, time: Duration) -> MutexGuard<'a, Inner<T>> {
        self.wake.wait_timeout(inner, time).unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn things_come_out_in_order_whatever_their_hurry() {
        let queue = Queue::new(3);
        assert_eq!(queue.take(), None);
        queue.push_patiently(1).unwrap();
        queue.push(2).unwrap();
        queue.push_patiently(3).unwrap();
        assert_eq!((queue.push(4), queue.push_patiently(5)), (Err(4), Err(5)), "it is full");
        assert_eq!([queue.take(), queue.take_within(LONG), queue.take()], [Some(1), Some(2), Some(3)]);
        assert_eq!(queue.take_within(Duration::from_millis(1)), None);
    }

    #[test]
    fn items_that_can_wait_reach_a_sleeping_reader() {
        let queue = Queue::new(8);
        thread::scope(|scope| {
            let reader = scope.spawn(|| (0..6).map(|_| queue.take_within(LONG)).collect::<Vec<_>>());
            for n in 0..6 {
                // Half of them find the reader asleep for good, the others wherever it is.
                while n % 2 == 0 && !queue.lock().asleep {
                    thread::yield_now();
                }
                queue.push_patiently(n).unwrap();
            }
            assert_eq!(reader.join().unwrap(), (0..6).map(Some).collect::<Vec<_>>());
        });
    }
}
