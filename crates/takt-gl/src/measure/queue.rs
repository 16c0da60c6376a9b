//! What waits for the thread that measures.
//!
//! Waking a thread costs the one that wakes it, and on small machines takes a processor away from
//! the renderer. What is in no hurry waits until the thread looks again by itself, which it does
//! soon as long as such things come.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long what is in no hurry waits at most: about a frame, since predictions learn from it.
const SOON: Duration = Duration::from_millis(5);

/// A queue for one reader, of limited length.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    max: usize,
    inner: Mutex<Inner<T>>,
    wake: Condvar,
}

#[derive(Debug)]
struct Inner<T> {
    waiting: VecDeque<T>,
    /// Something in no hurry came since the reader last looked for it.
    patient: bool,
    /// The reader sleeps until it is woken.
    asleep: bool,
}

impl<T> Queue<T> {
    /// An empty queue of that length.
    pub(crate) fn new(max: usize) -> Self {
        let inner = Inner { waiting: VecDeque::new(), patient: false, asleep: false };
        Self { max, inner: Mutex::new(inner), wake: Condvar::new() }
    }

    /// Adds something, and wakes the reader; gives it back if the queue is full.
    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        self.add(item, false)
    }

    /// The same for something in no hurry.
    pub(crate) fn push_patiently(&self, item: T) -> Result<(), T> {
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
    pub(crate) fn take(&self) -> Option<T> {
        self.lock().waiting.pop_front()
    }

    /// The same, but waits so long for something to come.
    pub(crate) fn take_within(&self, time: Duration) -> Option<T> {
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
    fn nothing_is_left_behind_when_nobody_is_in_a_hurry() {
        let queue = Queue::new(8);
        thread::scope(|scope| {
            let reader = scope.spawn(|| (0..6).map(|_| queue.take_within(LONG)).collect::<Vec<_>>());
            for n in 0..6 {
                // The reader is asleep, looks again soon, or is not there yet.
                thread::sleep(Duration::from_millis([0, 30, 5, 0, 60, 0][n]));
                queue.push_patiently(n).unwrap();
            }
            assert_eq!(reader.join().unwrap(), (0..6).map(Some).collect::<Vec<_>>());
        });
    }
}
